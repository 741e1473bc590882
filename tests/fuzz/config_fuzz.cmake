cohort_fuzzer(config SOURCES ${CMAKE_CURRENT_LIST_DIR}/config_fuzz.cpp DEPENDS config)

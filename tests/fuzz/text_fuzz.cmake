cohort_fuzzer(text SOURCES ${CMAKE_CURRENT_LIST_DIR}/text_fuzz.cpp DEPENDS data)

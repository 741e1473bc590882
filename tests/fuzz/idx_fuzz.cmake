cohort_fuzzer(idx SOURCES ${CMAKE_CURRENT_LIST_DIR}/idx_fuzz.cpp DEPENDS data)

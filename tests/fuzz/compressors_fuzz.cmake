cohort_fuzzer(compressors SOURCES ${CMAKE_CURRENT_LIST_DIR}/compressors_fuzz.cpp DEPENDS compressors)

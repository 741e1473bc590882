cohort_fuzzer(ring SOURCES ${CMAKE_CURRENT_LIST_DIR}/ring_fuzz.cpp DEPENDS network)

cohort_fuzzer(frame SOURCES ${CMAKE_CURRENT_LIST_DIR}/frame_fuzz.cpp DEPENDS network)

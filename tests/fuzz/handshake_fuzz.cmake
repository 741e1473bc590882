cohort_fuzzer(handshake SOURCES ${CMAKE_CURRENT_LIST_DIR}/handshake_fuzz.cpp DEPENDS network)

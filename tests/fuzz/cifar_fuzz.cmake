cohort_fuzzer(cifar SOURCES ${CMAKE_CURRENT_LIST_DIR}/cifar_fuzz.cpp DEPENDS data)

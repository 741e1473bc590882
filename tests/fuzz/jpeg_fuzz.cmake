if(JPEG_FOUND)
  cohort_fuzzer(jpeg SOURCES ${CMAKE_CURRENT_LIST_DIR}/jpeg_fuzz.cpp DEPENDS data)
endif()

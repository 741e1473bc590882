if(PNG_FOUND)
  cohort_fuzzer(png SOURCES ${CMAKE_CURRENT_LIST_DIR}/png_fuzz.cpp DEPENDS data)
endif()

if(TARGET cohort_server)
  cohort_fuzzer(server_frames SOURCES server_frames_fuzz.cpp DEPENDS server)
endif()

if(TARGET cohort_server)
  cohort_fuzzer(server_frames_client SOURCES server_frames_client_fuzz.cpp DEPENDS server)
endif()

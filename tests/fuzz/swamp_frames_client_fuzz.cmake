if(TARGET cohort_swamp)
  cohort_fuzzer(swamp_frames_client SOURCES swamp_frames_client_fuzz.cpp DEPENDS swamp)
endif()

if(TARGET cohort_swamp)
  cohort_fuzzer(swamp_frames SOURCES swamp_frames_fuzz.cpp DEPENDS swamp)
endif()

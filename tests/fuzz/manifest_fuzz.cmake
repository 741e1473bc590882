cohort_fuzzer(manifest SOURCES manifest_fuzz.cpp DEPENDS storage)

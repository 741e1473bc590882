cohort_fuzzer(safetensors SOURCES safetensors_fuzz.cpp DEPENDS storage)

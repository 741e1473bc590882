# One library per folder of src/, one test program per folder of tests/.
include_guard(GLOBAL)

# Parsing, messages and drawings run once or rarely: at -O1 they compile in half the time.
function(cohort_compile_cold target)
  if(CMAKE_BUILD_TYPE MATCHES "^Rel")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# cohort_library(name [TORCH] [COLD] [PUBLIC_HEADERS ...] SOURCES ... [DEPENDS ...] [LINK ...]
#                [LINK_PRIVATE ...])
# PUBLIC_HEADERS are for programs that use the library: docs/library.md says what for. They and what
# they include are installed.
# DEPENDS lists the layers it may use: that list is its permission. LINK names outside libraries
# that show in its headers, LINK_PRIVATE those that do not.
function(cohort_library name)
  cmake_parse_arguments(ARG "TORCH;COLD" "" "PUBLIC_HEADERS;SOURCES;DEPENDS;LINK;LINK_PRIVATE" ${ARGN})
  add_library(cohort_${name} STATIC ${ARG_SOURCES})
  add_library(Cohort::${name} ALIAS cohort_${name})
  set_target_properties(cohort_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(cohort_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:include/cohort>)
  target_compile_features(cohort_${name} PUBLIC cxx_std_20)
  if(NOT COHORT_KERNELS_FOUND)
    list(REMOVE_ITEM ARG_DEPENDS kernels)
  endif()
  foreach(layer IN LISTS ARG_DEPENDS)
    target_link_libraries(cohort_${name} PUBLIC cohort_${layer})
  endforeach()
  target_link_libraries(cohort_${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_LINK_PRIVATE}
                        $<BUILD_INTERFACE:cohort_options>)
  if(ARG_COLD)
    cohort_compile_cold(cohort_${name})
  endif()
  if(ARG_TORCH)
    target_link_libraries(cohort_${name} PUBLIC ${TORCH_LIBRARIES})
    # Headers of libtorch 1.13 name a type that Clang wants complete.
    target_compile_options(cohort_${name} PUBLIC
      "$<$<CXX_COMPILER_ID:Clang>:SHELL:-include ATen/core/ivalue.h>")
  endif()
  set_property(GLOBAL APPEND PROPERTY COHORT_LIBRARIES cohort_${name})
  foreach(header IN LISTS ARG_PUBLIC_HEADERS)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
      message(FATAL_ERROR "PUBLIC_HEADERS of ${name}: there is no ${header}")
    endif()
  endforeach()
  list(TRANSFORM ARG_PUBLIC_HEADERS PREPEND ${name}/)
  set_property(GLOBAL APPEND PROPERTY COHORT_PUBLIC_HEADERS ${ARG_PUBLIC_HEADERS})
endfunction()

# cohort_test(layer SOURCES ... [DEPENDS ...] [LINK ...] [LABELS ...])
function(cohort_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK;LABELS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  foreach(layer IN LISTS ARG_DEPENDS)
    target_link_libraries(${name}_test PRIVATE cohort_${layer})
  endforeach()
  target_link_libraries(${name}_test PRIVATE ${ARG_LINK} cohort_options GTest::gmock
                        GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()

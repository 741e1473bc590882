# Installs the build, builds the examples against the installed package and runs them.
# Variables: BUILD, CONFIG, EXAMPLES, WORK, GENERATOR, CXX, CXX_FLAGS, TORCH, MINIMUM (accuracy).
function(run_step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# What an earlier run left would hide a file that is no longer installed.
file(REMOVE_RECURSE ${WORK})
run_step("installing" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix
         --config ${CONFIG})
foreach(example own_model many_workers)
  set(build ${WORK}/build/${example})
  run_step("configuring ${example}" ${CMAKE_COMMAND} -S ${EXAMPLES}/${example} -B ${build}
           -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${CXX}
           -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DCMAKE_PREFIX_PATH=${WORK}/prefix -DTorch_DIR=${TORCH})
  run_step("building ${example}" ${CMAKE_COMMAND} --build ${build})
  run_step("running ${example}" ${CMAKE_COMMAND} -E chdir ${build} ./${example})
  message(STATUS "${output}")
  if(NOT output MATCHES "accuracy ([0-9.]+)" OR CMAKE_MATCH_1 LESS MINIMUM)
    message(FATAL_ERROR "${example}: expected an accuracy of at least ${MINIMUM}:\n${output}")
  endif()
endforeach()

# The installed program must find its libraries too.
run_step("the installed program" ${WORK}/prefix/bin/cohort --version)
file(REMOVE_RECURSE ${WORK})

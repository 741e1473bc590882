# Installs the build, compiles every installed header by itself, builds the examples against the
# installed package and runs them. Variables: BUILD, CONFIG, EXAMPLES, LIBRARY (docs/library.md), WORK,
# GENERATOR, CXX, CXX_FLAGS, TORCH, MINIMUM (accuracy).
cmake_policy(VERSION 3.25)

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
set(package -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DTorch_DIR=${TORCH})

# What is installed: the headers that the document names, and what they include. Nothing else.
set(include ${WORK}/prefix/include/cohort)
file(GLOB_RECURSE installed RELATIVE ${include} ${include}/*)
file(STRINGS ${LIBRARY} rows REGEX "^\\| `[a-z]+/[a-z_]+\\.h` \\|")
list(TRANSFORM rows REPLACE "^\\| `([^`]*)`.*" "\\1")
if(NOT rows)
  message(FATAL_ERROR "${LIBRARY} names no header")
endif()
set(reached)
set(sources)
while(rows)
  list(POP_FRONT rows header)
  if(header IN_LIST reached)
    continue()
  endif()
  list(APPEND reached ${header})
  if(NOT header IN_LIST installed)
    message(FATAL_ERROR "${header} is not installed; ${LIBRARY} or another header names it")
  endif()
  file(STRINGS ${include}/${header} lines REGEX "^ *# *include \"")
  list(TRANSFORM lines REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1")
  list(APPEND rows ${lines})
  string(REPLACE "/" "_" source ${header})
  file(WRITE ${WORK}/headers/${source}.cpp "#include \"${header}\"\n")
  list(APPEND sources ${source}.cpp)
endwhile()
list(REMOVE_ITEM installed ${reached})
if(installed)
  message(FATAL_ERROR "installed, but neither in ${LIBRARY} nor included: ${installed}")
endif()
list(LENGTH reached count)
message(STATUS "${count} headers are installed")
list(JOIN sources " " sources)
file(WRITE ${WORK}/headers/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.18)\nproject(Headers LANGUAGES CXX)\n"
  "find_package(Cohort REQUIRED)\nadd_library(headers OBJECT ${sources})\n"
  "target_link_libraries(headers PRIVATE Cohort::runs)\n"
  "target_compile_options(headers PRIVATE -fsyntax-only)\n")
set(build ${WORK}/build/headers)
run_step("configuring headers" ${CMAKE_COMMAND} -S ${WORK}/headers -B ${build} ${package})
run_step("compiling headers" ${CMAKE_COMMAND} --build ${build} --parallel 2)

foreach(example own_model many_workers)
  set(build ${WORK}/build/${example})
  run_step("configuring ${example}" ${CMAKE_COMMAND} -S ${EXAMPLES}/${example} -B ${build}
           ${package} -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_FLAGS=${CXX_FLAGS})
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

# `cmake --install` gives the program, the public headers and a package for find_package(Cohort).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(_libraries GLOBAL PROPERTY COHORT_LIBRARIES)
install(TARGETS ${_libraries} EXPORT CohortTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
get_property(_public GLOBAL PROPERTY COHORT_PUBLIC_HEADERS)
install(CODE "
  set(SOURCE \"${PROJECT_SOURCE_DIR}/src\")
  set(HEADERS \"${_public}\")
  set(DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/cohort\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake\")")
install(EXPORT CohortTargets NAMESPACE Cohort::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Cohort)
configure_package_config_file(cmake/CohortConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/CohortConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Cohort)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/CohortConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/CohortConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/CohortConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Cohort)
if(TARGET cohort)
  install(TARGETS cohort RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

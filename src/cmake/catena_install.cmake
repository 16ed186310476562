# Install rules and the exported package: find_package(catena) gives catena::catena.
include(CMakePackageConfigHelpers)
install(TARGETS catena EXPORT catenaTargets)
foreach(plugin ${CATENA_BUILT_PLUGINS})
  install(TARGETS catena_${plugin} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
if(TARGET catena-run)
  install(TARGETS catena-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/catena DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES ${PROJECT_BINARY_DIR}/include/catena/core/abi_tag.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/catena/core)
install(EXPORT catenaTargets NAMESPACE catena:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/catena)
configure_package_config_file(src/cmake/catenaConfig.cmake.in ${PROJECT_BINARY_DIR}/catenaConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/catena)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/catenaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/catenaConfig.cmake ${PROJECT_BINARY_DIR}/catenaConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/catena)

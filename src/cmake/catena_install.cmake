# Install rules and the exported package: find_package(catena) gives catena::catena.
include(CMakePackageConfigHelpers)
option(CATENA_INSTALL "Install rules of catena, also as a part of another project" ON)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/catenaConfigVersion.cmake COMPATIBILITY SameMinorVersion)

# catena_install_files(LIBDIR <folder> PLUGINDIR <folder> [PREFIX <text>] [OPTIONS <options>...])
# The components runtime, development, launcher and one for each plug-in, their names after PREFIX;
# OPTIONS are handed to each install().
function(catena_install_files)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "LIBDIR;PLUGINDIR;PREFIX" "OPTIONS")
  set(runtime COMPONENT ${arg_PREFIX}runtime ${arg_OPTIONS})
  set(development COMPONENT ${arg_PREFIX}development ${arg_OPTIONS})
  set(launcher COMPONENT ${arg_PREFIX}launcher ${arg_OPTIONS})
  set(package_dir ${arg_LIBDIR}/cmake/catena)

  install(TARGETS catena EXPORT ${arg_PREFIX}catenaTargets
    LIBRARY DESTINATION ${arg_LIBDIR} ${runtime} NAMELINK_COMPONENT ${arg_PREFIX}development)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/catena DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${development}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
  install(FILES ${PROJECT_BINARY_DIR}/include/catena/core/abi_tag.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/catena/core ${development})
  install(EXPORT ${arg_PREFIX}catenaTargets FILE catenaTargets.cmake NAMESPACE catena:: DESTINATION ${package_dir}
    ${development})
  set(config ${PROJECT_BINARY_DIR}/package/${arg_PREFIX}catenaConfig.cmake)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/src/cmake/catenaConfig.cmake.in ${config}
    INSTALL_DESTINATION ${package_dir})
  install(FILES ${config} RENAME catenaConfig.cmake DESTINATION ${package_dir} ${development})
  install(FILES ${PROJECT_BINARY_DIR}/catenaConfigVersion.cmake DESTINATION ${package_dir} ${development})

  if(TARGET catena-run)
    install(TARGETS catena-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${launcher})
    install(TARGETS catena-tensors RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${development})
  endif()
  foreach(plugin ${CATENA_BUILT_PLUGINS})
    install(TARGETS catena_${plugin}
      LIBRARY DESTINATION ${arg_PLUGINDIR} COMPONENT ${arg_PREFIX}${plugin} ${arg_OPTIONS})
  endforeach()
endfunction()

# All that `cmake --install` copies, for builds that do not build everything else too (launch/quickstart).
add_custom_target(catena_installed)
list(TRANSFORM CATENA_BUILT_PLUGINS PREPEND catena_ OUTPUT_VARIABLE plugins)
foreach(target catena catena-run catena-tensors catena_kernels catena_kernel_bundles ${plugins})
  if(TARGET ${target})
    add_dependencies(catena_installed ${target})
  endif()
endforeach()
if(CATENA_INSTALL)
  catena_install_files(LIBDIR ${CMAKE_INSTALL_LIBDIR} PLUGINDIR ${CMAKE_INSTALL_LIBDIR})
endif()
# The build tree is a package as well, for what is built against it (src/comm/mpi): -DCMAKE_PREFIX_PATH=<build tree>.
if(PROJECT_IS_TOP_LEVEL)
  set(package_dir ${PROJECT_BINARY_DIR}/cmake)
  export(TARGETS catena NAMESPACE catena:: FILE ${package_dir}/catenaTargets.cmake)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/src/cmake/catenaConfig.cmake.in ${package_dir}/catenaConfig.cmake
    INSTALL_DESTINATION ${package_dir} INSTALL_PREFIX ${PROJECT_BINARY_DIR})
  configure_file(${PROJECT_BINARY_DIR}/catenaConfigVersion.cmake ${package_dir}/catenaConfigVersion.cmake COPYONLY)
endif()
if(PROJECT_IS_TOP_LEVEL)
  # Removes what the last `cmake --install` of this build tree installed.
  add_custom_target(uninstall
    COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
            -P ${PROJECT_SOURCE_DIR}/src/cmake/catena_uninstall.cmake
    VERBATIM COMMENT "Removing what was installed")
endif()

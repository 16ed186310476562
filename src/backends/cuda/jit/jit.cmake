# The NVRTC part of the cuda plug-in: kernel texts embedded as data, and the bundle of compiled
# kernels, which is stored beside the plug-in. Included from src/backends/cuda/CMakeLists.txt.
set(jit_dir ${CMAKE_CURRENT_SOURCE_DIR}/jit)
file(GLOB kernel_texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/*.h ${PROJECT_SOURCE_DIR}/src/device/*.cuh)
set(jit_texts_cpp ${CMAKE_CURRENT_BINARY_DIR}/jit_texts.cpp)
add_custom_command(OUTPUT ${jit_texts_cpp}
  COMMAND ${CMAKE_COMMAND} -DOUT=${jit_texts_cpp} "-DFILES=${kernel_texts}" -P ${PROJECT_SOURCE_DIR}/src/cmake/embed_texts.cmake
  DEPENDS ${kernel_texts} ${PROJECT_SOURCE_DIR}/src/cmake/embed_texts.cmake
  COMMENT "Embedding kernel texts" VERBATIM)

# Generator, compiler and bundle files, which the plug-in, the bundle tool and the tests share. They
# need no GPU and no driver, and of libcatena only error texts, names of dtypes and the element-wise
# table.
add_library(catena_jit_text STATIC ${jit_texts_cpp}
  ${jit_dir}/compile/source.cpp ${jit_dir}/compile/reduce_source.cpp ${jit_dir}/compile/user_source.cpp
  ${jit_dir}/compile/fused_source.cpp
  ${jit_dir}/compile/texts.cpp
  ${jit_dir}/compile/nvrtc.cpp ${jit_dir}/compile/bundle.cpp)
catena_compile_settings(catena_jit_text)
target_include_directories(catena_jit_text PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_BINARY_DIR}/include ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(catena_jit_text PUBLIC Boost::headers ${CMAKE_DL_LIBS})
target_link_libraries(catena_cuda PRIVATE catena_jit_text)

# Compiles kernels ahead of time: for the build, and, once installed, for `catena-run --prepare`.
add_executable(catena_kernels ${jit_dir}/tool/kernels_main.cpp ${jit_dir}/tool/bundle_list.cpp
  ${jit_dir}/tool/core_programs.cpp
  ${PROJECT_SOURCE_DIR}/src/core/disk_cache.cpp ${PROJECT_SOURCE_DIR}/src/core/dtype.cpp ${PROJECT_SOURCE_DIR}/src/core/error.cpp
  ${PROJECT_SOURCE_DIR}/src/core/fork_mutex.cpp ${PROJECT_SOURCE_DIR}/src/core/lock_file.cpp ${PROJECT_SOURCE_DIR}/src/core/new_file.cpp
  ${PROJECT_SOURCE_DIR}/src/core/half.cpp ${PROJECT_SOURCE_DIR}/src/core/printable.cpp ${PROJECT_SOURCE_DIR}/src/core/shape.cpp
  ${PROJECT_SOURCE_DIR}/src/kernels/elementwise_table.cpp)
catena_compile_settings(catena_kernels)
target_link_libraries(catena_kernels PRIVATE catena_jit_text)
target_compile_definitions(catena_kernels PRIVATE CATENA_INSTALL_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
set_target_properties(catena_kernels PROPERTIES OUTPUT_NAME catena-kernels)
install(TARGETS catena_kernels RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# One bundle for each architecture. The tool takes unchanged kernels from the previous bundle and
# from the cache in the build tree, which the tests of the kernel texts use too.
find_library(CATENA_NVRTC_LIBRARY nvrtc HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
set(CATENA_KERNEL_BUNDLE "core" CACHE STRING
  "Kernels compiled at build time: core (those of ordinary training), full (all standard ones), off")
if(CATENA_KERNEL_BUNDLE STREQUAL "ON" OR CATENA_KERNEL_BUNDLE STREQUAL "OFF")   # of older build trees
  string(REGEX REPLACE "^ON$" "core" CATENA_KERNEL_BUNDLE "${CATENA_KERNEL_BUNDLE}")
  string(TOLOWER "${CATENA_KERNEL_BUNDLE}" CATENA_KERNEL_BUNDLE)
  set_property(CACHE CATENA_KERNEL_BUNDLE PROPERTY VALUE ${CATENA_KERNEL_BUNDLE})
endif()
if(NOT CATENA_KERNEL_BUNDLE MATCHES "^(core|full|off)$")
  message(FATAL_ERROR "CATENA_KERNEL_BUNDLE=${CATENA_KERNEL_BUNDLE}: expected core, full or off")
endif()
set(CATENA_KERNEL_CACHE ${PROJECT_BINARY_DIR}/kernel_cache CACHE INTERNAL "Kernels compiled in this build tree")
set_property(GLOBAL APPEND PROPERTY JOB_POOLS catena_bundles=1)   # the tool itself runs in parallel
set(bundles)
set(full_commands)
foreach(entry ${CMAKE_CUDA_ARCHITECTURES})
  if(NOT entry MATCHES "^([0-9]+)")
    continue()
  endif()
  set(arch ${CMAKE_MATCH_1})
  set(bundle ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/catena_kernels_${arch}.bundle)
  if(bundle IN_LIST bundles)
    continue()
  endif()
  list(APPEND bundles ${bundle})
  set(make_bundle catena_kernels --nvrtc ${CATENA_NVRTC_LIBRARY} --arch ${arch} --out ${bundle}
    --cache ${CATENA_KERNEL_CACHE})
  list(APPEND full_commands COMMAND ${make_bundle} --programs full)
  if(NOT CATENA_KERNEL_BUNDLE STREQUAL "off")
    add_custom_command(OUTPUT ${bundle} COMMAND ${make_bundle} --programs ${CATENA_KERNEL_BUNDLE}
      DEPENDS catena_kernels JOB_POOL catena_bundles VERBATIM
      COMMENT "Compiling the kernel bundle (${CATENA_KERNEL_BUNDLE}) for sm_${arch}")
  endif()
endforeach()
if(NOT CATENA_KERNEL_BUNDLE STREQUAL "off")
  add_custom_target(catena_kernel_bundles ALL DEPENDS ${bundles})
endif()
# All standard kernels, for machines without NVRTC. They are added to the bundles.
add_custom_target(kernels ${full_commands} JOB_POOL catena_bundles VERBATIM
  COMMENT "Compiling all standard kernels")
add_dependencies(kernels catena_kernels)
if(TARGET catena_kernel_bundles)
  add_dependencies(kernels catena_kernel_bundles)
endif()
install(FILES ${bundles} DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)

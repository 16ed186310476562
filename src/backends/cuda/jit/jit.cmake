# The NVRTC half of the cuda plug-in: kernel texts embedded as data, and the bundle of compiled
# kernels that lies beside the plug-in. Included from src/backends/cuda/CMakeLists.txt.
set(jit_dir ${CMAKE_CURRENT_SOURCE_DIR}/jit)
file(GLOB kernel_texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/*.h ${PROJECT_SOURCE_DIR}/src/kernels/*.cuh)
set(jit_texts_cpp ${CMAKE_CURRENT_BINARY_DIR}/jit_texts.cpp)
add_custom_command(OUTPUT ${jit_texts_cpp}
  COMMAND ${CMAKE_COMMAND} -DOUT=${jit_texts_cpp} "-DFILES=${kernel_texts}" -P ${PROJECT_SOURCE_DIR}/src/cmake/embed_texts.cmake
  DEPENDS ${kernel_texts} ${PROJECT_SOURCE_DIR}/src/cmake/embed_texts.cmake
  COMMENT "Embedding kernel texts" VERBATIM)

# Generator, compiler and bundle files: what the plug-in, the bundle tool and the tests share. Needs no
# GPU, no driver and nothing of libcatena but its error texts.
add_library(catena_jit_text STATIC ${jit_texts_cpp}
  ${jit_dir}/compile/op_table.cpp ${jit_dir}/compile/source.cpp ${jit_dir}/compile/reduce_source.cpp ${jit_dir}/compile/user_source.cpp
  ${jit_dir}/compile/fused_source.cpp
  ${jit_dir}/compile/texts.cpp
  ${jit_dir}/compile/nvrtc.cpp ${jit_dir}/compile/bundle.cpp ${jit_dir}/compile/disk_cache.cpp)
catena_compile_settings(catena_jit_text)
target_include_directories(catena_jit_text PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_BINARY_DIR}/include ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(catena_jit_text PUBLIC Boost::headers ${CMAKE_DL_LIBS})
target_link_libraries(catena_cuda PRIVATE catena_jit_text)

add_executable(catena_bundle ${jit_dir}/tool/bundle_main.cpp ${jit_dir}/tool/bundle_list.cpp
  ${PROJECT_SOURCE_DIR}/src/core/error.cpp ${PROJECT_SOURCE_DIR}/src/core/shape.cpp)
catena_compile_settings(catena_bundle)
target_link_libraries(catena_bundle PRIVATE catena_jit_text)
set_target_properties(catena_bundle PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

# One bundle per architecture. The tool takes unchanged kernels from the previous bundle.
find_library(CATENA_NVRTC_LIBRARY nvrtc HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
option(CATENA_KERNEL_BUNDLE "Compile the standard kernels at build time" ON)
set(bundles)
foreach(entry ${CMAKE_CUDA_ARCHITECTURES})
  if(entry MATCHES "^([0-9]+)" AND CATENA_KERNEL_BUNDLE)
    set(bundle ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/catena_kernels_${CMAKE_MATCH_1}.bundle)
    if(NOT bundle IN_LIST bundles)
      list(APPEND bundles ${bundle})
      add_custom_command(OUTPUT ${bundle}
        COMMAND catena_bundle --nvrtc ${CATENA_NVRTC_LIBRARY} --arch ${CMAKE_MATCH_1} --out ${bundle}
        DEPENDS catena_bundle COMMENT "Compiling the kernel bundle for sm_${CMAKE_MATCH_1}" VERBATIM)
    endif()
  endif()
endforeach()
add_custom_target(catena_kernel_bundles ALL DEPENDS ${bundles})
install(FILES ${bundles} DESTINATION ${CMAKE_INSTALL_LIBDIR})

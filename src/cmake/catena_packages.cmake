# cmake --build <build> --target package: packages for Debian and Ubuntu, in <build>/packages.
#   libcatena0.1    the library, and what is compiled for it: its plug-ins lie in <libdir>/catena
#   libcatena-dev   headers, CMake package, catena-tensors
#   catena-run      the launcher, with its manual page
#   libcatena-mpi, -onednn, -cuda, -cudnn, -nccl    plug-ins, as far as they were built
# Packages for others are made with the preset `packages`: for all processors, all standard kernels, for
# several GPUs. Those of any other build tree have what it has, and a lower version, which ends in ~local.
# Sets CATENA_PACKAGES where they can be made.
set(CATENA_PACKAGES OFF)
if(NOT PROJECT_IS_TOP_LEVEL OR CATENA_SANITIZE OR NOT CMAKE_LIBRARY_ARCHITECTURE)
  return()
endif()
set(CATENA_PACKAGE_MAINTAINER "The catena authors <catena@example.org>" CACHE STRING
  "Who makes the packages: name <address>")
set(CATENA_PACKAGE_REVISION 1~local CACHE STRING "Counts the packages of one version of catena")
foreach(program dpkg-deb dpkg-shlibdeps file gzip)
  find_program(CATENA_PACKAGE_${program} ${program})
  mark_as_advanced(CATENA_PACKAGE_${program})
  if(NOT CATENA_PACKAGE_${program})
    message(STATUS "catena: no target package, which needs ${program} (apt-get install dpkg-dev file)")
    return()
  endif()
endforeach()
set(CATENA_PACKAGES ON)

set(CATENA_DEB_VERSION ${PROJECT_VERSION}-${CATENA_PACKAGE_REVISION})
set(deb_runtime_name libcatena${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(deb_development_name libcatena-dev)
set(deb_launcher_name catena-run)
set(components runtime development)
if(TARGET catena-run)
  list(APPEND components launcher)
endif()
foreach(plugin ${CATENA_BUILT_PLUGINS})
  set(deb_${plugin}_name libcatena-${plugin})
  list(APPEND components ${plugin})
endforeach()

add_subdirectory(${PROJECT_SOURCE_DIR}/src/cmake/debian ${PROJECT_BINARY_DIR}/package)   # their files
set(debian ${PROJECT_BINARY_DIR}/package)

# What the packages say of themselves. --------------------------------------------------------------
# catena_deb(<component> SECTION <s> SUMMARY <line> TEXT <lines> [DEPENDS <d>...] [RECOMMENDS <r>...] [SUGGESTS <s>...])
function(catena_deb component)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SECTION;SUMMARY;TEXT" "DEPENDS;RECOMMENDS;SUGGESTS")
  string(TOUPPER CPACK_DEBIAN_DEB_${component} variable)
  set(${variable}_PACKAGE_NAME ${deb_${component}_name} PARENT_SCOPE)
  set(${variable}_PACKAGE_SECTION ${arg_SECTION} PARENT_SCOPE)
  set(${variable}_DESCRIPTION "${arg_SUMMARY}\n${arg_TEXT}" PARENT_SCOPE)
  foreach(field DEPENDS RECOMMENDS SUGGESTS)
    list(JOIN arg_${field} ", " packages)
    set(${variable}_PACKAGE_${field} "${packages}" PARENT_SCOPE)
  endforeach()
endfunction()

set(this_library "${deb_runtime_name} (= ${CATENA_DEB_VERSION})")
set(onednn_plugin)
if(TARGET catena_onednn)   # convolutions are several times as fast with it
  set(onednn_plugin "libcatena-onednn (= ${CATENA_DEB_VERSION})")
endif()
catena_deb(runtime SECTION libs RECOMMENDS ${onednn_plugin}
  SUMMARY "framework for training neural networks, library"
  TEXT "catena has arrays that follow NumPy on CPUs and GPUs, networks that are
recorded while they run, optimizers and communicators. GPUs and MPI are
plug-ins in packages of their own.")
catena_deb(development SECTION libdevel DEPENDS "${this_library}" libboost-dev
  RECOMMENDS "g++ (>= 4:12)" "cmake (>= 3.25)" SUGGESTS dataset-fashion-mnist catena-run
  SUMMARY "framework for training neural networks, development files"
  TEXT "Headers and the CMake package of catena, a C++20 framework for training
neural networks. find_package(catena) gives the target catena::catena.
catena-tensors lists, compares and converts files of tensors.")
set(mpi_plugin)
if(TARGET catena_mpi)
  set(mpi_plugin "libcatena-mpi (= ${CATENA_DEB_VERSION})")
endif()
catena_deb(launcher SECTION science DEPENDS openmpi-bin ${mpi_plugin}
  RECOMMENDS openssh-client
  SUMMARY "starts a program as several ranks and names the rank that failed"
  TEXT "catena-run starts a program through mpirun, one process for each device of
one host or many, and says which rank failed first and why. Programs need not
use catena.")
catena_deb(mpi SECTION libs DEPENDS "${this_library}"
  SUMMARY "framework for training neural networks, ranks over MPI"
  TEXT "The plug-in of catena for communicators over Open MPI.")
catena_deb(onednn SECTION libs DEPENDS "${this_library}"
  SUMMARY "framework for training neural networks, oneDNN"
  TEXT "The plug-in of catena for convolutions on the CPU by oneDNN.")
if(TARGET catena_cuda)
  string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "\\1-\\2" cuda ${CATENA_CUDA_VERSION})
  string(REGEX MATCH "^[0-9]+" cuda_major ${CATENA_CUDA_VERSION})
  catena_deb(cuda SECTION libs DEPENDS "${this_library}" RECOMMENDS cuda-cudart-${cuda} libcublas-${cuda} cuda-nvrtc-${cuda}
    SUMMARY "framework for training neural networks, NVIDIA GPUs"
    TEXT "The plug-in of catena for NVIDIA GPUs. It needs NVIDIA's driver, CUDA runtime
and cuBLAS, and NVRTC for kernels of one's own; NVIDIA's package source has
them. Without them catena says what is missing when a GPU is asked for.")
  catena_deb(cudnn SECTION libs DEPENDS "${this_library}" "libcatena-cuda (= ${CATENA_DEB_VERSION})"
    RECOMMENDS libcudnn9-cuda-${cuda_major}
    SUMMARY "framework for training neural networks, cuDNN"
    TEXT "The plug-in of catena for convolutions on NVIDIA GPUs by cuDNN 9, which NVIDIA's
package source has.")
  catena_deb(nccl SECTION libs DEPENDS "${this_library}" "libcatena-cuda (= ${CATENA_DEB_VERSION})"
    RECOMMENDS "libnccl2 (>= 2.18)"
    SUMMARY "framework for training neural networks, ranks over NCCL"
    TEXT "The plug-in of catena for collectives between NVIDIA GPUs. It needs NCCL, which
NVIDIA's package source has.")
endif()
file(WRITE ${debian}/shlibs "libcatena ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${this_library}\n")
file(WRITE ${debian}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_DEB_RUNTIME_PACKAGE_CONTROL_EXTRA ${debian}/shlibs ${debian}/triggers)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
list(TRANSFORM components PREPEND deb_ OUTPUT_VARIABLE CPACK_COMPONENTS_ALL)
set(CPACK_PACKAGE_NAME catena)
set(CPACK_PACKAGE_CONTACT "${CATENA_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${CATENA_PACKAGE_REVISION})
set(CPACK_DEBIAN_PACKAGE_SOURCE catena)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} ${CATENA_CUDA_FOLDERS})
include(CPack)

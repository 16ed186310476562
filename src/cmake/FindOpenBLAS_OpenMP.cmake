# OpenBLAS in its OpenMP build, which shares its threads with our loops. Debian keeps the builds in
# folders of their own; elsewhere any libopenblas is taken and checked at start.
# Defines the target OpenBLAS::OpenBLAS.
find_library(OPENBLAS_LIBRARY NAMES openblas
  PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas-openmp
  HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp /usr/lib/x86_64-linux-gnu/openblas-openmp)
find_path(OPENBLAS_INCLUDE_DIR NAMES cblas.h
  HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp /usr/include/x86_64-linux-gnu/openblas-openmp
  PATH_SUFFIXES openblas openblas-openmp ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp ${CMAKE_LIBRARY_ARCHITECTURE})
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS_OpenMP
  REQUIRED_VARS OPENBLAS_LIBRARY OPENBLAS_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install it with: apt-get install libopenblas-openmp-dev (launch/install-deps does)")
if(OpenBLAS_OpenMP_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES
    IMPORTED_LOCATION ${OPENBLAS_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OPENBLAS_INCLUDE_DIR})
endif()

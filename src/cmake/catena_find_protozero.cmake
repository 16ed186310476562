# Finds protozero, headers that read protocol buffers, for F::CaffeFunction. Sets CATENA_HAVE_PROTOZERO
# and PROTOZERO_INCLUDE_DIR. Nothing of it is in public headers or left at run time.
set(CATENA_HAVE_PROTOZERO OFF)
if(NOT CATENA_CAFFE STREQUAL "OFF")
  find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp HINTS ENV PROTOZERO_HOME PATH_SUFFIXES include)
  if(PROTOZERO_INCLUDE_DIR)
    set(CATENA_HAVE_PROTOZERO ON)
  elseif(CATENA_CAFFE STREQUAL "ON")
    message(FATAL_ERROR "CATENA_CAFFE=ON but protozero was not found; install libprotozero-dev or set PROTOZERO_HOME")
  else()
    message(STATUS "catena: no protozero: F::CaffeFunction will not read models; install libprotozero-dev or set PROTOZERO_HOME")
  endif()
endif()

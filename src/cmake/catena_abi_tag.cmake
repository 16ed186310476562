# A plug-in fits a libcatena when both were built from the same public headers, compiler ABI and Boost.
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/catena/*.h ${PROJECT_SOURCE_DIR}/include/catena/*.def)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${public_headers})
set(digest "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} boost ${Boost_VERSION_STRING} ")
foreach(header ${public_headers})
  file(SHA256 ${header} one)
  string(APPEND digest " ${one}")
endforeach()
string(SHA256 digest "${digest}")
string(SUBSTRING ${digest} 0 16 digest)
set(CATENA_ABI_TAG "${PROJECT_VERSION}-${digest}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/catena/core/abi_tag.h
  CONTENT "// Generated: identifies this build of libcatena to its plug-ins.\n#pragma once\n#define CATENA_ABI_TAG \"@CATENA_ABI_TAG@\"\n" @ONLY)

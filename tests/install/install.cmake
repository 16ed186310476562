# Installs BUILD into an empty PREFIX and looks for what users need.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}
  OUTPUT_QUIET ERROR_VARIABLE errors RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "cmake --install failed: ${errors}")
endif()
foreach(pattern "include/catena/array/array.h" "include/catena/core/abi_tag.h" "bin/catena-run" "bin/catena-tensors"
        "lib*/libcatena.so" "lib*/cmake/catena/catenaConfig.cmake")
  file(GLOB_RECURSE found ${PREFIX}/${pattern})
  file(GLOB direct ${PREFIX}/${pattern} ${PREFIX}/lib/*/libcatena.so ${PREFIX}/lib/*/cmake/catena/catenaConfig.cmake)
  if(NOT found AND NOT direct)
    message(FATAL_ERROR "${pattern} was not installed")
  endif()
endforeach()

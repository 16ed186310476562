# The target `reference`: the public headers as HTML, in <build>/reference/html. tests/reference uses
# the same settings to look for public symbols without a comment.
find_program(CATENA_DOXYGEN doxygen)
# The system's Python first: wrappers of version managers take half a second to start, and the filter
# starts for every header.
find_program(CATENA_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(CATENA_PYTHON NAMES python3)
mark_as_advanced(CATENA_DOXYGEN CATENA_PYTHON)

# catena_configure_reference(<folder> <html>): writes <folder>/Doxyfile, whose output goes to <folder>;
# <html> is YES or NO.
function(catena_configure_reference folder html)
  set(CATENA_REFERENCE_FOLDER ${folder})
  set(CATENA_REFERENCE_HTML ${html})
  configure_file(${PROJECT_SOURCE_DIR}/docs/reference/Doxyfile.in ${folder}/Doxyfile @ONLY)
endfunction()

if(CATENA_DOXYGEN AND CATENA_PYTHON)
  catena_configure_reference(${PROJECT_BINARY_DIR}/reference YES)
  add_custom_target(reference
    COMMAND ${CATENA_DOXYGEN} Doxyfile
    COMMAND ${CMAKE_COMMAND} -E echo "reference: ${PROJECT_BINARY_DIR}/reference/html/index.html"
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/reference VERBATIM)
else()
  add_custom_target(reference
    COMMAND ${CMAKE_COMMAND} -E echo
      "reference: doxygen and python3 are needed (apt install doxygen python3); then run cmake again"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()

# catena_list(<target> <name> REGEX <regex> FILES files... [ONCE] [FILE_LINE text ROOT folder]): the
# sources of the target may include "lists/<name>.inc", which has a line CATENA_ITEM(x) for each line of
# the files that matches the regex; x is what the regex captures. So a part of the program names itself in
# its own file alone, and the list follows when the build runs. Two lines of the same name are an error,
# or with ONCE count as one. FILE_LINE stands before the items for each file that has some, with @FILE@ as
# its path below ROOT.
function(catena_list target name)
  cmake_parse_arguments(list "ONCE" "REGEX;FILE_LINE;ROOT" "FILES" ${ARGN})
  set(out ${PROJECT_BINARY_DIR}/include/lists/${name}.inc)
  set(script ${PROJECT_SOURCE_DIR}/src/cmake/collect_list.cmake)
  add_custom_command(OUTPUT ${out} DEPENDS ${list_FILES} ${script} VERBATIM COMMENT "Collecting ${name}"
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} "-DREGEX=${list_REGEX}" -DONCE=${list_ONCE}
      "-DFILE_LINE=${list_FILE_LINE}" -DROOT=${list_ROOT} "-DFILES=${list_FILES}" -P ${script})
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/include)
endfunction()

# catena_list_families(<target> <backend> [folder]): "lists/<backend>_families.inc" has the blocks
# CATENA_FAMILY(<backend>, x) in the sources of the folder, by default the backend's.
function(catena_list_families target backend)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR})
  if(ARGN)
    set(folder ${ARGN})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  catena_list(${target} ${backend}_families REGEX "^CATENA_FAMILY\\(${backend}, ([a-z0-9_]+)\\)" FILES ${sources})
endfunction()

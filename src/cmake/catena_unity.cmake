# Files that are compiled together (CATENA_UNITY): headers are parsed and templates instantiated once for
# several files. launch/quickstart and the asan tree of tests/run build so. The dev and tsan trees compile
# each file by itself, so that one that relies on the includes of another still fails.
option(CATENA_UNITY "Compile several files of a folder together: less to compile at first, more after a change" OFF)

# catena_unity(<target> FOLDERS <regex> [EXCEPT <regex>]): the target's files in folders that match are
# compiled in groups of one folder each, in order of their names. EXCEPT is for files that are long to
# compile, and for those that define a class with members of local types, about which GCC warns outside of
# the main file. No two others of a folder may define the same local name (tests/local_names_test).
function(catena_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDERS;EXCEPT" "")
  if(NOT CATENA_UNITY)
    return()
  endif()
  set(files_of_a_group 10)
  get_target_property(sources ${target} SOURCES)
  get_target_property(root ${target} SOURCE_DIR)
  list(SORT sources)
  set(previous "")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${root})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${root} OUTPUT_VARIABLE name)
    cmake_path(GET name PARENT_PATH folder)
    if(NOT name MATCHES "\\.cpp$" OR NOT folder MATCHES "^(${arg_FOLDERS})$" OR (arg_EXCEPT AND name MATCHES "^(${arg_EXCEPT})\\.cpp$"))
      continue()
    endif()
    if(NOT folder STREQUAL previous)
      set(previous ${folder})
      set(count 0)
    endif()
    math(EXPR number "${count} / ${files_of_a_group}")
    math(EXPR count "${count} + 1")
    string(REPLACE "/" "_" group "${folder}_${number}")
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

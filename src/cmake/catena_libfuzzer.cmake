# catena_add_libfuzzer(<target> SOURCES ... INSTRUMENTED ...): a custom target that builds
# bin/<target> with clang's libFuzzer and address sanitizer. INSTRUMENTED names sources of libcatena,
# relative to src, that are compiled into the program so that their branches and accesses are seen;
# the rest comes from libcatena as it is. Without a clang that has libFuzzer there is no target.
find_program(CATENA_CLANGXX NAMES clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14)
set(CATENA_FUZZ_FLAGS -fsanitize=fuzzer,address,undefined -fno-sanitize=signed-integer-overflow
  -fno-sanitize-recover=undefined)

function(catena_find_libfuzzer)
  if(DEFINED CATENA_HAVE_LIBFUZZER OR NOT CATENA_CLANGXX)
    return()
  endif()
  set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/libfuzzer_probe)
  file(WRITE ${probe}.cpp
    "#include <cstddef>\n#include <cstdint>\nextern \"C\" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) { return 0; }\n")
  execute_process(COMMAND ${CATENA_CLANGXX} ${CATENA_FUZZ_FLAGS} ${probe}.cpp -o ${probe}
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(CATENA_HAVE_LIBFUZZER ON CACHE INTERNAL "clang links libFuzzer programs")
  else()
    set(CATENA_HAVE_LIBFUZZER OFF CACHE INTERNAL "clang links libFuzzer programs")
  endif()
endfunction()

function(catena_add_libfuzzer target)
  cmake_parse_arguments(FUZZ "" "" "SOURCES;INSTRUMENTED" ${ARGN})
  catena_find_libfuzzer()
  # Two address sanitizers in one process do not work.
  if(NOT CATENA_HAVE_LIBFUZZER OR CATENA_SANITIZE)
    return()
  endif()
  set(FUZZ_INCLUDES)
  if(CATENA_HAVE_PROTOZERO)
    set(FUZZ_INCLUDES -idirafter ${PROTOZERO_INCLUDE_DIR})
  endif()
  set(sources)
  foreach(source ${FUZZ_SOURCES})
    list(APPEND sources ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endforeach()
  foreach(source ${FUZZ_INSTRUMENTED})
    list(APPEND sources ${PROJECT_SOURCE_DIR}/src/${source})
  endforeach()
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${target})
  add_custom_command(OUTPUT ${program}
    COMMAND ${CATENA_CLANGXX} -std=c++20 -O1 -g -fwrapv ${CATENA_FUZZ_FLAGS} -DCATENA_LIBFUZZER
      -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_BINARY_DIR}/include -I${PROJECT_SOURCE_DIR}/src
      -I${PROJECT_SOURCE_DIR}/tests ${FUZZ_INCLUDES}
      ${sources} -o ${program} $<TARGET_FILE:catena> -Wl,-rpath,$<TARGET_FILE_DIR:catena> -lz
    DEPENDS catena ${sources} VERBATIM)
  add_custom_target(${target} DEPENDS ${program})
endfunction()

# Compiler settings shared by every target of the project.

# CCACHE_DISABLE in the environment, ccache's own switch, counts as if there were none.
find_program(CCACHE_PROGRAM ccache)
set(with_ccache OFF)
if(CCACHE_PROGRAM AND NOT DEFINED ENV{CCACHE_DISABLE})
  set(with_ccache ON)
endif()

# Headers that most files begin with are parsed once. Not with ccache by default: its cache would be
# missed in other build trees, as a precompiled header names its own.
if(with_ccache)
  option(CATENA_PCH "Precompile headers that most files include" OFF)
else()
  option(CATENA_PCH "Precompile headers that most files include" ON)
endif()

# Without its preprocessor mode ccache compares whole headers. That mode overlooks changed comments and
# would bring back a precompiled header made of the old texts, with which nothing compiles.
if(with_ccache)
  set(launcher ${CCACHE_PROGRAM})
  if(CATENA_PCH)
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${launcher})
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Numerical rules of the project (docs/decisions.md, "Numerical flags"): no contraction, so that + - * / agree bit
# for bit on all devices; signed integers wrap, as on the GPU and in NumPy.
set(CATENA_CXX_FLAGS -ffp-contract=off -fno-math-errno -fwrapv)
# stringop-overread: false alarms of GCC 12 inside boost::container::small_vector.
set(CATENA_WARNINGS -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-stringop-overread)
if(CATENA_WERROR)
  list(APPEND CATENA_WARNINGS -Werror)
endif()
if(CATENA_SANITIZE)
  # -O1 and line numbers are enough for reports, and take half the time to compile.
  add_compile_options(-fsanitize=${CATENA_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  if(CATENA_SANITIZE_NOT)
    add_compile_options(-fno-sanitize=${CATENA_SANITIZE_NOT})
  endif()
  add_link_options(-fsanitize=${CATENA_SANITIZE})
endif()

function(catena_compile_settings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${CATENA_CXX_FLAGS}> $<$<COMPILE_LANGUAGE:CXX>:${CATENA_WARNINGS}>)
endfunction()

# catena_export_only(<target> <script>): the library exports what the linker script lists. Not under
# sanitizers, which compare types by the addresses of their descriptions.
function(catena_export_only target script)
  if(CATENA_SANITIZE)
    return()
  endif()
  target_link_options(${target} PRIVATE "LINKER:--version-script=${script}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
endfunction()

# catena_precompile(<target> header): for targets of many files.
function(catena_precompile target header)
  if(CATENA_PCH)
    target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/${header}>")
    catena_silence_precompiled(${target})
  endif()
endfunction()

# catena_precompile_from(<target> <owner>): with the headers that were compiled for another target. Not for
# programs that are linked from the objects of another build tree.
function(catena_precompile_from target owner)
  if(CATENA_PCH AND NOT CATENA_TEST_OBJECTS)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    catena_silence_precompiled(${target})
  endif()
endfunction()

# False alarms inside Boost's small_vector, which GCC keeps to itself when the header is parsed.
function(catena_silence_precompiled target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>)
endfunction()

# Compiler settings shared by every target of the project.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Numerical rules of the project (see docs/decisions.md): no contraction, so that + - * / agree bit
# for bit on all devices; signed integers wrap, as on the GPU and in NumPy.
set(CATENA_CXX_FLAGS -ffp-contract=off -fno-math-errno -fwrapv)
# stringop-overread: false alarms of GCC 12 inside boost::container::small_vector.
set(CATENA_WARNINGS -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-stringop-overread)
if(CATENA_WERROR)
  list(APPEND CATENA_WARNINGS -Werror)
endif()
if(CATENA_SANITIZE)
  add_compile_options(-fsanitize=${CATENA_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${CATENA_SANITIZE})
endif()

function(catena_compile_settings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${CATENA_CXX_FLAGS}> $<$<COMPILE_LANGUAGE:CXX>:${CATENA_WARNINGS}>)
endfunction()

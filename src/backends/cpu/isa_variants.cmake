# The element-wise loops are compiled once for each x86-64 level; the table is chosen at start.
file(GLOB loop_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/backends/cpu/loops/*.cpp)
set(CATENA_ISA_LEVELS v2 v3 v4)
if(CATENA_SANITIZE)
  set(CATENA_ISA_LEVELS v3)   # one level is enough under a sanitizer
endif()
foreach(level ${CATENA_ISA_LEVELS})
  add_library(catena_loops_${level} OBJECT ${loop_sources})
  catena_compile_settings(catena_loops_${level})
  target_compile_options(catena_loops_${level} PRIVATE -march=x86-64-${level} -O3 -fno-trapping-math -Wno-psabi)
  if(CATENA_SANITIZE)
    # Instrumented loops lose their annotations, and GCC's warning about it has no name to switch off.
    target_compile_options(catena_loops_${level} PRIVATE -Wno-error)
  endif()
  if(level STREQUAL "v4")
    target_compile_options(catena_loops_${level} PRIVATE -mprefer-vector-width=512)
  endif()
  target_compile_definitions(catena_loops_${level} PRIVATE CATENA_ISA=${level})
  target_include_directories(catena_loops_${level} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(catena_loops_${level} PRIVATE Boost::headers)
  target_link_libraries(catena PRIVATE $<BUILD_INTERFACE:catena_loops_${level}>)
  target_compile_definitions(catena PRIVATE CATENA_HAVE_ISA_${level})
endforeach()

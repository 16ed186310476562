# CATENA_NUMPY_PYTHON: a Python 3 that has NumPy 1.23 or newer, or empty. The distribution's python3
# comes first: the one in PATH may be another without NumPy.
foreach(candidate /usr/bin/python3 python3)
  if(CATENA_NUMPY_PYTHON)
    break()
  endif()
  execute_process(COMMAND ${candidate} -c
    "import sys, numpy; sys.exit(tuple(map(int, numpy.__version__.split('.')[:2])) < (1, 23))"
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(CATENA_NUMPY_PYTHON ${candidate} CACHE STRING "Python 3 with NumPy, for tests")
  endif()
endforeach()

# Runs the program of a tutorial in a folder of its own and compares what it prints with the page.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${PROGRAM} WORKING_DIRECTORY ${FOLDER} OUTPUT_FILE ${FOLDER}/printed.txt
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the page's program ended with ${status}")
endif()
file(READ ${EXPECTED} expected)
file(READ ${FOLDER}/printed.txt printed)
if(NOT expected STREQUAL "" AND NOT expected STREQUAL printed)
  message(FATAL_ERROR "the page says it prints\n${expected}\nbut it printed\n${printed}")
endif()

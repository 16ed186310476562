# Makes the packages of BUILD, as it is, in PACKAGES.
file(REMOVE_RECURSE ${PACKAGES})
execute_process(COMMAND ${CPACK} --config ${BUILD}/CPackConfig.cmake -B ${PACKAGES} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${PACKAGES}/_CPack_Packages)

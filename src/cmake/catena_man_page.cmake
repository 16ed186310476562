# Writes the manual page of a program to OUT (gzipped): what PROGRAM --help says, for the version VERSION,
# and the name of a page that it refers to, SEE_ALSO, or none.
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "^[^\n]*" summary "${help}")
string(REGEX REPLACE "\\.$" "" summary "${summary}")
get_filename_component(name ${PROGRAM} NAME)
string(TOUPPER ${name} title)
string(REPLACE "\\" "\\e" help "${help}")
string(REPLACE "-" "\\-" help "${help}")
string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" help "${help}")   # would be a request of roff
set(see_also)
if(SEE_ALSO)
  set(see_also ".SH SEE ALSO\n.BR ${SEE_ALSO} (1)\n")
endif()
file(WRITE ${OUT}.tmp ".TH ${title} 1 \"\" \"catena ${VERSION}\" \"User Commands\"
.SH NAME
${name} \\- ${summary}
.SH DESCRIPTION
.nf
${help}.fi
${see_also}")
execute_process(COMMAND gzip -9nc ${OUT}.tmp OUTPUT_FILE ${OUT} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${OUT}.tmp)

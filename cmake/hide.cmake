# SPDX-License-Identifier: Apache-2.0
# cmake -DARCHIVE=liblocus.a -DNM=nm -DOBJCOPY=objcopy -P hide.cmake: global names of the archive that do
# not begin with locus_ get that beginning, in every member, so that a program that links it has all
# other names to itself. Members stay apart: only what is used is linked.
execute_process(COMMAND ${NM} -g --defined-only ${ARCHIVE}
  OUTPUT_VARIABLE listed ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[0-9a-f]+ [A-Za-z] [^\n]+" lines "${listed}")
set(map)
foreach(line ${lines})
  string(REGEX REPLACE ".* " "" name "${line}")
  # Names with a dot are the compiler's own (__odr_asan.x), and go with those they stand beside.
  if(NOT name MATCHES "^locus_" AND name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    string(APPEND map "${name} locus_inner_${name}\n")
  endif()
endforeach()
if(map)
  file(WRITE ${ARCHIVE}.names "${map}")
  execute_process(COMMAND ${OBJCOPY} --redefine-syms=${ARCHIVE}.names ${ARCHIVE}
    COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE ${ARCHIVE}.names)
endif()

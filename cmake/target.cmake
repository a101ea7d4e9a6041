# SPDX-License-Identifier: Apache-2.0
# What is built for, as the compiler says: CC=aarch64-linux-gnu-gcc and CC=musl-gcc need no toolchain
# file. Libraries that only programs use (cairo, MPI, OpenMP) are tried before they count as there,
# so that what the host has is never linked into something that runs elsewhere.

include(CheckCSourceCompiles)
include(CheckCSourceRuns)

if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
  message(FATAL_ERROR "Locus needs a 64-bit target: found pointers of ${bits} bits")
endif()

set(locus_elf TRUE) # the format of objects: version scripts, -z flags
if(APPLE OR WIN32)
  set(locus_elf FALSE)
endif()
set(locus_processor ${CMAKE_SYSTEM_PROCESSOR})
set(locus_cross ${CMAKE_CROSSCOMPILING})
if(NOT CMAKE_CROSSCOMPILING)
  separate_arguments(arguments UNIX_COMMAND "${CMAKE_C_COMPILER_ARG1} ${CMAKE_C_FLAGS}")
  execute_process(COMMAND ${CMAKE_C_COMPILER} ${arguments} -dumpmachine
    OUTPUT_VARIABLE machine OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed EQUAL 0 AND machine MATCHES "^([^-]+)-")
    set(locus_processor ${CMAKE_MATCH_1})
  endif()
  foreach(name locus_processor CMAKE_HOST_SYSTEM_PROCESSOR) # one spelling
    string(TOLOWER "${${name}}" ${name}_plain)
    string(REGEX REPLACE "^(amd64|x86_64)$" "x86_64" ${name}_plain "${${name}_plain}")
    string(REGEX REPLACE "^(arm64|aarch64)$" "aarch64" ${name}_plain "${${name}_plain}")
  endforeach()
  if(NOT locus_processor_plain STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR_plain)
    set(locus_cross TRUE)
  endif()
endif()

# In `result`: a program of `source` links with `libraries`, and starts where it can be started.
function(locus_try result source)
  set(CMAKE_REQUIRED_LIBRARIES ${ARGN})
  set(CMAKE_REQUIRED_QUIET ON)
  if(locus_cross)
    check_c_source_compiles("${source}" ${result})
  else()
    check_c_source_runs("${source}" ${result})
  endif()
  set(${result} ${${result}} PARENT_SCOPE)
endfunction()

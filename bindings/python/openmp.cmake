# SPDX-License-Identifier: Apache-2.0
# The OpenMP runtime inside the wheel, so that a machine needs nothing but glibc (manylinux). It keeps
# its name, libgomp.so.1 as a rule: a process that has loaded one of that name, PyTorch's for
# example, uses that one for both, and there is one pool of threads.

function(locus_openmp_file file) # what the compiler links for -fopenmp; empty: nothing to bring along
  set(${file} "" PARENT_SCOPE)
  foreach(library ${OpenMP_C_LIB_NAMES})
    set(path ${OpenMP_${library}_LIBRARY})
    if(path MATCHES "\\.so$" AND library MATCHES "gomp|omp")
      get_filename_component(folder ${path} REALPATH)
      set(${file} ${folder} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

if(NOT LOCUS_THREAD_FLAGS)
  return()
endif()
locus_openmp_file(openmp_file)
if(NOT openmp_file)
  return()
endif()
# The name that the extension module asks for is the library's own, not that of its file.
execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${openmp_file} OUTPUT_VARIABLE headers)
if(NOT headers MATCHES "SONAME +([^ \n]+)")
  message(FATAL_ERROR "${openmp_file} has no SONAME")
endif()
install(FILES ${openmp_file} DESTINATION locus RENAME ${CMAKE_MATCH_1} COMPONENT python)
set_target_properties(locus-python PROPERTIES INSTALL_RPATH "$ORIGIN")

# Its licence, which is not ours: the GPL 3 with the exception for runtime libraries, as the system's package has it.
file(GLOB openmp_notices /usr/share/doc/libgomp1/copyright /usr/share/doc/gcc-*-base/copyright
  /usr/share/licenses/libgomp/*  /usr/share/licenses/gcc-libs/*)
if(openmp_notices)
  list(GET openmp_notices -1 openmp_notice)
  list(FILTER openmp_notices INCLUDE REGEX "libgomp")
  if(openmp_notices)
    list(GET openmp_notices 0 openmp_notice)
  endif()
  install(FILES ${openmp_notice} DESTINATION locus/licenses RENAME libgomp.txt COMPONENT python)
else()
  message(WARNING "No licence text of ${CMAKE_MATCH_1} on this system: a wheel that is given to others must have it")
endif()
if(EXISTS /usr/share/common-licenses/GPL-3)
  install(FILES /usr/share/common-licenses/GPL-3 DESTINATION locus/licenses RENAME GPL-3.txt COMPONENT python)
endif()

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

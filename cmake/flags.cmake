# SPDX-License-Identifier: Apache-2.0
# Compiler and linker flags. Three interface targets carry them:
#   locus-flags    everything we compile: warnings, hardening, determinism
#   locus-threads  OpenMP, or nothing
#   locus-program  what only programs may have
#
# Nothing here may relax floating point or name this machine's CPU (tests/symbols checks).

include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
if(NOT CMAKE_BUILD_TYPE AND locus_top_level)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported(LANGUAGES C)
add_library(locus-flags INTERFACE)
add_library(locus-threads INTERFACE)
add_library(locus-program INTERFACE)

# Add to `target` those flags that the compiler knows. Some compilers warn about what
# they do not know, so a flag is tried together with -Werror.
function(locus_compile_flags target)
  foreach(flag ${ARGN})
    string(MAKE_C_IDENTIFIER "LOCUS_HAS${flag}" known)
    set(CMAKE_REQUIRED_FLAGS -Werror)
    set(CMAKE_REQUIRED_QUIET ON)
    check_c_compiler_flag(${flag} ${known})
    if(${known})
      target_compile_options(${target} INTERFACE ${flag})
    endif()
  endforeach()
endfunction()

function(locus_link_flags target)
  foreach(flag ${ARGN})
    string(MAKE_C_IDENTIFIER "LOCUS_LINKS${flag}" known)
    set(CMAKE_REQUIRED_QUIET ON)
    check_linker_flag(C ${flag} ${known})
    if(${known})
      target_link_options(${target} INTERFACE ${flag})
    endif()
  endforeach()
endfunction()

locus_compile_flags(locus-flags
  -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wvla -Wstrict-prototypes -Wformat=2
  -Wimplicit-fallthrough
  # Enumerators are our constants: 1.0 / SYMBOLS says what it means. Strings of a table may be long.
  -Wno-enum-float-conversion -Wno-string-concatenation
  # The same bits everywhere: no contraction of a*b+c unless the source says fma.
  -ffp-contract=off
  -fno-strict-aliasing
  -fstack-protector-strong
  -fstack-clash-protection
  -fcf-protection=full
  -ftrivial-auto-var-init=zero
  -fstrict-flex-arrays=3
  # No path of the build machine in what we ship.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
# gcc 12 for aarch64 stops with an internal error where it makes vectors of a conditional maximum.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13 AND
   locus_processor MATCHES "^(aarch64|arm64)$")
  target_compile_options(locus-flags INTERFACE -fno-tree-loop-vectorize)
endif()
if(locus_elf)
  locus_link_flags(locus-flags -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  locus_link_flags(locus-program -Wl,-z,nodlopen)
endif()
if(APPLE)
  target_compile_definitions(locus-flags INTERFACE _DARWIN_C_SOURCE) # what POSIX does not know: sysconf's cores
endif()

if(LOCUS_WERROR)
  target_compile_options(locus-flags INTERFACE -Werror)
endif()

if(LOCUS_SANITIZE)
  # The sanitizers replace FORTIFY and need undefined symbols in shared libraries.
  set(CMAKE_C_FLAGS_RELEASE "-O1 -g -fno-omit-frame-pointer")
  set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_compile_options(locus-flags INTERFACE ${sanitizers})
  target_link_options(locus-flags INTERFACE ${sanitizers})
  set(LOCUS_NO_UNDEFINED)
else()
  if(NOT WIN32) # FORTIFY needs an optimising build, and a C library that knows it.
    target_compile_options(locus-flags INTERFACE
      $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>)
  endif()
  set(LOCUS_NO_UNDEFINED)
  if(locus_elf)
    set(LOCUS_NO_UNDEFINED -Wl,-z,defs)
  endif()
endif()

set(LOCUS_THREAD_FLAGS)
if(LOCUS_OPENMP)
  find_package(OpenMP COMPONENTS C QUIET)
  if(OpenMP_C_FOUND)
    locus_try(LOCUS_OPENMP_WORKS "#include <omp.h>
int main(void) { return omp_get_max_threads() > 0 ? 0 : 1; }" OpenMP::OpenMP_C)
  endif()
  if(LOCUS_OPENMP_WORKS)
    separate_arguments(LOCUS_THREAD_FLAGS UNIX_COMMAND "${OpenMP_C_FLAGS}")
    target_compile_options(locus-threads INTERFACE ${LOCUS_THREAD_FLAGS})
  else()
    message(STATUS "No OpenMP for this compiler: a serial build")
  endif()
endif()

# SPDX-License-Identifier: Apache-2.0
# What the toolchain files of other systems share: the C compiler, headers and C libraries of all of them
# that the Python package ziglang brings along. tools/zig.sh puts it into build/zig; LOCUS_ZIG, of CMake or
# of the environment, names the program zig of another place. A file sets, before it includes this one:
#   zig_target   of `zig cc -target`: aarch64-macos, x86_64-linux-musl, x86_64-linux-gnu.2.17
#   CMAKE_SYSTEM_NAME, CMAKE_SYSTEM_PROCESSOR

if(NOT LOCUS_ZIG)
  set(LOCUS_ZIG $ENV{LOCUS_ZIG})
endif()
if(NOT LOCUS_ZIG)
  file(GLOB LOCUS_ZIG ${CMAKE_CURRENT_LIST_DIR}/../build/zig/lib/python3*/site-packages/ziglang/zig)
endif()
if(NOT EXISTS "${LOCUS_ZIG}")
  message(FATAL_ERROR "No zig to compile for ${zig_target} with: tools/zig.sh installs it")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LOCUS_ZIG LOCUS_PROCESSOR)

# CMake wants programs of one word. They lie beside zig, with what zig keeps of its own between two calls.
get_filename_component(zig_folder "${LOCUS_ZIG}" DIRECTORY)
function(zig_program variable name arguments)
  set(text "#!/bin/sh\nZIG_GLOBAL_CACHE_DIR=${zig_folder}/cache ZIG_LOCAL_CACHE_DIR=${zig_folder}/cache \\\n")
  string(APPEND text "    exec ${LOCUS_ZIG} ${arguments} \"$@\"\n")
  set(there)
  if(EXISTS ${zig_folder}/${name})
    file(READ ${zig_folder}/${name} there)
  endif()
  if(NOT there STREQUAL text)
    file(WRITE ${zig_folder}/${name} "${text}")
    file(CHMOD ${zig_folder}/${name}
      PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
  set(${variable} ${zig_folder}/${name} PARENT_SCOPE)
endfunction()
zig_program(CMAKE_C_COMPILER ${zig_target}-cc "cc -target ${zig_target} -g0 -fno-sanitize=undefined")
zig_program(CMAKE_AR zig-ar ar)
zig_program(CMAKE_RANLIB zig-ranlib ranlib)
set(CMAKE_C_COMPILER_AR ${CMAKE_AR})
set(CMAKE_C_COMPILER_RANLIB ${CMAKE_RANLIB})

# Trials compile and do not link: zig makes a C library for every set of flags that it links with.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Nothing of this machine is looked at. The objcopy of its compiler knows its own objects only.
set(CMAKE_FIND_ROOT_PATH ${zig_folder})
foreach(what LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
set(CMAKE_DISABLE_FIND_PACKAGE_PkgConfig ON)
set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)
find_program(CMAKE_OBJCOPY NAMES llvm-objcopy llvm-objcopy-19 llvm-objcopy-14)

# SPDX-License-Identifier: Apache-2.0
# A toolchain for Linux on aarch64: Debian's cross compiler, and qemu for what is to be started.
#     cmake -S . -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake
# Libraries and headers come from the compiler's own folder alone: nothing of the host is found.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# pkg-config and the wrappers of MPI know the host alone.
set(CMAKE_DISABLE_FIND_PACKAGE_PkgConfig TRUE)
set(CMAKE_DISABLE_FIND_PACKAGE_MPI TRUE)

find_program(LOCUS_QEMU NAMES qemu-aarch64-static qemu-aarch64)
mark_as_advanced(LOCUS_QEMU)
if(LOCUS_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${LOCUS_QEMU} -L /usr/aarch64-linux-gnu)
endif()

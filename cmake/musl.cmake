# SPDX-License-Identifier: Apache-2.0
# Linux with musl, everything in one program: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/musl.cmake
# [-DLOCUS_PROCESSOR=aarch64]
if(NOT LOCUS_PROCESSOR)
  set(LOCUS_PROCESSOR x86_64)
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${LOCUS_PROCESSOR})
set(zig_target ${LOCUS_PROCESSOR}-linux-musl)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s -Wl,--gc-sections")

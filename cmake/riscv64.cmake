# SPDX-License-Identifier: Apache-2.0
# Linux with glibc on RISC-V: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/riscv64.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(zig_target riscv64-linux-gnu.2.36)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)

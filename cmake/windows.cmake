# SPDX-License-Identifier: Apache-2.0
# Windows 10 and later on x86-64: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/windows.cmake
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(zig_target x86_64-windows-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)

# SPDX-License-Identifier: Apache-2.0
# macOS 13 and later: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/macos.cmake [-DLOCUS_PROCESSOR=x86_64]
if(NOT LOCUS_PROCESSOR)
  set(LOCUS_PROCESSOR aarch64)
endif()
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR ${LOCUS_PROCESSOR})
set(zig_target ${LOCUS_PROCESSOR}-macos.13.0)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
# Apple's own tools, which CMake insists on, have nothing to do here.
set(CMAKE_INSTALL_NAME_TOOL /bin/true)

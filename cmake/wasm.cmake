# SPDX-License-Identifier: Apache-2.0
# A toolchain for WebAssembly: clang, lld, wasi-libc and the compiler's run-time library for wasm32,
# as Debian has them. `make page` uses it; clang 14 works too and makes slower code.

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER_WORKS TRUE) # it has no start files to link a trial with

find_program(LOCUS_WASM_CLANG NAMES clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang REQUIRED)
string(REGEX MATCH "-[0-9]+$" suffix ${LOCUS_WASM_CLANG})
find_program(LOCUS_WASM_LINKER NAMES wasm-ld${suffix} wasm-ld REQUIRED)
execute_process(COMMAND ${LOCUS_WASM_CLANG} --target=wasm32-wasi -print-resource-dir
  OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE)
find_file(LOCUS_WASM_BUILTINS libclang_rt.builtins-wasm32.a PATHS ${resources}/lib/wasi
  NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
find_path(LOCUS_WASM_INCLUDE wasi/api.h PATHS /usr/include/wasm32-wasi NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
find_path(LOCUS_WASM_LIB libc.a PATHS /usr/lib/wasm32-wasi NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)

set(CMAKE_C_COMPILER ${LOCUS_WASM_CLANG})
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)

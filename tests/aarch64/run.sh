#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library for aarch64: made by the cross compiler, then a sample of the test programs under qemu;
# all of them where LOCUS_TEST_FULL is set.
. "$(dirname "$0")/../support/check.sh"

tree=$BUILD/aarch64
begin aarch64/build
lacks=
command -v aarch64-linux-gnu-gcc >/dev/null || lacks="gcc-aarch64-linux-gnu"
[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || lacks="$lacks libc6-dev-arm64-cross"
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || lacks="$lacks qemu-user-static"
if [ -n "$lacks" ]; then
    skip "not installed: $lacks"
    finish aarch64
fi

programs="golden/test_golden kernels/test_gemm kernels/test_linear kernels/test_product kernels/test_rows
    kernels/test_softmax kernels/test_tables kernels/test_turn kernels/test_drop kernels/test_half
    nn/test_norm nn/test_softmax"
targets="locus-cli $(echo "$programs" | tr / -)"
check "configured by cmake/aarch64.cmake" env -u CC cmake -S . -B "$tree" -G "Unix Makefiles" \
    -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DLOCUS_WERROR=ON
if [ -n "${LOCUS_TEST_FULL-}" ]; then
    programs=$(grep -v '_pretend$' "$tree/tests/programs")
    targets=
fi
# shellcheck disable=SC2086
check "compiled without a warning" cmake --build "$tree" ${targets:+--target $targets}
check "for aarch64" sh -c "readelf -h '$tree/locus' | grep -q AArch64"

# Whatever CMake found that is not the compiler's own, a folder of the host would show here.
begin aarch64/host
grep -E '_(LIBRARY|LIBRARIES|INCLUDE_DIR|INCLUDE_DIRS)[^=]*=/' "$tree/CMakeCache.txt" |
    grep -vE '=/usr/(lib/gcc-cross/)?aarch64-linux-gnu' >"$SCRATCH/foreign"
check "no library of the host is found" empty "$SCRATCH/foreign"

run() { "$qemu" -L /usr/aarch64-linux-gnu "$@"; }

begin aarch64/kernels
run "$tree/locus" --version >"$SCRATCH/version" 2>&1
check "NEON is chosen" grep -q neon "$SCRATCH/version"
end_case

# What a program counts is counted here, too. Two threads: qemu shows races of the memory model badly,
# but cuts are made.
OMP_NUM_THREADS=2
[ -n "${LOCUS_TEST_FULL-}" ] || LOCUS_TEST_SAMPLE=1
export OMP_NUM_THREADS LOCUS_TEST_SAMPLE
for program in $programs; do
    run "$tree/tests/$program" >"$SCRATCH/log" 2>&1
    line=$(tail -n 1 "$SCRATCH/log" | grep -E '^[^ ]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$')
    grep -E '^(FAIL|SKIP) ' "$SCRATCH/log" | head -n 20 | sed "s,^\(FAIL\|SKIP\) ,\1 aarch64/,"
    if [ -z "$line" ]; then
        echo "FAIL aarch64/$program: no summary line"
        tail -n 20 "$SCRATCH/log"
        failed=$((failed + 1))
        continue
    fi
    # shellcheck disable=SC2046
    set -- $(echo "${line##*: }" | tr -dc '0-9 ')
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
done
finish aarch64

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the built files give, take and are: exported names, imported names, writable
# globals, hardening, compiler flags.
. "$(dirname "$0")/../support/check.sh"

shared=$BUILD/liblocus.so
archive=$BUILD/liblocus.a
cc=${CC:-cc}

# Names that the headers declare: LOCUS_API ... locus_name(
declared() { # HEADER...
    sed 's,/\*.*\*/,,' "$@" | tr '\n' ' ' | grep -o 'LOCUS_API [^;]*;' |
        sed -n 's/^[^(]*[ *]\(locus_[a-z0-9_]*\)(.*/\1/p' | sort -u
}
# shellcheck disable=SC2046
declared $(ls include/locus/*.h | grep -v /mpi.h) >"$SCRATCH/declared"
nm -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    sort -u >"$SCRATCH/exported"

begin symbols/exports
check "the headers declare functions" test -s "$SCRATCH/declared"
check "the library exports functions" test -s "$SCRATCH/exported"
grep -v '^locus_' "$SCRATCH/exported" >"$SCRATCH/foreign"
check "names without the prefix are exported" empty "$SCRATCH/foreign"
comm -13 "$SCRATCH/declared" "$SCRATCH/exported" >"$SCRATCH/undeclared"
check "exported, but in no public header" empty "$SCRATCH/undeclared"
comm -23 "$SCRATCH/declared" "$SCRATCH/exported" >"$SCRATCH/missing"
check "in a public header, but not exported" empty "$SCRATCH/missing"

begin symbols/archive
nm -g --defined-only "$archive" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$SCRATCH/global"
check "the archive defines what the headers declare" \
    test -z "$(comm -23 "$SCRATCH/declared" "$SCRATCH/global")"
grep -v '^locus_' "$SCRATCH/global" >"$SCRATCH/foreign"
check "names without the prefix are global in the archive" empty "$SCRATCH/foreign"
printf '#include <locus/model.h>\nint model_arrange, generate_pick, plot_put;\nint main(void) { return locus_model_workspace(0) != 0; }\n' >"$SCRATCH/own.c"
check "a program has such names to itself" sh -c "$cc -std=c11 -Iinclude -c '$SCRATCH/own.c' -o '$SCRATCH/own.o' &&
    $cc '$SCRATCH/own.o' '$archive' -fopenmp -lm -o '$SCRATCH/own'"

begin symbols/no-exit-no-output
nm -D --undefined-only "$shared" | awk '{ sub(/@.*/, "", $2); print $2 }' | sort -u >"$SCRATCH/imported"
check "the library imports something" test -s "$SCRATCH/imported"
grep -xE '(_?_?exit|_Exit|quick_exit|abort|raise|__assert(_perror)?(_fail)?|(__)?(v)?(f|d)?printf(_chk)?|(f)?puts?|putchar|(_IO_)?putc|fputc|fwrite|perror|psignal|err|errx|warn|warnx|stdout|stderr|system|popen|exec.*|setenv|putenv|unsetenv|srand|rand|signal|sigaction|atexit|longjmp)' \
    "$SCRATCH/imported" >"$SCRATCH/banned"
check "a library does not end, print to or change the process" empty "$SCRATCH/banned"
nm -u "$archive" | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u |
    grep -xE '(_?exit|abort|__assert_fail|(__)?f?printf(_chk)?|puts|putchar|stdout|stderr)' >"$SCRATCH/banned"
check "the static library too" empty "$SCRATCH/banned"

begin symbols/environment
grep -rnE '\b(secure_)?getenv *\(' src | grep -v '"LOCUS_ISA"' >"$SCRATCH/getenv"
check "the library reads LOCUS_ISA and no other variable" empty "$SCRATCH/getenv"

# Writable globals: none. .data.rel.ro is constant once relocated.
begin symbols/no-writable-globals
writable() { objdump -t "$1" | awk '$NF != $4 && /[[:space:]](\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ {
    section = ""; for (i = 2; i <= NF; i++) if ($i ~ /^(\.|\*COM)/) { section = $i; break }
    if (section !~ /^\.data\.rel\.ro/ && section != $NF) print section, $NF }'; }
writable "$archive" | grep -vxF -f tests/symbols/writable.allow >"$SCRATCH/writable"
check "writable globals" empty "$SCRATCH/writable"
printf 'int counter; static int hidden = 3; int *where(void);\nint *where(void) { return &hidden; }\nstatic const char *const names[] = {"a"}; const char *name(int i);\nconst char *name(int i) { return names[i]; }\n_Thread_local int per_thread;\n' >"$SCRATCH/globals.c"
check "a planted global compiles" $cc -fPIC -c "$SCRATCH/globals.c" -o "$SCRATCH/globals.o"
writable "$SCRATCH/globals.o" | awk '{ print $2 }' | sort | tr '\n' ' ' >"$SCRATCH/found"
check "planted globals are found: counter hidden per_thread" \
    grep -qx 'counter hidden per_thread ' "$SCRATCH/found"

begin symbols/dependencies
readelf -d "$shared" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libgomp|libomp|libpthread|ld-linux[-a-z0-9_]*)\.so' >"$SCRATCH/needed"
check "libc, libm and OpenMP, nothing else" empty "$SCRATCH/needed"
check "SONAME" sh -c "readelf -d '$shared' | grep -q 'SONAME.*\[liblocus\.so\.0\.2\]'"
check "no run path" sh -c "! readelf -d '$shared' | grep -qE 'RPATH|RUNPATH'"

hardened() { # FILE
    check "${1##*/}: RELRO" sh -c "readelf -lW '$1' | grep -q GNU_RELRO"
    check "${1##*/}: bound at start" sh -c "readelf -d '$1' | grep -qE 'BIND_NOW|FLAGS.*NOW'"
    check "${1##*/}: no executable stack" \
        sh -c "readelf -lW '$1' | grep GNU_STACK | grep -q ' RW '"
    check "${1##*/}: no text relocations" sh -c "! readelf -d '$1' | grep -q TEXTREL"
    check "${1##*/}: no writable and executable segment" \
        sh -c "! readelf -lW '$1' | grep LOAD | grep -q RWE"
    check "${1##*/}: stack protector" sh -c "nm -D '$1' | grep -q __stack_chk_fail"
}

begin symbols/hardening
hardened "$shared"
if [ -x "$LOCUS" ]; then
    hardened "$LOCUS"
    check "locus: position-independent" sh -c "readelf -d '$LOCUS' | grep -q 'FLAGS_1.*PIE'"
    check "liblocus.so: open to dlopen" sh -c "! readelf -d '$shared' | grep -q NOOPEN"
fi

# The system's own start-up objects may lack the mark, so the linked files cannot show it.
begin symbols/control-flow-protection
if grep -q -- -fcf-protection=full "$BUILD/compile_commands.json"; then
    readelf -n "$archive" | awk '/^File:/ { if (file && !marked) print file; file = $2; marked = 0 }
        /IBT, SHSTK/ { marked = 1 } END { if (file && !marked) print file }' >"$SCRATCH/unmarked"
    check "objects that are marked" sh -c "readelf -n '$archive' | grep -q 'IBT, SHSTK'"
    check "objects without control-flow protection" empty "$SCRATCH/unmarked"
else
    skip "the compiler has no -fcf-protection"
fi

begin symbols/flags
commands=$BUILD/compile_commands.json
check "compile_commands.json" test -s "$commands"
grep -oE -- '-(Ofast|ffast-math|march=[^ ]*|mtune=native|mcpu=[^ ]*|funsafe-math-optimizations|fassociative-math|freciprocal-math|ffinite-math-only|fno-signed-zeros|fno-honor-nans|ffp-contract=(fast|on)) ' \
    "$commands" | sort -u >"$SCRATCH/banned"
check "forbidden flags" empty "$SCRATCH/banned"
grep '"command"' "$commands" | grep -v -- '-ffp-contract=off' >"$SCRATCH/contract"
check "compiled without -ffp-contract=off" empty "$SCRATCH/contract"
grep '"command"' "$commands" | grep -E -- '-m(avx|fma|sse4|bmi)' | grep -vE '/(src/kernels|bench)/isa/' >"$SCRATCH/isa"
check "instruction-set flags outside src/kernels/isa and bench/isa" empty "$SCRATCH/isa"

begin symbols/mpi
mpi=$BUILD/liblocus_mpi.so
if [ -e "$mpi" ]; then
    declared include/locus/mpi.h >"$SCRATCH/mpi_declared"
    nm -D --defined-only "$mpi" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$SCRATCH/mpi_exported"
    check "liblocus_mpi exports what mpi.h declares" diff "$SCRATCH/mpi_declared" "$SCRATCH/mpi_exported"
    hardened "$mpi"
    check "it needs liblocus" sh -c "readelf -d '$mpi' | grep -q 'NEEDED.*liblocus\.so\.0\.2'"
    writable "$BUILD/liblocus_mpi.a" >"$SCRATCH/writable"
    check "no writable globals" empty "$SCRATCH/writable"
    check "liblocus needs no MPI" sh -c "! readelf -d '$shared' | grep -q 'NEEDED.*mpi'"
    check "nor does the program" sh -c "! readelf -d '$LOCUS' | grep -q 'NEEDED.*mpi'"
else
    skip "no MPI"
fi

begin symbols/loading-changes-nothing
check "compiles" $cc -std=c11 -O2 -Iinclude tests/symbols/load.c -o "$SCRATCH/load" -ldl -lm
check "floating-point state is the same after dlopen" "$SCRATCH/load" "$shared"

# The program uses the library as anyone could.
begin symbols/program-uses-exports-only
objects=$(find "$BUILD/CMakeFiles/locus-cli.dir" -name '*.o' 2>/dev/null)
if [ -n "$objects" ]; then
    nm --defined-only $objects | awk 'NF == 3 { print $3 }' | sort -u >"$SCRATCH/own"
    nm -u $objects | awk 'NF == 2 && $2 ~ /^locus_/ { print $2 }' | sort -u |
        comm -23 - "$SCRATCH/own" | comm -23 - "$SCRATCH/exported" >"$SCRATCH/private"
    check "private functions in cli/" empty "$SCRATCH/private"
else
    skip "no program in this build"
fi

finish symbols

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install into a staging folder, use the library through pkg-config and through CMake as a
# stranger would, uninstall, and find nothing left. Works on a copy of the build's
# configuration, so that the build under test is left alone.
. "$(dirname "$0")/../support/check.sh"

stage=$SCRATCH/stage
home=$stage/opt/locus
version=$(awk '/^#define LOCUS_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' include/locus/status.h)

cat >"$SCRATCH/use.c" <<'C'
#include <locus/locus.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    locus_tensor t = locus_view(NULL, LOCUS_F32, 2, (const int64_t[]){3, 4});
    printf("%s %d %s\n", locus_version(), (int)locus_tensor_elements(&t), locus_status_text(LOCUS_OK));
    return strchr(locus_version(), '.') == NULL;
}
C
printf '%s 12 ok\n' "$version" >"$SCRATCH/want"

# A build folder of its own, whose results are those of the build under test.
begin install/install
check "make install" make install BUILD="$SCRATCH/build" DESTDIR="$stage" PREFIX=/opt/locus
find "$SCRATCH/build/tests" "$SCRATCH/build/examples" -type f -perm -u+x 2>/dev/null | grep . >"$SCRATCH/built"
check "no test and no example is built for it" empty "$SCRATCH/built"
libdir=$(dirname "$(find "$stage" -name 'liblocus.so' | head -n 1)")
for file in liblocus.so liblocus.so.0.2 "liblocus.so.$version" liblocus.a pkgconfig/locus.pc \
    cmake/locus/locus-config.cmake; do
    check "$file is installed" test -e "$libdir/$file"
done
for header in include/locus/*.h; do
    [ "$header" != include/locus/mpi.h ] || [ -e "$libdir/liblocus_mpi.so" ] || continue
    check "$header is installed" cmp "$header" "$home/$header"
done
check "nothing but locus/ in include" test "$(ls "$home/include")" = locus
check "nothing outside the prefix" test "$(cd "$stage" && find . -type f ! -path './opt/locus/*' | wc -l)" -eq 0
find "$stage" -name '*.h' -o -name '*.cmake' -o -name '*.pc' | xargs grep -l -e "$ROOT" -e "$SCRATCH" >"$SCRATCH/paths"
check "no path of this machine in installed text" empty "$SCRATCH/paths"
if [ -x "$LOCUS" ]; then
    check "the program runs" "$home/bin/locus" --version
    for file in share/man/man1/locus.1 share/bash-completion/completions/locus \
        share/zsh/site-functions/_locus share/fish/vendor_completions.d/locus.fish; do
        check "$file is installed" test -s "$home/$file"
    done
fi

begin install/pkg-config
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$libdir/pkgconfig
    export PKG_CONFIG_PATH
    check "version" test "$(pkg-config --modversion locus)" = "$version"
    # shellcheck disable=SC2046
    check "compiles, shared" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$SCRATCH/use.c" \
        -o "$SCRATCH/shared" $(pkg-config --cflags --libs locus)
    LD_LIBRARY_PATH=$libdir "$SCRATCH/shared" >"$SCRATCH/got" 2>&1
    check "runs, shared" diff "$SCRATCH/want" "$SCRATCH/got"
    check "needs the SONAME" sh -c "readelf -d '$SCRATCH/shared' | grep -q 'liblocus\.so\.0\.2'"
    # shellcheck disable=SC2046
    check "compiles, static" "${CC:-cc}" -std=c11 "$SCRATCH/use.c" -o "$SCRATCH/static" \
        $(pkg-config --cflags locus) "$libdir/liblocus.a" $(pkg-config --static --libs-only-l --libs-only-other locus |
            sed 's/-llocus//')
    "$SCRATCH/static" >"$SCRATCH/got" 2>&1
    check "runs, static" diff "$SCRATCH/want" "$SCRATCH/got"
else
    skip "no pkg-config"
fi

begin install/find-package
mkdir -p "$SCRATCH/project"
cat >"$SCRATCH/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(use C)
find_package(locus @VERSION@ REQUIRED CONFIG)
add_executable(shared ../use.c)
target_link_libraries(shared PRIVATE locus::locus)
add_executable(static ../use.c)
target_link_libraries(static PRIVATE locus::static)
CMAKE
sed -i "s/@VERSION@/$version/" "$SCRATCH/project/CMakeLists.txt"
check "configures" cmake -S "$SCRATCH/project" -B "$SCRATCH/project/build" "-DCMAKE_PREFIX_PATH=$home"
check "compiles" cmake --build "$SCRATCH/project/build"
for program in shared static; do
    "$SCRATCH/project/build/$program" >"$SCRATCH/got" 2>&1
    check "runs, $program" diff "$SCRATCH/want" "$SCRATCH/got"
done

# As a part of another project, which has targets of its own and is not told what to install or how to build.
begin install/part
for way in add_subdirectory fetch; do
    mkdir -p "$SCRATCH/$way"
    {
        printf 'cmake_minimum_required(VERSION 3.20)\nproject(use C)\nadd_custom_target(uninstall)\n'
        if [ $way = fetch ]; then
            printf 'include(FetchContent)\nFetchContent_Declare(locus SOURCE_DIR "%s")\n' "$ROOT"
            printf 'FetchContent_MakeAvailable(locus)\n'
        else
            printf 'add_subdirectory("%s" locus)\n' "$ROOT"
        fi
        printf 'add_executable(shared ../use.c)\ntarget_link_libraries(shared PRIVATE locus::locus)\n'
        printf 'add_executable(static ../use.c)\ntarget_link_libraries(static PRIVATE locus::static)\n'
        printf 'install(TARGETS static)\n'
    } >"$SCRATCH/$way/CMakeLists.txt"
    check "$way configures" cmake -S "$SCRATCH/$way" -B "$SCRATCH/$way/build"
    check "$way leaves the kind of build alone" grep -q '^CMAKE_BUILD_TYPE:STRING=$' "$SCRATCH/$way/build/CMakeCache.txt"
done
if [ -n "${LOCUS_TEST_FULL-}" ]; then
    check "compiles" cmake --build "$SCRATCH/fetch/build" -j "${JOBS:-2}"
    for program in shared static; do
        find "$SCRATCH/fetch/build" -name $program -type f -exec {} \; >"$SCRATCH/got" 2>&1
        check "runs, $program" diff "$SCRATCH/want" "$SCRATCH/got"
    done
    check "installs" cmake --install "$SCRATCH/fetch/build" --prefix "$SCRATCH/part"
    check "and that is the program alone" test "$(cd "$SCRATCH/part" && find . -type f)" = ./bin/static
fi

begin install/mpi
if [ -e "$libdir/liblocus_mpi.so" ]; then
    cat >"$SCRATCH/ranks.c" <<'C'
#include <locus/mpi.h>
#include <stdio.h>
int main(void)
{
    locus_mpi_rows held[2];
    const int runs = locus_mpi_layout(LOCUS_MPI_ZIGZAG, 100, 3, 2, held);
    return printf("%d %d %d\n", runs, (int)held[0].first, (int)held[1].first) < 0;
}
C
    echo '2 33 50' >"$SCRATCH/want_mpi"
    if command -v pkg-config >/dev/null; then
        # shellcheck disable=SC2046
        check "compiles by pkg-config" "${CC:-cc}" -std=c11 "$SCRATCH/ranks.c" -o "$SCRATCH/ranks" \
            $(pkg-config --cflags --libs locus-mpi)
        LD_LIBRARY_PATH=$libdir "$SCRATCH/ranks" >"$SCRATCH/got" 2>&1
        check "runs" diff "$SCRATCH/want_mpi" "$SCRATCH/got"
    fi
    mkdir -p "$SCRATCH/ranks_project"
    cat >"$SCRATCH/ranks_project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(use C)
find_package(locus REQUIRED CONFIG COMPONENTS mpi)
add_executable(shared ../ranks.c)
target_link_libraries(shared PRIVATE locus::mpi)
add_executable(static ../ranks.c)
target_link_libraries(static PRIVATE locus::mpi-static)
CMAKE
    check "configures" cmake -S "$SCRATCH/ranks_project" -B "$SCRATCH/ranks_project/build" "-DCMAKE_PREFIX_PATH=$home"
    check "compiles by CMake" cmake --build "$SCRATCH/ranks_project/build"
    for program in shared static; do
        "$SCRATCH/ranks_project/build/$program" >"$SCRATCH/got" 2>&1
        check "runs, $program" diff "$SCRATCH/want_mpi" "$SCRATCH/got"
    done
else
    skip "no MPI"
fi

# The project of README.md, word for word.
begin install/readme
block() { # LANGUAGE: the first block of that language
    awk -v begin="\`\`\`$1" '$0 == begin { inside = 1; next } inside && /^```/ { exit } inside' README.md
}
mkdir -p "$SCRATCH/readme"
block cmake >"$SCRATCH/readme/CMakeLists.txt"
block c >"$SCRATCH/readme/program.c"
check "README.md shows find_package" grep -q 'find_package(locus' "$SCRATCH/readme/CMakeLists.txt"
check "configures" cmake -S "$SCRATCH/readme" -B "$SCRATCH/readme/build" "-DCMAKE_PREFIX_PATH=$home"
check "compiles" cmake --build "$SCRATCH/readme/build"
"$SCRATCH/readme/build/program" >"$SCRATCH/got" 2>&1
check "runs" grep -q '^token 3: ' "$SCRATCH/got"

begin install/uninstall
check "make uninstall" make uninstall BUILD="$SCRATCH/build" DESTDIR="$stage"
find "$stage" ! -type d >"$SCRATCH/left"
check "files left behind" empty "$SCRATCH/left"
find "$stage" -type d -name locus ! -path "$home" >"$SCRATCH/left"
check "folders of ours left behind" empty "$SCRATCH/left"

finish install

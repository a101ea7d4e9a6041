#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Versions agree. `make deb`, `make wheel` and `make release`, in full runs: what the packages hold and say, the verdicts of lintian, auditwheel and
# twine, the same bytes from another folder, and a fresh Debian in which they are installed and used.
. "$(dirname "$0")/../support/check.sh"

version=$(awk '/^#define LOCUS_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' include/locus/status.h)
soversion=${version%.*}

# Every place that tells the version.
begin packages/version
check "it has three numbers" sh -c "echo '$version' | grep -qE '^[0-9]+\.[0-9]+\.[0-9]+\$'"
check "the first heading of CHANGELOG.md" test "$(sed -n 's/^## \([^ ]*\).*/\1/p' CHANGELOG.md | head -n 1)" = "$version"
check "CMake" grep -qxF "CMAKE_PROJECT_VERSION:STATIC=$version" "$BUILD/CMakeCache.txt"
check "find_package" grep -qF "set(PACKAGE_VERSION \"$version\")" "$BUILD/locus-config-version.cmake"
check "pkg-config" grep -qxF "Version: $version" "$BUILD/locus.pc"
check "the library's file" test -f "$BUILD/liblocus.so.$version"
readelf -d "$BUILD/liblocus.so" >"$SCRATCH/dynamic"
check "its SONAME" grep -qF "[liblocus.so.$soversion]" "$SCRATCH/dynamic"
check "the program" sh -c "'$LOCUS' --version | grep -qE '(^| )$version( |,|\$)'"
if python3 -c 'import tomllib' 2>/dev/null; then
    check "pyproject.toml" python3 -c "import re, tomllib
rule = tomllib.load(open('pyproject.toml', 'rb'))['tool']['scikit-build']['metadata']['version']
assert rule['result'].format(**re.search(rule['regex'], open(rule['input']).read()).groupdict()) == '$version'"
fi

if [ -z "${LOCUS_TEST_FULL-}" ]; then
    begin packages/deb
    skip "builds of minutes and a Debian of its own: make test-full has them"
    finish packages
fi

begin packages/wheel
MOST_BYTES=3000000
at_most() { [ "$(wc -c <"$1")" -le "$2" ]; } # FILE BYTES
if check "make wheel" make wheel "BUILD=$BUILD"; then
    tools=$BUILD/wheel-venv/bin
    wheel=$(echo "$BUILD"/wheel/*.whl)
    check "an sdist" test -s "$BUILD/wheel/locus_attention-$version.tar.gz"
    check "twine" "$tools/twine" check --strict "$BUILD"/wheel/*
    tag=$(basename "$wheel" .whl | sed 's/.*-abi3-//')
    "$tools/auditwheel" show "$wheel" | tr '\n' ' ' >"$SCRATCH/audit"
    check "auditwheel finds the tag of its name" grep -q "consistent with the following platform tag: \"$tag\"" "$SCRATCH/audit"
    check "which is a manylinux" test "${tag#manylinux_2_}" != "$tag"
    check "at most $MOST_BYTES bytes" at_most "$wheel" $MOST_BYTES
    unzip -p "$wheel" '*/METADATA' | grep '^Requires-Dist' | grep -v 'extra ==' >"$SCRATCH/requires"
    check "needs NumPy only" sh -c "grep -q '^Requires-Dist: numpy' '$SCRATCH/requires' && test \$(wc -l <'$SCRATCH/requires') -eq 1"
    check "pip installs it" "$tools/python" -m pip install --quiet --no-index --no-deps --no-compile --target "$SCRATCH/site" "$wheel"
    check "at most 4 MB then" test "$(du -s --apparent-size --block-size=1 "$SCRATCH/site" | cut -f1)" -le 4000000
    if [ -x "$BUILD/venv/bin/python" ]; then
        check "it computes" env "PYTHONPATH=$SCRATCH/site" "$BUILD/venv/bin/python" -c "import locus, numpy as np
x = np.ones((1, 2, 4, 8), dtype=np.float32)
assert np.array_equal(locus.attend(x, x, x, scheme='alibi'), x)
assert locus.__file__.startswith('$SCRATCH')"
    fi
fi

# The sources of this folder in another one, compiled anew; for the wheel, where git does not answer.
begin packages/wheel-again
mkdir "$SCRATCH/no-git"
printf '#!/bin/sh\nexit 127\n' >"$SCRATCH/no-git/git"
chmod +x "$SCRATCH/no-git/git"
check "a second checkout" git clone -q . "$SCRATCH/again"
check "with the files of this one" sh -c "git ls-files -z | tar -cf - --null -T - | tar -xf - -C '$SCRATCH/again'"
check "make wheel there, without git" env CCACHE_DISABLE=1 "PATH=$SCRATCH/no-git:$PATH" \
    "SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)" make -C "$SCRATCH/again" wheel BUILD=build
for file in "$BUILD"/wheel/*; do
    check "$(basename "$file") has the same bytes" cmp "$file" "$SCRATCH/again/build/wheel/$(basename "$file")"
done

if ! command -v dpkg-gencontrol >/dev/null; then
    begin packages/deb
    skip "dpkg-dev is not installed"
    finish packages
fi

begin packages/deb
check "make deb" make deb "BUILD=$BUILD"
for pair in locus:usr/bin/locus locus:usr/share/man/man1/locus.1.gz "liblocus$soversion:liblocus.so.$soversion" \
    "liblocus$soversion:liblocus.so.$version" liblocus-dev:usr/include/locus/locus.h liblocus-dev:liblocus.so \
    liblocus-dev:liblocus.a liblocus-dev:pkgconfig/locus.pc liblocus-dev:cmake/locus/locus-config.cmake \
    python3-locus:dist-packages/locus/_native.abi3.so python3-locus:dist-packages/locus/torch/nn/attention.py; do
    package=${pair%%:*}
    dpkg-deb -c "$BUILD/deb/${package}_$version"_*.deb | awk '{ print $6 }' >"$SCRATCH/contents"
    check "$package holds ${pair#*:}" grep -q "/${pair#*:}\$" "$SCRATCH/contents"
done
field() { dpkg-deb -f "$BUILD/deb/$1_$version"_*.deb "$2"; } # PACKAGE FIELD
check "the library's package is called by its SONAME" \
    sh -c "readelf -d '$BUILD/deb/unpacked/liblocus$soversion'/usr/lib/*/liblocus.so.$version | grep -q 'SONAME.*liblocus\.so\.$soversion\]'"
check "development wants this library" test "$(field liblocus-dev Depends | cut -d, -f1)" = "liblocus$soversion (= $version)"
field locus Depends | tr ',' '\n' >"$SCRATCH/depends"
check "the program needs libc6 and libgomp1 only where cairo and libmicrohttpd are not found" \
    test -z "$(grep -vE '^ ?(libc6|libgomp1|libcairo2|libmicrohttpd12) ' "$SCRATCH/depends")"
for package in "$BUILD"/deb/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -tv --numeric-owner | grep -v ' 0/0 '; done >"$SCRATCH/owned"
check "files of others than root" empty "$SCRATCH/owned"
for package in "$BUILD"/deb/*.deb; do dpkg-deb --fsys-tarfile "$package" | grep -a -l -F "$ROOT"; done >"$SCRATCH/paths"
check "no path of this machine inside" empty "$SCRATCH/paths"

begin packages/lintian
if command -v lintian >/dev/null; then
    root=
    [ "$(id -u)" -ne 0 ] || root=--allow-root
    check "no error and no warning" lintian $root --fail-on error,warning "$BUILD"/deb/*.deb
    cp -r "$BUILD/deb/unpacked/locus" "$SCRATCH/bad"
    rm "$SCRATCH/bad/usr/share/doc/locus/copyright"
    dpkg-deb --root-owner-group --build "$SCRATCH/bad" "$SCRATCH/locus_${version}_amd64.deb" >"$SCRATCH/log"
    refuse "lintian sees a package without a licence" lintian $root --fail-on error,warning "$SCRATCH"/locus_*.deb
else
    skip "lintian is not installed"
fi

begin packages/deb-again
check "make deb in the second checkout" env CCACHE_DISABLE=1 make -C "$SCRATCH/again" deb BUILD=build
for package in "$BUILD"/deb/*.deb; do
    check "$(basename "$package") has the same bytes" cmp "$package" "$SCRATCH/again/build/deb/$(basename "$package")"
done

begin packages/chroot
block() { awk '$0 == "```c" { inside = 1; next } inside && /^```/ { exit } inside' README.md; }
fresh=$SCRATCH/fresh
enter() { chroot "$fresh" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
leave() { ! mountpoint -q "$fresh/$1" || umount "$fresh/$1"; }
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    skip "a fresh Debian needs root and debootstrap"
elif ! debootstrap --variant=minbase "$codename" "$fresh" http://deb.debian.org/debian >"$SCRATCH/debootstrap" 2>&1; then
    leave proc
    leave sys
    skip "debootstrap: $(tail -n 1 "$SCRATCH/debootstrap")"
else
    leave proc
    leave sys
    mkdir "$fresh/trial"
    cp "$BUILD"/deb/*.deb "$fresh/trial/"
    cp -r examples/stories260K "$fresh/trial/model"
    cp tests/golden/t5/encoder.safetensors "$fresh/trial/"
    block >"$fresh/trial/program.c"
    check "apt-get update" enter apt-get update -qq
    check "apt-get install" enter sh -c "apt-get install -y -qq --no-install-recommends /trial/*.deb gcc libc6-dev pkg-config"
    check "the program's version" sh -c "'$LOCUS' --version >'$SCRATCH/want' && chroot '$fresh' locus --version | diff '$SCRATCH/want' -"
    check "a case holds" enter locus attend /trial/encoder.safetensors --check
    "$LOCUS" run examples/stories260K "Once upon a time" >"$SCRATCH/want"
    enter locus run /trial/model "Once upon a time" >"$SCRATCH/got" 2>&1
    check "a model writes what it writes here" diff "$SCRATCH/want" "$SCRATCH/got"
    check "locus demo" enter locus demo --output /trial/demo
    check "the demo's page" test -s "$fresh/trial/demo/index.html"
    check "README's program compiles by pkg-config" enter sh -c \
        "cc -std=c11 /trial/program.c \$(pkg-config --cflags --libs locus) -o /trial/program"
    check "it runs" sh -c "chroot '$fresh' /trial/program | grep -q '^token 3: '"
    check "and without the shared library" enter sh -c \
        "cc -std=c11 /trial/program.c -Wl,-Bstatic -llocus -Wl,-Bdynamic -fopenmp -lm -o /trial/static && /trial/static"
    check "python3 computes" enter python3 -c "import locus, numpy as np
x = np.ones((1, 2, 4, 8), dtype=np.float32)
assert np.array_equal(locus.attend(x, x, x, scheme='alibi'), x)
assert locus.__version__ == '$version'"
    check "and knows the distribution" enter python3 -c "import importlib.metadata as m
assert m.version('locus-attention') == '$version'"
    check "apt-get remove" enter apt-get remove -y -qq locus "liblocus$soversion" liblocus-dev python3-locus
    find "$fresh/usr" -path "*locus*" ! -type d >"$SCRATCH/left"
    check "files left behind" empty "$SCRATCH/left"
fi

# Two clean checkouts of one commit, in two folders, and a third that is not clean.
begin packages/release
lacks=$(tools/setup.sh page-missing)
if [ -n "$lacks" ]; then
    skip "the page needs $lacks"
elif ! tools/zig.sh >/dev/null 2>"$SCRATCH/why"; then
    skip "$(cat "$SCRATCH/why")"
else
    (cd "$SCRATCH/again" && git add -A && { git diff --cached --quiet ||
        git -c user.name=Test -c user.email=test@locus.invalid commit -q -m "as it is here"; })
    check "another checkout" git clone -q "$SCRATCH/again" "$SCRATCH/third"
    touch "$SCRATCH/third/changed"
    refuse "a folder with a file of its own is no release" make -C "$SCRATCH/third" release BUILD=build
    rm "$SCRATCH/third/changed"
    for folder in again third; do
        check "make release" env CCACHE_DISABLE=1 make -C "$SCRATCH/$folder" release BUILD=build
    done
    release=$SCRATCH/again/build/release
    check "the same bytes in two folders" diff -r "$release" "$SCRATCH/third/build/release"
    check "the sums are those of the files" sh -c "cd '$release' && sha256sum --check --strict --quiet SHA256SUMS"
    check "no file without a sum" test "$(ls "$release" | wc -l)" -eq $(($(wc -l <"$release/SHA256SUMS") + 1))
    for name in "locus-$version.tar.gz" "locus_attention-$version.tar.gz" locus_attention-.*.whl "locus_${version}_.*.deb" \
        "liblocus${soversion}_.*.deb" liblocus-dev_.*.deb python3-locus_.*.deb "locus-$version-linux-x86_64" \
        "locus-$version-linux-aarch64" "locus-$version.html"; do
        check "$name is in the table" grep -q "^| $name | [0-9]* | [^|]* | [^|]* |\$" "$release/files.md"
    done
    grep -n "&nbsp;&times;</td>" "$release/locus-$version.html" | cut -c1-200 >"$SCRATCH/timed"
    check "the page holds no times" empty "$SCRATCH/timed"
fi

finish packages

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# release.sh: everything that a release gives away, from one clean checkout, into build/release; RELEASING.md says
# when. The same commit is to give the same bytes in any folder, so the page goes out without what was timed here.
set -eu
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
export BUILD
LC_ALL=C
export LC_ALL

changed=$(git status --porcelain | head -n 1)
[ -z "$changed" ] || { echo "release: found a changed file ($changed), expected a clean checkout" >&2; exit 1; }
lacks=$(tools/setup.sh page-missing)
[ -z "$lacks" ] || { echo "release: the page needs $lacks; please install it" >&2; exit 1; }
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(awk '/^#define LOCUS_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' include/locus/status.h)
out=$BUILD/release

linked_of() { # FILE: the libraries it asks for, on one line
    readelf -dW "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' '
}
glibc_of() { # FOLDER: the newest glibc that something in it asks for
    find "$1" -type f -exec readelf -VW {} + 2>/dev/null | grep -o 'GLIBC_2[0-9.]*' | sort -Vu | tail -n 1 | sed 's/GLIBC_//'
}

row() { # FILE: name, bytes, what it needs, glibc
    rm -rf "$out/.inside"
    mkdir "$out/.inside"
    needs=nothing
    case $1 in
    *.deb)
        dpkg-deb -x "$1" "$out/.inside"
        needs=$(dpkg-deb -f "$1" Depends | sed "s, | , or ,g")
        ;;
    *.whl)
        python3 -m zipfile -e "$1" "$out/.inside"
        needs="Python $(sed -n 's/^Requires-Python: //p' "$out"/.inside/*.dist-info/METADATA), $(sed -n '/extra ==/d; s/^Requires-Dist: //p' "$out"/.inside/*.dist-info/METADATA)"
        ;;
    *.tar.gz) needs="a C compiler" ;;
    *.html) needs="a browser" ;;
    *)
        cp "$1" "$out/.inside/"
        [ -z "$(linked_of "$1")" ] || needs=$(linked_of "$1")
        ;;
    esac
    glibc=$(glibc_of "$out/.inside")
    printf '| %s | %d | %s | %s |\n' "$(basename "$1")" "$(wc -c <"$1")" "$needs" "${glibc:--}"
}

make deb wheel static page >/dev/null
rm -rf "$out"
mkdir -p "$out"
git archive --format=tar "--prefix=locus-$version/" HEAD | gzip -9n >"$out/locus-$version.tar.gz"
cp "$BUILD"/wheel/* "$BUILD"/deb/*.deb "$out/"
for cpu in x86_64 aarch64; do cp "$BUILD/static/locus-$cpu" "$out/locus-$version-linux-$cpu"; done
sed 's,<td>[0-9.]*&nbsp;&times;</td>,<td>\&ndash;</td>,g' "$BUILD/page/index.html" >"$out/locus-$version.html"

table=$out/files.md
printf '| file | bytes | needs | glibc |\n|---|--:|---|---|\n' >"$out/.table"
for file in "$out"/*; do row "$file" >>"$out/.table"; done
rm -rf "$out/.inside"
mv "$out/.table" "$table"
(cd "$out" && sha256sum ./* | sed 's, \./, ,' >.sums && mv .sums SHA256SUMS)
cat "$table"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh: locus, liblocus0.2, liblocus-dev and python3-locus for this Debian, from the ordinary build with the
# prefix /usr, into build/deb. Their date is SOURCE_DATE_EPOCH, or that of the last commit; the maintainer is
# DEBFULLNAME <DEBEMAIL>, or who made that commit. The same sources give the same bytes.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
python=/usr/bin/python3 # Debian's own, not one of a venv

for tool in dpkg-deb dpkg-gencontrol dpkg-shlibdeps strip; do
    command -v $tool >/dev/null || { echo "deb: $tool is missing; please install dpkg-dev and binutils" >&2; exit 1; }
done
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
maintainer="${DEBFULLNAME:-$(git log -1 --format=%an)} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"
export SOURCE_DATE_EPOCH
LC_ALL=C
TZ=UTC
export LC_ALL TZ

version=$(awk '/^#define LOCUS_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' include/locus/status.h)
soversion=${version%.*}
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
tree=$build/deb/tree stage=$build/deb/stage source=$build/deb/source

build_all() { # what `make install` would install, and the extension module
    # shellcheck disable=SC2086
    cmake -S . -B "$tree" -G "Unix Makefiles" -DCMAKE_INSTALL_PREFIX=/usr "-DCMAKE_INSTALL_LIBDIR=lib/$multiarch" \
        -DCMAKE_BUILD_TYPE=Release -DLOCUS_MPI=OFF -DLOCUS_TESTS=OFF -DLOCUS_PYTHON=ON "-DPython_EXECUTABLE=$python" \
        ${CMAKE_FLAGS:-} --log-level=WARNING >/dev/null
    cmake --build "$tree" -j "${JOBS:-2}" --target locus-product locus-python >/dev/null
    DESTDIR=$stage cmake --install "$tree" >/dev/null
    rm -r "$stage/usr/share/doc"
    gzip -9n "$stage/usr/share/man/man1/locus.1"
}

stage_python() { # the package beside its extension module, and what pip asks of it
    home=$stage/usr/lib/python3/dist-packages
    mkdir -p "$home/locus_attention-$version.dist-info"
    (cd bindings/python && find locus -name '*.py' -o -name '*.pyi' -o -name py.typed | tar -cf - -T -) | tar -xf - -C "$home"
    cp "$tree/python/locus/_native.abi3.so" "$home/locus/"
    printf 'Metadata-Version: 2.1\nName: locus-attention\nVersion: %s\nRequires-Python: >=3.11\nRequires-Dist: numpy>=1.24\n' \
        "$version" >"$home/locus_attention-$version.dist-info/METADATA"
}

files_of() { # PACKAGE: its files under the stage, as patterns
    case $1 in
    locus) echo "usr/bin usr/share" ;;
    liblocus[0-9]*) echo "usr/lib/$multiarch/liblocus.so.*" ;;
    liblocus-dev) echo "usr/include usr/lib/$multiarch" ;; # what the library has left there
    python3-locus) echo "usr/lib/python3" ;;
    esac
}

describe() { # the source package as dpkg's tools read it
    mkdir -p "$source/debian"
    sed "s/@MAINTAINER@/$maintainer/; s/@SOVERSION@/$soversion/" tools/deb/control >"$source/debian/control"
    printf 'locus (%s) unstable; urgency=medium\n\n  * What changed is in /usr/share/doc/*/NEWS.gz.\n\n -- %s  %s\n' \
        "$version" "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" >"$source/debian/changelog"
}

documents() { # PACKAGE ROOT
    doc=$2/usr/share/doc/$1
    mkdir -p "$doc"
    cp tools/deb/copyright "$doc/copyright"
    gzip -9nc "$source/debian/changelog" >"$doc/changelog.gz"
    gzip -9nc CHANGELOG.md >"$doc/NEWS.gz"
}

scripts() { # PACKAGE ROOT: what dpkg does beside unpacking
    case $1 in
    liblocus[0-9]*)
        echo "liblocus $soversion $1 (>= $version)" >"$2/DEBIAN/shlibs"
        echo "activate-noawait ldconfig" >"$2/DEBIAN/triggers"
        ;;
    python3-locus) # byte code is made where it is installed
        printf '#!/bin/sh\nset -e\nif command -v py3compile >/dev/null 2>&1; then py3compile -p %s; fi\n' "$1" >"$2/DEBIAN/postinst"
        printf '#!/bin/sh\nset -e\nif command -v py3clean >/dev/null 2>&1; then py3clean -p %s; fi\n' "$1" >"$2/DEBIAN/prerm"
        chmod 755 "$2/DEBIAN/postinst" "$2/DEBIAN/prerm"
        ;;
    esac
}

pack() { # PACKAGE
    root=$build/deb/unpacked/$1
    mkdir -p "$root/DEBIAN"
    # shellcheck disable=SC2046
    (cd "$stage" && tar -cf - $(files_of "$1")) | tar -xf - -C "$root"
    # shellcheck disable=SC2046
    (cd "$stage" && rm -r $(files_of "$1"))
    documents "$1" "$root"
    find "$root" -name '*.a' -exec strip -D --strip-debug --remove-section=.comment {} +
    find "$root" -name '*.so*' -type f -exec strip --strip-unneeded --remove-section=.comment {} +
    find "$root/usr" -path '*/bin/*' -type f -exec strip --remove-section=.comment {} +
    scripts "$1" "$root"
    find "$root" -type d -exec chmod 755 {} +
    find "$root/usr" -type f ! -path '*/bin/*' -exec chmod 644 {} +

    find "$root/usr" -path '*/bin/*' -type f -o -type f -name '*.so*' >"$source/linked"
    : >"$source/debian/substvars"
    # shellcheck disable=SC2046
    (cd "$source" && { [ ! -s linked ] || dpkg-shlibdeps $(cat linked); } &&
        dpkg-gencontrol "-p$1" "-P$root" -Tdebian/substvars -fdebian/files)
    (cd "$root" && find usr -type f | sort | xargs md5sum >DEBIAN/md5sums)
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "$build/deb" >/dev/null
}

rm -rf "$stage" "$source" "$build/deb/unpacked" "$build"/deb/*.deb
build_all
stage_python
describe
for package in locus "liblocus$soversion" python3-locus liblocus-dev; do pack "$package"; done
ls -l "$build"/deb/*.deb

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what building and testing need, and only what is missing. Silent and quick when
# nothing is. Without the right to install it prints the one line to run, and goes on if
# the build itself can (a C compiler and cmake >= 3.20); tests that lack a tool are skipped
# and counted. `setup.sh tests` also makes two venvs in the build folder, for the tests of the
# Python package; `setup.sh page-missing` only says what `make page` lacks.
set -u
cd "$(dirname "$0")/.." || exit 1

purpose=${1:-build}
needed=   # the build cannot do without
wanted=   # the tests make use of

has() { command -v "$1" >/dev/null 2>&1; }
need() { needed="$needed $1"; }
want() { wanted="$wanted $1"; }

has_cmake() { # at least 3.20; a shim without a program behind it does not count
    version=$(cmake --version 2>/dev/null | sed -n '1s/^cmake version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    [ -n "$version" ] || return 1
    set -- $version
    [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 20 ]; }
}
has_libomp() { # of the clang that the tests use
    clang=$(command -v clang-14 || command -v clang) || return 1
    echo '#include <omp.h>' | $clang -fopenmp -E - >/dev/null 2>&1
}
has_format() { # other versions format differently
    has clang-format-14 || clang-format --version 2>/dev/null | grep -q 'version 14\.'
}

has_openblas() { # locus bench loads it as a yardstick
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q 'libopenblas\.so'
}

has_python_dev() { # headers and venv, for the Python package
    python3 -c 'import ensurepip, os, sys, sysconfig, venv
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null
}

# What `make page` compiles with; other versions of clang do, too.
page_packages() {
    for version in 19 18 17 16 15 14; do
        has clang-$version && has wasm-ld-$version &&
            [ -e "$(clang-$version -print-resource-dir)/lib/wasi/libclang_rt.builtins-wasm32.a" ] && break
    done || echo "clang-19 lld-19 libclang-rt-19-dev-wasm32"
    [ -e /usr/include/wasm32-wasi/wasi/api.h ] || echo wasi-libc
    python3 -c 'import gzip' 2>/dev/null || echo python3
}
if [ "$purpose" = page-missing ]; then
    # shellcheck disable=SC2046
    echo $(page_packages)
    exit 0
fi

missing() {
    needed= wanted=
    has "${CC:-cc}" && echo '#include <stdio.h>' | "${CC:-cc}" -E - >/dev/null 2>&1 || {
        need gcc && need libc6-dev
    }
    has make || need make
    has_cmake || need cmake
    has nm && has readelf && has objdump || want binutils
    has g++ || want g++
    python3 -c 'import json, struct' 2>/dev/null || want python3
    has_python_dev || { want python3-dev && want python3-venv; }
    has pkg-config || want pkg-config
    pkg-config --exists cairo 2>/dev/null || want libcairo2-dev # pictures as PNG
    pkg-config --exists libmicrohttpd 2>/dev/null || want libmicrohttpd-dev # locus serve
    has clang-14 || has clang || want clang-14
    has_libomp || want libomp-14-dev
    has_format || want clang-format-14
    has_openblas || want libopenblas0
    for package in $(page_packages); do want "$package"; done
    [ "$purpose" != tests ] || has wine64 || [ -x /usr/lib/wine/wine64 ] || want wine64 # runs what is for Windows
    [ "$purpose" != tests ] || has nginx || [ -x /usr/sbin/nginx ] || want nginx-light # in front of two servers
    [ "$purpose" != tests ] || { has mpicc && has mpirun; } || { want libopenmpi-dev && want openmpi-bin; }
    [ "$purpose" != tests ] || { has node || want nodejs; has tsc || want node-typescript; }
    # a cross build, whose tests run under an emulator
    [ "$purpose" != tests ] || has aarch64-linux-gnu-gcc || want gcc-aarch64-linux-gnu
    [ "$purpose" != tests ] || [ -e /usr/aarch64-linux-gnu/include/stdio.h ] || want libc6-dev-arm64-cross
    [ "$purpose" != tests ] || has qemu-aarch64-static || has qemu-aarch64 || want qemu-user-static
    # opens the demo's page
    [ "$purpose" != tests ] || has chromium || has chromium-browser || has google-chrome || want chromium
}

log=${BUILD:-build}/setup.log # what apt has to say

install() { # PACKAGE...
    # RUNLEVEL=1: what is installed is not started
    RUNLEVEL=1 $sudo apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1
}

install_missing() {
    export DEBIAN_FRONTEND=noninteractive
    mkdir -p "${log%/*}"
    $sudo apt-get update -qq >"$log" 2>&1 || echo "setup: apt-get update failed; trying what is known" >&2
    # shellcheck disable=SC2086
    [ -z "$needed" ] || install $needed
    # shellcheck disable=SC2086
    [ -z "$wanted" ] || install $wanted || for package in $wanted; do
        # One by one, since a system may lack some; another version is better than none.
        install "$package" || install "$(echo "$package" | sed 's/-14//')" ||
            echo "setup: no package $package here" >&2
    done
}

# ---- packages of the system --------------------------------------------------------------

install_packages() {
    missing
    [ -z "$needed$wanted" ] && return 0

    # What apt could not give last time it will not give today: say so and go on.
    tried=${BUILD:-build}/setup-tried
    if [ -z "$needed" ] && [ "$(cat "$tried" 2>/dev/null)" = "$wanted" ]; then
        echo "setup: not to be had here:$wanted; tests that use it are skipped (rm $tried: try again)" >&2
        return 0
    fi

    sudo=
    if has apt-get && { [ "$(id -u)" -eq 0 ] || { has sudo && sudo -n true 2>/dev/null; }; }; then
        [ "$(id -u)" -eq 0 ] || sudo="sudo -n --preserve-env=DEBIAN_FRONTEND,RUNLEVEL"
        echo "setup: installing$needed$wanted" >&2
        install_missing
        missing
        [ -z "$wanted" ] || echo "$wanted" >"$tried"
        [ -z "$needed" ] || tail -n 20 "$log" >&2
    else
        echo "setup: please run:  sudo apt-get install -y$needed$wanted" >&2
    fi

    if [ -n "$needed" ]; then
        echo "setup: cannot build without:$needed" >&2
        exit 1
    fi
}

# ---- Python: two venvs for the tests of the package ---------------------------------------

# What the tests of the package import. Without torch or transformers the tests that use them
# are skipped; torch comes first and keeps its version, so that nothing replaces it.
python_packages="numpy pytest scikit-build-core ninja auditwheel"
torch_package=torch==2.13.0
transformers_package=transformers==4.57.6
sentence_package=sentence-transformers==5.7.0
sentencepiece_packages="sentencepiece==0.2.3 protobuf gguf==0.19.0"
client_packages="openai==3.51.0" # asks locus serve

# In venv-new: today's libraries, beside everything of the first venv that they can share.
new_packages="transformers==5.23.0 sentence-transformers==6.2.0"

pip_install() { # PACKAGE...
    "${BUILD:-build}/venv/bin/python" -m pip ${into:+--python "$into"} install --quiet --disable-pip-version-check "$@" \
        >>"$log" 2>&1
}

# The stamp of a venv says what was asked for and what came of it; the same question is not asked twice.
answered() { # VENV ASKED
    [ "$(head -n 1 "$1/locus-setup" 2>/dev/null)" = "$2" ] && tail -n +2 "$1/locus-setup" >&2
}
lacking() { # VENV PACKAGES
    echo "setup: pip found no $2; tests that use it are skipped (rm $1/locus-setup: try again)" | tee -a "$1/locus-setup.new" >&2
}

make_venv() {
    venv=${BUILD:-build}/venv
    asked="$python_packages $torch_package $transformers_package $sentence_package $sentencepiece_packages $client_packages"
    answered "$venv" "$asked" && return 0
    has_python_dev || return 0
    mkdir -p "${log%/*}"
    echo "setup: a Python environment in $venv" >&2
    python3 -m venv "$venv" >>"$log" 2>&1 || { echo "setup: no venv; tests of the Python package are skipped" >&2; return 0; }
    # shellcheck disable=SC2086
    pip_install $python_packages || {
        echo "setup: pip found no numpy or pytest; tests of the Python package are skipped" >&2
        rm -rf "$venv"
        return 0
    }
    echo "$asked" >"$venv/locus-setup.new"
    for package in "$torch_package" "$torch_package $transformers_package" \
        "$torch_package $transformers_package $sentence_package" "$sentencepiece_packages" "$client_packages"; do
        # shellcheck disable=SC2086
        pip_install $package || {
            lacking "$venv" "${package##* }"
            break
        }
    done
    mv "$venv/locus-setup.new" "$venv/locus-setup"
}

# torch, numpy and the like are those of the first venv, found by a .pth file behind its own packages.
make_new_venv() {
    first=${BUILD:-build}/venv new=${BUILD:-build}/venv-new
    asked="$new_packages $(head -n 1 "$first/locus-setup" 2>/dev/null)"
    answered "$new" "$asked" && return 0
    "$first/bin/python" -c 'import torch' 2>/dev/null || return 0 # the first venv has said why
    echo "setup: a Python environment in $new" >&2
    shared=$("$first/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    rm -rf "$new"
    "$first/bin/python" -m venv --without-pip "$new" >>"$log" 2>&1 || return 0
    echo "$shared" >"$("$new/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/locus-shared.pth"
    echo "$asked" >"$new/locus-setup.new"
    # shellcheck disable=SC2086
    into=$new pip_install "$torch_package" $new_packages || lacking "$new" "$new_packages"
    mv "$new/locus-setup.new" "$new/locus-setup"
}

install_packages
[ "$purpose" != tests ] || { make_venv && make_new_venv; }
exit 0

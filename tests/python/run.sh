#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Python package. The full run tests a wheel: pip builds it from this checkout, installs
# it into the tests' venv, and pytest sees nothing of the source tree. A quick run and the
# sanitizer run take the sources beside the extension module that the build has made.
. "$(dirname "$0")/../support/check.sh"

python=$BUILD/venv/bin/python
[ -x "$python" ] || python=$(dirname "$BUILD")/venv/bin/python # a build inside the main one
if [ ! -x "$python" ]; then
    begin python/all
    skip "no venv with numpy and pytest (tools/setup.sh makes it)"
    finish python
    exit
fi

unset PYTHONPATH PYTHONHOME
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
tests=bindings/python/tests

# pytest, and its result in the manner of the other suites.
reports=
pytest_with() { # PYTHON PREFIX ARGUMENT...
    case_name=python/pytest
    LOCUS_TEST_CURRENT=$SCRATCH/.current # the test that runs, and its stacks at SIGTERM
    export LOCUS_TEST_CURRENT
    with=$1 prefix=$2
    shift 2
    report=$SCRATCH/report-${prefix%/}.xml
    "$with" -m pytest -q -p no:cacheprovider --junitxml="$report" "$@" >"$SCRATCH/pytest.log" 2>&1
    reports="$reports $prefix $report $?"
    tail -n 200 "$SCRATCH/pytest.log"
}
run_pytest() { # ARGUMENT...
    pytest_with "$python" ./ "$@"
    conclude
}
conclude() {
    # shellcheck disable=SC2086
    "$python" tests/python/summary.py $reports
    exit
}

beside_the_sources() { # a package of links: our Python files, the build's extension module
    mkdir -p "$SCRATCH/package/locus"
    ln -s "$ROOT"/bindings/python/locus/*.py "$ROOT"/bindings/python/locus/*.pyi \
        "$ROOT"/bindings/python/locus/py.typed "$ROOT"/bindings/python/locus/torch "$SCRATCH/package/locus/"
    ln -s "$BUILD/python/locus/_native.abi3.so" "$SCRATCH/package/locus/"
    PYTHONPATH=$SCRATCH/package
    export PYTHONPATH
}

if [ -n "${LOCUS_TEST_SANITIZED:-}" ] || [ -n "${LOCUS_TEST_SAMPLE:-}" ]; then
    if [ ! -e "$BUILD/python/locus/_native.abi3.so" ]; then
        begin python/all
        skip "this build has no extension module (python3-dev is missing)"
        finish python
        exit
    fi
    beside_the_sources
    LOCUS_LEAK_CALLS=5000
    export LOCUS_LEAK_CALLS
fi

if [ -n "${LOCUS_TEST_SANITIZED:-}" ]; then
    # Python itself has no sanitizer, so it is loaded first, and what the interpreter never
    # frees is not counted; test_leaks counts ours.
    asan=$(${CC:-cc} -print-file-name=libasan.so)
    ubsan=$(${CC:-cc} -print-file-name=libubsan.so)
    stdcxx=$(${CC:-cc} -print-file-name=libstdc++.so)
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
    LD_PRELOAD="$asan $ubsan $stdcxx"
    PYTHONMALLOC=malloc
    LOCUS_TEST_NO_TORCH=1 # torch under a preloaded sanitizer is not what we test
    LOCUS_FUZZ_CALLS=3000
    export ASAN_OPTIONS LD_PRELOAD PYTHONMALLOC LOCUS_TEST_NO_TORCH LOCUS_FUZZ_CALLS
    run_pytest $tests/test_attend.py $tests/test_dlpack.py $tests/test_refusals.py $tests/test_fuzz.py \
        $tests/test_pictures.py
fi
if [ -n "${LOCUS_TEST_SAMPLE:-}" ]; then
    LOCUS_FUZZ_CALLS=1000
    export LOCUS_FUZZ_CALLS
    run_pytest $tests/test_attend.py $tests/test_dlpack.py $tests/test_refusals.py $tests/test_fuzz.py \
        $tests/test_package.py
fi

wheel() { # pip may fetch nothing: what a build needs is in the venv
    "$python" -m pip wheel . --no-deps --no-build-isolation --no-index --quiet --disable-pip-version-check \
        --wheel-dir "$SCRATCH/wheels" -C build-dir="$BUILD/python-wheel" &&
        "$python" -m pip install --no-deps --no-index --force-reinstall --quiet --disable-pip-version-check \
            "$SCRATCH"/wheels/locus_attention-*-cp311-abi3-*.whl
}
if ! wheel >"$SCRATCH/wheel.log" 2>&1; then
    cat "$SCRATCH/wheel.log"
    begin python/wheel
    check "pip builds and installs a wheel" false
    finish python
    exit
fi
LOCUS_TEST_WHEEL=$(echo "$SCRATCH"/wheels/locus_attention-*.whl)
export LOCUS_TEST_WHEEL
pytest_with "$python" ./ $tests

# What depends on transformers and sentence-transformers, once more under the newest of them.
new=${python%/venv/bin/python}/venv-new/bin/python
if [ -x "$new" ] && "$new" -c 'import transformers, sys; sys.exit(int(transformers.__version__.split(".")[0]) < 5)' 2>/dev/null; then
    LOCUS_TEST_SAMPLE=1 # padded texts only
    export LOCUS_TEST_SAMPLE
    pytest_with "$new" new/ $tests/test_hub.py $tests/test_patch.py $tests/test_patch_calls.py \
        $tests/test_patch_models.py $tests/test_patch_families.py $tests/test_sentence_transformers.py $tests/test_folders.py \
        $tests/test_docs.py \
        -k "not base_models and not memory and not walk and not tensors_and_training and not finetuning and not test_nn"
else
    reports="$reports new/ - 0"
fi
conclude

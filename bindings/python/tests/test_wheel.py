# SPDX-License-Identifier: Apache-2.0
"""The wheel that the run was given: it suits any Linux with a glibc, any Python, and brings its threads along."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

WHEEL = os.environ.get("LOCUS_TEST_WHEEL")
pytestmark = pytest.mark.skipif(WHEEL is None, reason="no wheel in this run: the package is taken from the sources")

# One call on two threads, and where its OpenMP runtime was loaded from.
CALL = """
import sys
{before}
import numpy, locus
locus.set_threads(2)
q = numpy.ones((2, 2, 64, 16), "f")
out = locus.attend(q, q, q, scheme="alibi")
assert abs(float(out[0, 0, 0, 0]) - 1) < 1e-6
print({{line.split()[-1] for line in open("/proc/self/maps") if "gomp" in line or "libomp" in line}})
"""


def call(python, before="", **environment):
    run = subprocess.run(
        [python, "-c", CALL.format(before=before)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/nowhere", **environment},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_auditwheel_calls_it_manylinux():
    if importlib.util.find_spec("auditwheel") is None:
        pytest.skip("no auditwheel (tools/setup.sh tests installs it)")
    run = subprocess.run([sys.executable, "-m", "auditwheel", "show", WHEEL], capture_output=True, text=True, check=True)
    assert '"manylinux_2_' in run.stdout.replace("\n", " "), run.stdout


def test_it_holds_no_path_of_the_machine_that_built_it():
    with zipfile.ZipFile(WHEEL) as wheel:
        module = wheel.read("locus/_native.abi3.so")
    root = str(pathlib.Path(__file__).resolve().parents[3])
    assert root.encode() not in module


def test_threads_come_from_the_wheel():
    with zipfile.ZipFile(WHEEL) as wheel:
        runtimes = [name for name in wheel.namelist() if "omp.so" in name]
    if not runtimes:
        pytest.skip("built without OpenMP")
    assert pathlib.Path(runtimes[0]).name in call(sys.executable) and "site-packages/locus" in call(sys.executable)


def test_the_runtime_has_its_licence():
    with zipfile.ZipFile(WHEEL) as wheel:
        names = wheel.namelist()
        if not any("libgomp" in name and ".so" in name for name in names):
            pytest.skip("built without GCC's OpenMP")
        if not pathlib.Path("/usr/share/doc/libgomp1/copyright").exists():
            pytest.skip("this system keeps no licence texts")
        text = wheel.read("locus/licenses/libgomp.txt").decode()
    assert "GCC Runtime Library Exception" in text or "GCC RUNTIME LIBRARY EXCEPTION" in text


def test_one_runtime_beside_torch():
    pytest.importorskip("torch")
    assert call(sys.executable, "import torch").count("omp") == 1


def interpreters():
    for minor in range(11, 20):
        path = shutil.which(f"python3.{minor}")
        if path and subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            yield path


@pytest.mark.skipif("LOCUS_TEST_FULL" not in os.environ, reason="other Pythons: make test-full")
@pytest.mark.parametrize("python", list(interpreters()), ids=os.path.basename)
def test_other_pythons_without_a_compiler(python, tmp_path):
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    inside = tmp_path / "venv" / "bin" / "python"
    pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    if subprocess.run([*pip, "numpy"], capture_output=True, check=False).returncode != 0:
        pytest.skip("pip found no numpy for this Python")
    subprocess.run([*pip, "--no-deps", WHEEL], check=True)
    call(inside)

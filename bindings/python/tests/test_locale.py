# SPDX-License-Identifier: Apache-2.0
"""A process under a decimal comma, as GTK, Qt and R have one: options, pictures and messages are the same bytes."""

import os
import shutil
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, locale, sys
import numpy
import locus
comma = sys.argv[1] == "comma"
if comma:
    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    assert locale.localeconv()["decimal_point"] == ","
q = numpy.random.default_rng(5).standard_normal((1, 2, 7, 8)).astype(numpy.float32)
def note(what, data):
    print(what, hashlib.sha256(data).hexdigest())
for scheme, options in (("rope", {"base": 1234.5, "pairing": "half"}), ("sinusoidal", {}), ("alibi", {}), ("none", {})):
    note(scheme, locus.attend(q, q, q, scheme=scheme, scale=0.375, softcap=1.5, **options).tobytes())
    note(scheme + ".svg", locus.plot(scheme).svg.encode())
try:
    locus.attend(q, q, q, dropout=1.5)
except ValueError as error:
    print(error)
"""


def run(kind, folder):
    environment = dict(os.environ, LOCPATH=str(folder), LC_ALL="C")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, kind], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_comma(tmp_path):
    if shutil.which("localedef") is None:
        pytest.skip("localedef is missing")
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")], capture_output=True, check=False
    )
    if not (tmp_path / "de_DE.UTF-8").is_dir():
        pytest.skip(f"localedef cannot make de_DE.UTF-8: {made.stderr.decode().strip()}")
    point, comma = run("point", tmp_path), run("comma", tmp_path)
    assert "1.5" in point and point.count("\n") == 9
    assert comma == point

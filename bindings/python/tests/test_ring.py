# SPDX-License-Identifier: Apache-2.0
"""locus.torch.ring_attend under torchrun: every golden call against one process, and the example."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import GOLDEN

torch = pytest.importorskip("torch")

HERE = Path(__file__).parent


def torchrun(ranks, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    done = subprocess.run([*command, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("ranks", [2, 3])
def test_golden_calls(ranks):
    files = sorted(p for p in GOLDEN.glob("*/*.safetensors") if p.parent.name not in ("tables", "ragged", "half"))
    files = files if ranks == 2 else files[::4]
    said = torchrun(ranks, HERE / "ring_ranks.py", *files)
    assert int(said.split("calls ")[1].split()[0]) > (150 if ranks == 2 else 30)


def test_example():
    example = HERE.parents[2] / "examples" / "ring_train.py"
    if not example.exists():
        pytest.skip("no examples beside the package")
    lines = [line for line in torchrun(2, example).splitlines() if line.startswith("step")]
    losses = [float(line.split()[-1]) for line in lines]
    assert len(losses) == 4 and losses[-1] < losses[0]


def test_threads_end_with_the_group():
    """What gloo's threads still hold at the interpreter's end aborts a rank now and then."""
    assert torchrun(2, HERE / "ring_threads.py").count("no thread is left") == 2

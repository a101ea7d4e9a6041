# SPDX-License-Identifier: Apache-2.0
"""Threads: the GIL is given up, plans are shared, a forked child computes."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import CALLS, Call
from test_model import make

import locus


def test_other_threads_run_meanwhile():
    a = np.random.default_rng(0).standard_normal((1, 4, 2048, 64), np.float32)
    done = threading.Event()

    def compute():
        for _ in range(3):
            locus.attend(a, a, a, threads=1)
        done.set()

    locus.attend(a[:, :, :64], a[:, :, :64], a[:, :, :64])
    worker = threading.Thread(target=compute)
    ticks, started = 0, time.perf_counter()
    worker.start()
    while not done.is_set():
        time.sleep(0.001)
        ticks += 1
    worker.join()
    # With the GIL held this thread would wake a few times only, between calls.
    assert ticks > 5 and ticks > 0.02 * (time.perf_counter() - started) / 0.001


def test_many_threads_get_the_right_bits():
    calls = [Call(scheme) for scheme in sorted(CALLS)]
    want = [locus.attend(**call.arrays, **call.keywords).tobytes() for call in calls]
    locus._native.cache_clear()

    def work(seed):
        order = np.random.default_rng(seed).permutation(len(calls) * 20) % len(calls)
        return all(
            locus.attend(**calls[i].arrays, **calls[i].keywords, threads=1 + seed % 2).tobytes() == want[i]
            for i in order
        )

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


def test_a_case_serves_one_thread_at_a_time():
    with ThreadPoolExecutor(4) as pool:
        case = Call("t5").case()
        results = list(pool.map(lambda _: locus.case.run(case).out.tobytes(), range(12)))
    assert len(set(results)) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork of a process with threads: the point
def test_a_forked_child_computes(qkv):
    big = np.random.default_rng(0).standard_normal((2, 4, 256, 32), np.float32)
    want = locus.attend(big, big, big, threads=2).tobytes()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        good = locus.attend(big, big, big, threads=2).tobytes() == want
        good = good and locus.case.run(Call("rope").case(), threads=2).out.size > 0
        os.write(writer, b"y" if good else b"n")
        os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    assert os.read(reader, 1) == b"y"
    os.close(reader)


def test_set_threads():
    try:
        locus.set_threads(3)
        assert locus.get_threads() == 3
        locus.set_threads(0)
        assert locus.get_threads() == locus.cpu_info()["threads"]
        for wrong in (-1, 5000):
            with pytest.raises(ValueError, match="threads: found"):
                locus.set_threads(wrong)
        for wrong in (True, 1.5, "2", None):
            with pytest.raises(TypeError, match="threads: found"):
                locus.set_threads(wrong)
    finally:
        locus.set_threads(0)


def test_a_spawned_process_computes():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.apply(locus.cpu_info)["isa"] == locus.cpu_info()["isa"]


class Answer:
    """What a model gives, in whatever process: a hidden state, what it writes, a model of its own."""

    def __init__(self, model, folder):
        self.model, self.folder = model, folder

    def __call__(self, text):
        return [model.hidden(text)[-1].tobytes() for model in (self.model, locus.Model(self.folder, threads=2))]


ANSWER = None  # a forked worker has it from its parent


def answer(text):
    return ANSWER(text)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_models_in_forked_workers(tmp_path):
    global ANSWER
    ANSWER = Answer(locus.Model(make(tmp_path / "bert"), threads=2), tmp_path / "bert")
    texts = ["the license", "a work of the license, of the work", "the"] * 2
    want = [answer(text) for text in texts]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(answer, texts).get(timeout=60) == want


class Texts:
    def __init__(self, answer):
        self.answer = answer

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.answer("the work " * (index + 1))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_models_in_a_data_loader(tmp_path):
    torch = pytest.importorskip("torch")
    texts = Texts(Answer(locus.Model(make(tmp_path / "bert"), threads=2), tmp_path / "bert"))
    want = [texts[index] for index in range(4)]
    loader = torch.utils.data.DataLoader(
        texts, batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60
    )
    assert list(loader) == want

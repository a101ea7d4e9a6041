# SPDX-License-Identifier: Apache-2.0
"""python -m locus.bench, on sizes that take no time."""

import json
import xml.dom.minidom

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import locus.bench.__main__ as bench  # noqa: E402
import locus.torch  # noqa: E402
from locus.bench import measure, report  # noqa: E402
from locus.bench.contest import Contest  # noqa: E402

SMALL = "--sizes 16,24 --heads 2 --width 8 --rounds 2 --enough 0 --no-flex --layers 1 --threads 1".split()


def test_writes_its_three_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "MOST_TOKENS_OF_A_QUICK_MODEL", 16)
    assert bench.main([*SMALL, "-o", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "bench.json").read_text())
    contests = {entry["contest"] for entry in result["entries"]}
    assert len(contests) == 14
    for contest in contests:
        for direction in ("forward", "forward + backward"):
            rows = [e for e in result["entries"] if e["contest"] == contest and e["pass"] == direction]
            assert {e["tokens"] for e in rows} == ({16} if " model, " in contest else {16, 24})
            assert len({e["contestant"] for e in rows}) >= 2
            assert all(e["ratio"] == 1 for e in rows if e["contestant"] == "locus")
            assert all(e["cpu_ratio"] == 1 for e in rows if e["contestant"] == "locus")
    assert all(0 < e["ms_median"] and 0 < e["cpu_ms_median"] and e["error"] < 1e-5 for e in result["entries"])
    text = (tmp_path / "bench.md").read_text()
    assert text == capsys.readouterr().out
    assert f"torch {torch.__version__}" in text and f"({locus.cpu_info()['isa']})" in text and "1 thread," in text
    xml.dom.minidom.parse(str(tmp_path / "bench.svg"))


@pytest.fixture(autouse=True)
def threads_of_others():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_models_alone_have_every_size(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "MOST_TOKENS_OF_A_QUICK_MODEL", 16)
    assert bench.main([*SMALL, "--only", "models", "--sizes", "24", "-o", str(tmp_path)]) == 0
    entries = json.loads((tmp_path / "bench.json").read_text())["entries"]
    assert {e["contest"] for e in entries} == {"DeBERTa-v3 model, 1 layer", "T5 encoder model, 1 layer"}


def test_rounds_alternate():
    seen = []
    runs = {name: lambda name=name: seen.append(name) for name in ("locus", "a", "b")}
    measure.times(Contest("order", [], None, runs), False, 3, 0)
    assert seen[3:] == ["locus", "a", "b", "b", "a", "locus", "locus", "a", "b"]


def test_ratios_are_taken_within_a_round(monkeypatch):
    """A machine that is half as fast in one round changes the medians of the times, not that of the ratios."""
    taken = iter([(1, 1), (3, 3), (6, 6), (2, 2), (9, 8), (3, 1)])
    monkeypatch.setattr(measure, "_seconds", lambda call, enough: next(taken))
    runs = {"locus": lambda: None, "peer": lambda: None}
    peer = measure.times(Contest("ratios", [], None, runs), False, 3, 0)["peer"]
    assert peer == {"ms_median": 3e3, "cpu_ms_median": 3e3, "ratio": 3, "cpu_ratio": 3}


def test_the_summary_takes_the_fastest_peer():
    def entry(name, ratio):
        return {"contest": "c", "tokens": 8, "pass": "forward", "contestant": name, "ratio": ratio}

    entries = [entry("locus", 1.0), entry("slow", 3.0), entry("fast", 0.5)]
    assert [e["contestant"] for e in report.best({"entries": entries})] == ["fast"]
    assert report._summary({"entries": entries})[2:] == ["| c | forward | 0.50 |"]


def test_wrong_outputs_are_not_timed(tmp_path, capsys, monkeypatch):
    attend = locus.torch.attend
    monkeypatch.setattr(locus.torch, "attend", lambda *args, **call: attend(*args, **call) * 1.01)
    assert bench.main([*SMALL, "--only", "plain", "-o", str(tmp_path)]) == 1
    assert "plain, n = 16: locus is" in capsys.readouterr().err
    assert json.loads((tmp_path / "bench.json").read_text())["entries"] == []


def test_unknown_contests_are_named(capsys):
    assert bench.main(["--only", "plain,jazz"]) == 2
    assert "found 'jazz', expected one of plain, dense" in capsys.readouterr().err

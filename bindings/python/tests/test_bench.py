# SPDX-License-Identifier: Apache-2.0
"""python -m locus.bench, on sizes that take no time."""

import json
import xml.dom.minidom

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import locus.bench.__main__ as bench  # noqa: E402
import locus.torch  # noqa: E402

SMALL = ["--sizes", "16,24", "--heads", "2", "--width", "8", "--rounds", "2", "--enough", "0", "--no-flex"]


def test_writes_its_three_files(tmp_path, capsys):
    assert bench.main([*SMALL, "-o", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "bench.json").read_text())
    contests = {entry["contest"] for entry in result["entries"]}
    assert len(contests) == 8
    for contest in contests:
        for direction in ("forward", "forward + backward"):
            rows = [e for e in result["entries"] if e["contest"] == contest and e["pass"] == direction]
            assert {e["tokens"] for e in rows} == {16, 24}
            assert len({e["contestant"] for e in rows}) >= 2
            assert all(e["ratio"] == 1 for e in rows if e["contestant"] == "locus")
    assert all(0 < e["seconds"] and e["error"] < 1e-5 for e in result["entries"])
    assert (tmp_path / "bench.md").read_text() == capsys.readouterr().out
    xml.dom.minidom.parse(str(tmp_path / "bench.svg"))


def test_wrong_outputs_are_not_timed(tmp_path, capsys, monkeypatch):
    attend = locus.torch.attend
    monkeypatch.setattr(locus.torch, "attend", lambda *args, **call: attend(*args, **call) * 1.01)
    assert bench.main([*SMALL, "--only", "plain", "-o", str(tmp_path)]) == 1
    assert "plain, n = 16: locus is" in capsys.readouterr().err
    assert json.loads((tmp_path / "bench.json").read_text())["entries"] == []


def test_unknown_contests_are_named(capsys):
    assert bench.main(["--only", "plain,jazz"]) == 2
    assert "found 'jazz', expected one of plain, dense" in capsys.readouterr().err

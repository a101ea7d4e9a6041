# SPDX-License-Identifier: Apache-2.0
"""python -m locus.bench, on sizes that take no time."""

import json
import sys
import xml.dom.minidom

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import locus_bench.__main__ as bench  # noqa: E402
import locus.torch  # noqa: E402
from locus_bench import hub, measure, report  # noqa: E402
from locus_bench.contest import Contest  # noqa: E402

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


def test_packed_and_calls(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "MOST_TOKENS_OF_A_TEXT", 16)
    assert bench.main([*SMALL, "--only", "packed,calls", "-o", str(tmp_path)]) == 0
    entries = json.loads((tmp_path / "bench.json").read_text())["entries"]
    assert {e["contestant"] for e in entries} == {"locus", "transformers, sdpa, padded", "torch, sdpa"}
    assert len(entries) == 3 * 2 * 2 and all(e["error"] < 1e-5 for e in entries)


def test_hub(tmp_path):
    assert bench.main([*SMALL, "--only", "hub", "--sizes", "24", "-o", str(tmp_path)]) == 0
    entries = json.loads((tmp_path / "bench.json").read_text())["entries"]
    assert {e["contestant"] for e in entries} == {"locus", "transformers, sdpa"}
    decoding = [e for e in entries if "over a cache" in e["contest"]]
    assert {e["pass"] for e in decoding} == {"forward"} and len({e["contest"] for e in entries}) == 5


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
    assert (peer["ms_median"], peer["ratio"], peer["ratio_low"], peer["ratio_high"]) == (3e3, 3, 1 / 3, 3)
    assert (peer["cpu_ms_median"], peer["cpu_ratio"], peer["cpu_ratio_low"], peer["cpu_ratio_high"]) == (3e3, 3, 1 / 8, 3)


def test_the_summary_takes_the_fastest_peer():
    def entry(name, ratio):
        spread = {"ratio": ratio, "ratio_low": ratio / 2, "ratio_high": ratio * 2}
        return {"contest": "c", "tokens": 8, "pass": "forward", "contestant": name, **spread}

    entries = [entry("locus", 1.0), entry("slow", 3.0), entry("fast", 0.5)]
    assert [e["contestant"] for e in report.best({"entries": entries})] == ["fast"]
    assert report._summary({"entries": entries})[2:] == ["| c | forward | 0.50 (0.25-1.00) fast |"]


def test_wrong_outputs_are_not_timed(tmp_path, capsys, monkeypatch):
    attend = locus.torch.attend
    monkeypatch.setattr(locus.torch, "attend", lambda *args, **call: attend(*args, **call) * 1.01)
    assert bench.main([*SMALL, "--only", "plain", "-o", str(tmp_path)]) == 1
    assert "plain, n = 16: locus is" in capsys.readouterr().err
    assert json.loads((tmp_path / "bench.json").read_text())["entries"] == []


def test_unknown_contests_are_named(capsys):
    assert bench.main(["--only", "plain,jazz"]) == 2
    assert "found 'jazz', expected one of plain, dense" in capsys.readouterr().err


CORES = "plain,dense,t5,shaw,xl-core,deberta-core"


def test_onnx_runtime_computes_the_same(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    import onnxruntime

    call = [*SMALL, "--only", CORES, "--batch", "2", "--pass", "forward", "--keep-memory", "-o", str(tmp_path)]
    assert bench.main(call) == 0
    result = json.loads((tmp_path / "bench.json").read_text())
    entries = [e for e in result["entries"] if e["contestant"].startswith("ONNX Runtime, ")]
    forms = {(e["contest"], e["contestant"].partition(", ")[2]) for e in entries}
    assert forms == {
        *((contest, form) for contest in ("plain", "dense bias", "T5 table") for form in ("MultiHeadAttention", "products")),
        ("Shaw", "skewed"),
        ("Transformer-XL core", "skewed"),
        ("DeBERTa-v3 core", "looked up"),
        ("DeBERTa-v3 core", "skewed"),
    }
    assert len(entries) == 2 * len(forms)  # sizes
    assert all(e["error"] < 1e-5 and e["pass"] == "forward" for e in entries)
    assert result["about"]["onnxruntime"] == onnxruntime.__version__
    assert f"ONNX Runtime {onnxruntime.__version__}" in (tmp_path / "bench.md").read_text()


def test_without_onnx_runtime_the_table_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert bench.main([*SMALL, "--only", "plain", "--layout", "heads", "--pass", "training", "-o", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "bench.json").read_text())
    assert {e["contestant"] for e in result["entries"]} == {"locus", "torch SDPA"}
    assert {e["pass"] for e in result["entries"]} == {"forward + backward"}
    assert result["about"]["onnxruntime"] is None
    text = (tmp_path / "bench.md").read_text()
    assert "no ONNX Runtime" in text
    assert "- plain, n = 16, ONNX Runtime, MultiHeadAttention: onnxruntime or onnx is not installed" in text


def test_sentences(tmp_path, monkeypatch):
    """Lines of a file in batches that the peers choose: everybody gives the same vectors, in the order of the lines."""
    from locus_bench import contests, runtime
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=1100, hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    monkeypatch.setattr(runtime, "VOCABULARY", 1100)
    monkeypatch.setattr(runtime, "_bert", lambda width, layers: BertModel(config, add_pooling_layer=False))
    monkeypatch.setitem(contests.CONTESTS, "sentences", (runtime.minilm_sentences,))
    lines = tmp_path / "lines.txt"
    lines.write_text("One two three, four.\n\nFive.\n" + "six seven " * 20 + "\nEight nine ten?\n" * 12)
    wanted = ["--only", "sentences", "--text", str(lines), "--pass", "forward", "--rounds", "1", "--enough", "0.01"]
    assert bench.main([*wanted, "--threads", "1", "-o", str(tmp_path)]) == 0
    entries = json.loads((tmp_path / "bench.json").read_text())["entries"]
    assert {entry["contest"] for entry in entries} == {"MiniLM-L6, 15 texts of 4 to 42"}
    names = {entry["contestant"] for entry in entries}
    assert {"locus", "transformers, eager", "transformers, sdpa", "transformers, patched"} <= names
    assert all(entry["error"] < 1e-5 for entry in entries)


def test_learned_positions_end(monkeypatch):
    from locus_bench import runtime
    from locus_bench.contest import Shape

    assert runtime.minilm(Shape(1, 12, runtime.MOST_TOKENS + 1, 64), None) is None
    assert runtime.mpnet(Shape(1, 12, runtime.MOST_TOKENS + 1, 64), None) is None


def test_starts_want_a_folder(tmp_path, capsys):
    assert bench.main(["--only", "starts", "-o", str(tmp_path)]) == 0
    assert "no --folder" in capsys.readouterr().err

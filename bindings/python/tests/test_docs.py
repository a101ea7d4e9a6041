# SPDX-License-Identifier: Apache-2.0
"""docs/python*.md: the walk prints what it says, every example runs."""

import dataclasses
import doctest
import re

import pytest
from conftest import ROOT

DOCS = ROOT / "docs"


def blocks(page, kind="python"):
    return re.findall(rf"```{kind}\n(.*?)```", (DOCS / page).read_text(), re.S)


def run(page, names):
    """The examples of a page, one after another in one namespace."""
    found = blocks(page)
    assert found
    for i, block in enumerate(found):
        exec(compile(block, f"{page}, example {i + 1}", "exec"), names)
    return names


def test_the_walk():
    parser = doctest.DocTestParser()
    walk = parser.get_doctest("\n".join(blocks("python.md", "pycon")), {}, "docs/python.md", "docs/python.md", 0)
    assert len(walk.examples) > 30
    said = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(walk, out=said.append)
    assert not said, "".join(said)


def test_tensors_and_training(capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)  # examples name folders of the repository
    (training,) = [block for block in blocks("python.md") if "optimizer" in block]
    lines = [line for line in training.splitlines() if line and not line.startswith("import")]
    assert len(lines) <= 15
    names = run("python.md", {})
    words = capsys.readouterr().out
    assert float(re.search(r"loss ([0-9.]+);", words)[1]) < 0.1
    assert "bucket 1 leads" in words
    assert names["tangent"].shape == names["x"].shape or names["tangent"].abs().sum() > 0


def test_finetuning(capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)
    run("models.md", {})
    losses = [float(loss) for loss in re.findall(r"step \d: ([0-9.]+) nats", capsys.readouterr().out)]
    assert len(losses) == 5 and losses[-1] < 0.7 * losses[0]


def test_patch():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    names = {"model": transformers.T5EncoderModel(config), "batch": {"input_ids": torch.randint(50, (2, 7))}}
    exec(blocks("python-models.md")[0], names)
    assert "T5Attention" in str(names["report"])


def test_embedders(tmp_path):
    """What LangChain and Haystack call, and the backend of sentence-transformers."""
    pytest.importorskip("torch")
    pytest.importorskip("sentence_transformers")
    from test_sentence_transformers import _bert

    _bert(tmp_path)
    names = {"folder": str(tmp_path)}
    for block in blocks("python-models.md")[1:]:
        exec(block, names)
    assert names["vectors"].shape == (2, 32)
    texts = ["the cat", "sleeps, it does"]
    embeddings = names["LocusEmbeddings"](tmp_path)
    found = embeddings.embed_documents(texts)
    assert found[0] == embeddings.embed_query(texts[0]) and len(found) == 2 and embeddings.embed_documents([]) == []
    document = dataclasses.make_dataclass("Document", ["content", "embedding"])(texts[1], None)
    assert names["LocusTextEmbedder"](tmp_path).run(texts[1])["embedding"] == found[1]
    assert names["LocusDocumentEmbedder"](tmp_path).run([document])["documents"][0].embedding == found[1]


def test_attn_implementation(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    names = run("python-hub.md", {"name": str(tmp_path), "prompt": torch.randint(3, 99, (1, 7))})
    assert names["ids"].shape[1] > 7 and float(names["loss"]) > 0
    assert names["model"].config._attn_implementation == "sdpa"


def test_nn():
    torch = pytest.importorskip("torch")
    names = run("python-nn.md", {})
    assert all(torch.isfinite(loss) for loss in names["losses"].values()) and names["z"].shape == (2, 10, 64)
    assert names["attention"].position.bias.c.grad is not None
    fire = next(block for block in blocks("python-nn.md") if "class Fire" in block)
    lines = [line for line in fire[: fire.index("attention =")].splitlines() if line]
    assert len(lines) <= 15, len(lines)

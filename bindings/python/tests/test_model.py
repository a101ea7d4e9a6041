# SPDX-License-Identifier: Apache-2.0
"""Trained models: a small BERT with made-up weights, against transformers where it is there."""

import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import locus

ROOT = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)
TEXTS = ["the license", "a work of the license, of the work", "", "the"]


def make(folder, *settings):
    shutil.copytree(os.path.join(ROOT, "tests", "data", "tokenizers", "bert"), folder, symlinks=False)
    script = os.path.join(ROOT, "tests", "cli", "support", "model.py")
    subprocess.run([sys.executable, script, str(folder), *settings], check=True)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make(tmp_path_factory.mktemp("models") / "bert")


def test_embed(folder):
    model = locus.Model(folder, threads=2)
    assert model.tasks == ["embed"] and model.info["family"] == "bert"
    together = model(TEXTS)
    assert together.shape == (4, 8) and together.dtype == np.float32
    for text, vector in zip(TEXTS, together):
        np.testing.assert_array_equal(model(text), vector)  # alone: the same bits
        np.testing.assert_allclose(model.hidden(text)[-1].mean(axis=0), vector, atol=1e-6)
    assert "bert, 2 layers of 8" in repr(model)


@pytest.mark.parametrize("precision, most", [("i16", 1e-3), ("int8", 5e-2)])
def test_precision(folder, precision, most):
    exact, model = locus.Model(folder), locus.Model(folder, precision=precision)
    assert exact.info["precision"] == "exact" and model.info["precision"] == precision
    want, got = exact(TEXTS), model(TEXTS)
    assert np.array_equal(got, pickle.loads(pickle.dumps(model))(TEXTS))
    for text, vector in zip(TEXTS, got):
        np.testing.assert_array_equal(model(text), vector)  # alone: the same bits
    off = np.linalg.norm(got - want) / np.linalg.norm(want)
    assert 0 < off < most
    with pytest.raises(ValueError, match="expected exact, i16 or int8, got 'half'"):
        locus.Model(folder, precision="half")


@pytest.mark.parametrize("tokens", [2047, 2048, 2049, 4095, 4096, 4097])
def test_batches(folder, tokens):
    """Around one and two times BATCH, 2048: nobody sees where a batch ends."""
    model = locus.Model(folder)
    lengths = [8] * (tokens // 8 - 1)
    lengths.append(tokens - sum(lengths))
    many = ["of " * (length - 2) for length in lengths] + ["the work"]
    assert sum(map(len, (model.tokenizer(text).ids for text in many[:-1]))) == tokens
    got = model(many)
    assert len(got) == len(many)
    np.testing.assert_array_equal(got[[0, -3, -2, -1]], [model(many[i]) for i in (0, -3, -2, -1)])


def test_classify_tokens_fill(tmp_path):
    labels = 'id2label={"0": "no", "1": "yes"}'
    classes = locus.Model(make(tmp_path / "c", 'architectures=["BertForSequenceClassification"]', labels))
    assert classes.tasks == ["classify", "embed"]
    found = classes("the license", pair="a work")
    assert list(found) == ["no", "yes"] and abs(sum(found.values()) - 1) < 1e-9
    assert classes(["the license"], pair=["a work"]) == [found]
    assert classes.logits("the license", "a work").shape == (1, 2)
    tags = locus.Model(make(tmp_path / "t", 'architectures=["BertForTokenClassification"]', labels))
    assert [token for token, _ in tags("the work")] == ["[CLS]", "the", "work", "[SEP]"]
    masks = locus.Model(make(tmp_path / "m", 'architectures=["BertForMaskedLM"]'))
    one, none, two = masks(["the [MASK]", "the", "[MASK] of [MASK]"])
    assert len(one) == 1 and none == [] and len(two) == 2 and len(one[0]) == 5
    assert one[0][0][1] >= one[0][1][1]


def test_explain(tmp_path):
    model = locus.Model(make(tmp_path / "r", "position_embedding_type=relative_key_query"))
    text = "the license of the work"
    e = model.explain(text, layer=1, head=1)
    assert list(e.terms) == ["content", "content-position", "position-content"]
    np.testing.assert_allclose(sum(e.terms.values()), e.score, atol=1e-12)
    call = model.attention(text, 1)
    out = np.einsum("mn,nd->md", e.weight, call["v"][0, 1])
    np.testing.assert_allclose(locus.attend(**call)[0, 1], out, atol=1e-6)


def test_transformers(folder):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    reference = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    model = locus.Model(folder)
    for text, pair in (("the license", None), ("the license", "of the work")):
        encoded = model.tokenizer(text, pair)
        with torch.no_grad():
            want = reference(
                torch.tensor([encoded.ids]), token_type_ids=torch.tensor([encoded.types]), output_hidden_states=True
            ).hidden_states
        got = model.hidden(text, pair)
        for state, wanted in zip(got, want):
            assert np.abs(state - wanted[0].numpy()).max() <= 2e-5 * np.abs(wanted.numpy()).max()


def test_refusals(folder, tmp_path):
    model = locus.Model(folder)
    with pytest.raises(locus.LocusValueError, match="expected one of embed"):
        model("a", task="classify")
    with pytest.raises(locus.LocusTypeError, match="no setting 'beams'"):
        model("a", beams=2)
    with pytest.raises(locus.LocusValueError, match="takes at most 24"):
        model("a " * 30)
    assert model("a " * 30, truncate=24).shape == (8,)
    with pytest.raises(locus.LocusValueError, match="layer: found 2"):
        model.attention("a", 2)
    with pytest.raises(locus.LocusTypeError, match="pair: found 1"):
        model(["a", "b"], pair=["c"])
    with pytest.raises(locus.LocusError, match="config.json"):
        locus.Model(tmp_path)

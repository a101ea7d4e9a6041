# SPDX-License-Identifier: Apache-2.0
"""Zero-shot labels and reranking: the numbers of transformers' pipeline and of sentence-transformers' CrossEncoder."""
import os
import shutil

import pytest

import locus

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOKENIZER = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "tests", "data", "tokenizers", "bert")
TEXTS = ["the license of the work", "of the", "a work that the license covers"]


def make(folder, **settings):
    shutil.copytree(TOKENIZER, folder)
    torch.manual_seed(11)
    config = transformers.BertConfig(
        vocab_size=400, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, initializer_range=0.4, **settings)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("names", [["contradiction", "neutral", "entailment"], ["Entailment", "not_entailment"]])
@pytest.mark.parametrize("multi", [False, True])
def test_zero_shot(tmp_path, names, multi):
    folder = make(tmp_path / "nli", id2label=dict(enumerate(names)), label2id={name: i for i, name in enumerate(names)})
    labels = ["license", "work", "software that is free"]
    theirs = transformers.pipeline("zero-shot-classification", model=folder, device="cpu")
    ours = locus.Model(folder)
    for hypothesis in ("This example is {}.", "of the {}"):
        wanted = theirs(TEXTS, candidate_labels=labels, hypothesis_template=hypothesis, multi_label=multi)
        for got, want in zip(ours.zero_shot(TEXTS, labels, hypothesis=hypothesis, multi_label=multi), wanted):
            assert list(got) == want["labels"]
            assert list(got.values()) == pytest.approx(want["scores"], abs=2e-6)
    one = theirs(TEXTS[0], candidate_labels=labels[:1])
    assert list(ours.zero_shot(TEXTS[0], labels[:1]).values()) == pytest.approx(one["scores"], abs=2e-6)


def test_zero_shot_refused(tmp_path):
    ours = locus.Model(make(tmp_path / "plain", num_labels=3))
    with pytest.raises(locus.LocusError, match="no label that begins with entail"):
        ours.zero_shot(TEXTS[0], ["a"])
    with pytest.raises(locus.LocusError, match="expected a model with one label"):
        ours.rank("the work", TEXTS)


def test_rank(tmp_path):
    theirs = pytest.importorskip("sentence_transformers")
    folder = make(tmp_path / "reranker", num_labels=1)
    wanted = theirs.CrossEncoder(folder, device="cpu").rank("the work", TEXTS)
    got = locus.Model(folder).rank("the work", TEXTS)
    assert [i for i, _ in got] == [one["corpus_id"] for one in wanted]
    assert [score for _, score in got] == pytest.approx([float(one["score"]) for one in wanted], abs=2e-6)
    assert locus.Model(folder).rank("the work", []) == []

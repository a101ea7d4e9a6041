# SPDX-License-Identifier: Apache-2.0
"""locus.sentence_transformers beside sentence-transformers itself, on models with random parameters."""

import json
import string

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
theirs = pytest.importorskip("sentence_transformers")

import numpy as np  # noqa: E402

from locus import LocusError  # noqa: E402
from locus.sentence_transformers import CrossEncoder, Transformer  # noqa: E402

try:
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
except ImportError:
    from sentence_transformers.models import Normalize, Pooling

CLOSE = 2e-6
TEXTS = [
    "The cat sleeps.",
    "a kitten, is it napping? " * 6,
    "",
    "  spaces around  ",
    "x",
    "One two three four five six seven eight nine ten eleven twelve",
]
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=48)


def _vocabulary(folder, special):
    letters = string.ascii_lowercase + string.digits + ".,?!"
    words = [*special, *letters, *("##" + letter for letter in letters), "the", "cat", "##ing", "sleep"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return len(words)


def _bert(folder, kind="BertModel", **more):
    size = _vocabulary(folder, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=48).save_pretrained(folder)
    getattr(transformers, kind)(transformers.BertConfig(vocab_size=size, **SIZES, **more)).eval().save_pretrained(folder)


def _mpnet(folder):
    size = _vocabulary(folder, ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"])
    words = {word: i for i, word in enumerate((folder / "vocab.txt").read_text().split("\n")[:-1])}
    vocabulary = str(folder / "vocab.txt") if int(transformers.__version__.split(".")[0]) < 5 else words
    transformers.MPNetTokenizerFast(vocabulary, model_max_length=46).save_pretrained(folder)
    transformers.MPNetModel(transformers.MPNetConfig(vocab_size=size, **SIZES)).eval().save_pretrained(folder)


@pytest.fixture(params=["bert", "mpnet"], scope="module")
def folder(request, tmp_path_factory):
    made = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(3)
    _bert(made) if request.param == "bert" else _mpnet(made)
    return made


def _pooling(words, include_prompt=True, mode="mean"):
    return Pooling(words.get_word_embedding_dimension(), pooling_mode=mode, include_prompt=include_prompt)


def _both(folder, include_prompt=True, mode="mean", **settings):
    (folder / "sentence_bert_config.json").unlink(missing_ok=True)
    try:
        from sentence_transformers.base.modules import Transformer as Theirs
    except ImportError:
        from sentence_transformers.models import Transformer as Theirs

    prompts = dict(prompts={"query": "the query, x", "document": ""})
    kinds = Theirs(str(folder), **settings), Transformer(folder, **settings)
    return [
        theirs.SentenceTransformer(modules=[words, _pooling(words, include_prompt, mode), Normalize()], device="cpu", **prompts)
        for words in kinds
    ]


def _same(got, want):
    assert np.abs(np.asarray(got) - np.asarray(want)).max() <= CLOSE


@pytest.mark.parametrize("mode", ["mean", "cls", "max"])
def test_embeddings(folder, mode):
    want, got = _both(folder, mode=mode)
    _same(got.encode(TEXTS, batch_size=4, show_progress_bar=True), want.encode(TEXTS, batch_size=4))
    _same(got.encode("alone"), want.encode("alone"))


@pytest.mark.parametrize("include_prompt", [True, False])
def test_prompts(folder, include_prompt):
    want, got = _both(folder, include_prompt)
    for call in (dict(prompt_name="query"), dict(prompt="cat: ")):
        _same(got.encode(TEXTS, **call), want.encode(TEXTS, **call))


def test_truncation(folder):
    want, got = _both(folder, max_seq_length=9)
    assert got.max_seq_length == want.max_seq_length == 9
    _same(got.encode(TEXTS), want.encode(TEXTS))
    want.max_seq_length = got.max_seq_length = 5
    _same(got.encode(TEXTS), want.encode(TEXTS))
    assert Transformer(folder).max_seq_length == _both(folder)[0].max_seq_length


def test_tokens_and_dimensions(folder):
    want, got = _both(folder)
    _same(got.encode(TEXTS, convert_to_tensor=True, normalize_embeddings=True), want.encode(TEXTS))
    for a, b in zip(got.encode(TEXTS, output_value="token_embeddings"), want.encode(TEXTS, output_value="token_embeddings")):
        assert a.shape == b.shape and float((a - b).abs().max()) < 1e-5
    assert got.get_sentence_embedding_dimension() == 32


def test_saved_and_loaded(folder, tmp_path):
    _, got = _both(folder)
    got.save(str(tmp_path / "copy"))
    again = theirs.SentenceTransformer(str(tmp_path / "copy"), device="cpu", trust_remote_code=True)
    assert isinstance(again[0], Transformer)
    assert np.array_equal(again.encode(TEXTS), got.encode(TEXTS))


@pytest.mark.parametrize("labels, activation", [(1, None), (1, "torch.nn.modules.linear.Identity"), (3, None)])
def test_cross_encoder(tmp_path, labels, activation):
    torch.manual_seed(5)
    _bert(tmp_path, "BertForSequenceClassification", num_labels=labels)
    if activation is not None:
        config = json.loads((tmp_path / "config.json").read_text())
        config["sentence_transformers"] = {"activation_fn": activation, "version": "5.0.0"}
        (tmp_path / "config.json").write_text(json.dumps(config))
    want, got = theirs.CrossEncoder(str(tmp_path), device="cpu"), CrossEncoder(tmp_path)
    pairs = [(a, b) for a in TEXTS[:3] for b in TEXTS[3:]]
    _same(got.predict(pairs, show_progress_bar=True), want.predict(pairs))
    _same(got.predict(pairs[0]), want.predict(pairs[0]))
    if labels > 1:  # of one label sentence-transformers 5 makes 1.0
        _same(got.predict(pairs, apply_softmax=True), want.predict(pairs, apply_softmax=True))
    if labels == 1:
        ours, others = (m.rank("the cat", TEXTS, top_k=4, return_documents=True) for m in (got, want))
        assert [(one["corpus_id"], one["text"]) for one in ours] == [(one["corpus_id"], one["text"]) for one in others]


def test_refusals(folder, tmp_path):
    with pytest.raises(LocusError, match="expected 'classify' for a CrossEncoder"):
        CrossEncoder(folder)
    with pytest.raises(LocusError, match="text: found int, expected str"):
        Transformer(folder).preprocess([("a", 3)])
    with pytest.raises(LocusError, match="found 3 together"):
        Transformer(folder).preprocess([("a", "b", "c")])

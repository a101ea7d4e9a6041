# SPDX-License-Identifier: Apache-2.0
"""Folders as the installed transformers and sentence-transformers write them, read back by locus.Model and locus.Tokenizer."""

import itertools
import json
import shutil
import string

import pytest
from conftest import ROOT
from token_strings import HARD

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import numpy as np  # noqa: E402

import locus  # noqa: E402
from locus import LocusError, _native  # noqa: E402
from locus._model import _HIDDEN, _Texts  # noqa: E402

CLOSE, STATES = 2e-6, 2e-5
TEXTS = ["The cat sleeps.", "a kitten, is it napping? " * 6, "x", "One two three four five six seven", "  spaces around  "]
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=48)


# ---- transformers ----

BERT = dict(SIZES, vocab_size=90)
T5 = dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=90, decoder_start_token_id=0)
DEBERTA = dict(BERT, relative_attention=True, position_biased_input=False, pos_att_type=["c2p", "p2c"], type_vocab_size=0)
MARIAN = dict(
    d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
    decoder_ffn_dim=48, vocab_size=90, max_position_embeddings=48, pad_token_id=89, eos_token_id=0, decoder_start_token_id=89,
)
FAMILIES = {
    "Albert": dict(BERT, embedding_size=24),
    "Bert": BERT,
    "Bloom": dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=90),
    "Deberta": DEBERTA,
    "DebertaV2": dict(DEBERTA, position_buckets=8, max_relative_positions=-1, norm_rel_ebd="layer_norm", share_att_key=True),
    "DistilBert": dict(dim=32, n_layers=2, n_heads=4, hidden_dim=48, vocab_size=90, max_position_embeddings=48),
    "Electra": dict(BERT, embedding_size=24),
    "GPT2": dict(n_embd=32, n_layer=2, n_head=4, vocab_size=90, n_positions=48, bos_token_id=1, eos_token_id=1),
    "Llama": dict(BERT, num_key_value_heads=2, rope_theta=500.0),
    "Marian": MARIAN,
    "MPNet": BERT,
    "MT5": T5,
    "OPT": dict(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, vocab_size=90, max_position_embeddings=48,
        word_embed_proj_dim=24,
    ),
    "Roberta": BERT,
    "RoFormer": BERT,
    "T5": T5,
    "UMT5": T5,
    "XLMRoberta": BERT,
    "XLNet": dict(d_model=32, n_layer=2, n_head=4, d_inner=48, vocab_size=90),
}
_ENCODERS = ("Bert", "Electra", "RoFormer")  # which continue texts if they are told to
CLASSES = [
    "Model", "EncoderModel", "MTModel", "LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration",
    "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering",
]
WRITTEN = [(family, end) for family in FAMILIES for end in CLASSES if hasattr(transformers, family + end)]
for refused in ("Marian", "Roberta", "XLMRoberta"):  # a decoder alone; positions that begin elsewhere when it continues
    WRITTEN.remove((refused, "ForCausalLM"))


def _saved(family, end, folder, settings=None):
    torch.manual_seed(2)
    continues = {"is_decoder": True} if end in ("ForCausalLM", "LMHeadModel") and family in _ENCODERS else {}
    config = getattr(transformers, family + "Config")(**(settings or FAMILIES[family]), **continues)
    config._attn_implementation = "eager"
    model = getattr(transformers, family + end)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    return model


def _near(got, want):
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= STATES * max(1e-3, np.abs(want).max())


@pytest.mark.parametrize("family, end", WRITTEN, ids="".join)
@torch.no_grad()
def test_models(family, end, tmp_path):
    theirs = _saved(family, end, tmp_path)
    ours = locus.Model(tmp_path)
    ids = torch.randint(5, 80, (1, 13), generator=torch.Generator().manual_seed(4))
    inner = theirs.base_model
    if family in ("T5", "MT5", "UMT5"):
        inner = theirs.encoder if hasattr(theirs, "encoder") else theirs.transformer.encoder
    elif family == "Marian":
        inner = (theirs.model if hasattr(theirs, "model") else theirs).get_encoder()
    states = inner(ids, output_hidden_states=True).hidden_states
    texts = _Texts(ids.tolist())
    found = ours._run(texts, 0, 1, _HIDDEN)["hidden"]
    assert len(found) == len(states)
    for (raw, rows, width), want in zip(found, states):
        _near(np.frombuffer(raw, np.float32).reshape(rows, width), want.reshape(rows, -1).numpy())
    head = ours.info["head"]
    if head == "generate":
        how = dict(max_length=20, num_beams=1, do_sample=False)
        want = theirs.generate(ids, attention_mask=torch.ones_like(ids), **how)[0].tolist()
        raw, _ = _native.model_generate(ours._handle, ids.int().numpy().tobytes(), np.asarray([0, 13]).tobytes(), dict(max_length=20, beams=1))[0]
        assert np.frombuffer(raw, np.int32).tolist() == want
    elif head:
        out = theirs(ids)
        want = torch.stack([out.start_logits, out.end_logits], -1) if "start_logits" in out else out["logits"]
        got = ours._logits(texts, 0, 1)
        _near(got, want.reshape(got.shape).numpy())


def _greedy(model, ids, **settings):
    raw, _ = _native.model_generate(model._handle, np.asarray(ids, np.int32).tobytes(), np.asarray([0, len(ids)]).tobytes(), settings)[0]
    return np.frombuffer(raw, np.int32).tolist()


def _without(folder, *keys, **others):
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **others}
    path.write_text(json.dumps({key: value for key, value in config.items() if key not in keys}))


@pytest.mark.parametrize("family, end", [("Bert", "ForMaskedLM"), ("Roberta", "Model"), ("GPT2", "LMHeadModel")])
def test_no_model_type(family, end, tmp_path):
    """Files of 2019: the class in `architectures` names the family."""
    _saved(family, end, tmp_path)
    ids = [[7, 8, 9]]
    want = locus.Model(tmp_path)._run(_Texts(ids), 0, 1, _HIDDEN)
    _without(tmp_path, "model_type")
    assert locus.Model(tmp_path)._run(_Texts(ids), 0, 1, _HIDDEN) == want
    _without(tmp_path, "model_type", architectures=["FooModel"])
    with pytest.raises(LocusError, match="model_type is missing, expected the name of a family"):
        locus.Model(tmp_path)


def test_start_beyond_the_vocabulary(tmp_path):
    """A GPT-2 with a vocabulary of its own and the start of another: judged where a text has no tokens."""
    theirs = _saved("GPT2", "LMHeadModel", tmp_path)
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    _without(tmp_path, bos_token_id=50256, eos_token_id=50256)
    theirs.generation_config.update(bos_token_id=50256, eos_token_id=50256)
    ids = torch.tensor([[7, 8, 9]])
    want = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_length=12, do_sample=False, pad_token_id=0)[0].tolist()
    ours = locus.Model(tmp_path)
    assert _greedy(ours, [7, 8, 9], max_length=12) == want
    with pytest.raises(LocusError, match="bos_token_id: found id 50256, expected at most 89"):
        _greedy(ours, [], max_length=12)


IDS = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "forced_eos_token_id")
FAIRSEQ = {key: value for key, value in MARIAN.items() if key not in IDS and key != "pad_token_id"}
BOTH = {
    "Bart": FAIRSEQ, "MBart": FAIRSEQ, "M2M100": FAIRSEQ, "Pegasus": FAIRSEQ, "Marian": MARIAN, "T5": T5, "MT5": T5, "UMT5": T5,
}  # fmt: skip


@pytest.mark.skipif(transformers.__version__ >= "5", reason="transformers 5 writes these ids, and its classes have none")
@pytest.mark.parametrize("said", [{}, {"eos_token_id": None, "forced_eos_token_id": None}, {"forced_eos_token_id": 3, "bos_token_id": 4}])
@pytest.mark.parametrize("family", BOTH)
def test_ids_of_the_class(family, said, tmp_path):
    """Without generation_config.json the class says what config.json does not: the first token, the last, that at max_length."""
    theirs = _saved(family, "MTModel" if family == "Marian" else "ForConditionalGeneration", tmp_path, BOTH[family])
    (tmp_path / "generation_config.json").unlink()
    needed = {"decoder_start_token_id": BOTH[family]["decoder_start_token_id"]} if family in ("Marian", "T5") else {}
    _without(tmp_path, *IDS)
    _without(tmp_path, **needed, **said)
    again = type(theirs).from_pretrained(tmp_path, attn_implementation="eager").eval()
    ids = torch.tensor([[7, 8, 9]])
    want = again.generate(ids, attention_mask=torch.ones_like(ids), max_length=6, num_beams=1, do_sample=False)[0].tolist()
    assert _greedy(locus.Model(tmp_path), [7, 8, 9], max_length=6, beams=1) == want


TOKENIZERS = sorted(path.name for path in (ROOT / "tests" / "data" / "tokenizers").iterdir() if path.is_dir())


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(name, tmp_path):
    """A tokenizer that transformers reads and writes again has the ids that transformers then gives."""
    try:
        transformers.AutoTokenizer.from_pretrained(ROOT / "tests" / "data" / "tokenizers" / name).save_pretrained(tmp_path)
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    except Exception as error:
        pytest.skip(f"transformers {transformers.__version__} does not write it: {str(error)[:80]}")
    ours = locus.Tokenizer(tmp_path)
    other = [text for text in HARD if ours(text).ids != theirs(text, verbose=False).input_ids]
    assert not other, (len(other), [(ascii(t), ours(t).ids, theirs(t).input_ids) for t in other[:2]])


# ---- sentence-transformers ----


def _vocabulary(folder):
    letters = string.ascii_lowercase + string.digits + ".,?!:"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *letters, *("##" + letter for letter in letters), "the", "cat", "##ing", "sleep"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=48).save_pretrained(folder)
    return len(words)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(3)
    config = transformers.BertConfig(**dict(SIZES, vocab_size=_vocabulary(folder)))
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def pipeline(bert, tmp_path):
    """Makes and saves a SentenceTransformer of some modules; returns it with the folder."""
    theirs = pytest.importorskip("sentence_transformers")
    numbers = itertools.count()

    def made(*modules, cut=None, **settings):
        words = _modules().Transformer(str(bert), **({} if cut is None else {"max_seq_length": cut}))
        model = theirs.SentenceTransformer(modules=[words, *modules], device="cpu", **settings)
        folder = tmp_path / str(next(numbers))
        model.save_pretrained(str(folder))
        return model, folder

    return made


def _modules():
    import sentence_transformers.models as modules

    return modules


MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


def _same(folder, theirs):
    got, want = locus.Model(folder)(TEXTS), theirs.encode(TEXTS)
    assert got.shape == want.shape and np.abs(got - want).max() <= CLOSE * max(1, np.abs(want).max())


@pytest.mark.parametrize("mode", [*MODES, ("lasttoken", "cls"), tuple(MODES)], ids=str)
def test_poolings(pipeline, mode):
    try:
        pooling = _modules().Pooling(32, pooling_mode=mode)
    except Exception as error:
        pytest.skip(str(error))
    theirs, folder = pipeline(pooling)
    _same(folder, theirs)
    info = locus.Model(folder).info
    assert info["embedding_width"] == (32 if isinstance(mode, str) else 32 * len(mode))


@pytest.mark.parametrize("flags", [("cls_token",), ("mean_tokens", "max_tokens", "cls_token"), ("lasttoken", "weightedmean_tokens")])
def test_flags_of_earlier_versions(pipeline, flags):
    theirs, folder = pipeline(_modules().Pooling(32))
    names = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
    pooling = {"word_embedding_dimension": 32, **{f"pooling_mode_{name}": name in flags for name in names}}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    _same(folder, type(theirs)(str(folder), device="cpu"))


@pytest.mark.parametrize("activation", ["Tanh", "Identity", "ReLU", "GELU", "Sigmoid", "SiLU"])
def test_dense(pipeline, activation):
    modules = _modules()
    dense = modules.Dense(32, 24, activation_function=getattr(torch.nn, activation)())
    last = modules.Dense(24, 16, bias=False)
    theirs, folder = pipeline(modules.Pooling(32), dense, modules.Normalize(), last, modules.Normalize())
    _same(folder, theirs)
    info = locus.Model(folder).info
    assert info["embedding_width"] == 16 and info["embedding"].endswith("unit length, map to 16, tanh, unit length")


@pytest.mark.parametrize("cut", [None, 9])
def test_prompts_and_lengths(pipeline, cut):
    prompts = {"query": "the query: ", "document": ""}
    theirs, folder = pipeline(_modules().Pooling(32), cut=cut, prompts=prompts, default_prompt_name="query")
    _same(folder, theirs)
    info = locus.Model(folder).info
    assert info["prompt"] == "the query: " and info["cut_tokens"] == (cut or 48)


def test_weights_of_a_module_have_names(pipeline):
    modules = _modules()
    _, folder = pipeline(modules.Pooling(32), modules.Dense(32, 24), modules.Dense(24, 16))
    from locus.torch import Model

    names = dict(Model(folder).named_parameters())
    assert names["2_Dense.linear.weight"].shape == (24, 32) and names["3_Dense.linear.bias"].shape == (16,)


def test_refusals(pipeline):
    modules = _modules()
    _, folder = pipeline(modules.Pooling(32, include_prompt=False), modules.Dense(32, 24))

    def refused(file, match, **change):
        kept = (folder / file).read_text()
        found = json.loads(kept)
        (folder / file).write_text(json.dumps({**found, **change} if isinstance(found, dict) else [*found, change]))
        with pytest.raises(LocusError, match=match):
            locus.Model(folder)
        (folder / file).write_text(kept)

    locus.Model(folder)
    refused("config_sentence_transformers.json", "include_prompt", prompts={"q": "q: "}, default_prompt_name="q")
    refused("config_sentence_transformers.json", "default_prompt_name", default_prompt_name="none")
    refused("1_Pooling/config.json", "pooling_mode: found median", pooling_mode="median")
    refused("1_Pooling/config.json", "the width of the last states", embedding_dimension=31, word_embedding_dimension=31)
    refused("2_Dense/config.json", "in_features: found 31", in_features=31)
    refused("2_Dense/config.json", "activation_function", activation_function="torch.nn.modules.activation.Softplus")
    refused("2_Dense/config.json", "module_input_name", module_input_name="token_embeddings")
    refused("modules.json", "modules.json: 3.type: found x.WordWeights", type="x.WordWeights", path="3")
    for other in "[true]", "7", "{", '["pooling_mode_", 1]':
        kept = (folder / "1_Pooling" / "config.json").read_text()
        (folder / "1_Pooling" / "config.json").write_text(other)
        with pytest.raises(LocusError, match="1_Pooling/config.json"):
            locus.Model(folder)
        (folder / "1_Pooling" / "config.json").write_text(kept)
    (folder / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(LocusError, match="2_Dense/model.safetensors"):
        locus.Model(folder)
    (folder / "model.safetensors").unlink()
    (folder / "model.onnx").write_bytes(b"")
    with pytest.raises(LocusError, match="model.safetensors: found model.onnx instead.*locus.convert"):
        locus.Model(folder)


def test_weights_of_torch(pipeline, tmp_path):
    """pytorch_model.bin of the model and of a module; locus.convert takes the module along."""
    from locus.convert import convert
    from safetensors.torch import load_file

    modules = _modules()
    theirs, folder = pipeline(modules.Pooling(32), modules.Dense(32, 24))
    for part in folder, folder / "2_Dense":
        torch.save(load_file(part / "model.safetensors"), part / "pytorch_model.bin")
        (part / "model.safetensors").unlink()
    _same(folder, theirs)
    convert(folder, tmp_path / "new")
    _same(tmp_path / "new", theirs)


def test_gradients_of_modules(pipeline):
    """Through the modules to the words, beside their own autograd."""
    modules = _modules()
    modes = ["lasttoken", "weightedmean", "max", "mean_sqrt_len_tokens"]
    try:
        pooling = modules.Pooling(32, pooling_mode=modes)
    except Exception as error:
        pytest.skip(str(error))
    theirs, folder = pipeline(pooling, modules.Normalize(), modules.Dense(128, 24))
    theirs.eval()
    from locus.torch import Model

    ours = Model(folder)
    slope = torch.randn(len(TEXTS), 24)
    features = theirs.preprocess(TEXTS) if hasattr(theirs, "preprocess") else theirs.tokenize(TEXTS)
    (theirs(features)["sentence_embedding"] * slope).sum().backward()
    (ours(TEXTS) * slope).sum().backward()
    got = {name: p.grad for name, p in ours.named_parameters()}
    want = {"3_Dense.linear.weight": theirs[3].linear.weight.grad, "3_Dense.linear.bias": theirs[3].linear.bias.grad}
    inner = getattr(theirs[0], "auto_model", None) or theirs[0].model
    want["embeddings.word_embeddings.weight"] = inner.embeddings.word_embeddings.weight.grad
    for name, slopes in want.items():
        assert (got[name] - slopes).abs().max() <= 2e-5 * slopes.abs().max(), name


@pytest.mark.parametrize("labels", [1, 3])
def test_cross_encoder(bert, labels, tmp_path):
    """Its modules.json lists no pooling: the head answers."""
    theirs = pytest.importorskip("sentence_transformers")
    head, folder = tmp_path / "head", tmp_path / "folder"
    shutil.copytree(bert, head)
    config = transformers.BertConfig.from_pretrained(bert, num_labels=labels)
    transformers.BertForSequenceClassification(config).save_pretrained(head)
    model = theirs.CrossEncoder(str(head), device="cpu")
    model.save_pretrained(str(folder))
    ours = locus.Model(folder)
    assert ours.tasks[0] == "classify"
    want = model.predict([("the cat", text) for text in TEXTS], activation_fn=torch.nn.Identity())
    got = np.concatenate([ours.logits("the cat", text, truncate=48) for text in TEXTS])
    assert np.abs(got.reshape(want.shape) - want).max() <= CLOSE

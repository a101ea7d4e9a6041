# SPDX-License-Identifier: Apache-2.0
"""pytorch_model.bin as torch writes it, read in C: the same bits as model.safetensors of the same weights."""
import json
import os
import shutil

import numpy
import pytest

import locus

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")


TOKENIZER = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "tests", "data", "tokenizers", "bert")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=3000, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, architectures=["BertModel"])
    return transformers.BertModel(config).eval()


def folder(path, model):
    shutil.copytree(TOKENIZER, path)
    model.config.save_pretrained(path)
    return path


def answer(path):
    return locus.Model(str(path))(["the license", "", "a work of the license"])


@pytest.fixture(scope="module")
def wanted(model, tmp_path_factory):
    path = folder(tmp_path_factory.mktemp("safetensors") / "model", model)
    model.save_pretrained(path)
    return answer(path)


def turned(state):
    """Views as files converted from TensorFlow have them: of a transposed storage, of one that all share."""
    state = {name: value.t().contiguous().t() if value.ndim == 2 else value for name, value in state.items()}
    biases = [name for name, value in state.items() if value.ndim == 1]
    shared = torch.cat([state[name] for name in biases])
    parts = shared.split([len(state[name]) for name in biases])
    return {**state, **dict(zip(biases, parts)), "embeddings.position_ids": torch.arange(32)[None]}


@pytest.mark.parametrize("change", [dict, turned], ids=["plain", "views"])
def test_same_bits(tmp_path, model, wanted, change):
    path = folder(tmp_path / "model", model)
    torch.save(change(model.state_dict()), path / "pytorch_model.bin")
    assert numpy.array_equal(answer(path), wanted)


def test_parameters_and_halves(tmp_path, model):
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        path = folder(tmp_path / str(dtype), model)
        state = {name: torch.nn.Parameter(value.to(dtype)) for name, value in turned(model.state_dict()).items()
                 if value.is_floating_point()}
        torch.save(state, path / "pytorch_model.bin")
        one = folder(tmp_path / f"{dtype}-safetensors", model)
        safetensors.save_file({name: value.detach().contiguous() for name, value in state.items()}, one / "model.safetensors")
        assert numpy.array_equal(answer(path), answer(one))


def test_shards(tmp_path, model, wanted):
    path = folder(tmp_path / "model", model)
    state = model.state_dict()
    files = {name: f"pytorch_model-{1 + i % 2}.bin" for i, name in enumerate(state)}
    for file in set(files.values()):
        torch.save({name: state[name] for name in state if files[name] == file}, path / file)
    (path / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    assert numpy.array_equal(answer(path), wanted)


class Call:
    def __reduce__(self):
        import os

        return os._exit, (3,)  # a reader that runs the code of a file ends the tests here


@pytest.mark.parametrize(
    ("thing", "legacy", "words"),
    [
        ({"a": Call()}, False, 'found the Python name "posix _exit"'),
        (torch.nn.Linear(2, 2), False, 'found the Python name "torch.nn.modules.linear Linear"'),
        ({"epoch": 3}, False, '"epoch": found an integer, expected a tensor'),
        ({"state_dict": {"a": torch.zeros(1)}}, False, '"state_dict": found a dict, expected a tensor'),
        ({"a": torch.zeros(1).expand(1000)}, False, "a tensor that its storage cannot hold"),
        ([torch.zeros(1)], False, "found a list, expected a dict of tensors"),
        ({"a": torch.zeros(1)}, True, "torch's format from before 1.6"),
    ],
)
def test_refused(tmp_path, model, thing, legacy, words):
    path = folder(tmp_path / "model", model)
    torch.save(thing, path / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
    with pytest.raises(locus.LocusError) as refusal:
        locus.Model(str(path))
    assert words in str(refusal.value) and "pytorch_model.bin: " in str(refusal.value)

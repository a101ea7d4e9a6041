# SPDX-License-Identifier: Apache-2.0
"""Models in Python as others have them: pieces as they come, names of transformers, copies, refusals."""

import copy
import pickle

import numpy as np
import pytest
from conftest import ROOT

import locus

FOLDER = ROOT / "examples" / "stories260K"
PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def model():
    return locus.Model(FOLDER)


@pytest.mark.parametrize("settings", [dict(max_length=40), dict(max_new_tokens=30, sample=True, seed=7, top_k=20)])
def test_stream(model, settings):
    pieces = list(model.stream(PROMPT, **settings))
    assert len(pieces) > 10 and all(pieces)
    assert "".join(pieces) == model(PROMPT, **settings)


def test_a_stream_that_is_left_early(model):
    first = next(iter(model.stream(PROMPT, max_length=200)))
    assert first.startswith(PROMPT)
    assert model(PROMPT, max_length=20).startswith(first)


def test_names_of_transformers(model):
    ours = dict(beams=3, max_length=24, no_repeat_ngram=2)
    theirs = dict(num_beams=3, max_length=24, no_repeat_ngram_size=2, do_sample=False, eos_token_id=None)
    assert model(PROMPT, **ours) == model(PROMPT, **theirs)
    whole = model.tokenizer(model(PROMPT, max_length=24)).ids
    end = whole[12]
    assert model(PROMPT, max_length=24, eos_token_id=[end]) == model.tokenizer.decode(whole[: whole.index(end, 5) + 1])
    assert model(PROMPT, max_length=24, suppress_tokens=[end]) != model(PROMPT, max_length=24)


@pytest.mark.parametrize(
    "settings, line",
    [
        (dict(num_beam=2), "no setting 'num_beam': did you mean num_beams?"),
        (dict(zzz=2), "no setting 'zzz': expected one of beams, num_beams, sample"),
        (dict(beams=2, num_beams=3), "found num_beams and another name of it"),
        (dict(eos_token_id=-7), "eos_token_id: found -7"),
        (dict(early_stopping="soon"), "early_stopping: expected True, False or"),
    ],
)
def test_refused_settings(model, settings, line):
    with pytest.raises(locus.LocusError) as caught:
        model(PROMPT, **settings)
    assert line in str(caught.value) and "\n" not in str(caught.value)


def test_what_cannot_stream(model):
    with pytest.raises(locus.LocusValueError, match="stream: found beams=2, expected 1"):
        model.stream(PROMPT, beams=2)


def test_copies(model):
    again = pickle.loads(pickle.dumps(model))
    assert again(PROMPT, max_length=20) == model(PROMPT, max_length=20) and copy.deepcopy(model) is model
    assert pickle.loads(pickle.dumps(model.tokenizer))(PROMPT).ids == model.tokenizer(PROMPT).ids


def test_explain_of_what_rope_leaves_out(model):
    """Options that nobody may write are not in the keywords."""
    e = model.explain("The cat", 1, 0)
    assert e.score.shape[0] == len(model.tokenizer("The cat").ids)
    call = model.attention("The cat", 1)
    assert locus.attend(**call).shape == call["q"].shape


def test_ids_without_a_token_have_no_text(model):
    known = model.tokenizer(PROMPT).ids
    assert model._decoded([*known, len(model.tokenizer), 10**6]) == model.tokenizer.decode(known)


def test_logits_of_no_head(tmp_path):
    from test_model import make

    plain = locus.Model(make(tmp_path / "bert"))
    texts = plain._encode(["the license"], None, 0)
    with pytest.raises(locus.LocusError, match="no head"):
        plain._run(texts, 0, 1, 2)


class TestTorch:
    @pytest.fixture
    def ours(self):
        torch = pytest.importorskip("torch")
        return torch, __import__("locus.torch").torch.Model(FOLDER)

    def test_names_are_those_of_the_plain_model(self, ours, model):
        torch, ours = ours
        assert ours.tasks == model.tasks and ours.info["family"] == model.info["family"]
        assert np.array_equal(ours.hidden(PROMPT).detach().numpy(), model.hidden(PROMPT))
        assert np.array_equal(ours.logits(PROMPT).detach().numpy(), model.logits(PROMPT))
        assert np.array_equal(ours.attention(PROMPT, 0)["q"], model.attention(PROMPT, 0)["q"])
        assert "".join(ours.stream(PROMPT, max_length=20)) == model(PROMPT, max_length=20)
        assert np.array_equal(ours.explain(PROMPT, 0, 0).score, model.explain(PROMPT, 0, 0).score)

    def test_copies(self, ours):
        torch, ours = ours
        one = copy.deepcopy(ours)
        with torch.no_grad():
            next(one.parameters()).mul_(2)
        next(one.parameters()).requires_grad_(False)
        other = pickle.loads(pickle.dumps(one.eval()))
        assert torch.equal(one([PROMPT]), other([PROMPT])) and not torch.equal(one([PROMPT]), ours([PROMPT]))
        assert not other.training and not next(other.parameters()).requires_grad and ours.training

    def test_ids_are_whole(self, ours):
        torch, ours = ours
        with pytest.raises(locus.LocusError, match="no whole number"):
            ours(ids=[[1, 2, 3.5]])
        assert torch.equal(ours(ids=[torch.tensor([1, 2, 3])]), ours(ids=[np.array([1, 2, 3])]))

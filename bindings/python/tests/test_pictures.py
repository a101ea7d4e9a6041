# SPDX-License-Identifier: Apache-2.0
"""explain and plot."""

import os
import subprocess
import xml.etree.ElementTree

import numpy as np
import pytest
from conftest import GOLDEN, ROOT, H, T

import locus


@pytest.mark.parametrize("causal", [False, True])
def test_terms_add_up_to_the_score_that_attention_sees(call, causal):
    e = locus.explain(**call.arrays, **call.keywords, causal=causal, batch=1, head=2)
    out, lse = locus.attend(**call.arrays, **call.keywords, causal=causal, return_lse=True)
    seen = e.visible
    assert e.score.shape == e.weight.shape == (T, T) and seen.any() and seen.all() != causal
    assert np.allclose(sum(e.terms.values())[seen], e.score[seen], atol=1e-12)
    assert np.isneginf(e.score[~seen]).all() and not e.weight[~seen].any()
    assert np.allclose(e.lse, lse[1, 2], atol=1e-5)
    assert np.allclose(e.weight.sum(-1), 1)
    if call.scheme != "shaw":  # whose values have positions, too
        assert np.allclose(e.weight @ call.arrays["v"][1, 2], out[1, 2], atol=1e-5)


def test_a_part_of_the_pairs(qkv):
    whole = locus.explain(*qkv, scheme="alibi", head=1)
    part = locus.explain(*qkv, scheme="alibi", head=1, rows=range(2, 5), keys=slice(3, None))
    assert (part.rows, part.keys) == (range(2, 5), range(3, T))
    assert np.array_equal(part.weight, whole.weight[2:5, 3:])
    assert np.array_equal(part.terms["bias"], whole.terms["bias"][2:5, 3:])
    for wrong in (dict(rows=range(0, T + 1)), dict(keys=range(-1, 2)), dict(head=H), dict(batch=-1)):
        with pytest.raises(locus.LocusError):
            locus.explain(*qkv, **wrong)


CHOICES = [
    range(0, 4, 2),
    range(5, 0, -2),
    range(3, 3),
    slice(None),
    slice(1, None, 3),
    slice(-3, None),
    slice(2, 100),
    [4, 1, 1],
    (0, 6),
    np.array([2, 5]),
    3,
    np.int64(0),
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_any_choice_of_rows_and_keys(qkv, choice):
    call = dict(scheme="alibi", head=1, causal=True)
    whole = locus.explain(*qkv, **call)
    wanted = np.atleast_1d(np.arange(T)[choice if not isinstance(choice, (tuple, range)) else list(choice)])
    for axis in ("rows", "keys"):
        part = locus.explain(*qkv, **call, **{axis: choice})
        assert list(getattr(part, axis)) == list(wanted)
        for name in ("score", "weight", "visible"):
            whole_one, one = getattr(whole, name), getattr(part, name)
            assert np.array_equal(one, whole_one[wanted] if axis == "rows" else whole_one[:, wanted])
        assert np.array_equal(part.lse, whole.lse[wanted] if axis == "rows" else whole.lse)
        assert set(part.terms) == set(whole.terms)
        if len(wanted):
            assert part.plot().svg.count("<title") > 0


def test_rows_far_apart_are_not_computed_with_those_between():
    q = np.zeros((1, 1, 4000, 2), np.float32)
    e = locus.explain(q, q, q, rows=[3999, 0], keys=[0, 2000, 3999])
    assert e.weight.shape == (2, 3) and np.allclose(e.weight, 1 / 4000)
    assert (e.rows, e.keys) == ((3999, 0), (0, 2000, 3999))


@pytest.mark.parametrize("odd", ["0:2", 1.5, [0.5], [True, None], {"a": 1}, [0, T], T, -1, [-1], range(-1, 2)])
def test_rows_that_there_are_not(qkv, odd):
    with pytest.raises((TypeError, locus.LocusError), match="rows: found") as caught:
        locus.explain(*qkv, rows=odd)
    assert "\n" not in str(caught.value)


def test_layers():
    case = locus.case.load(GOLDEN / "t5" / "encoder.safetensors")
    settings = dict(case.settings, heads=int(case.settings["heads"]))
    e = locus.explain(**case.tensors, **settings, scheme="t5")
    assert set(e.terms) == {"content", "bias"} and e.formulas["bias"]
    assert np.allclose(e.lse, case.want["lse"][0, 0], atol=1e-5)


def test_refusals_have_the_same_words(qkv):
    with pytest.raises(locus.LocusError, match="tensor bias is missing"):
        locus.explain(*qkv, scheme="t5")


def test_pictures_are_svg(qkv, tmp_path):
    figures = [
        locus.explain(*qkv, scheme="alibi", causal=True).plot(),
        locus.plot(locus.explain(*qkv, scheme="alibi"), title="<&>"),
        locus.plot(np.eye(4), title="one", x_names=list("abcd"), y_names=list("efgh")),
        locus.plot({"a": [1, 2, 3], "b": ([0, 5], [2, 1])}, x_label="x", y_label="y", theme="dark"),
    ]
    for figure in figures:
        root = xml.etree.ElementTree.fromstring(figure._repr_svg_())
        assert root.tag.endswith("svg") and str(figure) == figure.svg
        assert figure._repr_svg_().startswith("<svg") and figure.svg.startswith("<?xml")
        assert figure.text(100).isascii()
    assert len({xml.etree.ElementTree.fromstring(figure._repr_svg_()).get("id") for figure in figures}) == 4
    assert "bias" in figures[0].svg and "&lt;&amp;&gt;" in figures[1].svg
    for ending in ("svg", "txt", "csv", "json"):
        figures[2].save(tmp_path / f"figure.{ending}")
        assert (tmp_path / f"figure.{ending}").stat().st_size > 0
    with pytest.raises(ValueError, match="ending 'png'"):
        figures[2].save(tmp_path / "figure.png")


@pytest.mark.parametrize(
    "data, about",
    [(np.ones(3), {}), (np.ones((2, 2)), dict(x_names=["a"])), ({"a": np.ones((2, 2))}, {}),
     ({"a": ([1, 2], [1, 2, 3])}, {}), (np.ones((2, 2)), dict(title=3)), (np.ones((2, 2)), dict(theme="pink")),
     (np.ones((2, 2)), dict(width=-1)), (np.ones((2, 2)), dict(x_names=[1, 2])), ("text", {})],
)
def test_wrong_pictures_raise(data, about):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        locus.plot(data, **about)


# ---- pictures of schemes ----

PROGRAM = os.environ.get("LOCUS", str(ROOT / "build" / "locus"))
needs_program = pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="no program beside the package")


def program(*words):
    done = subprocess.run([PROGRAM, "plot", *words], capture_output=True, text=True, check=False)
    return done.stderr.strip().removeprefix("locus plot: ")


@pytest.mark.parametrize(
    "name, scheme, request_",
    [("t5", "t5", {}), ("sinusoidal", "sinusoidal", {}), ("transformer-xl", "transformer_xl", {}),
     ("t5-causal", "t5", dict(causal=True, what="rows,bias")), ("alibi", "alibi", dict(what="bias", heads=8)),
     ("distance", "shaw", dict(what="distance", clip_left=3, clip_right=np.int64(3)))],
)
def test_the_gallery(name, scheme, request_):
    assert locus.plot(scheme, **request_).svg == (ROOT / "docs" / "gallery" / f"{name}.svg").read_text("utf-8")


@needs_program
@pytest.mark.parametrize("scheme", [scheme.name for scheme in locus.schemes()])
def test_every_scheme_looks_like_that_of_the_program(scheme, tmp_path):
    file = tmp_path / "picture.svg"
    assert not program(scheme, "-o", str(file))
    figure = locus.plot(scheme)
    assert figure.svg == file.read_text("utf-8") == str(figure)
    assert figure._repr_svg_().startswith("<svg") and figure.text(100).isascii()


@needs_program
@pytest.mark.parametrize(
    "words, request_",
    [(["--tokens", "the cat  sat"], dict(tokens="the cat  sat")), (["--tokens", "a b a"], dict(tokens=["a", "b", "a"])),
     (["--length", "5", "--what", "attention", "--window", "0"], dict(length=5, what="attention", window=0)),
     (["--what", "attention", "--head", "0", "--heads", "2"], dict(what="attention", head=0, heads=2)),
     (["--what", "variants", "--seed", "3", "--dim", "8"], dict(what="variants", seed=3, dim=8)),
     (["--theme", "dark", "--width", "500"], dict(theme="dark", width=500)),
     (["--option", "bidirectional=0", "--causal"], dict(bidirectional=False, causal=True, buckets=None)),
     (["--case", str(GOLDEN / "t5" / "encoder.safetensors")], dict(case=GOLDEN / "t5" / "encoder.safetensors"))],
)
def test_every_request_does(words, request_, tmp_path):
    file = tmp_path / "picture.svg"
    assert not program("t5", *words, "-o", str(file))
    assert locus.plot("t5", **request_).svg == file.read_text("utf-8")


@needs_program
@pytest.mark.parametrize(
    "words, request_",
    [(["t7x"], {}), (["t5", "--what", "encoding"], dict(what="encoding")), (["t5", "--head", "9"], dict(head=9)),
     (["t5", "--option", "clip_left=3"], dict(clip_left=3)), (["t5", "--option", "buckets=3"], dict(buckets=3)),
     (["t5", "--tokens", " "], dict(tokens=" ")), (["t5", "--case", "absent"], dict(case="absent"))],
)
def test_refused_in_the_same_words(words, request_):
    with pytest.raises(locus.LocusError) as refused:
        locus.plot(words[0], **request_)
    assert program(*words).removeprefix("--").partition(";")[0] == str(refused.value)


@pytest.mark.parametrize(
    "request_",
    [dict(title="mine"), dict(tokens=3), dict(tokens=[3]), dict(length="5"), dict(seed="x"), dict(what=3),
     dict(tokens="a b", length=2), dict(dim=1), dict(window=-2), dict(heads=1 << 70), dict(buckets="a\0b"),
     dict(theme="pink"), {f"option_{i}": i for i in range(40)}],
)
def test_wrong_requests_raise(request_):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        locus.plot("t5", **request_)

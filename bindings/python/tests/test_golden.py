# SPDX-License-Identifier: Apache-2.0
"""The golden vectors through the Python door: the case runner, attend and layer."""

import json

import pytest
from conftest import GOLDEN

import locus

TOLERANCES = json.loads((GOLDEN / "manifest.json").read_text())["tolerance"]
FILES = sorted(path for path in GOLDEN.glob("*/*.safetensors") if path.parent.name != "tables")
WHOLE = ("causal", "heads", "window_left", "window_right", "query_offset", "dropout_seed")


def keywords(case):
    """The settings of a file, which are text, as attend and layer take them."""
    numbers = dict(case.settings)
    for name in numbers.keys() & set(WHOLE):
        numbers[name] = int(numbers[name])
    for name in numbers.keys() & {"scale", "dropout", "softcap"}:
        numbers[name] = float(numbers[name])
    return dict(numbers, scheme=case.scheme)


def test_there_are_files():
    assert len(FILES) > 80


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden(path):
    result = locus.case.run(path)
    special = TOLERANCES.get(f"{path.parent.name}/{path.name}", {})
    assert result.differences
    for difference in result.differences:
        kind = "grad" if difference.name.startswith("grad.") else difference.name
        assert difference.worst <= special.get(kind, difference.tolerance), difference

    case = locus.case.load(path)
    forward, backward = {
        "attend": (locus.attend, locus.attend_backward),
        "layer": (locus.layer, locus.layer_backward),
    }[case.kind]
    out, lse = forward(**case.tensors, **keywords(case), return_lse=True)
    assert out.tobytes() == result.out.astype(out.dtype).tobytes()  # F16 in, F16 out: rounded once
    assert lse.tobytes() == result.lse.tobytes()
    if case.dout is not None:
        more = {} if case.dlse is None else {"dlse": case.dlse}
        grads = backward(case.dout, **case.tensors, **keywords(case), **more)
        assert {name: array.tobytes() for name, array in grads.items()} == {
            name: array.astype(grads[name].dtype).tobytes() for name, array in result.grads.items()
        }

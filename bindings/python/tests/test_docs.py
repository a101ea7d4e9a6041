# SPDX-License-Identifier: Apache-2.0
"""docs/python.md: the walk prints what it says, the examples run."""

import doctest
import re

import pytest
from conftest import ROOT

TEXT = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


def test_the_walk():
    parser = doctest.DocTestParser()
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", TEXT, re.S))
    walk = parser.get_doctest(blocks, {}, "docs/python.md", "docs/python.md", 0)
    assert len(walk.examples) > 30
    said = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(walk, out=said.append)
    assert not said, "".join(said)


def test_one_line_patches_a_model():
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    model = transformers.T5EncoderModel(config)
    names = {"model": model}
    exec(BLOCKS[0], names)
    assert "T5Attention" in str(names["report"])


def test_the_training_example(capsys):
    pytest.importorskip("torch")
    lines = [line for line in BLOCKS[1].splitlines() if line and not line.startswith("import")]
    assert len(lines) <= 15
    exec(BLOCKS[1], {})
    words = capsys.readouterr().out
    assert float(re.match(r"loss ([0-9.]+);", words)[1]) < 0.1
    assert "bucket 1 leads" in words

# SPDX-License-Identifier: Apache-2.0
"""Ids, offsets and texts against the libraries themselves, live."""

import os
import pathlib
import threading

import pytest
from conftest import ROOT
from token_references import reference
from token_strings import HARD, INVALID, grammar

import locus

DATA = ROOT / "tests" / "data" / "tokenizers"
FOLDERS = sorted(path for path in DATA.iterdir() if path.is_dir())
# More folders, with real vocabularies, may be named: LOCUS_TOKENIZERS=a:b
FOLDERS += [pathlib.Path(path) for path in os.environ.get("LOCUS_TOKENIZERS", "").split(":") if path]
STRINGS = 100000 if os.environ.get("LOCUS_TEST_FULL") else 300


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name)
def folder(request):
    pytest.importorskip("transformers")
    pytest.importorskip("sentencepiece")
    return request.param


def differences(mine, refer, text):
    """What is not as the reference has it."""
    ids, types, offsets = refer(text)
    found = mine(text)
    if found.ids != ids:
        yield "ids", found.ids, ids
    elif offsets is not None and found.offsets != offsets:
        yield "offsets", found.offsets, offsets
    elif types is not None and found.types != types:
        yield "types", found.types, types
    else:
        text = refer.decode(ids)
        if mine.decode(ids) != text:
            yield "text", mine.decode(ids), text


def test_same_as_the_reference(folder):
    mine, refer = locus.Tokenizer(folder), reference(folder)
    slow = folder.name == "byt5"  # whose reference takes a millisecond per text
    strings = [*HARD, *grammar(STRINGS // (20 if slow and STRINGS > 300 else 1))]
    wrong = [(ascii(text), *d) for text in strings for d in differences(mine, refer, text)]
    assert not wrong, (len(wrong), wrong[:3])


def test_pairs(folder):
    mine, refer = locus.Tokenizer(folder), reference(folder)
    texts = [text for text in HARD if text and len(text) < 80]
    for first, second in zip(texts, texts[7:]):
        ids, types, _ = refer(first, second)
        found = mine(first, second)
        assert found.ids == ids, (ascii(first), ascii(second))
        assert types is None or found.types == types


def test_bytes_that_are_no_text(folder):
    mine, refer = locus.Tokenizer(folder), reference(folder)
    for data in INVALID:
        assert mine(data).ids == refer(data.decode("utf-8", "replace"))[0], data
        assert all(0 <= begin <= end <= len(data) for begin, end in mine(data).offsets)


def test_a_megabyte_without_a_space(folder):
    if (folder / "tokenizer_config.json").exists():
        pytest.skip("the reference takes minutes")
    mine, refer = locus.Tokenizer(folder), reference(folder)
    text = "a" * ((1 << 20) if "LOCUS_TEST_FULL" in os.environ else 50000)
    assert mine(text).ids == refer(text)[0]


def test_truncation():
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(DATA / "bert" / "tokenizer.json"))
    mine = locus.Tokenizer(DATA / "bert")
    for first, second in [("the license of the work", "a"), ("a b c d e f", "the work of the licensor"), ("a b c", "d e f")]:
        for most in range(3, 14):
            want = fast(first, second, truncation=True, max_length=most)["input_ids"]
            assert mine(first, second, truncate=most).ids == want, (first, second, most)
            want = fast(first, truncation=True, max_length=most)["input_ids"]
            assert mine(first, truncate=most).ids == want
    with pytest.raises(locus.LocusValueError, match="special ones"):
        mine("a", truncate=1)


def test_manners():
    mine = locus.Tokenizer(str(DATA / "bert"))
    assert len(mine) == 400 and mine.kind == "WordPiece" and mine.source == "tokenizer.json" and mine.has_types
    assert mine.special["mask"] == mine.find("[MASK]") == 4 and mine.token(4) == "[MASK]"
    assert mine.find("nothing like it") is None and mine.token(10**6) is None
    assert [e.ids for e in mine(["the", "work"])] == [mine("the").ids, mine("work").ids]
    assert mine("the work", special=False).ids == mine("the work").ids[1:-1]
    assert "WordPiece, 400 ids" in repr(mine)
    with pytest.raises(locus.LocusTypeError, match="expected str or bytes"):
        mine(7)
    with pytest.raises(locus.LocusIOError, match="No such file"):
        locus.Tokenizer(DATA / "absent")
    assert mine.decode([400]) == ""  # as transformers has it


def test_threads_share_a_tokenizer():
    mine = locus.Tokenizer(DATA / "t5")
    texts = list(grammar(200, 3))
    want = [mine(text).ids for text in texts]
    found = [None] * 4

    def work(k):
        found[k] = [mine(text).ids for text in texts]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [want] * 4

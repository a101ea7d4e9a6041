# SPDX-License-Identifier: Apache-2.0
"""What the reference libraries make of a tokenizer folder: tokenizers, transformers, sentencepiece."""

import json
import pathlib

FAST = {"BertTokenizer", "GPT2Tokenizer", "RobertaTokenizer", "DebertaTokenizer", "MPNetTokenizer"}


def byte_offsets(text, offsets):
    """Offsets in characters as offsets in bytes."""
    at = [0]
    for character in text:
        at.append(at[-1] + len(character.encode()))
    return [(at[begin], at[end]) for begin, end in offsets]


def of_tokenizers(path):
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

    config = path / "tokenizer_config.json"
    clean = config.exists() and json.loads(config.read_text()).get("clean_up_tokenization_spaces", False)
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def refer(text, pair=None):
        found = tokenizer.encode(text) if pair is None else tokenizer.encode(text, pair)
        return found.ids, found.type_ids, byte_offsets(text, found.offsets) if pair is None else None

    def decode(ids):
        text = tokenizer.decode(ids, skip_special_tokens=True)
        return PreTrainedTokenizerBase.clean_up_tokenization(text) if clean else text

    refer.decode = decode
    return refer


def of_sentencepiece(path):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(path / "spiece.model"))

    def refer(text, pair=None):
        return processor.encode(text) + ([] if pair is None else processor.encode(pair)), None, None

    refer.decode = processor.decode
    return refer


def of_transformers(path, name):
    import transformers

    transformers.logging.set_verbosity_error()
    fast = name in FAST
    tokenizer = getattr(transformers, name + ("Fast" if fast else "")).from_pretrained(str(path))

    def refer(text, pair=None):
        found = tokenizer(text, pair, return_offsets_mapping=fast)
        offsets = byte_offsets(text, found["offset_mapping"]) if fast and pair is None else None
        return found["input_ids"], None, offsets

    refer.decode = lambda ids: tokenizer.decode(ids, skip_special_tokens=True)
    return refer


def reference(path):
    """A function of a text (and a second one): ids, types or None, byte offsets or None; its `decode`: ids to text."""
    path = pathlib.Path(path)
    if (path / "tokenizer.json").exists():
        return of_tokenizers(path)
    config = path / "tokenizer_config.json"
    if config.exists():
        return of_transformers(path, json.loads(config.read_text())["tokenizer_class"])
    return of_sentencepiece(path)

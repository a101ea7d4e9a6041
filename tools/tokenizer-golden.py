#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make tests/data/tokenizers: small tokenizers of every kind, and what the reference libraries say.

    build/venv/bin/python tools/tokenizer-golden.py

Each folder is trained here on the text of LICENSE and a few words of other scripts, so it is nobody else's data.
golden.txt has one line per text: folder, text and second text (hexadecimal; "-": none), ids, and offsets in
bytes where the reference tells them. The reference is tokenizers 0.22.2 for folders with tokenizer.json,
vocab.txt or vocab.json, transformers 4.57.6 and sentencepiece for the others.
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bindings/python/tests"))

import sentencepiece  # noqa: E402
import transformers  # noqa: E402
from token_references import reference  # noqa: E402
from token_strings import HARD, INVALID, grammar  # noqa: E402
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402
from tokenizers import processors, trainers  # noqa: E402

OUT = ROOT / "tests/data/tokenizers"
WORDS = ["caf\u00e9 na\u00efve r\u00e9sum\u00e9", "\u4e2d\u6587 \u65e5\u672c\u8a9e", "\u0645\u0631\u062d\u0628\u0627",
         "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001F600 \U0001F468\u200d\U0001F469", "zz zzz 9, 12,345",
         "hello Hello world it's we're"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"


def corpus():
    return (ROOT / "LICENSE").read_text().splitlines() + WORDS * 3


def folder(name):
    path = OUT / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def configure(path, **config):
    (path / "tokenizer_config.json").write_text(json.dumps(config) + "\n")


def compact(path):
    """One line per file is enough."""
    data = json.loads((path / "tokenizer.json").read_text())
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (path / "tokenizer.json").write_text(text + "\n")


# ---- WordPiece ----

def make_wordpiece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    path = folder("bert")
    tokenizer.save(str(path / "tokenizer.json"))
    compact(path)
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    path = folder("bert-files")
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    configure(path, tokenizer_class="BertTokenizer", do_lower_case=False)


# ---- byte-level BPE ----

def byte_level(name, splitter, normalizer=None, processor=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=sorted(alphabet), show_progress=False,
                                  special_tokens=["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True),
                                  AddedToken("<|mask|>", lstrip=True, rstrip=True, normalized=True, special=True)])
    tokenizer.add_tokens([AddedToken("zzz", single_word=True)])
    if processor is not None:
        tokenizer.post_processor = processor
    path = folder(name)
    tokenizer.save(str(path / "tokenizer.json"))
    compact(path)
    return tokenizer


def make_byte_level():
    level = pre_tokenizers.ByteLevel
    tokenizer = byte_level("roberta", level(add_prefix_space=False),
                           processor=processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, True))
    path = folder("gpt2-files")
    model = json.loads(tokenizer.to_str())["model"]
    (path / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False) + "\n")
    merges = "\n".join(" ".join(merge) for merge in model["merges"])
    (path / "merges.txt").write_text("#version: 0.2\n" + merges + "\n")
    configure(path, tokenizer_class="GPT2Tokenizer", bos_token="</s>", eos_token="</s>", unk_token="</s>",
              add_bos_token=True)
    without = level(add_prefix_space=False, use_regex=False)
    byte_level("llama3", pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), without]),
               processor=processors.Sequence([
                   processors.ByteLevel(trim_offsets=False),
                   processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                                 special_tokens=[("<s>", 0)])]), ignore_merges=True)
    byte_level("qwen2", pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), without]),
               normalizer=normalizers.NFC(), processor=processors.ByteLevel(trim_offsets=False))
    byte_level("bloom", pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(BLOOM), "isolated"), without]),
               processor=processors.ByteLevel(trim_offsets=False))
    byte_level("smollm2", pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                   level(add_prefix_space=False)]))
    byte_level("mpt", level(add_prefix_space=True),
               normalizer=normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                                                normalizers.Lowercase(), normalizers.Strip()]),
               processor=processors.ByteLevel(trim_offsets=True))


# ---- SentencePiece ----

def rules():
    """A character map that is small and still has compositions, expansions and removals."""
    points = [*range(0xA0, 0x180), *range(0x2100, 0x2150), *range(0x2460, 0x2470), *range(0xFB00, 0xFB07),
              *range(0xFF01, 0xFF5F), 0x3000, 0x2003, 0x0E33]
    lines = ["9\t20", "A\t20", "D\t20", "200B\t20", "200D\t", "AD\t", "FFFD\t20"]
    for c in points:
        mapped = normalizers.NFKC().normalize_str(chr(c))
        if mapped != chr(c):
            lines.append(f"{c:X}\t" + " ".join(f"{ord(m):X}" for m in mapped))
    for base in "aeiou":
        for mark, name in (("\u0301", "acute"), ("\u0302", "circumflex")):
            lines.append(f"{ord(base):X} {ord(mark):X}\t{ord(normalizers.NFC().normalize_str(base + mark)):X}")
    return sorted(set(lines))


def train(path, kind, size, **options):
    with tempfile.TemporaryDirectory() as scratch:
        text, table = os.path.join(scratch, "text"), os.path.join(scratch, "rules.tsv")
        pathlib.Path(text).write_text("\n".join(corpus()) + "\n")
        pathlib.Path(table).write_text("\n".join(rules()) + "\n")
        sentencepiece.SentencePieceTrainer.train(
            input=text, model_prefix=os.path.join(scratch, "m"), model_type=kind, vocab_size=size,
            normalization_rule_tsv=table, minloglevel=2, **options)
        shutil.copy(os.path.join(scratch, "m.model"), path)


def fast(tokenizer, name):
    path = folder(name)
    tokenizer.backend_tokenizer.save(str(path / "tokenizer.json"))
    compact(path)


def make_sentencepiece():
    unigram, bpe = OUT / "unigram.model", OUT / "bpe.model"
    train(unigram, "unigram", 420, character_coverage=1.0, user_defined_symbols=["(", ")", "9.9"])
    train(bpe, "bpe", 700, byte_fallback=True, character_coverage=0.98)
    places = {"t5-files": ("spiece.model", unigram, dict(tokenizer_class="T5Tokenizer", extra_ids=10)),
              "t5-new": ("spiece.model", unigram, dict(tokenizer_class="T5Tokenizer", extra_ids=10, legacy=False)),
              "albert-files": ("spiece.model", unigram, dict(tokenizer_class="AlbertTokenizer")),
              "xlnet-files": ("spiece.model", unigram, dict(tokenizer_class="XLNetTokenizer")),
              "deberta-files": ("spm.model", unigram, dict(tokenizer_class="DebertaV2Tokenizer")),
              "xlmr-files": ("sentencepiece.bpe.model", unigram, dict(tokenizer_class="XLMRobertaTokenizer")),
              "llama-files": ("tokenizer.model", bpe, dict(tokenizer_class="LlamaTokenizer", legacy=False)),
              "raw-unigram": ("spiece.model", unigram, None),
              "raw-bpe": ("spiece.model", bpe, None)}
    for name, (file, model, config) in places.items():
        path = folder(name)
        (path / file).unlink(missing_ok=True)
        (path / file).symlink_to(os.path.join("..", model.name))
        if config is not None:
            configure(path, **config)
    fast(transformers.T5TokenizerFast(str(unigram), extra_ids=10), "t5")
    fast(transformers.AlbertTokenizerFast(str(unigram)), "albert")
    fast(transformers.DebertaV2TokenizerFast(str(unigram)), "deberta-v3")
    fast(transformers.LlamaTokenizerFast(str(bpe)), "llama")
    path = folder("byt5")
    configure(path, tokenizer_class="ByT5Tokenizer")
    path = folder("marian")
    for side in ("source.spm", "target.spm"):
        (path / side).unlink(missing_ok=True)
        (path / side).symlink_to("../unigram.model")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(unigram))
    pieces = [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
    vocabulary = {p: i for i, p in enumerate(["</s>", "<unk>", *reversed(pieces), ">>fra<<", "\u0915", "<pad>"])}
    (path / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False) + "\n")
    configure(path, tokenizer_class="MarianTokenizer")


# ---- what the references say ----

def hexadecimal(data):
    return data.hex() if data else "."


def lines_of(name, refer, texts):
    previous = b""
    for k, text in enumerate(texts):
        pairs = [None] + ([previous] if k % 6 == 5 and previous and text else [])
        for pair in pairs:
            ids, types, offsets = refer(text.decode("utf-8", "replace"),
                                        None if pair is None else pair.decode("utf-8", "replace"))
            valid = pair is None and offsets is not None and text.decode("utf-8", "replace").encode() == text
            shown = ",".join(f"{a}-{b}" for a, b in offsets) if valid else "?"
            yield "\t".join([name, hexadecimal(text), "-" if pair is None else hexadecimal(pair),
                             ",".join(map(str, ids)) or ".", shown or "."])
        previous = text


def write_golden():
    texts = [text.encode() for text in HARD if len(text) <= 110] + INVALID + [t.encode() for t in grammar(40, 7)]
    with open(OUT / "golden.txt", "w") as out:
        for path in sorted(p for p in OUT.iterdir() if p.is_dir()):
            for line in lines_of(path.name, reference(path), texts):
                out.write(line + "\n")


def main():
    make_wordpiece()
    make_byte_level()
    make_sentencepiece()
    write_golden()


if __name__ == "__main__":
    main()

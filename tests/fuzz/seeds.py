# SPDX-License-Identifier: Apache-2.0
"""seeds.py TARGET FOLDER: what a target of tests/fuzz begins with.

Small files that are accepted, so that a mutated one still comes deep: the tokenizers of tests/data
cut down to a few tokens, one configuration per family, golden cases of at most a few kilobytes.
"""
import ast
import glob
import io
import json
import os
import re
import struct
import sys
import zipfile

TOKENIZERS = "tests/data/tokenizers"
KEPT = 24  # tokens of a tokenizer


def name_of(path):
    return os.path.basename(os.path.dirname(path))


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def cut_model(model):
    """The first tokens of a vocabulary, and the merges that need no others."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        return {**model, "vocab": vocabulary[:KEPT]}
    few = {token: number for token, number in vocabulary.items() if number < KEPT}
    pairs = [pair if isinstance(pair, list) else pair.split(" ") for pair in model.get("merges", [])]
    pairs = [p for p in pairs if p[0] in few and p[1] in few and "".join(p) in few]
    return {**model, "vocab": few, **({"merges": pairs} if "merges" in model else {})}


def without_map(normalizer):
    """Precompiled character maps are kilobytes; the whole files keep theirs."""
    steps = (normalizer or {}).get("normalizers")
    if steps is None:
        return None if (normalizer or {}).get("type") == "Precompiled" else normalizer
    return {**normalizer, "normalizers": [step for step in steps if step["type"] != "Precompiled"]}


def tokenizer_json():
    for path in glob.glob(f"{TOKENIZERS}/*/tokenizer.json"):
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
        yield name_of(path), compact(whole)
        whole["added_tokens"] = [t for t in whole["added_tokens"] if t["id"] < KEPT]
        whole["model"] = cut_model(whole["model"])
        whole["normalizer"] = without_map(whole.get("normalizer"))
        yield name_of(path) + "-few", compact(whole)


def varint(value):
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def top_fields(data):
    """(number, bytes of the field) of a message whose fields all have a length."""
    at = 0
    while at < len(data):
        start = at
        key, at = read_varint(data, at)
        length, at = read_varint(data, at)
        at += length
        yield key >> 3, data[start:at]


def few_pieces(data):
    """The first pieces, the trainer's settings, a normalizer without its map."""
    pieces = [text for number, text in top_fields(data) if number == 1][:KEPT]
    trainer = [text for number, text in top_fields(data) if number == 2]
    flags = b"\x18\x01\x20\x01\x28\x01"  # add_dummy_prefix, remove_extra_whitespaces, escape
    return b"".join(pieces + trainer) + b"\x1a" + varint(len(flags)) + flags


def sentencepiece():
    for path in glob.glob(f"{TOKENIZERS}/*.model"):
        with open(path, "rb") as file:
            data = file.read()
        yield os.path.basename(path), data
        yield os.path.basename(path) + "-few", few_pieces(data)


def folder():
    words = b"[UNK]\n[CLS]\n[SEP]\na\n##b\n[PAD]\n[MASK]\n"
    yield "merges", b'1{"a":0,"b":1,"ab":2,"<unk>":3}\0#version: 0.2\na b\n'
    yield "special", b'2' + words + b'\0{"unk_token":"[UNK]","cls_token":{"content":"[CLS]","lstrip":true}}'
    yield "added", b"3" + words + b'\0{"<x>":7,"<y>":8}'
    yield "config", b"4" + words + b'\0{"model_type":"bert"}'
    for path in glob.glob(f"{TOKENIZERS}/*/tokenizer_config.json"):
        with open(path, "rb") as file:
            config = file.read()
        yield name_of(path), b"0" + words + b"\0" + config
        yield name_of(path) + "-pieces", b"5" + config + b"\0" + dict(sentencepiece())["unigram.model-few"]


def text():
    with open(f"{TOKENIZERS}/golden.txt", encoding="utf-8") as file:
        texts = sorted({line.rstrip("\n").split("\t")[1] for line in file if "\t" in line})
    for number, line in enumerate(texts[:150]):
        yield str(number), b"a" + (b"" if line == "." else bytes.fromhex(line))


def config():
    common = {"hidden_size": 8, "num_attention_heads": 2, "d_model": 8, "n_head": 2, "relative_attention": True,
              "pos_att_type": "c2p|p2c", "architectures": ["BertForMaskedLM"]}
    for path in glob.glob("src/model/families/*.c"):
        with open(path, encoding="utf-8") as file:
            for family in re.findall(r'\.type = "(.*)",', file.read()):
                yield family, compact({"model_type": family, **common})


def generation():
    yield "one", compact({
        "max_length": 20, "min_length": 1, "num_beams": 4, "length_penalty": 0.5, "early_stopping": True,
        "do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9, "no_repeat_ngram_size": 3,
        "eos_token_id": [1, 2], "bad_words_ids": [[3]], "forced_eos_token_id": 0, "decoder_start_token_id": 0,
        "pad_token_id": 0})


def index():
    yield "one", compact({"metadata": {}, "weight_map": {"a": "one.safetensors", "b": "../x"}})


def weights():
    header, at = {}, 0
    for name, shape, size in (("bert.embeddings.word_embeddings.weight", [8, 4], 128),
                              ("embeddings.LayerNorm.gamma", [4], 16)):
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    yield "one", struct.pack("<Q", len(compact(header))) + compact(header) + bytes(at)


def stored(entries):
    """A ZIP of (name, bytes), nothing compressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def torch():
    """What torch.save writes of two views of one storage."""
    view = (b"ctorch._utils\n_rebuild_tensor_v2\nq\1((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" b"0X\3\0\0\0cpuK\6tQ"
            b"K\0K%cK%c\x86K%cK%c\x86\x89ccollections\nOrderedDict\n)Rtq\2R")
    items = b"X\1\0\0\0a" + view % (2, 3, 3, 1) + b"X\1\0\0\0b" + view % (3, 2, 1, 3)
    pickle = b"\x80\2}q\0(" + items + b"u."
    yield "one", stored([("m/data.pkl", pickle), ("m/byteorder", b"little"), ("m/data/0", bytes(24))])
    yield "empty", stored([("m/data.pkl", b"\x80\2ccollections\nOrderedDict\n)R}X\1\0\0\0aNsb.")])


def gguf():
    """A Llama of one head and one layer, as far as its names go."""
    def text(value):
        return struct.pack("<Q", len(value)) + value

    def number(key, value):
        return text(b"llama." + key) + struct.pack("<II", 4, value)

    sizes = ((b"embedding_length", 32), (b"block_count", 1), (b"attention.head_count", 1), (b"feed_forward_length", 32),
             (b"context_length", 8), (b"rope.dimension_count", 32))
    values = [text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
              text(b"llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-5),
              text(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text(b"a") + text(b"b"),
              *(number(key, value) for key, value in sizes)]
    tensors = [text(name) + struct.pack("<IQQIQ", 2, 32, 1, kind, at)
               for name, kind, at in ((b"token_embd.weight", 8, 0), (b"blk.0.attn_q.weight", 1, 64), (b"output.weight", 0, 128))]
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(values)) + b"".join(values + tensors)
    yield "one", head + bytes(-len(head) % 32 + 256)


def case():
    for path in glob.glob("tests/golden/*/*.safetensors"):
        if os.path.getsize(path) <= 6000:
            with open(path, "rb") as file:
                yield name_of(path) + "-" + os.path.basename(path), file.read()


def tree():
    yield "one", b'{"a":[1,-2.5e3,true,false,null,"\\u00e9\\ud83d\\ude00\\n"],"b":{},"a":18446744073709551615}'
    yield "deep", b"[" * 32 + b"]" * 32


def regex():
    """The expressions and texts of tests/text/regex_rows.inc, whose strings are C's and Python's."""
    with open("tests/text/regex_rows.inc") as file:
        strings = re.findall(r'"(?:[^"\\]|\\.)*"', file.read())
    for name, expression, text, _ in zip(*[iter(strings)] * 4):
        both = [ast.literal_eval("b" + string) for string in (expression, text)]
        yield ast.literal_eval(name).replace("/", "-"), both[0] + b"\0" + both[1]


def body():
    """The first byte is the number of the path."""
    bodies = ({"input": ["a", "b"], "model": "embed", "encoding_format": "base64", "dimensions": 8}, {"input": [[1, 2], [3]]},
              {"prompt": "a", "max_tokens": 3, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["x"], "stream": True},
              {"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1, "return_documents": True},
              {"query": "a", "texts": ["b"], "raw_scores": True}, {"inputs": [["a", "b"], ["c"]], "parameters": {"top_k": 1}},
              {"inputs": "a", "normalize": False, "truncate": True}, {"ids": [1, 2], "skip_special_tokens": False})
    for path in range(16):
        for number, one in enumerate(bodies):
            yield f"{path}-{number}", bytes([path]) + compact(one)


TARGETS = {"fuzz_tokenizer_json": tokenizer_json, "fuzz_sentencepiece": sentencepiece, "fuzz_folder": folder,
           "fuzz_text": text, "fuzz_config": config, "fuzz_generation": generation, "fuzz_index": index,
           "fuzz_weights": weights, "fuzz_torch": torch, "fuzz_gguf": gguf, "fuzz_case": case, "fuzz_json": tree, "fuzz_regex": regex, "fuzz_body": body}

if __name__ == "__main__":
    for seed_name, seed in TARGETS[sys.argv[1]]():
        with open(os.path.join(sys.argv[2], seed_name), "wb") as out:
            out.write(seed)

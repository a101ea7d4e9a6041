#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write src/text/unicode_*.inc: what the tokenizers need to know about Unicode.

Ids depend on the Unicode data that the reference libraries were built with, and these differ
among themselves (the normalization forms of `tokenizers` are those of Unicode 9, its letters
those of a newer one). So each property is asked of the library itself, code point by code point:

    tools/unicode-tables.py      needs tokenizers==0.22.2 and sentencepiece (build/venv has them)

"py" properties are those of Python 3.11 (Unicode 14), which transformers' slow tokenizers use.
"""
import os
import sys
import tempfile
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "text")
POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)

# Bits of a class; src/text/unicode.h names them in the same order.
BITS = ("space py_space punctuation removed bert_space mark_nonspacing mark letter number regex_space "
        "numeric word extend prepend grapheme_control cjk py_digit no_ccc py_no_lower").split()


def grapheme_normalizer():
    """A character map that turns every code point below U+10000 into x, so that clusters can be counted."""
    with tempfile.TemporaryDirectory() as folder:
        rules, text = os.path.join(folder, "rules.tsv"), os.path.join(folder, "text")
        with open(rules, "w") as out:
            for c in POINTS:
                if 0 < c < 0x10000 and c != ord("x"):
                    out.write(f"{c:X}\t78\n")
        with open(text, "w") as out:
            out.write("\U0001F600\U0001F601 \U0001F602\n" * 10)
        sentencepiece.SentencePieceTrainer.train(
            input=text, model_prefix=os.path.join(folder, "m"), vocab_size=8, hard_vocab_limit=False,
            normalization_rule_tsv=rules, minloglevel=2)
        model = sentencepiece_model_pb2.ModelProto()
        with open(os.path.join(folder, "m.model"), "rb") as f:
            model.ParseFromString(f.read())
    return normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)


# A cluster of less than 6 bytes that begins with a mapped character becomes one x; a longer one is
# mapped character by character, and what is not below U+10000 stays as it is.

def grapheme_flags(clusters, s):
    """Extend (or spacing mark), prepend, control."""
    if s in "\0x\r":
        return False, False, s != "x"
    one = "x" if ord(s) < 0x10000 else s
    extend = clusters.normalize_str("a" + s) == "x"
    prepend = clusters.normalize_str(s + "a\u0301") != one + "x"
    control = clusters.normalize_str(s + "\u0301\u0301") == one + "x" and not extend
    if one == "x" and len(s.encode()) < 3:  # the cluster would be short
        control = clusters.normalize_str(s + "\u0301") == "xx"
    return extend, prepend, control


def is_pictographic(clusters, s):
    """Does a joiner tie it to the copyright sign?"""
    if s in "\0x":
        return False
    one = "x" if ord(s) < 0x10000 else s
    joined = clusters.normalize_str("\u00A9\u200D" + s)
    return joined == "xx" + one and clusters.normalize_str("a" + s) != "x"


def conjunct_flags(clusters, s):
    """Rule GB9c: consonant, linker, and what may stand between them in one grapheme."""
    if s in "\0x":
        return False, False, False
    one = "x" if ord(s) < 0x10000 else s
    return (clusters.normalize_str(s + "\u094D\u0958\u0301") == one + "xxx",
            clusters.normalize_str("\u0915" + s + "\u0958\u0301") == "x" + one + "xx",
            clusters.normalize_str("\u0915\u094D" + s + "\u0958\u0301") == "xx" + one + "xx")


def word_probe():
    """1 where the character before an added token with single_word keeps it from matching."""
    tokenizer = Tokenizer(models.WordLevel({"u": 0}, unk_token="u"))
    tokenizer.add_tokens([AddedToken("~~", single_word=True, normalized=False)])
    return lambda s: 1 not in tokenizer.encode(s + "~~").ids


def properties():
    """A list of class bits by code point."""
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    clean = normalizers.BertNormalizer(**{**bert, "clean_text": True})
    chinese = normalizers.BertNormalizer(**{**bert, "handle_chinese_chars": True})
    accents = normalizers.BertNormalizer(**{**bert, "strip_accents": True})
    strip, marks, lower = normalizers.Strip(), normalizers.StripAccents(), normalizers.Lowercase()
    letter, number, space = (normalizers.Replace(Regex(p), "") for p in (r"\p{L}", r"\p{N}", r"\s"))
    punctuation, digits = pre_tokenizers.Punctuation(), pre_tokenizers.Digits()
    nfd, clusters, word = normalizers.NFD(), grapheme_normalizer(), word_probe()
    result = {}
    for c in POINTS:
        s = chr(c)
        stable = nfd.normalize_str(s) == s
        combining = unicodedata.combining(s)
        moves = nfd.normalize_str("a" + s + "\u0334") != "a" + s + "\u0334" \
            or nfd.normalize_str("a\u0301" + s) != "a\u0301" + s
        flags = (
            strip.normalize_str(s) == "", s.isspace(),
            len(punctuation.pre_tokenize_str("a" + s + "b")) == 3,
            clean.normalize_str(s) == "", clean.normalize_str(s) == " ",
            stable and accents.normalize_str(s) == "", marks.normalize_str(s) == "",
            letter.normalize_str(s) == "", number.normalize_str(s) == "", space.normalize_str(s) == "",
            len(digits.pre_tokenize_str("a" + s + "b")) == 3, word(s),
            *grapheme_flags(clusters, s),
            chinese.normalize_str(s) != s, s.isdigit(),
            combining != 0 and stable and not moves and c != 0x301, s.lower() != lower.normalize_str(s),
            is_pictographic(clusters, s), *conjunct_flags(clusters, s))
        result[c] = sum(1 << i for i, flag in enumerate(flags) if flag)
    return result


def runs(value):
    """[(length, value)] over all code points; surrogates are as their left neighbour."""
    out, last = [], None
    for c in range(0x110000):
        v = value.get(c, last)
        if out and v == last:
            out[-1][0] += 1
        else:
            out.append([1, v])
        last = v
    return out


def write(name, comment, arrays):
    with open(os.path.join(FOLDER, name), "w") as out:
        out.write("/* SPDX-License-Identifier: Apache-2.0 */\n")
        out.write(f"/* {comment}\n * Written by tools/unicode-tables.py; Unicode data files: Unicode License V3. */\n")
        out.write("/* clang-format off */\n")
        for declaration, numbers in arrays:
            out.write(f"{declaration}[{len(numbers)}] = {{\n")
            line = ""
            for number in numbers:
                word = f"{number},"
                if len(line) + len(word) > 119:
                    out.write(line + "\n")
                    line = ""
                line += word
            out.write(line + "\n};\n")
        out.write("/* clang-format on */\n")


def decompositions():
    """Sorted (code, kind, expansion): kind 0 canonical, 1 compatibility, 2 compatibility in Python only."""
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    out = []
    for c in POINTS:
        if c in HANGUL:
            continue
        s = chr(c)
        canonical, compatible = nfd.normalize_str(s), nfkd.normalize_str(s)
        python = unicodedata.normalize("NFKD", s)
        if canonical != s:
            out.append((c, 0, canonical))
        if compatible != canonical:
            out.append((c, 1, compatible))
        if python != compatible:
            out.append((c, 2, python))
    return out


def compositions():
    """(first, second, composed) of the primary composites."""
    nfd, nfc = normalizers.NFD(), normalizers.NFC()
    out = []
    for c in POINTS:
        s = chr(c)
        parts = nfd.normalize_str(s)
        if c in HANGUL or len(parts) < 2 or nfc.normalize_str(parts) != s:
            continue
        first = nfc.normalize_str(parts[:-1])
        if len(first) != 1 or nfc.normalize_str(first + parts[-1]) != s:
            sys.exit(f"U+{c:04X} is not the composition of two code points")
        out.append((ord(first), ord(parts[-1]), c))
    return sorted(out)


def lower_runs():
    """[(first, length, stride, difference)] of simple lower-case mappings; U+0130 has two and stands in the code."""
    lower = normalizers.Lowercase()
    pairs = [(c, ord(l)) for c in POINTS if c != 0x130 and (l := lower.normalize_str(chr(c))) != chr(c)]
    out = []
    for c, l in pairs:
        if out:
            first, length, stride, difference = out[-1]
            step = c - (first + (length - 1) * max(stride, 1))
            if l - c == difference and step <= 2 and (length == 1 or step == stride):
                out[-1] = (first, length + 1, step, difference)
                continue
        out.append((c, 1, 1, l - c))
    return out


CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cs".split()
SCRIPTS = "Arabic Bengali Cyrillic Devanagari Greek Han Hangul Hebrew Hiragana Katakana Latin Tamil Thai".split()


def members(expression):
    """The code points that an expression of one character matches."""
    drop, text, out = normalizers.Replace(Regex(expression), ""), "".join(map(chr, POINTS)), set()
    for at in range(0, len(text), 50000):
        part = text[at:at + 50000]
        out |= set(map(ord, part)) - set(map(ord, drop.normalize_str(part)))
    return out


def write_categories():
    """unicode_categories.inc: what Oniguruma, with which `tokenizers` splits, knows of characters."""
    value, categories = {}, {name: members(rf"\p{{{name}}}") for name in CATEGORIES}
    for i, name in enumerate(CATEGORIES):
        value.update(dict.fromkeys(categories[name], i))
    words = members(r"\w")
    always = set().union(*(categories[c] for c in CATEGORIES if c[0] in "LM" or c in ("Nd", "Pc")))
    also = ["Nl", "No", "So"]  # some of these are letters of words, too: three more categories
    assert always <= words
    for c in words - always:
        value[c] = len(CATEGORIES) + also.index(CATEGORIES[value[c]])
    spans = []
    for i, name in enumerate(SCRIPTS):
        inside = members(rf"\p{{{name}}}")
        at = 0
        for length, there in runs({c: c in inside for c in POINTS}):
            spans += [i, at, at + length] if there else []
            at += length
    write("unicode_categories.inc", "General categories as (length, category) runs; scripts as (script, from, to).", [
        ("static const uint32_t category_runs", [n for run in runs(value) for n in run]),
        ("static const uint32_t script_spans", spans)])


def main():
    write_categories()
    value = properties()
    kinds = sorted(set(value.values()))
    index = {bits: i for i, bits in enumerate(kinds)}
    class_runs = runs({c: index[bits] for c, bits in value.items()})
    ccc = runs({c: unicodedata.combining(chr(c)) for c in POINTS})
    write("unicode_classes.inc", "Class bits, and (length, class) runs over all code points.", [
        ("const uint32_t locus_unicode_class_bits", kinds),
        ("static const uint32_t class_runs", [n for run in class_runs for n in run]),
        ("static const uint32_t ccc_runs", [n for run in ccc for n in run]),
        ("static const int32_t lower_runs", [n for run in lower_runs() for n in run])])
    numbers, last = [], 0
    for c, kind, expansion in decompositions():
        numbers += [c - last, kind << 5 | len(expansion)] + [ord(e) for e in expansion]
        last = c
    write("unicode_decompositions.inc", "Full decompositions: code point less the one before, kind and length, code points.",
          [("static const uint32_t decompositions", numbers)])
    write("unicode_compositions.inc", "Primary composites: first, second, composed.",
          [("static const uint32_t compositions", [n for triple in compositions() for n in triple])])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/text/regex_rows.inc: how `tokenizers` cuts texts by expressions (needs tokenizers==0.22.2)."""
import os

from tokenizers import Regex, pre_tokenizers

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "text", "regex_rows.inc")
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LETTERS = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
EXPRESSIONS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt4o": LETTERS + r"*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + SHORT + "?|" + LETTERS + r"+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + SHORT
    + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "possessive": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s",
    "bloom": " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
    "clip": r"<\|startoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "deberta": r"\s{2,}|[\n\r\t]", "deepseek": r"\p{N}{1,3}", "han": "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "kimi": r"[\p{Han}]+|[\p{Lu}\p{Ll}&&[^\p{Han}]]+", "falcon": "[0-9][0-9][0-9]", "words": r"\w+|[^\w\s]+",
    "smiles": r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])",
    "lazy": r"\[(.*?)\]", "first": "(a|ab)(bc|c)?", "lines": r"^\w|\w$", "behind": r"(?<=\d)[a-z]|(?<!\d)x", "word": r"\b\w",
    "thousands": r"\d{1,3}(?=(?:\d{3})*\b)", "punctuation": r"[[:punct:]]|\p{S}", "fold": r"(?i)k|S", "wide": r"\w",
}
TEXTS = ["don't I'LL we'Re 1234567 x1y a  b \n\n c \u017f\u212a", "na\u00efve \u6771\u4eac\u30bf \u00bd\u00b2 \u2167 \u0663 (a|b), \u2026 ",
         "CC(=O)Oc1ccccc1[N+](=O)[O-]Br \t ABcDe \u01c5\u02b0", "abc ab [x][y]\nxa 12 3x $5+\u20ac7\r\n  end  "]


def quote(text):
    out, last = "", False
    for byte in text.encode():
        plain = 32 <= byte < 127 and byte not in (34, 92) and not (last and chr(byte) in "0123456789abcdefABCDEF")
        out += chr(byte) if plain else f"\\{byte:03o}"
        last = False
    return '"' + out.replace("??", "?\\077") + '"'


def main():
    with open(OUT, "w") as out:
        out.write("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by tools/regex-golden.py. */\n/* clang-format off */\n")
        for name, expression in EXPRESSIONS.items():
            split = pre_tokenizers.Split(Regex(expression), "isolated")
            for i, text in enumerate(TEXTS):
                pieces = "\u2502".join(text[a:b] for _, (a, b) in split.pre_tokenize_str(text))
                out.write(f'{{"{name}/{i}",\n {quote(expression)},\n {quote(text)},\n {quote(pieces)}}},\n')
        out.write("/* clang-format on */\n")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Tokenizers: text to ids and back, from the files of published models."""

import os
from dataclasses import dataclass, field

from . import _native
from ._errors import LocusTypeError


@dataclass(frozen=True)
class Encoding:
    """What a tokenizer makes of a text, or of two."""

    ids: list
    tokens: list
    offsets: list  # (begin, end) in bytes of the segment; (0, 0) for tokens that were added
    types: list = field(repr=False)
    segments: list = field(repr=False, default_factory=list)  # 0 or 1; 2 for tokens that were added


def _bytes_of(text, name):
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    if not isinstance(text, str):
        raise LocusTypeError(f"{name}: found {type(text).__name__}, expected str or bytes")
    return text.encode("utf-8", "surrogatepass")


class Tokenizer:
    """The tokenizer of a model folder: tokenizer.json, or the vocabulary files of its class (docs/tokenizers.md).

    >>> tokenizer = locus.Tokenizer("all-MiniLM-L6-v2")
    >>> tokenizer("Hello world").ids
    [101, 7592, 2088, 102]
    >>> tokenizer.decode([101, 7592, 2088, 102])
    'hello world'

    A tokenizer never changes; threads may share it.
    """

    def __init__(self, folder):
        self._handle = _native.tokenizer_open(folder)
        self._folder = folder
        info = _native.tokenizer_info(self._handle)
        self.kind = info["kind"]
        self.source = info["source"]
        self.rules = info["rules"]
        self.has_types = info["has_types"]
        self.special = info["special"]
        self._vocabulary = info["vocabulary"]

    def __reduce__(self):
        """A copy in another process reads the folder again."""
        return type(self), (os.path.abspath(os.fspath(self._folder)),)

    def __deepcopy__(self, memo):
        return self  # it never changes

    def __len__(self):
        return self._vocabulary

    def __repr__(self):
        return f"Tokenizer({str(self._folder)!r}): {self.kind}, {self._vocabulary} ids, from {self.source}"

    def __call__(self, text, pair=None, *, special=True, truncate=0):
        """An Encoding of `text` (str or bytes), with `pair` as second segment; a list of texts gives a list."""
        if isinstance(text, (list, tuple)):
            pairs = pair if isinstance(pair, (list, tuple)) else [pair] * len(text)
            if len(pairs) != len(text):
                raise LocusTypeError(f"pair: found {len(pairs)} texts, expected {len(text)}")
            return [self(t, p, special=special, truncate=truncate) for t, p in zip(text, pairs)]
        second = None if pair is None else _bytes_of(pair, "pair")
        ids, types, offsets, segments = _native.tokenizer_encode(
            self._handle, _bytes_of(text, "text"), second, not special, truncate
        )
        return Encoding(ids, [self.token(id) for id in ids], offsets, types, list(segments))

    def decode(self, ids, *, skip_special=True):
        """Ids back to text."""
        return _native.tokenizer_decode(self._handle, [int(id) for id in ids], skip_special)

    def token(self, id):
        """The text of an id, None: there is no such token."""
        return _native.tokenizer_token(self._handle, id)

    def find(self, token):
        """The id of a token, None: there is no such token."""
        return _native.tokenizer_find(self._handle, token)

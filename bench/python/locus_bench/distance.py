# SPDX-License-Identifier: Apache-2.0
"""Rows of a table by distance, and the reshaping that slants them into place (the trick of Music Transformer)."""

import torch


def by_distance(row):
    """row [T,T] of (query, key), which depends on key - query alone, as 2T rows: distances 1-T .. T-1, and one for the reshaping."""
    return torch.cat([row[-1], row[0, 1:], row[0, -1:]])


def skew(strip):
    """[..,T,2T] by distance as [..,T,T] by key, without a copy: element (i, j) is strip (i, j - i + T-1)."""
    tokens = strip.shape[-2]
    return strip.flatten(-2)[..., tokens - 1 : -1].unflatten(-1, (tokens, -1))[..., :tokens]

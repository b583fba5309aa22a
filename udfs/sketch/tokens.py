"""From a segment's string columns to the codes and hashes that the tree is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.kernels.hashing import hash_keyed, hash_plain


@dataclass(frozen=True)
class Tokens:
    """The tokens of n events.

    Attributes
    ----------
    codes
        int32[n, x]: one column per token expression, then, if keyed, one per (key, expression); -1 adds nothing.
    hashes
        uint64[D, 2]: the hash of each code; different codes are different tokens.
    """

    codes: NDArray[np.int32]
    hashes: NDArray[np.uint64]


def tokenise(columns: Sequence[pa.Array], keys: pa.Array | None, seed: int) -> Tokens:
    """Dictionary-encode the token columns and hash each distinct token once.

    Parameters
    ----------
    columns
        One Arrow string array of n values per token expression, in the order of the expressions.
    keys
        The events' keys, n values, or None if the sketch is not keyed.
    seed
        The sketch's seed, 0 to 2^32 - 1.

    Raises
    ------
    ArgumentError
        If there is no column, or the columns differ in length.
    """
    if not columns:
        raise ArgumentError("no token column: a sketch needs at least one token expression")
    lengths = {len(column) for column in columns} | ({len(keys)} if keys is not None else set())
    if len(lengths) > 1:
        raise ArgumentError(f"columns of {sorted(lengths)} values: tokens and keys must have one value per event")
    width = len(columns) * (1 if keys is None else 2)
    codes = np.empty((lengths.pop(), width), np.int32)
    hashes: list[NDArray[np.uint64]] = []
    total = 0

    def add(column: int, column_codes: NDArray[np.int32], column_hashes: NDArray[np.uint64]) -> None:
        nonlocal total
        codes[:, column] = column_codes
        if total:
            codes[:, column] += np.where(column_codes < 0, np.int32(0), np.int32(total))
        hashes.append(column_hashes)
        total += len(column_hashes)

    encoded = [_dictionary(column) for column in columns]
    for expression, (token_codes, dictionary) in enumerate(encoded):
        add(expression, token_codes, hash_plain(dictionary, expression, seed))
    if keys is not None:
        key_codes, key_dictionary = _dictionary(keys)
        for expression, (token_codes, dictionary) in enumerate(encoded):
            pair_codes, pair_keys, pair_tokens = _pairs(key_codes, token_codes, len(dictionary))
            pair_hashes = hash_keyed(key_dictionary, dictionary, pair_keys, pair_tokens, expression, seed)
            add(len(columns) + expression, pair_codes, pair_hashes)
    return Tokens(codes, np.concatenate(hashes))


def _dictionary(values: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """Codes int32[n] (-1 = NULL) and the distinct values."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    encoded = values.dictionary_encode()
    indices = encoded.indices
    if indices.null_count:
        indices = indices.fill_null(-1)
    return indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False), encoded.dictionary


def _pairs(
    key_codes: NDArray[np.int32], token_codes: NDArray[np.int32], tokens: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Codes int32[n] of the distinct (key, token) pairs (-1 = NULL token), and each pair's key and token code."""
    combined = (key_codes.astype(np.int64) + 1) * max(tokens, 1) + token_codes
    codes, dictionary = _dictionary(pa.array(combined, mask=token_codes < 0))
    keys, found = np.divmod(dictionary.to_numpy(zero_copy_only=False).astype(np.int64), max(tokens, 1))
    return codes, (keys - 1).astype(np.int32), found.astype(np.int32)

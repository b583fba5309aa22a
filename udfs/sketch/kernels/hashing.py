"""Tokens as byte strings, and their 128-bit hashes.

A token's byte string is

====================  ==============================================================================
plain token           0x00, expression (4 bytes), token (UTF-8)
token under a key     0x01, expression (4 bytes), length of the key (4 bytes), key, token (UTF-8)
token under NULL key  0x02, expression (4 bytes), 0 (4 bytes), token (UTF-8)
====================  ==============================================================================

with little-endian numbers. The first byte keeps plain tokens, keyed tokens and the reserved marker of the NULL key
apart; the length prefix keeps ("ab", "c") and ("a", "bc") apart; an empty key is not a NULL key.
The thesis (5.1.3, Approach 2) glues key and name with a hyphen, which lets different pairs collide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.kernels.murmur import murmur3_x64_128

_PLAIN, _KEYED, _NULL_KEY = 0, 1, 2
_PLAIN_HEAD, _KEYED_HEAD = 5, 9


@dataclass(frozen=True)
class Encoded:
    """Byte strings in one buffer: string i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def encode_plain(tokens: pa.Array, expression: int) -> Encoded:
    """The plain tokens of a column's distinct values (no NULLs), for the stream's `expression`-th token expression."""
    strings = _strings(tokens, "tokens")
    offsets = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum(np.diff(strings.offsets) + _PLAIN_HEAD, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    _write_plain(strings.data, strings.offsets, _checked_expression(expression), data, offsets)
    return Encoded(data, offsets)


def encode_keyed(
    keys: pa.Array,
    tokens: pa.Array,
    key_codes: NDArray[np.int32],
    token_codes: NDArray[np.int32],
    expression: int,
) -> Encoded:
    """Tokens under keys, for pairs given as codes into a dictionary of keys and a dictionary of tokens.

    Parameters
    ----------
    keys, tokens
        Arrow string arrays of distinct values, without NULLs.
    key_codes
        int32[p], index into `keys`; -1 is the NULL key.
    token_codes
        int32[p], index into `tokens`; a pair whose token is NULL has no byte string and must be left out.
    expression
        0-based number of the token expression.

    Raises
    ------
    ArgumentError
        If a code points outside its dictionary, or a dictionary holds NULL.
    """
    _check_codes(key_codes, len(keys), -1, "key")
    _check_codes(token_codes, len(tokens), 0, "token")
    key_strings, token_strings = _strings(keys, "keys"), _strings(tokens, "tokens")
    # One more, empty, string at the end is what code -1 finds.
    key_lengths = np.append(np.diff(key_strings.offsets), 0)
    offsets = np.zeros(len(key_codes) + 1, np.int64)
    np.cumsum(key_lengths[key_codes] + np.diff(token_strings.offsets)[token_codes] + _KEYED_HEAD, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    _write_keyed(
        key_strings.data,
        key_strings.offsets,
        token_strings.data,
        token_strings.offsets,
        key_codes,
        token_codes,
        _checked_expression(expression),
        data,
        offsets,
    )
    return Encoded(data, offsets)


def hash_encoded(encoded: Encoded, seed: int) -> NDArray[np.uint64]:
    """MurmurHash3 x64 128 of byte strings: uint64[n, 2], the two halves of each hash."""
    _checked_seed(seed)
    hashes: NDArray[np.uint64] = murmur3_x64_128(encoded.data, encoded.offsets, np.uint64(seed))
    return hashes


def hash_plain(tokens: pa.Array, expression: int, seed: int) -> NDArray[np.uint64]:
    """Hashes of a column's distinct values: uint64[n, 2]; see `encode_plain`."""
    return hash_encoded(encode_plain(tokens, expression), seed)


def hash_keyed(
    keys: pa.Array,
    tokens: pa.Array,
    key_codes: NDArray[np.int32],
    token_codes: NDArray[np.int32],
    expression: int,
    seed: int,
) -> NDArray[np.uint64]:
    """Hashes of (key, token) pairs: uint64[p, 2]; see `encode_keyed`."""
    return hash_encoded(encode_keyed(keys, tokens, key_codes, token_codes, expression), seed)


def _checked_expression(expression: int) -> int:
    if not 0 <= expression < 1 << 32:
        raise ArgumentError(f"token expression number {expression}: must be 0 or more and below 2^32")
    return expression


def _checked_seed(seed: int) -> None:
    if not 0 <= seed < 1 << 32:
        raise ArgumentError(f"seed {seed}: must be 0 or more and below 2^32")


def _check_codes(codes: NDArray[np.int32], size: int, lowest: int, what: str) -> None:
    if len(codes) == 0:
        return
    low, high = int(codes.min()), int(codes.max())
    if low < lowest or high >= size:
        wrong = low if low < lowest else high
        raise ArgumentError(f"{what} code {wrong}: must lie from {lowest} to {size - 1}")


def _strings(values: pa.Array, what: str) -> Encoded:
    """The UTF-8 bytes of an Arrow string array; offsets count from the start of its (shared) data buffer."""
    if values.null_count:
        raise ArgumentError(f"the dictionary of {what} holds NULL: NULL has no code of its own, use -1")
    values = values.cast(pa.large_string())
    _, offsets, data = values.buffers()
    if len(values) == 0:
        return Encoded(np.empty(0, np.uint8), np.zeros(1, np.int64))
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return Encoded(np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), bounds)


@njit(cache=True, nogil=True)
def _put_number(out: NDArray[np.uint8], at: int, number: int) -> None:
    for i in range(4):
        out[at + i] = (number >> (8 * i)) & 255


@njit(cache=True, nogil=True)
def _put_string(
    out: NDArray[np.uint8], at: int, data: NDArray[np.uint8], offsets: NDArray[np.int64], code: int
) -> None:
    begin = offsets[code]
    for i in range(offsets[code + 1] - begin):
        out[at + i] = data[begin + i]


@njit(cache=True, nogil=True)
def _write_plain(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    expression: int,
    out: NDArray[np.uint8],
    out_offsets: NDArray[np.int64],
) -> None:
    for code in range(offsets.size - 1):
        at = out_offsets[code]
        out[at] = _PLAIN
        _put_number(out, at + 1, expression)
        _put_string(out, at + _PLAIN_HEAD, data, offsets, code)


@njit(cache=True, nogil=True)
def _write_keyed(
    key_data: NDArray[np.uint8],
    key_offsets: NDArray[np.int64],
    token_data: NDArray[np.uint8],
    token_offsets: NDArray[np.int64],
    key_codes: NDArray[np.int32],
    token_codes: NDArray[np.int32],
    expression: int,
    out: NDArray[np.uint8],
    out_offsets: NDArray[np.int64],
) -> None:
    for pair in range(key_codes.size):
        at = out_offsets[pair]
        key = key_codes[pair]
        _put_number(out, at + 1, expression)
        if key < 0:
            out[at] = _NULL_KEY
            _put_number(out, at + 5, 0)
            at += _KEYED_HEAD
        else:
            length = key_offsets[key + 1] - key_offsets[key]
            out[at] = _KEYED
            _put_number(out, at + 5, length)
            _put_string(out, at + _KEYED_HEAD, key_data, key_offsets, key)
            at += _KEYED_HEAD + length
        _put_string(out, at, token_data, token_offsets, token_codes[pair])

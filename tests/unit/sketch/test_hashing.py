"""Tokens as bytes and their hashes: no two tokens share a byte string, and the bulk ways equal the one-by-one ways."""

from __future__ import annotations

from itertools import pairwise

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.sketch_tree import keyed, plain
from unit.sketch.filters import hash_tokens

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.batch import _segment_keys
from patternlake.udfs.sketch.kernels.hashing import (
    Encoded,
    encode_keyed,
    encode_plain,
    hash_encoded,
    hash_keyed,
    hash_plain,
)
from patternlake.udfs.sketch.tokens import tokenise

SEEDS = st.integers(0, 2**32 - 1)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(0, 2**32 - 1)


def in_one_buffer(strings: list[bytes]) -> Encoded:
    offsets = np.cumsum([0, *(len(string) for string in strings)]).astype(np.int64)
    return Encoded(np.frombuffer(b"".join(strings), np.uint8), offsets)


def split(encoded: Encoded) -> list[bytes]:
    return [encoded.data[begin:end].tobytes() for begin, end in pairwise(encoded.offsets)]


def encode_token(number: int, name: str) -> bytes:
    return split(encode_plain(pa.array([name], pa.string()), number))[0]


def encode_keyed_token(key: str | None, number: int, name: str) -> bytes:
    keys, code = pa.array([] if key is None else [key], pa.string()), -1 if key is None else 0
    codes = np.array([code], np.int32), np.array([0], np.int32)
    return split(encode_keyed(keys, pa.array([name], pa.string()), *codes, number))[0]


@given(st.lists(st.binary(max_size=80), max_size=20), SEEDS)
def test_bulk_hashes_equal_mmh3(strings: list[bytes], seed: int) -> None:
    expected = [mmh3.hash64(string, seed, x64arch=True, signed=False) for string in strings]
    assert hash_encoded(in_one_buffer(strings), seed).tolist() == [list(pair) for pair in expected]


def test_every_tail_length_hashes_like_mmh3() -> None:
    strings = [bytes(range(200, 200 + length)) for length in range(50)]
    assert (hash_encoded(in_one_buffer(strings), 7) == hash_tokens(strings, 7)).all()


def test_token_bytes_are_fixed() -> None:
    assert encode_token(1, "ab") == b"\x00\x01\x00\x00\x00ab"
    assert encode_keyed_token("kéy", 0, "a") == b"\x01\x00\x00\x00\x00\x04\x00\x00\x00k\xc3\xa9ya"
    assert encode_keyed_token(None, 2, "a") == b"\x02\x02\x00\x00\x00\x00\x00\x00\x00a"


@given(st.lists(st.tuples(st.none() | st.just("") | WORDS, st.booleans(), NUMBERS, WORDS), unique=True))
def test_different_tokens_have_different_bytes(tokens: list[tuple[str | None, bool, int, str]]) -> None:
    distinct = {(key if with_key else "plain", with_key, number, name) for key, with_key, number, name in tokens}
    encoded = {
        encode_keyed_token(key, number, name) if with_key else encode_token(number, name)
        for key, with_key, number, name in tokens
    }
    assert len(encoded) == len(distinct)


def test_key_and_name_cannot_be_cut_elsewhere() -> None:
    assert encode_keyed_token("ab", 0, "c") != encode_keyed_token("a", 0, "bc")


def test_null_key_is_not_the_empty_key() -> None:
    assert encode_keyed_token(None, 0, "a") != encode_keyed_token("", 0, "a")


@given(st.lists(WORDS, max_size=10, unique=True), NUMBERS, SEEDS)
def test_plain_dictionary_is_encoded_like_one_by_one(words: list[str], number: int, seed: int) -> None:
    dictionary = pa.array(words, pa.string())
    encoded = encode_plain(dictionary, number)
    one_by_one = [plain(number, word) for word in words]
    assert split(encoded) == one_by_one
    assert (hash_plain(dictionary, number, seed) == hash_tokens(one_by_one, seed)).all()


@given(st.data(), NUMBERS, SEEDS)
def test_keyed_pairs_are_encoded_like_one_by_one(data: st.DataObject, number: int, seed: int) -> None:
    keys = data.draw(st.lists(WORDS, max_size=6, unique=True))
    names = data.draw(st.lists(WORDS, min_size=1, max_size=6, unique=True))
    pairs = data.draw(st.lists(st.tuples(st.integers(-1, len(keys) - 1), st.integers(0, len(names) - 1)), max_size=12))
    key_codes = np.array([key for key, _ in pairs], np.int32)
    name_codes = np.array([name for _, name in pairs], np.int32)
    one_by_one = [keyed(None if key < 0 else keys[key], number, names[name]) for key, name in pairs]
    arguments = (pa.array(keys, pa.string()), pa.array(names, pa.large_string()), key_codes, name_codes, number)
    encoded = encode_keyed(*arguments)
    assert split(encoded) == one_by_one
    assert (hash_keyed(*arguments, seed) == hash_tokens(one_by_one, seed)).all()


def test_a_slice_of_an_arrow_array_is_read_from_its_offset() -> None:
    words = pa.array(["x", "yy", "", "zzz"])
    assert (hash_plain(words.slice(1, 3), 0, 5) == hash_plain(pa.array(["yy", "", "zzz"]), 0, 5)).all()


def test_wrong_arguments_are_named() -> None:
    words, none = pa.array(["a"]), np.empty(0, np.int32)
    with pytest.raises(ArgumentError, match="seed -1"):
        hash_encoded(in_one_buffer([b"a"]), -1)
    with pytest.raises(ArgumentError, match="seed 4294967296"):
        hash_plain(words, 0, 2**32)
    with pytest.raises(ArgumentError, match="expression number -1"):
        encode_token(-1, "a")
    with pytest.raises(ArgumentError, match="key code 1: must lie from -1 to 0"):
        encode_keyed(words, words, np.array([1], np.int32), np.array([0], np.int32), 0)
    with pytest.raises(ArgumentError, match="token code -1: must lie from 0 to 0"):
        encode_keyed(words, words, np.array([-1], np.int32), np.array([-1], np.int32), 0)
    with pytest.raises(ArgumentError, match="dictionary of keys holds NULL"):
        encode_keyed(pa.array([None], pa.string()), words, none, none, 0)


@given(
    st.lists(st.tuples(st.none() | st.sampled_from("ABC"), st.none() | st.sampled_from("AB"), st.none() | WORDS)),
    st.booleans(),
    SEEDS,
)
def test_tokenise_gives_each_event_its_tokens_hashes(
    rows: list[tuple[str | None, str | None, str | None]], with_keys: bool, seed: int
) -> None:
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(2)]
    keys = pa.array([row[2] for row in rows], pa.string())
    tokens = tokenise(columns, keys if with_keys else None, seed)
    assert tokens.codes.shape == (len(rows), 4 if with_keys else 2)
    for row, codes in zip(rows, tokens.codes, strict=True):
        for column, code in enumerate(codes):
            number = column % 2
            if row[number] is None:
                assert code == -1
                continue
            name = str(row[number])
            token = plain(number, name) if column < 2 else keyed(row[2], number, name)
            assert tokens.hashes[code].tolist() == hash_tokens([token], seed)[0].tolist()
    used = set(tokens.codes.ravel().tolist()) - {-1}
    assert used == set(range(len(tokens.hashes)))


def test_a_segment_lists_keys_in_byte_order_null_first() -> None:
    keys = pa.array(["b", None, "é", "b", "Z"])
    assert _segment_keys(keys, np.arange(5)) == [None, "Z", "b", "é"]
    assert _segment_keys(None, np.arange(5)) is None


def test_tokenise_refuses_columns_of_different_lengths() -> None:
    with pytest.raises(ArgumentError, match=r"columns of \[1, 2\] values"):
        tokenise([pa.array(["a"]), pa.array(["a", "b"])], None, 0)
    with pytest.raises(ArgumentError, match="no token column"):
        tokenise([], None, 0)

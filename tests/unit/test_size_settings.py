"""Sizes that a session sets, and the cache that all sessions of a process share."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.sql_ext.lakes.size_settings import read_count, read_size
from patternlake.udfs.errors import ArgumentError

NAME = "spark.patternlake.driverBytes"


class _Session:
    """A session with the settings of a dict."""

    def __init__(self, **settings: str) -> None:
        self.conf = {NAME: settings["size"]} if settings else {}


def size(*text: str) -> int:
    return read_size(cast(Any, _Session(**({"size": text[0]} if text else {}))), NAME, 5)


@pytest.mark.parametrize(
    ("text", "read"),
    [("0", 0), ("67108864", 64 << 20), ("64m", 64 << 20), ("64MB", 64 << 20), (" 2k ", 2048), ("1g", 1 << 30)],
)
def test_a_size_is_written_as_sparks_own_are(text: str, read: int) -> None:
    assert size(text) == read


def test_a_setting_that_is_not_there_has_its_default() -> None:
    assert size() == 5


@pytest.mark.parametrize("text", ["", "x", "-5", "1.5g", "64 m", "64q", "1" * 5000])
def test_what_is_no_size_is_refused_with_the_setting_and_the_value(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"spark\.patternlake\.driverBytes must be .* such as 64m") as caught:
        size(text)
    assert repr(text[:40])[:-1] in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["", "x", "0", "-5", "1.5", "1_000", "²", "٣", "1" * 5000])
def test_what_is_no_count_is_refused_with_the_setting_and_the_value(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"must be a whole number of 1 or more, not") as caught:
        read_count(cast(Any, _Session(size=text)), NAME, 5)
    assert repr(text[:40])[:-1] in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_count_is_a_whole_number() -> None:
    assert read_count(cast(Any, _Session(size=" 1000 ")), NAME, 5) == 1000
    assert read_count(cast(Any, _Session()), NAME, 5) == 5


def test_who_asks_for_a_small_cache_does_not_empty_it_for_others() -> None:
    cache = TableCache(0)
    rows = pa.table({"x": [1, 2, 3]})
    cache.put("nobody asked for room yet", rows)
    cache.reserve(1 << 20)
    cache.put("file", rows)
    cache.reserve(0)
    assert cache.peek("file") is rows
    assert cache.peek("nobody asked for room yet") is None

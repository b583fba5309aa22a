"""Answers that are remembered: Spark's analyser asks more than once for one query, and dashboards ask again and again.

An answer depends on the call and on what is published, so it lasts until the table of publications has a new version.
Rows that are here already are kept, in the cache that keeps files, within its bounds; plans of Spark's are made anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.reading.file_cache import TableCache
    from patternlake.sql_ext.declarations.declaration import Answer, TableFunction
    from patternlake.sql_ext.lakes.lake import Lake

_ANSWER = "answer"
_Answered = TypeVar("_Answered")


def answer_call(function: TableFunction, lake: Lake, arguments: dict[str, Any]) -> DataFrame:
    """The rows of a call.

    Parameters
    ----------
    function
        The function.
    lake
        What it asks.
    arguments
        All of them, by name.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    key = _key(function, lake, arguments)
    answer: Answer | None = lake.cache.peek(key)
    if answer is None:
        answer = work_out(lambda: function.plan(lake, arguments))
        if answer.lasting and isinstance(answer.rows, pa.Table):
            lake.cache.put(key, answer)
    return finish(lake, function, answer)


def finish(lake: Lake, function: TableFunction, answer: Answer) -> DataFrame:
    """The rows of an answer, finished."""
    rows = answer.rows
    if isinstance(rows, pa.Table):
        rows = lake.local(rows, answer.schema or function.schema)
    return rows if answer.finish is None else answer.finish(rows)


def work_out(answer: Callable[[], _Answered]) -> _Answered:
    """What a function gives; the memory that reading for it took is given back."""
    try:
        return answer()
    finally:
        # Arrow's allocator keeps what it freed, by thread. In a process that runs jobs as well it kept more with each
        # call, a gigabyte in a thousand.
        pa.default_memory_pool().release_unused()


def forget(cache: TableCache) -> None:
    """Let go of all answers, so that the next call of each is worked out; files stay."""
    cache.drop(lambda key: isinstance(key, tuple) and key[0] == _ANSWER)


def _key(function: TableFunction, lake: Lake, arguments: Mapping[str, Any]) -> Hashable:
    published = lake.reader.identity("publications")
    asked = json.dumps(arguments, sort_keys=True)
    return (_ANSWER, lake.database.location, published, lake.ways, function.name, asked)

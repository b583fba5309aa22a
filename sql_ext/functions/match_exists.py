"""The function `match_exists`: whether a sequence occurs, for one stream or for each row of a table.

A call whose arguments are constants is answered while its query is planned. Where some are columns, a Python function
answers the rows of a table: it reads the sketch and the events for itself, for all keys of some rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from patternlake.delta_tables.gathering.snapshots import Publications
from patternlake.delta_tables.reading.state_reader import Condition, StateReader
from patternlake.delta_tables.reading.worker_reader import Location, reader_at
from patternlake.sql_ext.answering.reading_tasks import place_of
from patternlake.sql_ext.answering.unseen import tell_unseen, tell_unseen_key
from patternlake.sql_ext.calls.declaring import declaration_of, scalar_function
from patternlake.sql_ext.lakes.lake import Lake, check_as_of
from patternlake.sql_ext.sketches import exact_existence
from patternlake.sql_ext.sketches.sketch_descent import Place, descend
from patternlake.sql_ext.sketches.sketch_existence import anywhere
from patternlake.udfs.arguments import given_or
from patternlake.udfs.errors import ArgumentError, PatternLakeError
from patternlake.udfs.measures.pattern_measures import refuse_measures
from patternlake.udfs.record_batches import rows_in_micros
from patternlake.udfs.sequences.lent_patterns import compile_asked
from patternlake.udfs.sketch.reads import SketchReads, check_request
from patternlake.udfs.sketch.result import exists
from patternlake.udfs.unseen_names import MOST_NAMES

ANSWER = pa.struct([("found", pa.bool_()), ("error", pa.string())])
"""What a row of a table is told."""


def _value(lake: Lake, arguments: dict[str, Any]) -> bool | None:
    snapshot = lake.snapshot(arguments["as_of"])
    snapshot.check_tables("sketch")
    exactly = given_or(arguments, "verify", True)
    asked = exact_existence.as_sequences(arguments) if exactly else arguments
    reads = _reads(snapshot.publications.of_job("sketch"), asked)
    request = reads.request
    counts = snapshot.name_counts(reads.events, MOST_NAMES)
    tell_unseen(lake, request.pattern.names, counts, names_are_tokens=request.tokens_are_names)
    found = exact_existence.occurs(lake, reads, counts) if exactly else anywhere(lake, reads)
    if found is False:
        tell_unseen_key(lake, request.key if request.one_key else None, reads.events, pa.table({}))
    return found


def _reads(publications: Publications, arguments: Mapping[str, Any]) -> SketchReads:
    check_as_of(arguments["as_of"])
    published = publications.published("sketch", arguments["stream"] or "", arguments["as_of"])
    reads = check_request(arguments, published, publications.names("sketch"), compile_asked)
    refuse_measures(reads.request.pattern.measures, "match_exists")
    return reads


def _occurs(place: Place, publications: Publications, arguments: Mapping[str, Any]) -> bool | None:
    """Whether the pattern of one call occurs, in a task."""
    if given_or(arguments, "verify", True):
        return exact_existence.occurs_here(place, _reads(publications, exact_existence.as_sequences(arguments)))
    return anywhere(place, _reads(publications, arguments))


def _occurs_by_key(
    place: Place, publications: Publications, arguments: Mapping[str, Any], keys: Sequence[str]
) -> dict[str, bool | None]:
    """The same for each of several keys, in one walk through the sketch."""
    if given_or(arguments, "verify", True):
        return {**exact_existence.occurs_by_key(place, publications, arguments, keys)}
    reads = _reads(publications, {**arguments, "key": keys[0]})
    every = replace(reads.request, key=None, one_key=False, every_key=True)
    found = exists(every, descend(place, reads, every, keys=keys))
    return {key: found.of.get(key, found.others) for key in keys}


@dataclass(frozen=True)
class RowAnswers:
    """Answers rows of a table, in Spark's tasks.

    Attributes
    ----------
    place
        Where the tasks read.
    publications
        Of all sketches.
    constants
        Arguments that are the same in each row, by name.
    """

    place: Location
    publications: Publications
    constants: Mapping[str, Any]

    def __call__(self, rows: pa.StructArray) -> pa.Array:
        """`ANSWER` of each row, whose fields are the other arguments."""
        calls = [{**self.constants, **row} for row in rows_in_micros(pa.Table.from_struct_array(rows))]
        here = _Here(reader_at(self.place))
        # The plan may be old, and nodes that it could count on may have aged.
        publications = self.publications.seen_by(here.reader)
        answers: dict[tuple[Any, ...], dict[str, Any]] = {}
        for arguments, keys in _alike(calls):
            answers |= _answers(here, publications, arguments, keys)
        return pa.array([answers[_identity(arguments)] for arguments in calls], ANSWER)


class _Here:
    """A task that reads the sketch for itself, whatever its size."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader

    @property
    def reader(self) -> StateReader:
        """Reads its rows."""
        return self._reader

    def small(
        self, table: str, where: Sequence[Condition], columns: Sequence[str] = (), few: int | None = None
    ) -> bool:
        """True: a task has no Spark session."""
        return True

    def apart(self) -> Lake:
        """Nothing is too large for the task."""
        raise AssertionError


def _answers(
    here: _Here, publications: Publications, arguments: Mapping[str, Any], keys: Sequence[str | None]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    named = sorted({key for key in keys if key is not None})
    told: dict[str | None, dict[str, Any]] = {}
    # What is wrong with the question of the whole stream is not wrong with that of a key.
    if None in keys:
        try:
            told[None] = {"found": _occurs(here, publications, arguments), "error": None}
        except PatternLakeError as error:
            told[None] = {"found": None, "error": str(error)}
    try:
        found = _occurs_by_key(here, publications, arguments, named) if named else {}
        told |= {key: {"found": one, "error": None} for key, one in found.items()}
    except PatternLakeError as error:
        told |= {key: {"found": None, "error": str(error)} for key in named}
    return iter([(_identity({**arguments, "key": key}), answer) for key, answer in told.items()])


def _identity(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(arguments[name] for name in _NAMES)


def _alike(calls: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], list[str | None]]]:
    """Calls that differ in their key alone: the other arguments, and the keys."""
    found: dict[tuple[Any, ...], list[str | None]] = {}
    for arguments in calls:
        found.setdefault(_identity({**arguments, "key": None}), []).append(arguments["key"])
    for identity, keys in found.items():
        yield dict(zip(_NAMES, identity, strict=True)), keys


def _per_row(lake: Lake, constants: Mapping[str, Any]) -> RowAnswers:
    place = place_of(lake)
    if place is None:
        raise ArgumentError(
            "match_exists with a column as an argument reads the lake in Spark's tasks, which can't open "
            f"{lake.database.location} without Spark; give constants, or join with match_seq(… PARTITION BY …)"
        )
    snapshot = lake.snapshot(None)
    snapshot.check_tables("sketch")
    return RowAnswers(place, snapshot.publications.of_job("sketch"), constants)


@scalar_function(value=_value, per_row=_per_row)
def match_exists(
    spark: SparkSession,
    stream: str,
    pattern: str,
    policy: str = "skip_till_next",
    key: str | None = None,
    from_position: int | None = None,
    to_position: int | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    as_of: datetime | str | None = None,
    verify: bool = True,
) -> bool | None:
    """Say whether a sequence occurs in a stream; in SQL, for each row of a table, too.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of the stream.
    pattern
        Text of the pattern.
    policy
        ``strict``, ``skip_till_next`` or ``skip_till_any``.
    key
        Only events of this key.
    from_position, to_position, from_time, to_time
        Bounds of the events, both included; moments without a zone are in the session's.
    as_of
        Moment whose state answers.
    verify
        Look at the events, so that the answer is that of a full scan. False: ask the sketch alone.

    Returns
    -------
    bool or None
        Of the sketch alone, False is certain but for matches inside one leaf, and True may be false where filters err.
        None: only aged, coarse or dropped ranges could hold it.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT match_exists('letters', 'D ; A ; B')
    ```
    """


_NAMES = tuple(parameter.name for parameter in declaration_of(match_exists).parameters)

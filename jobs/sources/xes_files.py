"""Event logs in XES as rows of Spark: a task reads a file from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as T

from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.sources.expressions import CORRUPT, ORIGIN, PLACE
from patternlake.jobs.sources.xes import FAULT, events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Label = Callable[[str], str]
"""Gives what a file is called in the names of traces that have none."""

_ARROW_ROWS = 2000
_TASKS = 1000
_SAMPLE_EVENTS = 100_000
"""Events of a file, at most, that are looked at for the names of columns."""


def events_of_logs(files: DataFrame, schema: T.StructType, label: Label) -> DataFrame:
    """The events of files as columns of text, with `ORIGIN` and `PLACE`.

    Parameters
    ----------
    files
        Their addresses, one column.
    schema
        The columns: attributes and `CORRUPT`.
    label
        See `Label`.
    """
    columns = [name for name in schema.fieldNames() if name != CORRUPT]
    fields = [*schema.fields, T.StructField(ORIGIN, T.StringType()), T.StructField(PLACE, T.LongType())]

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for some in batches:
            for file in some.column(0).to_pylist():
                yield from _rows(file, columns, label(file))

    return files.repartition(max(1, min(files.count(), _TASKS))).mapInArrow(parse, T.StructType(fields))


def columns_of_logs(spark: SparkSession, files: Sequence[str]) -> tuple[list[str], list[str]]:
    """The attributes of the files' first events, in the order in which they appear, and notes on the logs."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for some in batches:
            for file in some.column(0).to_pylist():
                seen: dict[str, None] = {}
                notes: list[str] = []
                with _open(file) as opened:
                    for event in islice(events(opened, name=file, on_note=notes.append), _SAMPLE_EVENTS):
                        seen.update(dict.fromkeys(event))
                names = [name for name in seen if name not in (FAULT, CORRUPT)]
                rows = [(name, place, False) for place, name in enumerate(names)] + [(note, 0, True) for note in notes]
                texts, places, kinds = zip(*rows, strict=True) if rows else ((), (), ())
                yield pa.RecordBatch.from_arrays(
                    [pa.array(texts, pa.string()), pa.array(places, pa.int32()), pa.array(kinds, pa.bool_())],
                    ["name", "place", "is_note"],
                )

    if not files:
        return [], []
    there = frame_of_tuples(spark, [(file,) for file in files], "path string").repartition(min(16, len(files)))
    found = there.mapInArrow(look, "name string, place int, is_note boolean").distinct().collect()
    ordered = sorted((row["is_note"], row["place"], row["name"]) for row in found)
    names, notes = ({name: None for note, _, name in ordered if note is wanted} for wanted in (False, True))
    return list(names), list(notes)


def _rows(file: str, columns: Sequence[str], label: str) -> Iterator[pa.RecordBatch]:
    """The events of one file as batches of text columns; memory for one batch."""

    def batch(rows: list[dict[str, str | None]], end: int) -> pa.RecordBatch:
        arrays = [pa.array([row.get(column) for row in rows], pa.string()) for column in columns]
        arrays.append(pa.array([row.get(FAULT) for row in rows], pa.string()))
        arrays += [pa.array([file] * len(rows), pa.string()), pa.array(range(end - len(rows), end), pa.int64())]
        return pa.RecordBatch.from_arrays(arrays, [*columns, CORRUPT, ORIGIN, PLACE])

    rows: list[dict[str, str | None]] = []
    place = 0
    with _open(file) as opened:
        for place, event in enumerate(events(opened, name=file, label=label), 1):
            rows.append(event)
            if len(rows) == _ARROW_ROWS:
                yield batch(rows, place)
                rows = []
    if rows:
        yield batch(rows, place)


def _open(file: str) -> Any:
    """A file on any file system that Arrow knows, as a stream of bytes."""
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(file)
    return system.open_input_file(path)

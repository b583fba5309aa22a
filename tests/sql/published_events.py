"""Events that are published without a source: what `ingest` would write of them, by the same batches.

Engines read tables, and most of their tests do not care how rows came there. A stream whose expressions only name
columns is published here in a tenth of the time; what has to be evaluated, is turned down or comes late goes through
the real job.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.events import add_attributes
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.writing import direct_writer
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.ingest.job import JOB
from patternlake.jobs.ingest.judging import settled_by
from patternlake.udfs.attributes import column_of, is_attribute
from patternlake.udfs.blocks import block_of
from patternlake.udfs.measures.event_values import typed_values

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
TIME, NAME, KEY = "timestamp_millis(CAST(at AS BIGINT))", "what", "who"
"""The expressions of a stream whose source has the columns of `E`."""

_NUMBER_OF = re.compile(r"CAST\((\w+) AS (?:INT|DOUBLE)\)")
_TEXTS = {
    "string": lambda value: value,
    "bigint": lambda value: str(int(value)),
    "int": lambda value: str(int(value)),
    "double": lambda value: _double(float(value)),
}
_MOMENT = pa.timestamp("us", "UTC")
_PAIRS = pa.map_(pa.string(), pa.string())
_DESCRIBED = pa.list_(
    pa.struct(
        {
            "attribute": pa.string(),
            "events": pa.int64(),
            "known": pa.int64(),
            "distinct": pa.int64(),
            "quantiles": pa.list_(pa.float64()),
        }
    )
)


class E(NamedTuple):
    """An event: milliseconds after `START`, name, key, attributes."""

    time: int
    name: str
    key: str | None = None
    attributes: Mapping[str, Any] = {}


def moment(milliseconds: int) -> datetime:
    return START + timedelta(milliseconds=milliseconds)


def plain(stream: StreamConfiguration) -> bool:
    """Whether a stream's events are those of `E` as they are."""
    numbers = [text for text in (stream.step, stream.probability) if text is not None]
    return (
        (stream.time, stream.name) == (TIME, NAME)
        and stream.key in (None, KEY)
        and stream.tokens in (None, ["name"])
        and stream.event_id is None
        and all(_NUMBER_OF.fullmatch(text) for text in numbers)
        and all(each.expr is None and each.type in _TEXTS for each in stream.attributes.values())
    )


def publish(
    db: Database, name: str, stream: StreamConfiguration, events: Sequence[E], *, evaluated: bool = False
) -> Publication:
    """Publish events as the next batch of a stream.

    Events of one time are ordered by name and key, as `ingest` orders those of a table; those of one file it would
    keep in the file's order.
    `evaluated`: they are what the expressions of the stream make of its source, whatever these are.
    """
    assert events
    assert evaluated or plain(stream), "this stream has expressions of its own: let it be ingested"
    state = load_object_state(db, JOB, name, name)
    before = state.latest
    ordered = sorted(events, key=lambda event: (event.time, event.name, event.key is not None, event.key or ""))
    at = [timestamps.to_micros(moment(event.time)) for event in ordered]
    _check(stream, ordered, at, before)
    first = 0 if before is None else before.source_to
    batch = Batch.begin(
        db,
        job=JOB,
        object=name,
        stream=name,
        batch_id=state.next_batch,
        base_batch=1,
        source={},
        source_from=first,
        source_to=first + len(ordered),
        configuration=stream.meaning,
        object_state=state,
    )
    positions = range(first + 1, first + len(ordered) + 1)
    if before is None or before.configuration_hash != batch.intent.configuration_hash:
        add_attributes(db, stream.types)
        _append(batch, "streams", _stream(stream, batch))
    _append(batch, "event_statistics", _statistics(ordered, at))
    _append(batch, "events", _events(stream, ordered, at, positions))
    last = max(at) if before is None else max(*at, before.state["max_time"])
    settled = settled_by(last, stream.allowed_lateness, before)
    watermark = None if stream.allowed_lateness is None else timestamps.from_micros(settled)
    return batch.publish(
        rows_in=len(ordered), rows_out=len(ordered), watermark=watermark, state={"max_time": last, "settled": settled},
        source_from=first, source_to=first + len(ordered),
    )  # fmt: skip


def _check(stream: StreamConfiguration, events: Sequence[E], at: Sequence[int], before: Publication | None) -> None:
    """Refuse what `ingest` would turn down."""
    assert all(event.name for event in events), "an event without a name goes to quarantine: let it be ingested"
    if before is not None and before.watermark is not None and stream.allowed_lateness is not None:
        late = [event for event, each in zip(events, at, strict=True) if each < timestamps.to_micros(before.watermark)]
        assert not late, f"{late} come late: let them be ingested"
    if stream.probabilistic:
        sums: dict[tuple[Any, Any], float] = defaultdict(float)
        for event, step, probability in zip(events, *_steps(stream, events), strict=True):
            sums[event.key, step] += probability
        assert all(each <= 1 + 1e-15 for each in sums.values()), "sums above 1 are scaled: let them be ingested"


def _steps(stream: StreamConfiguration, events: Sequence[E]) -> tuple[list[int | None], list[float | None]]:
    if not stream.probabilistic:
        return [None] * len(events), [None] * len(events)
    found = [_NUMBER_OF.fullmatch(text) for text in (stream.step, stream.probability) if text is not None]
    step, probability = (each[1] for each in found if each is not None)
    return (
        [int(event.attributes[step]) for event in events],
        [float(event.attributes[probability]) for event in events],
    )


def _append(batch: Batch, table: str, columns: Mapping[str, Any]) -> None:
    """Append rows of a batch in one commit; columns that are missing are those of the batch, or NULL."""
    length = len(next(iter(columns.values())))
    marks = {"stream_id": batch.stream_id, "batch_id": batch.batch_id, "base_batch": batch.base_batch}
    kinds = {"INT": pa.int32(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string()}
    arrays: dict[str, pa.Array] = {}
    for column in TABLES[table].columns:
        given = columns.get(column.name, [marks.get(column.name)] * length)
        if isinstance(given, pa.Array):
            arrays[column.name] = given
        elif column.type in kinds:
            arrays[column.name] = pa.array(given, kinds[column.type])
    arrays |= {name: column for name, column in columns.items() if is_attribute(name)}
    folder = batch.database.folder(TABLES[table].log)
    application = documents.to_array([batch.job, batch.object, table, ""])
    assert direct_writer.append(TableFolder(folder), pa.table(arrays), application=application, version=batch.batch_id)


def _stream(stream: StreamConfiguration, batch: Batch) -> dict[str, Any]:
    return {
        "name": [batch.stream],
        "timezone": [stream.timezone],
        "types": pa.array([list(stream.types.items())], _PAIRS),
        "configuration": [documents.to_text(batch.configuration)],
    }


def _statistics(events: Sequence[E], at: Sequence[int]) -> dict[str, Any]:
    spans: dict[str, list[int]] = defaultdict(list)
    for event, each in zip(events, at, strict=True):
        spans[event.name].append(each)
    return {
        "name": list(spans),
        "events": [len(span) for span in spans.values()],
        "first_time": pa.array([min(span) for span in spans.values()], pa.int64()).cast(_MOMENT),
        "last_time": pa.array([max(span) for span in spans.values()], pa.int64()).cast(_MOMENT),
        "attributes": pa.nulls(len(spans), _DESCRIBED),
    }


def _events(
    stream: StreamConfiguration, events: Sequence[E], at: Sequence[int], positions: Sequence[int]
) -> dict[str, Any]:
    steps, probabilities = _steps(stream, events)
    texts = {name: [_text(event.attributes.get(name), kind) for event in events] for name, kind in stream.types.items()}
    return {
        "position": list(positions),
        "block": [block_of(position) for position in positions],
        "time": pa.array(at, pa.int64()).cast(_MOMENT),
        "step": steps,
        "key": [event.key or None if stream.key else None for event in events],
        "name": [event.name for event in events],
        "probability": probabilities,
        "tokens": pa.nulls(len(events), pa.list_(pa.string())),
        **{
            column_of(name, kind): typed_values(pa.array(texts[name], pa.string()), kind)
            for name, kind in stream.types.items()
        },
    }


def _text(value: Any, kind: str) -> str | None:
    """A value as `ingest` writes it; it reads an empty text as none."""
    return None if value is None or value == "" else _TEXTS[kind](value)


def _double(value: float) -> str:
    """A number as Java writes it."""
    if value != value or value == 0 or 1e-3 <= abs(value) < 1e7:
        return "NaN" if value != value else repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "what is infinite, only ingest takes in"
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(others) or '0'}E{len(others) + exponent}"

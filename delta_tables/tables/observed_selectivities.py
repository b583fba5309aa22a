"""Table `observed_selectivities`: how often conditions of exact patterns held, as runs of kept patterns saw them.

No answer depends on it: only plans do, and how long matching takes. So its rows belong to no batch, and whoever wants
them gone deletes them.
"""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.spark.told_by_tasks import Observed
from patternlake.delta_tables.writing import direct_rewriting, direct_writer, writes
from patternlake.delta_tables.writing.arrow_rows import FewRows, of_tuples
from patternlake.udfs.kleene.plans.observations import (
    HALF_LIFE,
    LEAST_JUDGED,
    JudgedCondition,
    Observation,
    merge_observations,
)

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.reading.state_reader import StateReader

logger = logging.getLogger(__name__)

KEPT = timedelta(days=90)
"""A condition that nobody has asked for so long is forgotten."""
MOST_KEPT = 1000
"""Conditions of one stream that are kept: those that were judged last."""
DIFFERS = 1.25
"""A share is news where it is so many times what was known, or less than it by as much."""
LASTS = 86_400_000_000
"""Microseconds after which what is known is confirmed, so that it is not taken for forgotten."""
_WRITERS = 64
"""Names that rows may be written under; Delta remembers each for ever."""
_FEW_BYTES = 64 << 20


def _view(log: LogName) -> str:
    # What counts is how long before the newest observation of its condition one was made.
    age = "max(unix_micros(observed_at)) OVER (PARTITION BY stream_id, predicate, given) - unix_micros(observed_at)"
    return f"""SELECT s.stream, o.predicate, o.given, sum(o.held * o.weight) / sum(o.judged * o.weight) AS share,
  sum(o.judged * o.weight) AS judged, max(o.observed_at) AS observed_at
FROM (SELECT *, pow(0.5D, ({age}) / {HALF_LIFE}D) AS weight FROM {log("observed_selectivities")}) o JOIN (
  SELECT DISTINCT stream, stream_id FROM {log("publications")} WHERE job = 'ingest'
) s ON o.stream_id = s.stream_id
GROUP BY s.stream, o.predicate, o.given"""


TABLE = Table(
    name="observed_selectivities",
    comment="How often conditions of exact patterns held where they were judged; plans are chosen by it.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("predicate", "STRING", "the condition, its operands called what they take"),
        Column("given", "STRING", "what else the events satisfied that it was judged on; mostly empty"),
        Column("judged", "DOUBLE", "events, or combinations of events, that it was judged on"),
        Column("held", "DOUBLE", "those for which it held"),
        Column("observed_at", "TIMESTAMP", "when the newest of them was judged"),
    ),
    keys=("stream_id", "predicate", "given", "observed_at"),
    view=_view,
    seen="stream predicate given share:DOUBLE judged:DOUBLE observed_at:TIMESTAMP",
)

_SCHEMA = pa.schema([(column.name, column.arrow) for column in TABLE.columns])

Observations = Mapping[tuple[int, JudgedCondition], Observation]
"""By number of a stream, and condition."""


def read_observations(reader: StateReader) -> dict[tuple[int, JudgedCondition], Observation]:
    """Read what was observed, all rows of one condition added up."""
    return _add_up(reader.rows(TABLE.name, TABLE.column_names))


def _add_up(rows: pa.Table) -> dict[tuple[int, JudgedCondition], Observation]:
    found = defaultdict(list)
    columns = [rows[name].to_pylist() for name in ("stream_id", "predicate", "given", "judged", "held")]
    moments = rows["observed_at"].cast(pa.int64()).to_pylist()
    for stream, predicate, given, judged, held, at in zip(*columns, moments, strict=True):
        found[stream, JudgedCondition(predicate, given)].append(Observation(judged, held, at))
    return {key: merge_observations(observations) for key, observations in found.items()}


def _rows(observations: Observations) -> pa.Table:
    values = [
        (stream, condition.predicate, condition.given, one.judged, one.held, one.at)
        for (stream, condition), one in observations.items()
    ]
    plain = [field if field.name != "observed_at" else pa.field(field.name, pa.int64()) for field in _SCHEMA]
    return of_tuples(values, pa.schema(plain)).cast(_SCHEMA)


class ObservedSelectivities:
    """Writes what was observed.

    Parameters
    ----------
    database
        Where.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def tell(self, stream: int, found: Observed) -> None:
        """Write down what a run found in a stream, where it is news.

        Where others are writing at this moment, it is left to the next run.
        """
        at = timestamps.to_micros(timestamps.now())
        own = {(stream, condition): Observation(float(n), float(held), at) for condition, (n, held) in found.items()}
        own = {key: one.limited() for key, one in own.items() if one.judged >= LEAST_JUDGED}
        stored = read_observations(self._database.state) if own else {}
        news = {key: one for key, one in own.items() if _is_news(stored.get(key), one)}
        if news and not self.append(news):
            logger.info("what was observed of %d conditions is not written: others are writing", len(news))

    def append(self, observations: Observations) -> bool:
        """Write observations down; whether it was done. They may not be where others are writing at this moment."""
        commits = self._database.commits(TABLE)
        if commits is None:
            self._insert(observations)
            return True
        name = documents.to_array([TABLE.name, str(random.randrange(_WRITERS))])
        version = timestamps.to_micros(timestamps.now())
        rows = _rows(observations)
        made = commits.commit(lambda given: direct_writer.append(given, rows, application=name, version=version))
        return bool(made)

    def _insert(self, observations: Observations) -> None:
        """Write through Spark."""
        values = ", ".join(
            f"({stream}, {literal(condition.predicate)}, {literal(condition.given)}, {one.judged!r}D, {one.held!r}D, "
            f"timestamp_micros({one.at}))"
            for (stream, condition), one in observations.items()
        )
        self._database.spark.sql(
            f"INSERT INTO {self._database.log(TABLE.name)} ({', '.join(TABLE.column_names)}) VALUES {values}"
        )

    def condense(self) -> None:
        """Add up what can be added up, and forget what nobody asks for any more.

        May run beside jobs that write: rows that are newer than all that were read stay.
        """
        database = self._database
        rows = database.state.rows(TABLE.name, TABLE.column_names)
        kept = _worth_keeping(_add_up(rows), timestamps.to_micros(timestamps.now() - KEPT))
        if len(kept) == rows.num_rows:
            return
        last = max(rows["observed_at"].cast(pa.int64()).to_pylist())
        where = [Condition("observed_at", "<=", last)]
        condition = f"observed_at <= timestamp_micros({last})"
        few, commits = FewRows(_rows(kept), database), database.commits(TABLE)
        replace = partial(direct_rewriting.replace, where=where, rows=few.rows, only=None, most_bytes=_FEW_BYTES)
        writes.replace(database.log(TABLE.name), few, condition, commits=commits, directly=replace)
        logger.info("observed selectivities: %d rows became %d", rows.num_rows, len(kept))


def _is_news(stored: Observation | None, own: Observation) -> bool:
    """Whether an observation changes what is known."""
    if stored is None or stored.judged < LEAST_JUDGED or own.at - stored.at > LASTS:
        return True
    # One that never held may hold in half of a further combination: no share is zero.
    few, many = sorted((one.held + 0.5) / (one.judged + 1) for one in (stored, merge_observations([stored, own])))
    return many > DIFFERS * few


def _worth_keeping(observations: Observations, since: int) -> dict[tuple[int, JudgedCondition], Observation]:
    """Of each stream the conditions that were judged last, since a moment in microseconds."""
    of_stream: dict[int, int] = defaultdict(int)
    found = {}
    for key, one in sorted(observations.items(), key=lambda item: -item[1].at):
        of_stream[key[0]] += 1
        if one.at >= since and of_stream[key[0]] <= MOST_KEPT:
            found[key] = one
    return found

"""Matches of a subscription with `emit: true` become events of a stream of their own.

`predict` publishes matches; each becomes an event once, in the batch that first reads the publication with its
completing event: the events that `predict` takes are those of greater time or position than the ones before, so are
those that complete matches, and none of them is late. What `predict` has not published is not read, and where it began
a subscription anew, what is made again of events that were read before stays out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.visibility import visible
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.events import EventsReader
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.jobs.batches.contexts import in_own_session
from patternlake.jobs.batches.following import refuse_changes
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.emitted import POSITION, TIME, EmittedMatches, attribute_of
from patternlake.jobs.configuration.streams import StreamConfiguration
from patternlake.jobs.ingest.chunks import keep_chunks
from patternlake.jobs.ingest.prepared_rows import QUARANTINE, Total
from patternlake.jobs.ingest.writing import write
from patternlake.jobs.sources.columns import EventColumns
from patternlake.udfs.attributes import column_of, stored_type, types_of_attributes
from patternlake.udfs.errors import StateError

logger = logging.getLogger(__name__)

JOB = "ingest"
MATCHES = "subscription_matches"


@in_own_session
def ingest_matches(db: Database, name: str, stream: StreamConfiguration, *, rebuild: bool = False) -> Summary:
    """Make events of the matches that `predict` has published since the last run.

    Safe to run at any time and after any crash: a batch that was begun is finished first, with the same input.

    Parameters
    ----------
    db
        The open database.
    name, stream
        The stream of matches.
    rebuild
        Make events of all matches anew; the former ones stay for `as_of`.

    Raises
    ------
    StateError
        The subscription means something else than what was published of the stream.
    ConcurrentRunError
        Another run of the same stream won.
    """
    started = time.monotonic()
    done: list[Publication] = []
    while (begun := _begin(db, name, stream, rebuild=rebuild and not done)) is not None:
        work, adopted = begun
        done.append(work.publish())
        # Only a batch that was begun earlier can leave matches unread that there are.
        if not adopted:
            break
    return Summary.of(JOB, name, done, time.monotonic() - started)


def _begin(db: Database, name: str, stream: StreamConfiguration, *, rebuild: bool) -> tuple[_Batch, bool] | None:
    """What the next batch reads, and whether an earlier run had begun it; None where there is nothing to read."""
    phases.at("looking for new matches", unit=None)
    source = stream.source
    assert isinstance(source, EmittedMatches)
    object_state = load_object_state(db, JOB, name, name)
    last, publications = object_state.latest, PublicationsReader(db)
    read = publications.latest("predict", source.stream)
    begun = object_state.pending[-1] if object_state.pending else None
    if last is not None and not rebuild and not (begun and begun.rebuild):
        former = last.configuration["attributes"]
        # One that is new, as the stream behind has it now, is NULL in the events before.
        known = {attribute: each for attribute, each in stream.meaning["attributes"].items() if attribute in former}
        refuse_changes(JOB, name, last.configuration, {**stream.meaning, "attributes": known})
    if read is None or not _means(read, source):
        told = "stream %r: `predict` has published no matches of the subscription as it is configured"
        logger.info(told, name)
        return None
    adopted = None if begun is None or rebuild or begun.source["predict_base"] != read.base_batch else begun
    fresh = last is None or rebuild or last.source["predict_base"] != read.base_batch
    fresh = fresh or (adopted is not None and adopted.rebuild)
    if adopted is None and not fresh and last is not None and last.source["predict_batch"] == read.batch_id:
        return None
    if adopted is not None and adopted.source["predict_batch"] != read.batch_id:
        read = publications.of_batch("predict", source.stream, int(adopted.source["predict_batch"]))
        if read is None:
            raise StateError(
                f"{JOB} {name!r}: batch {adopted.source['predict_batch']} of predict of {source.stream!r}, which was "
                "begun to be read, is not published; run it with --rebuild"
            )
    batch_id = object_state.free_batch if adopted is None else adopted.batch_id
    base = batch_id if fresh or last is None else last.base_batch
    work = _Batch(db, name, stream, read, None if base == batch_id else last, batch_id, base, object_state)
    if adopted is not None:
        # It may have been begun before an attribute was there.
        work.meaning = adopted.configuration
    return work, adopted is not None


def _means(read: Publication, source: EmittedMatches) -> bool:
    """Whether a publication of `predict` has the matches of a subscription as it is configured."""
    entry: Mapping[str, Any] | None = read.configuration["subscriptions"].get(source.subscription)
    return entry is not None and (entry["query"], entry["params"]) == (source.query, source.params)


class _Batch:
    """One batch."""

    def __init__(
        self, db: Database, name: str, stream: StreamConfiguration, read: Publication, last: Publication | None,
        batch_id: int, base: int, object_state: Any,
    ) -> None:  # fmt: skip
        self.db, self.name, self.stream, self.read, self.last = db, name, stream, read, last
        self.batch_id, self.base, self.object_state = batch_id, base, object_state
        source = stream.source
        assert isinstance(source, EmittedMatches)
        self.source = source
        self.columns = EventColumns(name, stream)
        self.meaning: Mapping[str, Any] = stream.meaning

    def publish(self) -> Publication:
        """Write the events of the batch, publish."""
        db, first = self.db, 0 if self.last is None else self.last.source_to
        phases.at("reading matches")
        with keep_chunks(self._events()) as kept:
            rows = kept.here_if_few(db)
            found = rows.totals.get(None, Total())
            batch = Batch.begin(
                db,
                job=JOB,
                object=self.name,
                stream=self.name,
                batch_id=self.batch_id,
                base_batch=self.base,
                source={"predict_batch": self.read.batch_id, "predict_base": self.read.base_batch},
                source_from=first,
                source_to=first + found.rows,
                configuration=self.meaning,
                object_state=self.object_state,
            )
            if batch.published is not None:
                return batch.published
            write(batch, rows, self.columns)
        greatest = [value for value in (found.greatest, self._state.get("max_time")) if value is not None]
        settled = None if self.read.watermark is None else timestamps.to_micros(self.read.watermark)
        return batch.publish(
            rows_in=found.rows,
            rows_out=found.rows,
            watermark=self.read.watermark,
            state={"max_time": max(greatest, default=None), "settled": settled, "read_to": self.read.source_to},
        )

    @property
    def _state(self) -> Mapping[str, Any]:
        return {} if self.last is None else self.last.state

    def _events(self) -> DataFrame:
        """The new matches as rows that positions are given to."""
        matches = self._matches()
        values = []
        for number, attribute in enumerate(self.stream.attributes):
            value = self._value(attribute).cast(stored_type(self.stream.types[attribute]))
            values.append(value.alias(self.columns.attributes[number]))
        none = F.lit(None)
        return self._with_operands(matches).select(
            F.col("last_time").alias("time"),
            none.cast("bigint").alias("step"),
            self._key().alias("key"),
            F.lit(self.source.subscription).alias("name"),
            none.cast("double").alias("probability"),
            *values,
            F.xxhash64("part", "last_position").alias("hash"),
            *(none.cast("string").alias(name) for name in QUARANTINE),
        )

    def _matches(self) -> DataFrame:
        """The matches whose completing events `predict` took after those that the last batch read."""
        wanted = visible(TABLES[MATCHES], self.read) & (F.col("subscription") == F.lit(self.source.subscription))
        settled = self._state.get("settled")
        if settled is not None:
            later = F.unix_micros("last_time") > F.lit(settled)
            wanted = wanted & (later | (F.col("last_position") > F.lit(self._state["read_to"])))
        return self.db.table(MATCHES).where(wanted).select("part", "last_time", "last_position", "bindings")

    def _with_operands(self, matches: DataFrame) -> DataFrame:
        """Matches with a map ``taken``: operand to the position, the time and the attributes of its event."""
        taken = matches.select("*", F.explode("bindings").alias("operand", "positions")).where(F.size("positions") > 0)
        taken = taken.select("part", "last_time", "last_position", "operand", F.col("positions")[0].alias("position"))
        reader = PublicationsReader(self.db)
        events = reader.of_batch(JOB, self.source.stream, int(self.read.source["ingest_batch"]))
        if events is None:
            raise StateError(
                f"{JOB} {self.name!r}: batch {self.read.source['ingest_batch']} of {self.source.stream!r} is not "
                "published; run it with --rebuild"
            )
        # Matches reach back no further than their first events: older blocks are not read.
        (bounds,) = taken.agg(F.min("position").alias("low"), F.max("position").alias("high")).collect()
        low, high = bounds.low or 1, bounds.high or 0
        rows = EventsReader(self.db).between(events, low, high)
        types = types_of_attributes(events.configuration)
        # An attribute that is new is NULL in events of batches before it.
        stored = {name: column_of(name, types[name]) for name in self.source.taken if name in types}
        rows = rows.select("position", F.col("time").alias("event_time"), *map(identifier, stored.values()))
        own = [F.col(identifier(stored[name])) if name in stored else F.lit(None) for name in self.source.taken]
        named = (value.alias(name) for name, value in zip(self.source.taken, own, strict=True))
        value = F.struct("position", F.col("event_time").alias("time"), *named)
        of_match = ("part", "last_time", "last_position")
        entries = F.collect_list(F.struct("operand", value))
        return taken.join(rows, "position").groupBy(*of_match).agg(F.map_from_entries(entries).alias("taken"))

    def _key(self) -> Column:
        """The key that `match_subscription` shows."""
        if self.stream.key is None:
            return F.lit(None).cast("string")
        texts = F.transform("part", lambda value: F.coalesce(value, F.lit("NULL")))
        return F.when(F.size("part") == 1, F.col("part")[0]).otherwise(F.array_join(texts, ","))

    def _value(self, attribute: str) -> Column:
        """An attribute of a match; NULL where its operand has no event."""
        operand, own = next(
            (operand, own)
            for operand in self.source.operands
            for own in (POSITION, TIME, *self.source.taken)
            if attribute_of(operand, own) == attribute
        )
        event = F.try_element_at("taken", F.lit(operand))
        return event["position"] if own == POSITION else event["time"] if own == TIME else event[own]

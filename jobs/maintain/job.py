"""The job `maintain`: ageing of a sketch, forgetting what no askable moment needs, what planners know, small files."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.batches.durability import check_versions
from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.batches.retention import forget, move_horizon
from patternlake.delta_tables.batches.sketch_ageing import drop_segments, keep_topmost, segment_ends
from patternlake.delta_tables.batches.upkeep import tidy
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.table_logs import same_look
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.observed_selectivities import ObservedSelectivities
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.jobs.batches.contexts import in_own_session, in_own_session_when_needed
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import AgeRule, Configuration
from patternlake.jobs.maintain.attribute_counts import describe
from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.sketch.sizing.sizes import Sizing

logger = logging.getLogger(__name__)

JOB = "maintain"

AGEING = "ageing"
"""Marks the source of a sketch's batch that builds nothing."""

HISTORY = timedelta(days=30)
"""How far back `as_of` can ask: rows that only earlier moments need are removed."""


@in_own_session
def maintain(db: Database, name: str, configuration: Configuration) -> Summary:
    """Age the sketch of stream `name`, move its horizons, and describe its attributes.

    Safe to run at any time and beside the other jobs. Everything that readers may still ask for stays: a horizon is
    recorded before the rows behind it go, and ageing is published before nodes are removed. The tables' files are
    looked after by `tidy_files`, once for all streams.

    Parameters
    ----------
    db
        The open database.
    name
        The stream.
    configuration
        The whole configuration; the ageing rules stand under `sketches`.
    """
    started = time.monotonic()
    # What others publish meanwhile is for the next time.
    with same_look():
        removed = _maintain(db, name, configuration)
    return Summary(JOB, name, None, 0, 0, removed, 0, time.monotonic() - started)


def _maintain(db: Database, name: str, configuration: Configuration) -> int:
    """Age, forget and describe; how many segments have reached an age."""
    removed = 0
    if db.direct is not None:
        # What maintenance commits would hide how far the tables had come.
        check_versions(db.direct, {table.job for table in TABLES.values()})
    phases.at("ageing the sketch")
    if name in configuration.sketches:
        removed = _age(db, name, configuration.sketches[name].age)
    horizon = timestamps.now() - HISTORY
    kept = [("ingest", name), ("sketch", name), ("predict", name), ("evaluate", name)]
    trends = [("trends", query) for query, each in configuration.trends.items() if each.stream == name]
    kept += trends
    kept += [("groups", query) for query, each in configuration.groups.items() if each.stream == name]
    kept += [("patterns", pattern) for pattern, each in configuration.patterns.items() if each.stream == name]
    kept += [("alerts", alert) for alert in configuration.alerts if configuration.stream_of_alert(alert) == name]
    phases.at("forgetting")
    if db.direct is not None:
        db.direct.look_at([*TABLES])
    readers = [*trends, *([("sketch", name)] if name in configuration.sketches else [])]
    readers += [("predict", name)] if name in configuration.subscribed else []
    # All horizons before the first rows go: who reads events of a stream says by its own which moments it can answer.
    for job, object in kept:
        move_horizon(db, job=job, object=object, horizon=horizon)
    for job, object in kept:
        forget(db, job=job, object=object, horizon=horizon, readers=readers if job == "ingest" else ())
    reader = PublicationsReader(db)
    stream = reader.latest("ingest", name)
    if stream is not None:
        phases.at("describing attributes")
        types = types_of_attributes(stream.configuration)
        describe(db, stream, types)
    return removed


@in_own_session
def tidy_files(db: Database, names: Sequence[str]) -> None:
    """Merge small files and remove unneeded ones, of all tables; of partitions by stream, those of some streams.

    What sessions observed of conditions is added up before.

    Parameters
    ----------
    db
        The open database.
    names
        The streams.
    """
    if db.direct is not None:
        # What maintenance commits would hide how far the tables had come.
        check_versions(db.direct, {table.job for table in TABLES.values()})
    with same_look():
        if db.direct is not None:
            db.direct.look_at([*TABLES])
        found = PublicationsReader(db).latest_of([("ingest", name) for name in names])
        ObservedSelectivities(db).condense()
        tidy(db, {publication.stream_id for publication in found.values() if publication is not None})


@in_own_session_when_needed
def tidy_history(db: Database) -> None:
    """Merge the small files of the tables that whoever comes new reads as a whole: publications and intents."""
    tidy(db, (), [TABLES[name] for name in ("publications", "intents")])


def _age(db: Database, name: str, rules: Sequence[AgeRule]) -> int:
    """Apply the rules to finished segments; how many have reached an age since the last time."""
    last = PublicationsReader(db).latest("sketch", name)
    if last is None or not rules:
        return 0
    if last.watermark is None and not all(rule.counted for rule in rules):
        logger.warning(
            "sketch %r is not aged by time: its stream has no watermark (allowed_lateness: none); "
            "a rule like {after: 1000000 events, …} needs none",
            name,
        )
    finished = Finished(segment_ends(db, last), int(last.state["events"]), _sizing(last).segment_events, last.watermark)
    floors = floors_after(rules, finished, last.state.get("floors", []))
    if not floors:
        return 0
    before, now = _by_level(last.state.get("floors", [])), _by_level(floors)
    if now != before:
        object_state = load_object_state(db, "sketch", name, name)
        # The job `sketch` may be at work, or may have died: it must finish its batch first.
        if any(not intent.source.get(AGEING) for intent in object_state.pending):
            return _wait_for(name, object_state.next_batch)
        batch = Batch.begin(
            db,
            job="sketch",
            object=name,
            stream=name,
            batch_id=object_state.next_batch,
            base_batch=last.base_batch,
            source={**last.source, AGEING: True},
            source_from=last.source_to,
            source_to=last.source_to,
            configuration=last.configuration,
            object_state=object_state,
        )
        unchanged = batch.previous is not None and batch.previous.batch_id == last.batch_id
        if not unchanged or not batch.source.get(AGEING):
            return _wait_for(name, batch.batch_id)
        batch.publish(rows_in=0, rows_out=0, watermark=last.watermark, state={**last.state, "floors": floors})
    # Those that reached it earlier, too: a run may have died before it removed their nodes.
    top = _sizing(last).height - 1
    begin = 0
    # Later rules remove more, mostly of fewer segments; where one reaches further, nothing is left for those before it.
    for floor in reversed(floors):
        end = int(floor["before_segment"])
        if floor["level"] is None:
            drop_segments(db, last, begin, end)
        else:
            keep_topmost(db, last, begin, end, min(int(floor["level"]), top))
        begin = max(begin, end)
    return len({segment for level, end in now.items() for segment in range(before.get(level, 0), end)})


def _wait_for(name: str, batch_id: int) -> int:
    logger.warning("sketch %r has an unfinished batch %d; it is aged after that", name, batch_id)
    return 0


@dataclass(frozen=True)
class Finished:
    """The finished segments of a sketch, and what their ages are measured against.

    Attributes
    ----------
    ends
        (segment, greatest event time), ascending.
    events
        How many events the sketch knows.
    segment_events
        Events of a segment.
    watermark
        None: the stream has none, and no segment has an age in time.
    """

    ends: Sequence[tuple[int, datetime]]
    events: int
    segment_events: int
    watermark: datetime | None

    def as_old(self, segment: int, end: datetime, after: timedelta | int) -> bool:
        """Whether a segment has reached an age: in time, or in events that came after its last one."""
        if isinstance(after, int):
            return self.events - (segment + 1) * self.segment_events >= after
        return self.watermark is not None and end <= self.watermark - after


def floors_after(
    rules: Sequence[AgeRule], finished: Finished, known: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Which segments are old enough for which rule.

    Parameters
    ----------
    rules
        In the order of their ages.
    finished
        The segments.
    known
        The floors so far: what was removed stays removed, whatever the rules say now.

    Returns
    -------
    One entry per rule that applies: all segments below ``before_segment`` have no nodes under ``level``; None: none at
    all, and ``until`` is their greatest event time in microseconds, None where it is not known.
    """
    found = _by_level(known)
    for rule in rules:
        before = 0
        for segment, end in finished.ends:
            if segment != before or not finished.as_old(segment, end, rule.after):
                break
            before = segment + 1
        level = None if rule.drop else rule.keep_level
        if before:
            found[level] = max(before, found.get(level, 0))
    ordered = sorted(found.items(), key=lambda entry: (entry[0] is None, entry[0] or 0))
    floors: list[dict[str, Any]] = [{"level": level, "before_segment": before} for level, before in ordered]
    for floor in floors:
        if floor["level"] is None:
            floor["until"] = _until(int(floor["before_segment"]), finished.ends, known)
    return floors


def _until(before: int, ends: Sequence[tuple[int, datetime]], known: Sequence[Mapping[str, Any]]) -> int | None:
    """The greatest event time of the segments below `before`: of those that are gone already, and of those that go."""
    gone = [floor for floor in known if floor["level"] is None]
    if any(floor.get("until") is None for floor in gone):
        return None
    already = max((int(floor["before_segment"]) for floor in gone), default=0)
    going = [timestamps.to_micros(end) for segment, end in ends if already <= segment < before]
    return max([*(int(floor["until"]) for floor in gone), *going])


def _sizing(publication: Publication) -> Sizing:
    """Of a sketch's first segment; height and events of a segment are those of all."""
    return Sizing.of(publication.state["plans"][0]["sizing"])


def _by_level(floors: Sequence[Mapping[str, Any]]) -> dict[int | None, int]:
    return {floor["level"]: int(floor["before_segment"]) for floor in floors}

"""Matches as events: what a subscription with `emit: true` matches is a stream that all functions take."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from naive import machines as naive
from naive.machine_cases import p, then
from naive.machine_random import random_events
from pyspark.sql import SparkSession
from sql.machine_lake import MachineStream
from sql.sketch_lake import DATABASE, E, SketchLake, shared
from sql.test_machines_random import settled

from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run
from patternlake.udfs.errors import StateError


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


class EmittingStream(MachineStream):
    """A stream one of whose subscriptions emits matches, and a subscription to those."""

    def __init__(
        self, lake: SketchLake, name: str, query: str, again: str, *, ingested: bool = False, **section: Any
    ) -> None:
        self.emitted, self.again = f"{name}_emitted", f"{name}_again"
        super().__init__(lake, name, {self.emitted: {"query": query, "emit": True}}, ingested=ingested, **section)
        self.second = again
        self.behind = (("predict", name), ("ingest", self.emitted), ("predict", self.emitted))
        """The jobs after that which takes events in."""

    def configuration(self, **changes: Any) -> Configuration:
        tree = {
            "database": DATABASE,
            "location": self.lake.location,
            "streams": {self.name: self.section},
            "subscriptions": {
                self.emitted: {"stream": self.name, **self.queries[self.emitted], **changes},
                self.again: {"stream": self.emitted, "query": self.second},
            },
        }
        return Configuration.from_text(yaml.safe_dump(tree))

    def take(self, *jobs: tuple[str, str], rebuild: bool = False) -> list[Any]:
        """Run some jobs, or all that a batch of an ingested stream needs."""
        wanted = jobs or (("ingest", self.name), *self.behind)
        configuration = self.configuration()
        return [run(self.lake.spark, configuration, job, object=name, rebuild=rebuild)[0] for job, name in wanted]

    def deliver(self, *batches: Sequence[E]) -> EmittingStream:
        for events in batches:
            self.write(events)
            self.take(("ingest", self.name)) if self.ingested else self.ingest()
            self.take(*self.behind)
        return self

    def emitted_events(self) -> list[Any]:
        return self.lake.rows(
            f"SELECT *, unix_micros(time) AS at FROM {DATABASE}.events WHERE stream = {literal(self.emitted)} "
            "ORDER BY position"
        )

    def emitted_matches(self) -> list[Any]:
        return self.lake.rows(
            f"SELECT *, unix_micros(last_time) AS at FROM match_subscription({literal(self.emitted)}) "
            "ORDER BY last_time, key, last_position"
        )


def test_each_match_is_an_event_once_with_what_its_operands_had(lake: SketchLake) -> None:
    stream = EmittingStream(
        lake,
        "m_emit",
        "a ; (b | c) PARTITION BY key",
        "early ; late DEFINE early AS b_x > 1, late AS c_position IS NOT NULL WITHIN 10 SEC",
    )
    stream.deliver([E(0, "a", "k", {"x": 1}), E(1000, "b", "k", {"x": 5}), E(2000, "x", "k")])
    (first,) = stream.emitted_events()
    assert (first["position"], first["name"], first["key"]) == (1, stream.emitted, "k")
    assert first["time"] == stream.emitted_matches()[0]["last_time"]
    attributes = first["attributes"]
    assert (attributes["a_position"], attributes["a_x"], attributes["b_position"], attributes["b_x"]) == (
        *("1", "1"),
        *("2", "5"),
    )
    # The alternative that was not taken has no event.
    assert not {"c_position", "c_time", "c_x"} & attributes.keys()
    # Nothing new: nothing is written, and nothing is said twice.
    assert [summary.batches for summary in stream.take(*stream.behind)] == [0, 0, 0]
    stream.deliver([E(3000, "c", "k", {"x": 7}), E(4000, "a", "l"), E(5000, "b", "l", {"x": 0})])
    assert [(row["position"], row["key"]) for row in stream.emitted_events()] == [(1, "k"), (2, "k"), (3, "l")]
    # The subscription to the matches, and any function, take them as events.
    assert stream.matches(stream.again) == {(None, 2, frozenset({("early", 1), ("late", 2)}))}
    (whole,) = lake.rows(
        f"SELECT * FROM match_pattern({literal(stream.emitted)}, 'e+ DEFINE e AS a_x = 1', key => NULL)"
    )
    assert whole["bindings"] == {"e": [1, 2]}
    # As it was: before the second batch there was one event.
    moment = lake.rows(
        f"SELECT published_at FROM {DATABASE}_internal.publications_log WHERE job = 'ingest' "
        f"AND object = {literal(stream.emitted)} ORDER BY published_at"
    )[0]["published_at"]
    (before,) = lake.rows(
        f"SELECT * FROM match_pattern({literal(stream.emitted)}, 'e+ DEFINE e AS TRUE', "
        f"as_of => TIMESTAMP '{moment.isoformat(sep=' ')}')"
    )
    assert before["bindings"] == {"e": [1]}


def test_an_attribute_that_the_stream_behind_gains_is_one_of_the_matches_to_come(lake: SketchLake) -> None:
    stream = EmittingStream(lake, "m_emit_more", "a ; b", "e DEFINE e AS TRUE")
    stream.deliver([E(0, "a"), E(1000, "b"), E(2000, "x")])
    stream.section["attributes"] = {**stream.section["attributes"], "more": "int"}
    stream.deliver([E(3000, "a"), E(4000, "b", None, {"more": 7}), E(5000, "x")])
    assert [row["attributes"].get("b_more") for row in stream.emitted_events()] == [None, "7"]
    del stream.section["attributes"]["more"]
    with pytest.raises(StateError, match="attributes"):
        stream.take(("ingest", stream.emitted))


@pytest.mark.slow
def test_what_predict_makes_anew_is_not_emitted_twice(lake: SketchLake) -> None:
    stream = EmittingStream(lake, "m_emit_anew", "a ; b", "e DEFINE e AS TRUE")
    stream.deliver([E(0, "a"), E(1000, "b"), E(2000, "x")])
    # Counts that fade begin anew, and all matches are written again.
    stream.queries[stream.emitted]["decay"] = 0.5
    stream.deliver([E(3000, "b"), E(4000, "x")])
    assert [row["attributes"]["b_position"] for row in stream.emitted_events()] == ["2", "4"]


@pytest.mark.slow
def test_another_query_is_refused_until_the_stream_is_rebuilt(lake: SketchLake) -> None:
    from patternlake.udfs.errors import StateError

    stream = EmittingStream(lake, "m_emit_other", "a ; b", "e DEFINE e AS TRUE", ingested=True)
    stream.deliver([E(0, "a"), E(1000, "b"), E(2000, "c")])
    stream.queries[stream.emitted]["query"] = "a ; c AS b"
    with pytest.raises(StateError, match="run it with --rebuild"):
        stream.take()
    stream.take(("predict", stream.name))
    stream.take(("ingest", stream.emitted), ("predict", stream.emitted), rebuild=True)
    assert [row["attributes"]["b_position"] for row in stream.emitted_events()] == ["3"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_matches_are_events_however_the_source_is_cut(lake: SketchLake, seed: int) -> None:
    rng = random.Random(seed)
    events = random_events(rng, 40)
    pattern = then(p("a"), p("b"))
    subscription = naive.Subscription(pattern, "a ; b PARTITION BY key", partition=("key",))
    stream = EmittingStream(
        lake, f"m_emit_random_{seed}", subscription.text, "e AS e1 ; e AS e2 DEFINE e AS TRUE",
        ingested=True, allowed_lateness=rng.choice(["0 seconds", "3 seconds"]),
    )  # fmt: skip
    cuts = sorted(rng.sample(range(len(events) + 1), 3))
    for low, high in zip([0, *cuts], [*cuts, len(events)], strict=True):
        if low < high:
            stream.write([E(event.time // 1000, event.name, event.key, event.values) for event in events[low:high]])
            stream.run("ingest") if rng.random() < 0.3 else stream.take()
    stream.take()
    taken, now = settled(stream)[-1]
    expected = sorted(
        (event.time, match.key[0] or "", match.completed)
        for match in naive.matches(subscription, taken)
        for event in taken
        if event.position == match.completed
    )
    rows = stream.emitted_events()
    assert sorted((row["at"], row["key"] or "", int(row["attributes"]["b_position"])) for row in rows) == expected
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
    # And the second machine has taken all of them that are settled.
    second = naive.Subscription(then(named("e1"), named("e2")), "")
    matched = [naive.Event(row["position"], row["at"], row["name"], row["key"]) for row in rows if row["at"] <= now]
    assert {completed for _, completed, _ in stream.matches(stream.again)} == {
        match.completed for match in naive.matches(second, matched)
    }


def named(name: str) -> naive.Primitive:
    return naive.Primitive(name, lambda event: True)

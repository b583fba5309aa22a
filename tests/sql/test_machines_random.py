"""Random subscriptions to random streams, in random batches: SQL answers from the jobs' tables as the oracle does."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from naive import machine_forecasts as chains
from naive import machines as naive
from naive.machine_cases import ATTRIBUTES
from naive.machine_random import random_events, random_subscription
from pyspark.sql import Row, SparkSession
from sql.machine_lake import MachineStream, call
from sql.sketch_lake import DATABASE, E, SketchLake, shared
from unit.machines.forecasters import probability, spot, trained
from unit.machines.running_cases import Run
from unit.machines.test_machine_forecasting import composite_states

from patternlake.delta_tables.schema.quoting import literal
from patternlake.udfs.machines.forecasts.passage import DEAD, Forecaster, Waited, any_of, telling
from patternlake.udfs.machines.forecasts.waiting_times import counted
from patternlake.udfs.machines.graph.ages import NEVER
from patternlake.udfs.machines.graph.composite_states import CompositeState, state_name

SUBSCRIPTIONS = 6
Shown = tuple[str | None, frozenset[tuple[str, int]]]
"""Partition and bindings of a row."""


@dataclass(frozen=True)
class Asked:
    """A subscription, and how its forecasts are made; the last ones come with the second batch."""

    subscription: naive.Subscription
    smoothing: float
    lookahead: int
    begins: int


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def subscriptions(rng: random.Random, stream: str, events: Sequence[naive.Event]) -> dict[str, Asked]:
    """Random subscriptions, most of which have matches and live partial matches."""
    found: dict[str, Asked] = {}
    while len(found) < SUBSCRIPTIONS:
        one = random_subscription(rng)
        if rng.random() < 0.1 or (naive.matches(one, events) and naive.live(one, events)):
            begins = int(len(found) >= SUBSCRIPTIONS - 2)
            asked = Asked(one, rng.choice([0.0, 0.5, 0.5]), rng.randint(1, 6), begins)
            found[f"{stream}_{len(found)}"] = asked
    return found


def batches(rng: random.Random, events: Sequence[naive.Event]) -> list[list[E]]:
    """The events as they arrive, some of them one batch later, and maybe too late."""
    cuts = sorted(rng.sample(range(3, len(events) - 2, 3), rng.randint(1, 2)))
    found: list[list[E]] = [[] for _ in range(len(cuts) + 1)]
    for number, event in enumerate(events):
        batch = sum(cut <= number for cut in cuts)
        delayed = batch < len(cuts) and number not in (0, *cuts) and rng.random() < 0.3
        found[batch + delayed].append(E(event.time // 1000, event.name, event.key, event.values))
    return found


def settled(stream: MachineStream) -> list[tuple[list[naive.Event], int]]:
    """The stream's events as `ingest` numbered them, those that each of its batches settled and all before them, and
    the watermark of each.
    """
    rows = [
        naive.Event(
            row["position"],
            row["at"],
            row["name"],
            row["key"],
            {
                name: None if row["attributes"].get(name) is None else int(row["attributes"][name])
                for name in ATTRIBUTES
            },
        )
        for row in stream.events()
    ]
    ends = stream.lake.rows(
        f"SELECT source_to, unix_micros(watermark) AS watermark FROM {DATABASE}_internal.publications_log "
        f"WHERE job = 'ingest' AND object = {literal(stream.name)} ORDER BY published_at"
    )
    return [
        (
            [event for event in rows if event.position <= end["source_to"] and event.time <= end["watermark"]],
            end["watermark"],
        )
        for end in ends
    ]


def shown_key(key: Sequence[naive.Value]) -> Any:
    return key[0] if key else None


def shown(row: Row) -> Shown:
    return row["key"], frozenset((name, places[0]) for name, places in row["bindings"].items() if places)


def expected_matches(subscription: naive.Subscription, events: Iterable[naive.Event]) -> set[tuple[Any, ...]]:
    at = {event.position: event.time for event in events}
    found = set()
    for match in naive.matches(subscription, events):
        first, *_, last = sorted((at[place], place) for place in [*match.bindings.values(), match.completed])
        bound = frozenset(match.bindings.items())
        found.add((shown_key(match.key), first[1], last[1], first[0], last[0], bound))
    return found


def check_matches(asked: Asked, events: Sequence[naive.Event], rows: Sequence[Row]) -> None:
    found = {
        (row["key"], row["first_position"], row["last_position"], row["first"], row["last"], shown(row)[1])
        for row in rows
    }
    assert found == expected_matches(asked.subscription, events)
    assert len(found) == len(rows)
    assert all(row["bindings"].keys() == asked.subscription.primitives.keys() for row in rows)


def check_forecasts(asked: Asked, events: Sequence[naive.Event], now: int, rows: Sequence[Row]) -> None:
    """Which rows there are, and what they forecast from the oracle's counts; chains are checked where they are made."""
    counts = chains.train(asked.subscription, events)
    forecaster = forecaster_of(asked, events, counts, now)
    composite_state_of = composite_states(forecaster.subscription)
    wanted = []
    for key, names, row, lefts, quiet in live_rows(asked.subscription, events, now):
        composite_state = composite_state_of[names]
        within = completed_within(forecaster, composite_state, lefts, quiet)
        if asked.smoothing == 0 and not (forecaster.uncovered or forecaster.limits):
            # Neither deadlines nor waits matter: the definition answers by itself.
            by_definition = chains.Chain(counts, chains.name_of(asked.subscription.root, asked.subscription.primitives))
            cell = chains.Cell(chains.name_of(asked.subscription.root, names))
            exactly = [by_definition.within(cell, n) for n in (asked.lookahead - 1, asked.lookahead)]
            assert list(within) == pytest.approx(exactly, abs=1e-9)
        if within[1] > 0:
            trained_on = round(forecaster.trained_on(composite_state))
            wanted.append((shown_key(key), row, within[1] - within[0], within[1], trained_on))
    # Two rows of other join values can be bound to the same events.
    expected = sorted(((repr((key, sorted(row.items()))), *told) for key, row, *told in wanted))
    found = sorted((sortable(row), row["alpha"], row["probability"], row["trained_on"]) for row in rows)
    assert [(row[0], row[3]) for row in found] == [(row[0], row[3]) for row in expected]
    assert [row[1] for row in found] == pytest.approx([row[1] for row in expected])
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected])
    best = {key: max(one[3] for one in wanted if one[0] == key) for key, *_ in wanted}
    marked = [row for row in rows if row["is_best"]]
    assert sorted(str(row["key"]) for row in marked) == sorted(map(str, best))
    assert all(row["probability"] == pytest.approx(best[row["key"]]) for row in marked)


def forecaster_of(asked: Asked, events: Sequence[naive.Event], counts: chains.Counts, now: int) -> Forecaster:
    """What forecasts from the oracle's counts, and from the waits of all events at once."""
    run = Run([asked.subscription.text])
    parts = [[event.time for event in taken] for taken in naive.partitions(asked.subscription, events).values()]
    new = np.zeros(len(parts), np.int64)
    ends = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    times = np.array([time for part in parts for time in part], np.int64)
    waited = Waited(counted(times, ends, new, new, new, now), now)
    own = run.as_ours(0, counts)
    return trained(run.compiled.subscriptions[0], own, asked.lookahead, asked.smoothing, waited=waited)


def completed_within(
    forecaster: Forecaster, composite_state: CompositeState, lefts: Sequence[chains.Left], quiet: int
) -> Sequence[float]:
    """What the instances of a row forecast together, within one event less than is looked ahead, and within all."""
    spots = telling(
        [
            spot(
                forecaster,
                composite_state,
                NEVER if left.time is None else left.time,
                NEVER if left.events is None else left.events,
                left.closed,
            )
            for left in lefts
        ]
    )
    if len(spots) > 1:
        within = forecaster.passage.within(composite_state, np.array(spots), np.full(len(spots), quiet))
        return [float(one) for one in any_of(within)[-2:]]
    left = lefts[0].time if len(lefts) == 1 else None
    return [float(one) for one in probability(forecaster, composite_state, spots[0], quiet, left=left, last=2)]


def live_rows(
    subscription: naive.Subscription, events: Sequence[naive.Event], now: int
) -> Iterator[tuple[Any, frozenset[str], dict[str, int], list[chains.Left], int]]:
    """(key, bound operands, the smallest assignment, what its instances have left, the quiet time) of each live row.

    What is left of deadlines is told at the last event of the partition; what lives, by the watermark.
    """
    states = chains.States(subscription)
    for key, taken in naive.partitions(subscription, events).items():
        partition = naive.Partition(subscription, taken)
        kinds: dict[Any, list[naive.Assignment]] = {}
        for bound in chains.instances(states, partition):
            if not partition.completable(bound, now):
                continue
            kinds.setdefault((chains.joins_of(partition, bound), frozenset(bound)), []).append(bound)
        for (_, names), some in kinds.items():
            shown_ = naive.positions(partition, naive.smallest(subscription, some))
            lefts = [chains.left(states, partition, bound) for bound in some]
            yield key, names, shown_, lefts, now - taken[-1].time


def sortable(row: Row) -> str:
    key, bound = shown(row)
    return repr((key, sorted(bound)))


def stored_counts(stream: MachineStream) -> dict[str, dict[tuple[Any, ...], float]]:
    """How often each subscription's states moved where."""
    found: dict[str, dict[tuple[Any, ...], float]] = {}
    for row in stream.lake.rows(
        f"SELECT * FROM {DATABASE}_internal.machine_transitions WHERE stream = {literal(stream.name)} AND moves != 0"
    ):
        moved = row["state"], row["age"], row["next_state"], row["next_age"]
        found.setdefault(row["subscription"], {})[moved] = row["moves"]
    return found


def expected_counts(subscription: naive.Subscription, events: Sequence[naive.Event]) -> dict[tuple[Any, ...], float]:
    run = Run([subscription.text])
    chain = run.compiled.subscriptions[0].master
    return {
        (
            state_name(chain, composite_state),
            age,
            *(("dead", 0) if after == DEAD else (state_name(chain, after[0]), after[1])),
        ): count
        for (composite_state, age), moves in run.as_ours(0, chains.train(subscription, events)).items()
        for after, count in moves.items()
    }


def answers(
    lake: SketchLake, asked: dict[str, Asked], as_of: datetime | None = None
) -> dict[str, tuple[list[Row], list[Row]]]:
    """The rows of match_subscription and of predict_match for each subscription."""
    at = {} if as_of is None else {"as_of": as_of}
    texts = []
    for name, one in asked.items():
        matches = f"match_subscription({call(name, at)})"
        texts.append(f"SELECT *, unix_micros(first_time) AS first, unix_micros(last_time) AS last FROM {matches}")
        forecast = {**at, "lookahead": one.lookahead, "threshold": 0}
        texts.append(f"SELECT * FROM predict_match({call(name, forecast)})")
    rows = lake.ask(texts)
    return dict(zip(asked, zip(rows[::2], rows[1::2], strict=True), strict=True))


def check(
    asked: dict[str, Asked], events: Sequence[naive.Event], now: int, found: dict[str, tuple[list[Row], list[Row]]]
) -> None:
    for name, one in asked.items():
        try:
            check_matches(one, events, found[name][0])
            check_forecasts(one, events, now, found[name][1])
        except AssertionError as error:
            raise AssertionError(f"{one.subscription.text}\n{events}") from error


def in_order(found: dict[str, tuple[list[Row], list[Row]]]) -> dict[str, list[list[str]]]:
    return {name: [sorted(map(repr, rows)) for rows in both] for name, both in found.items()}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_random_subscriptions_are_answered_as_by_the_oracle(lake: SketchLake, seed: int) -> None:
    rng = random.Random(seed)
    name = f"machines{seed}"
    events: list[naive.Event] = []
    while len(events) < 12:
        events = random_events(rng, 16)
    asked = subscriptions(rng, name, events)
    # Some events come late, and go to quarantine.
    lateness = rng.choice(["1 second", "2 seconds", "3 seconds"])
    stream = MachineStream(lake, name, {}, ingested=True, allowed_lateness=lateness)
    sent = batches(rng, events)
    for number, batch in enumerate(sent):
        known = {each: one for each, one in asked.items() if one.begins <= number}
        stream.queries = {
            each: {"query": one.subscription.text, "smoothing": one.smoothing} for each, one in known.items()
        }
        stream.deliver(batch)

    taken = settled(stream)
    earlier = rng.randrange(len(sent) - 1)
    known = {each: one for each, one in asked.items() if one.begins <= earlier}
    check(known, *taken[earlier], answers(lake, known, stream.moments[earlier]))
    found = answers(lake, asked)
    check(asked, *taken[-1], found)
    counts = stored_counts(stream)
    assert counts == {each: expected_counts(one.subscription, taken[-1][0]) for each, one in asked.items()}

    stream.run("predict", rebuild=True)
    assert in_order(answers(lake, asked)) == in_order(found)
    assert stored_counts(stream) == counts

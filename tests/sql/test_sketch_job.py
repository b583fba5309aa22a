"""The job `sketch` and the ageing by `maintain`: what stands in sketch_nodes, and what answers it gives."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from naive import sketch_matching as naive
from sql.sketch_lake import (
    AGES,
    DAY,
    E,
    SketchLake,
    Stream,
    aging,
    as_published,
    letters,
    moment,
    naive_events,
    naive_nodes,
    naive_tree,
    nodes_by_place,
    sequence,
    shared,
)

from patternlake.delta_tables.writing import writes
from patternlake.jobs.maintain import job as maintaining
from patternlake.udfs.errors import SizingError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


# --- incremental = rebuilt ------------------------------------------------------------------------------------------


def growing(seed: int, count: int, *, late: bool) -> list[E]:
    """Few tokens at first, then more, at last no two alike; three keys; with late rows if asked for."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        poor, rich = number < count // 4, number > count // 2
        name = "A" if poor else f"n{number}" if rich else rng.choice(["A", "B", f"n{rng.randrange(number)}"])
        tag = "t" if poor else f"u{number}" if rich else rng.choice([f"u{number}", "t", None])
        time = number * 1000 - (20_000 if late and number % 5 == 4 else 0)
        made.append(E(time, name, "k1" if poor else rng.choice(["k1", "k2", None]), {"tag": tag}))
    return made


SECTIONS = {
    "leveled": {"structure": "leveled", "keyed": True, "fpq": 0.05},
    "uniform": {"structure": "uniform", "keyed": True, "fpq": 0.9, "seed": 4},
}
SOURCE: dict[str, Any] = {
    "key": "who",
    "attributes": {"tag": "string"},
    "tokens": ["name", "tag"],
    "allowed_lateness": "30 seconds",
}


def in_batches(made: list[E], count: int) -> list[list[E]]:
    """Uneven cuts, none at the end of a leaf."""
    cuts = [0, *(len(made) * number // count + 1 for number in range(1, count)), len(made)]
    return [made[low:high] for low, high in pairwise(cuts)]


def grown(lake: SketchLake, structure: str, batches: int, *, late: bool) -> Stream:
    made = growing(31, 70, late=late)
    sketch = {"events_per_leaf": 4, **SECTIONS[structure]}
    name = f"grown {structure} {batches} {late}"
    return lake.stream(name, *in_batches(made, batches), sketch=sketch, **SOURCE)


@pytest.mark.parametrize(("structure", "batches"), [("leveled", 4), ("uniform", 2)])
def test_nodes_built_in_batches_equal_the_naive_tree_of_all_events(
    lake: SketchLake, structure: str, batches: int
) -> None:
    stream = grown(lake, structure, batches, late=True)
    assert len(stream.events()) == 70
    assert nodes_by_place(stream) == as_published(naive_tree(stream, stream.publications()[-1]))


def test_sizes_are_fitted_again_when_the_vocabulary_grows(lake: SketchLake) -> None:
    state = json.loads(grown(lake, "leveled", 4, late=True).publications()[-1]["state"])
    plans = state["plans"]
    assert len(plans) > 1
    bits = [plan["sizing"]["levels"][0]["bits"] for plan in plans]
    assert bits == sorted(bits)
    assert [plan["from_segment"] for plan in plans] == sorted({plan["from_segment"] for plan in plans})


def test_sizes_shrink_when_a_stream_gets_sparser(lake: SketchLake) -> None:
    # Segments of 16 events in leaves of 4: two of different names, then many of the same one.
    made = [E(number * 1000, f"n{number}" if number < 32 else "A") for number in range(160)]
    sketch = {"events_per_leaf": 4}
    streams = [lake.stream(f"sparser {batches}", *in_batches(made, batches), sketch=sketch) for batches in (1, 3)]
    states = [json.loads(stream.publications()[-1]["state"]) for stream in streams]
    for stream, state in zip(streams, states, strict=True):
        assert nodes_by_place(stream) == as_published(naive_tree(stream, stream.publications()[-1]))
        assert [plan["from_segment"] for plan in state["plans"]] == [0, 6]
        before, after = (plan["sizing"]["levels"][0]["bits"] for plan in state["plans"])
        assert 2 * after <= before
    assert states[0]["plans"] == states[1]["plans"]
    assert states[0]["sparse"] == states[1]["sparse"]
    pattern = sequence("n31", "A")
    assert lake.spans([stream.seq(pattern.text(), verify=True) for stream in streams]) == [[(32, 33)]] * 2


def test_uniform_leaves_out_parents_that_would_be_too_dense(lake: SketchLake) -> None:
    # The thesis expects 60·√n distinct tokens among n (Heaps' law): fewer than there are, if 4,800 are all different.
    made = [E(number, f"n{number}", f"k{number}", {"tag": f"u{number}"}) for number in range(1500)]
    sketch = {"events_per_leaf": 300, "structure": "uniform", "keyed": True, "fpq": 0.1, "expected_events": 1500}
    stream = lake.stream("dense", made, sketch=sketch, **SOURCE)
    places = nodes_by_place(stream)
    assert {(level, node) for segment, level, node in places if segment == 0} == {(0, n) for n in range(4)} | {
        (1, 0),
        (1, 1),
    }
    assert places == as_published(naive_tree(stream, stream.publications()[-1]))


@pytest.mark.parametrize(("structure", "batches"), [("leveled", 4), ("uniform", 2)])
def test_a_rebuild_gives_the_nodes_that_the_batches_gave(lake: SketchLake, structure: str, batches: int) -> None:
    stream = grown(lake, structure, batches, late=True)
    before, plans = nodes_by_place(stream), json.loads(stream.publications()[-1]["state"])["plans"]
    question = stream.seq("A ; B", after_match="next")
    answer = lake.ask([question])
    stream.run("sketch", rebuild=True)
    assert nodes_by_place(stream) == before
    assert json.loads(stream.publications()[-1]["state"])["plans"] == plans
    # The state before the rebuild can be asked as well.
    then = stream.seq("A ; B", after_match="next", as_of=stream.moments[-1])
    assert lake.ask([question, then]) == [*answer, *answer]


def test_a_run_without_new_events_publishes_nothing(lake: SketchLake) -> None:
    stream = grown(lake, "leveled", 4, late=True)
    before = len(stream.publications())
    assert stream.run("sketch").batches == 0
    assert len(stream.publications()) == before


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("structure", SECTIONS)
def test_any_cut_into_batches_gives_the_same_nodes(lake: SketchLake, structure: str) -> None:
    streams = [grown(lake, structure, batches, late=False) for batches in (1, 2, 5)]
    first, *others = [nodes_by_place(stream) for stream in streams]
    assert others == [first, first]
    assert first == as_published(naive_tree(streams[0], streams[0].publications()[-1]))
    question = [stream.seq("B ; A PARTITION BY who", after_match="next") for stream in streams]
    one, *rest = lake.ask(question)
    assert one
    assert rest == [one, one]


# --- configuration --------------------------------------------------------------------------------------------------


def test_memory_that_is_too_small_is_refused_and_more_memory_is_enough(lake: SketchLake) -> None:
    stream = Stream(lake, "small", {"memory": 200, "events_per_leaf": 2}, {})
    lake.streams["small"] = stream
    stream.write(letters("ABCDEFGHIJKLMNOP"))
    stream.ingest()
    with pytest.raises(SizingError, match=r"memory") as caught:
        stream.run("sketch")
    assert "smallest" in str(caught.value) or "at least" in str(caught.value)
    assert "fpq" in str(caught.value)
    summary = stream.run("sketch", memory="1MB")
    assert summary.rows_in == 16
    assert lake.spans([stream.seq("A ; P")]) == [[(1, 16)]]


@pytest.mark.parametrize("refused", [False, True])
def test_more_memory_is_enough_for_denser_segments(lake: SketchLake, refused: bool) -> None:
    """Raised in time, or after a batch that was refused without it."""
    sizes = {"events_per_leaf": 100, "levels": 3, "expected_events": 1_000_000, "memory": "2MB"}
    stream = lake.stream(f"denser {refused}", letters("A" * 400), sketch=sizes)
    stream.write([E((400 + number) * 1000, f"n{number}") for number in range(400)])
    stream.ingest()
    if refused:
        with pytest.raises(SizingError, match="more distinct tokens per node than planned"):
            stream.run("sketch")
    stream.run("sketch", memory="8MB")
    assert lake.spans([stream.seq("n1 ; n350", verify=True)]) == [[(402, 751)]]
    assert json.loads(stream.publications()[-1]["state"])["plans"][-1]["sizing"]["memory"] == 8_000_000


def test_a_changed_configuration_is_refused_until_it_is_rebuilt(lake: SketchLake) -> None:
    stream = lake.stream("changed", letters("ABAB"), sketch={"events_per_leaf": 1})
    stream.write(letters("AB", begin=4))
    stream.ingest()
    with pytest.raises(StateError) as caught:
        stream.run("sketch", events_per_leaf=2, seed=7)
    assert "sketch 'changed': the configuration has changed" in str(caught.value)
    assert "events_per_leaf: 1 → 2, seed: 0 → 7" in str(caught.value)
    assert "--rebuild" in str(caught.value)
    assert lake.spans([stream.seq("A ; B")]) == [[(1, 2), (3, 4)]]
    stream.run("sketch", rebuild=True, events_per_leaf=2, seed=7)
    assert lake.spans([stream.seq("A ; B", verify=v) for v in (False, True)]) == [
        [(1, 4), (3, 6)],
        [(1, 2), (3, 4), (5, 6)],
    ]


def test_a_sketch_of_a_stream_without_events_is_refused(lake: SketchLake) -> None:
    lake.streams["nothing"] = Stream(lake, "nothing", {}, {})
    with pytest.raises(StateError, match="the stream has no published events; run `ingest` first"):
        lake.streams["nothing"].run("sketch")


# --- ageing ---------------------------------------------------------------------------------------------------------

LEFT = [(9, 16), (17, 20), (21, 24), *((low, low + 1) for low in range(25, 41, 2))]


def aged(lake: SketchLake) -> Stream:
    """Leaves of two; maintained once with `AGES`."""
    if "aged" in lake.streams:
        return lake.streams["aged"]
    stream = lake.stream("aged", aging(), sketch={"events_per_leaf": 2, "fpq": 1e-4})
    stream.run("maintain", age=AGES)
    return stream


def test_ageing_removes_nodes_below_the_level_and_drops_the_oldest(lake: SketchLake) -> None:
    kept: dict[int, set[int]] = {}
    for segment, level, _ in nodes_by_place(aged(lake)):
        kept.setdefault(segment, set()).add(level)
    assert kept == {1: {2}, 2: {1, 2}, 3: {0, 1, 2}, 4: {0, 1, 2}}


def test_aged_segments_answer_by_their_nodes_and_say_so(lake: SketchLake) -> None:
    stream = aged(lake)
    nodes = naive_nodes(stream.events(), LEFT)
    for names in (("C", "F"), ("G", "I"), ("D", "E"), ("C", "D"), ("Q", "C")):
        pattern = sequence(*names)
        (rows,) = lake.ask([stream.seq(pattern.text(), after_match="next", from_position=9)])
        found = naive.match(pattern, nodes, policy="skip_till_next", after_match="next", exclusive=False)
        assert [[(s["from_position"], s["to_position"]) for s in row["steps"]] for row in rows] == [
            [(nodes[i].lo, nodes[i].hi) for i, _ in match] for match in found
        ]
        sizes = {8: 2, 4: 1, 2: 0}
        assert [row["level"] for row in rows] == [
            max(sizes[nodes[i].hi - nodes[i].lo + 1] for i, _ in match) for match in found
        ]


def test_existence_is_unknown_where_only_coarse_nodes_could_hold_it(lake: SketchLake) -> None:
    stream = aged(lake)
    said = {
        "C ; F": True,
        "C ; E ; J": True,  # in segments that are whole
        "D ; C": True,
        "D ; D ; C": None,  # the two before C are in one node of segment 1
        "H ; I": None,  # both in one node of segment 2
        "C ; D ; D ; E ; F ; F": None,
        "K ; J": None,  # nothing is left of segment 0
        "X": None,
        "A ; K": None,  # what is left holds no A, or not before a K
    }
    assert lake.said([stream.exists(pattern) for pattern in said]) == list(said.values())
    later = {"C ; F": True, "H ; I": None, "K ; J": False, "X": False, "A ; K": False}
    assert lake.said([stream.exists(pattern, from_position=9) for pattern in later]) == list(later.values())
    assert lake.said([stream.exists(pattern, from_time=moment(8 * DAY)) for pattern in later]) == list(later.values())
    assert lake.said([stream.exists("X", to_position=5), stream.exists("X", from_time=moment(7 * DAY))]) == [None] * 2


def test_rows_that_could_lie_in_a_dropped_range_are_refused_or_flagged(lake: SketchLake) -> None:
    stream = aged(lake)
    errors = lake.errors([stream.seq("C ; F"), stream.seq("C ; F", from_position=3, to_position=30)])
    for low, error in zip((1, 3), errors, strict=True):
        assert error == (
            f"ageing has dropped the sketch of positions {low} to 8 of 'aged', and the question reaches into them; "
            "ask from_position => 9, match_seq or match_exists without verify => false (exact, on the "
            "events), or truncate => true (the rows of what is left, flagged)"
        )
    bounded = [{"from_position": 9}, {"from_time": moment(8 * DAY)}, {"truncate": True}]
    rows = lake.ask([stream.seq("C ; F", after_match="next", **given) for given in bounded])
    assert rows[0]
    assert [row["first_position"] for row in rows[0]] == [row["first_position"] for row in rows[2]]
    flags = [{row["truncated"] for row in each} for each in rows]
    assert flags == [{False}, {False}, {True}]


def test_exact_answers_do_not_age(lake: SketchLake) -> None:
    stream = aged(lake)
    events = naive_events(stream.events())
    patterns = [("H", "I"), ("D", "E"), ("A", "B"), ("Q", "R"), ("Q", "C"), ("R", "K"), ("B", "A")]
    answers = lake.steps([stream.seq(sequence(*names).text(), verify=True) for names in patterns])
    for names, answer in zip(patterns, answers, strict=True):
        found = naive.match(sequence(*names), events, policy="skip_till_next", after_match="past_last", exclusive=True)
        assert answer == [tuple(events[i].lo for i, _ in match) for match in found], names
        assert answer


def test_segments_age_by_the_events_that_came_after_them(lake: SketchLake, caplog: pytest.LogCaptureFixture) -> None:
    # An event a day, so many days are so many events. The stream has no watermark, against which time could be told.
    stream = lake.stream("aged by events", aging(), sketch={"events_per_leaf": 2, "fpq": 1e-4}, allowed_lateness="none")
    stream.run("maintain", age=AGES)
    assert {segment for segment, _, _ in nodes_by_place(stream)} == {0, 1, 2, 3, 4}
    assert "is not aged by time: its stream has no watermark" in caplog.text
    counted = [{**rule, "after": str(rule["after"]).replace("days", "events")} for rule in AGES]
    stream.run("maintain", age=counted)
    kept: dict[int, set[int]] = {}
    for segment, level, _ in nodes_by_place(stream):
        kept.setdefault(segment, set()).add(level)
    assert kept == {1: {2}, 2: {1, 2}, 3: {0, 1, 2}, 4: {0, 1, 2}}
    # As after ageing by time: what is gone is gone at every moment.
    then = stream.moments[0]
    assert lake.said([stream.exists(text, as_of=then) for text in ("C ; F", "D ; D ; C", "X")]) == [True, None, None]
    (error,) = lake.errors([stream.seq("C ; F", as_of=then)])
    assert error.startswith("ageing has dropped the sketch of positions 1 to 8 of 'aged by events'")


def test_maintaining_again_removes_nothing_and_new_events_age_the_next_segments(
    lake: SketchLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("compact", "vacuum"):
        monkeypatch.setattr(writes, name, lambda *given, **named: None)
    stream = aged(lake)
    before, publications = nodes_by_place(stream), len(stream.publications())
    assert stream.run("maintain", age=AGES).rows_out == 0
    assert nodes_by_place(stream) == before
    assert len(stream.publications()) == publications
    again = [E((40 + day) * DAY, "L") for day in range(8)]
    stream.deliver(again)
    assert stream.run("maintain", age=AGES).rows_out > 0
    kept: dict[int, set[int]] = {}
    for segment, level, _ in nodes_by_place(stream):
        kept.setdefault(segment, set()).add(level)
    assert kept == {2: {2}, 3: {1, 2}, 4: {0, 1, 2}, 5: {0, 1, 2}}
    # Nodes that are gone are gone at every moment.
    (rows,) = lake.ask([stream.seq("F ; J", after_match="next", as_of=stream.moments[0], from_position=17)])
    assert [[(s["from_position"], s["to_position"]) for s in row["steps"]] for row in rows] == [[(17, 24), (25, 28)]]


def test_uniform_keeps_nodes_that_no_parent_covers(lake: SketchLake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compact", "vacuum"):
        monkeypatch.setattr(writes, name, lambda *given, **named: None)
    # The seed is one under which the filter of the whole segment 1 is too dense.
    names = ["A" if day // 12 in (0, 3) or day % 12 == 0 else f"n{day}" for day in range(60)]
    made = [E(day * DAY, name) for day, name in enumerate(names)]
    sketch = {"events_per_leaf": 3, "structure": "uniform", "fpq": 0.9, "seed": 4}
    stream = lake.stream("aged uniform", made, sketch=sketch)
    places = nodes_by_place(stream)
    assert {segment for segment in range(5) if (segment, 2, 0) not in places} == {1}
    stream.run("maintain", age=[{"after": "10 days", "keep_level": 2}])
    kept = {place: value for place, value in places.items() if place[0] == 4 or place[1] == 2 or place[:2] == (1, 1)}
    assert nodes_by_place(stream) == kept
    said = [(12 * segment + 1, 12 * segment + 12) for segment in (0, 2, 3)]
    said = sorted([*said, (13, 18), (19, 24), *((low, low + 2) for low in range(49, 60, 3))])
    rows, found = lake.ask([stream.seq("A", after_match="next"), stream.seq("n17 ; n20", after_match="next")])
    assert {(row["first_position"], row["last_position"]) for row in rows} <= set(said)
    for position, name in enumerate(names, start=1):
        assert name != "A" or any(row["first_position"] <= position <= row["last_position"] for row in rows), position
    assert (13, 24) in [(row["first_position"], row["last_position"]) for row in found]
    assert {row["level"] for row in rows} >= {0, 1, 2}


# --- horizons -------------------------------------------------------------------------------------------------------


def test_as_of_before_the_first_publication_or_the_horizon_names_the_earliest_moment(
    lake: SketchLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("compact", "vacuum"):
        monkeypatch.setattr(writes, name, lambda *given, **named: None)
    stream = lake.stream("forgotten", letters("AB"), letters("AB", begin=2))
    first = stream.moments[0]
    calls = [function("A ; B", as_of=first - timedelta(seconds=1)) for function in (stream.seq, stream.exists)]
    for error in lake.errors(calls):
        assert error == (
            f"as_of {said(first - timedelta(seconds=1))} lies before the first publication of the sketch of "
            f"'forgotten', {said(first)}"
        )
    assert lake.spans([stream.seq("A ; B", as_of=first)]) == [[(1, 2)]]
    monkeypatch.setattr(maintaining, "HISTORY", timedelta(0))
    stream.run("maintain")
    horizon = next(row["horizon"] for row in reversed(stream.publications()) if row["horizon"] is not None)
    for error in lake.errors([function("A ; B", as_of=first) for function in (stream.seq, stream.exists)]):
        assert error == (
            f"as_of {said(first)} lies before the horizon of the sketch of 'forgotten'; the earliest moment that can "
            f"be asked is {said(horizon)}"
        )
    assert lake.spans([stream.seq("A ; B"), stream.seq("A ; B", as_of=horizon)]) == [[(1, 2), (3, 4)]] * 2


def said(at: Any) -> str:
    """A moment as the messages write it."""
    from datetime import timezone

    return f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f} UTC"

"""Subscriptions from their configuration to SQL: matches, forecasts, counts, catalogue, moments, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sql.machine_lake import MachineStream
from sql.sketch_lake import DATABASE, E, SketchLake, letters, shared

from patternlake.jobs.terminal.messages import message
from patternlake.sql_ext.lakes.lake import DRIVER_BYTES
from patternlake.udfs.errors import ConfigurationError, StateError

SPEC = "s1 ; s2 @(t(s2)-t(s1) < 3 SEC) ; s3 @(t(s3)-t(s1) < 6 SEC) @(t(s3)-t(s2) > 3 SEC)"
SHARED = {"abc": "a ; b ; c", "abd": "a ; b ; d", "only_a": "a"}


def at(names: str) -> list[E]:
    """Events written ``name@second``."""
    return [E(int(second) * 1000, name) for name, second in (word.split("@") for word in names.split())]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def rows(*found: tuple[str | None, int, str]) -> set[tuple[Any, ...]]:
    """Matches written (key, completing position, ``operand=position …``)."""
    return {
        (key, last, frozenset((name, int(place)) for name, place in (word.split("=") for word in bound.split())))
        for key, last, bound in found
    }


def test_the_time_conditions_of_spec_match_at_8(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_spec", {"three": SPEC})
    stream.deliver(at("s1@1 s1@2 s1@3 s2@4 s2@5 s2@6 s3@7 s3@8"))
    assert stream.matches("three") == rows((None, 8, "s1=3 s2=4 s3=8"))


def test_the_chain_of_spec_is_trained_and_forecasts(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_train", {"trained_chain": "a AS a ; b AS b, c AS c", "trained_pair": "a ; b"})
    stream.deliver(letters("abb"), letters("xbc", begin=3))
    assert stream.moves("trained_chain") == {
        ("N0", "N1"): 1, ("N0", "N0"): 5, ("N1", "N1"): 2, ("N1", "N2"): 3, ("N2", "N1"): 1, ("N2", "N2"): 1,
        ("N2", "N3"): 1,
    }  # fmt: skip
    # The a is still in N1; a forecast of 0 is not above the threshold of 0.
    assert stream.forecasts("trained_chain", lookahead=1) == []
    for lookahead, probability in ((2, 0.2), (3, 26 / 75), (4, 526 / 1125)):
        (row,) = stream.forecasts("trained_chain", lookahead=lookahead)
        assert (row["state"], row["trained_on"], row["is_best"]) == ("N1", 5, True)
        assert row["probability"] == pytest.approx(probability)
        assert row["bindings"] == {"a": [1], "b": [], "c": []}


def test_equal_prefixes_have_one_state_id(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_shared", SHARED)
    stream.deliver(letters("abacd"))
    found = lake.rows(
        f"SELECT subscription, state, state_id FROM {DATABASE}_internal.machine_states WHERE stream = 'm_shared'"
    )
    ids = {(row["subscription"], row["state"]): row["state_id"] for row in found}
    assert ids["abc", "N1"] == ids["abd", "N1"] != ids["only_a", "N1"]
    assert ids["abc", "N2"] == ids["abd", "N2"]
    assert ids["abc", "N3"] != ids["abd", "N3"]
    assert len(set(ids.values())) == 6
    assert stream.matches("abc") == rows((None, 4, "a=1 b=2 c=4"))
    assert stream.matches("only_a") == rows((None, 1, "a=1"), (None, 3, "a=3"))


def test_subscriptions_come_and_go(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_catalogue", {"ab": "a ; b PARTITION BY key"})
    stream.deliver([E(0, "a", "k"), E(1000, "a", "l")])
    stream.queries["bc"] = {"query": "b ; c PARTITION BY key"}
    stream.deliver([E(2000, "b", "k"), E(3000, "c", "k")])
    assert stream.matches("ab") == rows(("k", 3, "a=1 b=3"))
    assert stream.matches("bc") == rows(("k", 4, "b=3 c=4"))
    # Without new events: a new one takes the events from the first on, a changed one begins anew, one is dropped.
    stream.queries = {"bc": {"query": "b AS one ; c PARTITION BY key"}, "ac": {"query": "a ; c PARTITION BY key"}}
    stream.predict()
    assert stream.matches("bc") == rows(("k", 4, "one=3 c=4"))
    assert stream.matches("ac") == rows(("k", 4, "a=1 c=4"))
    with pytest.raises(PySparkException) as raised:
        stream.matches("ab")
    assert message(raised.value).startswith("there is no subscription 'ab'")
    # As it was.
    assert stream.matches("ab", as_of=stream.moments[1]) == rows(("k", 3, "a=1 b=3"))
    assert stream.matches("ab", as_of=stream.moments[0]) == set()
    stream.deliver([E(4000, "c", "l")])
    assert stream.matches("ac", key="l") == rows(("l", 5, "a=2 c=5"))


def test_a_subscription_with_joins_comes_as_another_one_goes(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_joins", {"ab": "a ; b", "cd": "c ; d"})
    stream.deliver([E(0, "a", None, {"x": 1}), E(1000, "a", None, {"x": 2})])
    same = "p ; q DEFINE p AS name = 'a' AND x = $v, q AS name = 'b' AND x = $v"
    stream.queries = {"cd": {"query": "c ; d"}, "same": {"query": same}}
    stream.deliver([E(2000, "b", None, {"x": 2}), E(3000, "c", None, {})])
    assert stream.matches("same") == rows((None, 3, "p=2 q=3"))
    with pytest.raises(PySparkException) as raised:
        stream.matches("ab")
    assert message(raised.value).startswith("there is no subscription 'ab'")
    # What is half-way goes on: the first a waits for a b of its own x, and the c for a d.
    stream.deliver([E(4000, "b", None, {"x": 1}), E(5000, "d", None, {})])
    assert stream.matches("same") == rows((None, 3, "p=2 q=3"), (None, 5, "p=1 q=5"))
    assert stream.matches("cd") == rows((None, 6, "c=4 d=6"))


def test_an_attribute_named_as_the_key_takes_no_partial_matches_away(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_gained", {"gained": "a AS a1 ; a AS a2 PARTITION BY who"})
    stream.deliver([E(0, "a", "k")])
    stream.section["attributes"]["who"] = "string"
    with pytest.raises(ConfigurationError, match="'who' is an attribute of the stream 'm_gained' now"):
        stream.deliver([E(1000, "a", "k", {"who": "l"})])
    # Another query begins anew, and leaves nothing of what was.
    stream.queries["gained"] = {"query": "a AS a1 ; a AS a2 PARTITION BY key"}
    stream.predict()
    assert stream.matches("gained") == rows(("k", 2, "a1=1 a2=2"))
    live = lake.rows(f"SELECT positions FROM {DATABASE}.machine_instances WHERE stream = 'm_gained'")
    assert [row["positions"] for row in live if row["positions"]] == [[1]]


def test_a_setting_of_forecasts_changes_without_new_counts(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_settings", {"settings_ab": {"query": "a ; b", "lookahead": 1}})
    stream.deliver(letters("abaxxx"))
    assert [row["probability"] for row in stream.forecasts("settings_ab")] == [pytest.approx(1 / 5)]
    stream.queries["settings_ab"] |= {"lookahead": 2}
    stream.predict()
    assert [row["probability"] for row in stream.forecasts("settings_ab")] == [pytest.approx(1 / 5 + 4 / 25)]
    stream.queries["settings_ab"] |= {"threshold": 0.9}
    stream.predict()
    assert stream.forecasts("settings_ab") == []
    assert len(stream.forecasts("settings_ab", threshold=0)) == 1


def test_events_above_the_watermark_wait(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_late", {"late_ab": "a ; b"}, allowed_lateness="5 seconds")
    stream.deliver([E(0, "a"), E(4000, "b"), E(6000, "x")])
    assert stream.matches("late_ab") == set()
    # The b at 2 s comes late, and is taken before the one at 4 s.
    stream.deliver([E(2000, "b"), E(20000, "x")])
    assert stream.matches("late_ab") == rows((None, 4, "a=1 b=4"), (None, 2, "a=1 b=2"))


def test_counts_lose_a_share_a_day(lake: SketchLake) -> None:
    day = 86_400_000
    stream = MachineStream(lake, "m_decay", {"decay_ab": {"query": "a ; b", "decay": 0.5}})
    stream.deliver([E(0, "a"), E(day, "x")], [E(2 * day, "b")])
    # The a is two days old, the x one, the b none.
    assert stream.moves("decay_ab") == {("N0", "N1"): 0.25, ("N0", "N0"): 1.5, ("N1", "N1"): 0.5, ("N1", "N2"): 1}


def test_a_forecast_knows_how_much_of_a_deadline_is_left(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_deadline", {"deadline_ab": "a ; b @(t(b) - t(a) < 3 SEC)"})
    # Of three a's b came to one in the next second, and to another one in the one after that; the fourth is live.
    stream.deliver(letters("abxxaxbxxaxxxa"))
    (row,) = stream.forecasts("deadline_ab", lookahead=1)
    assert (row["bindings"]["a"], row["probability"]) == ([14], pytest.approx(1 / 3))
    (row,) = stream.forecasts("deadline_ab", lookahead=2)
    # The a that has a b waits for another one: of three a's in their second second one got its b.
    assert row["probability"] == pytest.approx(1 / 3 + 2 / 3 * 1 / 3)
    stream.deliver(letters("x", begin=14))
    assert [row["probability"] for row in stream.forecasts("deadline_ab", lookahead=5)] == [pytest.approx(1 / 3)]


def test_a_quiet_partition_forecasts_until_its_deadline_lies_below_the_watermark(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_quiet", {"quiet": "a ; b @(t(b) - t(a) < 3 SEC) PARTITION BY key"})
    stream.deliver(
        # In a partition of its own, waits of 2.99 and 3.01 s, and a b so late: so may the next event of k be.
        [
            E(-9000, "a", "m"),
            E(-6010, "b", "m"),
            E(-3000, "x", "m"),
            E(0, "a", "k"),
            E(1000, "b", "k"),
            E(2000, "a", "k"),
            E(2500, "x", "l"),
        ],
        [E(4999, "x", "l")],
        [E(5000, "x", "l")],
    )
    shown = [[row["key"] for row in stream.forecasts("quiet", as_of=moment)] for moment in stream.moments]
    # A b is in time before second 5. What the partition took last was at second 2.
    assert shown == [["k"], ["k"], []]
    lake.spark.conf.set(DRIVER_BYTES, "0")
    try:
        assert [len(stream.forecasts("quiet", as_of=moment)) for moment in stream.moments] == [1, 1, 0]
    finally:
        lake.spark.conf.unset(DRIVER_BYTES)


def test_an_alternative_that_is_gone_is_not_forecast(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_gone", {"abcd": "a , ((b ; c) | d)"})
    stream.deliver(letters("abxdcadaxab"))
    found = {row["state"]: row["probability"] for row in stream.forecasts("abcd", lookahead=1)}
    # Of the nine events behind the first b one was a c; no d counts there.
    assert found == {"N1(1: N1)": pytest.approx(1 / 9)}


def test_the_best_of_a_key_is_marked(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_best", {"best_abc": "a ; b ; c PARTITION BY key"})
    stream.deliver(
        [
            E(t * 1000, name, key)
            for t, (name, key) in enumerate(
                [("a", "k"), ("b", "k"), ("c", "k"), ("x", "k"), ("a", "l"), ("x", "l"), ("b", None), ("a", None)]
            )
        ]
    )
    found = stream.forecasts("best_abc", lookahead=3, threshold=0)
    assert {(row["key"], row["state"], row["is_best"]) for row in found} == {
        ("k", "N1", False), ("k", "N2", True), ("l", "N1", True), (None, "N1", True),
    }  # fmt: skip
    assert {row["key"] for row in stream.forecasts("best_abc", lookahead=3, threshold=0, key="l")} == {"l"}


def test_alternatives_that_were_not_taken_have_no_events(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_either", {"either": "a ; (b | c) ; d"})
    stream.deliver(letters("acd"))
    (row,) = lake.rows("SELECT bindings FROM match_subscription('either')")
    assert row["bindings"] == {"a": [1], "b": [], "c": [2], "d": [3]}


REFUSED = [
    ("predict_match('nonsense')", "there is no subscription 'nonsense'"),
    ("match_subscription(NULL)", "subscription is NULL; give the name of a subscription"),
    (
        "predict_match('either', lookahead => 2147483647)",
        "lookahead => 2147483647 is out of range; 1 to 1,000 events would be right",
    ),
    ("predict_match('either', lookahead => 0)", "lookahead => 0 is out of range; 1 to 1,000 events would be right"),
    ("predict_match('either', threshold => 1.5D)", "threshold => 1.5 is out of range; from 0 to 1 would be right"),
    ("match_subscription('either', key => 'k')", "key => 'k': the subscription 'either' has no PARTITION BY"),
    (
        "match_subscription('either', as_of => TIMESTAMP '2000-01-01')",
        "as_of 2000-01-01 00:00:00.000000 UTC lies before the first publication of the subscriptions of",
    ),
    (
        "match_subscription('either', from_time => TIMESTAMP '2024-01-02', to_time => TIMESTAMP '2024-01-01')",
        "from_time is after to_time",
    ),
]


@pytest.mark.parametrize(("text", "told"), REFUSED, ids=[text for text, _ in REFUSED])
def test_calls_that_make_no_sense_are_refused(lake: SketchLake, text: str, told: str) -> None:
    with pytest.raises(PySparkException) as raised:
        lake.rows(f"SELECT * FROM {text}")
    assert told in message(raised.value)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("a+ ; b", "'+'"),
        ("a ; !b", "'!'"),
        ("a ; b WHERE a.x > 1", "WHERE"),
        ("a ; a", "a"),
        ("a ; b @(t(z) - t(a) < 3 SEC)", "z"),
        ("a ; b @(t(b) - t(a) < 3)", "unit"),
        ("p ; b DEFINE p AS name = 'a' AND x = $v", "$v stands once"),
    ],
)
def test_subscriptions_that_make_no_sense_stop_the_run(lake: SketchLake, query: str, told: str) -> None:
    stream = lake.streams.get("m_refused") or MachineStream(lake, "m_refused", {"good": "a ; b"}).deliver(letters("ab"))
    assert isinstance(stream, MachineStream)
    stream.queries = {"bad": {"query": query}}
    with pytest.raises(ConfigurationError) as raised:
        stream.run("predict")
    assert "subscriptions.bad.query: " in str(raised.value)
    assert told in str(raised.value)


def test_a_stream_that_never_settles_is_refused(lake: SketchLake) -> None:
    stream = MachineStream(lake, "m_never", {"ab": "a ; b"}, allowed_lateness="none")
    stream.write(letters("ab"))
    stream.ingest()
    with pytest.raises(ConfigurationError, match="events of 'm_never' never settle, as its allowed_lateness is none"):
        stream.run("predict")


def test_an_event_before_what_was_taken_needs_a_rebuild(lake: SketchLake) -> None:
    """`allowed_lateness` may change at any time: while it is none, nothing is too late."""
    stream = MachineStream(lake, "m_earlier", {"earlier_ab": "a ; b"}, allowed_lateness="0 seconds")
    stream.deliver([E(4000, "b")])
    for lateness, events in (("none", [E(2000, "a")]), ("0 seconds", [E(5000, "x")])):
        stream.section["allowed_lateness"] = lateness
        stream.write(events)
        stream.ingest()
    with pytest.raises(StateError, match=r"took an event at .*, as its allowed_lateness was none, after all up to"):
        stream.predict()
    stream.run("predict", rebuild=True)
    assert stream.matches("earlier_ab") == rows((None, 1, "a=2 b=1"))

"""The job `alerts`: each match, rise of a forecast and closed group is told once, however jobs and batches fall."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from datetime import timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from naive.alerts import told_of_forecasts, told_once
from sql.alert_lake import AlertStream, forecast_of, match_of
from sql.pattern_lake import PatternStream
from sql.sketch_lake import DATABASE, E, SketchLake, letters, shared, value_text
from webhook_receiver import Receiver, receiving

from patternlake.delta_tables.batches import retention
from patternlake.delta_tables.writing import writes
from patternlake.jobs.batches import few
from patternlake.jobs.reports.status import status
from patternlake.jobs.runs.running import run
from patternlake.udfs.errors import ConfigurationError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BODY = {
    "alert_id", "alert", "kind", "stream", "object", "key", "probability", "state", "bindings", "first_time",
    "last_time", "t_start", "t_first", "t_end", "found_in", "held_back", "first_seen_at",
}  # fmt: skip


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def test_a_match_is_told_once_and_what_is_built_anew_is_not_told_again(lake: SketchLake) -> None:
    stream = AlertStream(lake, "al_once", {"al_ab": "a ; b"}, {"al_ab told": {"of": "subscription", "name": "al_ab"}})
    stream.take(letters("aab"))
    (first,) = stream.tell()
    assert (first.batches, first.rows_out) == (1, 1)
    (row,) = stream.told("al_ab told")
    assert (row["kind"], row["stream"], row["object"], row["found_in"]) == ("subscription", "al_once", "al_ab", 1)
    assert (row["key"], row["bindings"], row["probability"]) == (None, {"a": [1], "b": [3]}, None)
    assert (row["attempts"], row["delivered_at"], row["dead_letter"]) == (0, None, False)
    assert stream.tell()[0].batches == 0, "nothing is new"
    stream.take(letters("xb", begin=3))
    assert stream.tell()[0].rows_out == 1
    told = stream.told("al_ab told")
    assert [row["bindings"]["b"] for row in told] == [[3], [5]]
    assert told[0] == row, "what was told stays as it is"

    stream.run("predict", rebuild=True)
    again = stream.tell()[0]
    assert (again.batches, again.rows_out) == (1, 0)
    assert stream.told("al_ab told") == told
    anew = stream.tell(rebuild=True)[0]
    assert anew.rows_out == 2
    assert [row["alert_id"] for row in stream.told("al_ab told")] == [row["alert_id"] for row in told]


def test_batches_without_a_match_of_the_subscription_hide_none_of_others(lake: SketchLake) -> None:
    """The second batch has matches of subscriptions whose names lie around that of the one which is told."""
    queries = {"al_gap_1": "a ; b", "al_gap_2": "m ; n", "al_gap_3": "y ; z"}
    stream = AlertStream(lake, "al_gap", queries, {"al_gap told": {"of": "subscription", "name": "al_gap_2"}})
    for number, names in enumerate(["mn", "abyz", "mn", "abyz"]):
        stream.take(letters(names, begin=10 * number))
    assert stream.tell()[0].rows_out == 2
    assert sorted(row["bindings"]["n"] for row in stream.told("al_gap told")) == [[2], [8]]
    (answered,) = lake.ask(["match_subscription('al_gap_2')"])
    assert sorted(row["bindings"]["n"] for row in answered) == [[2], [8]]


def test_two_alerts_of_one_subscription_tell_what_their_predicates_choose_under_ids_of_their_own(
    lake: SketchLake,
) -> None:
    late = {"of": "subscription", "name": "al_two", "where": "last_position > 3 AND size(bindings['a']) = 1"}
    stream = AlertStream(
        lake, "al_two", {"al_two": "a ; b"}, {"al_all": {"of": "subscription", "name": "al_two"}, "al_late": late}
    )
    stream.take(letters("abbb"))
    stream.tell()
    every, some = stream.told("al_all"), stream.told("al_late")
    assert [row["bindings"]["b"] for row in every] == [[2], [3], [4]]
    assert [row["bindings"]["b"] for row in some] == [[4]]
    assert not {row["alert_id"] for row in every} & {row["alert_id"] for row in some}


RISES = {"where": "probability >= 0.5 AND bindings['b'][0] IS NULL"}


def test_a_forecast_is_told_when_it_passes_and_again_when_it_has_fallen_and_risen(lake: SketchLake) -> None:
    """`a ; b`, one event ahead: each b moves the waiting a on, every other event is one that it waited.

    After ab, x, x, b, b the moves on are 1 1 1 2 3 of 1 2 3 4 5.
    """
    alerts = {name: {"of": "forecast", "name": "al_rise", **RISES} for name in ("al_each", "al_lagging")}
    stream = AlertStream(lake, "al_rise", {"al_rise": {"query": "a ; b", "lookahead": 1}}, alerts)
    for number, text in enumerate(["ab", "x", "x", "b", "b"]):
        stream.take(letters(text, begin=10 * number))
        stream.tell("al_each")
        if number == 1:
            stream.tell("al_lagging")
    stream.tell("al_lagging")
    kept = [(row["batch_id"], row["probability"], row["state"], row["lookahead"]) for row in stream.kept("al_rise")]
    # What the alert is not about is kept as well: the subscription's own threshold is 0.
    assert kept == [
        (1, 1.0, "N1", 1),
        (2, 1 / 2, "N1", 1),
        (3, pytest.approx(1 / 3), "N1", 1),
        (4, 2 / 4, "N1", 1),
        (5, pytest.approx(3 / 5), "N1", 1),
    ]
    for name in alerts:
        told = [(row["found_in"], row["probability"], row["state"], row["bindings"]) for row in stream.told(name)]
        assert told == [(1, 1.0, "N1", {"a": [1], "b": []}), (4, 0.5, "N1", {"a": [1], "b": []})]
    stream.tell("al_lagging", rebuild=True)
    assert [row["found_in"] for row in stream.told("al_lagging")] == [1, 4]


def test_what_another_alert_keeps_is_not_told_by_one_without_a_probability(lake: SketchLake) -> None:
    query = {"query": "a ; b", "lookahead": 1, "threshold": 0.4}
    alerts = {"al_pager": {"of": "forecast", "name": "al_held"}}
    stream = AlertStream(lake, "al_held", {"al_held": query}, alerts)
    stream.alerts["al_early"] = {"of": "forecast", "name": "al_held", "where": "probability > 0.1"}
    for number, text in enumerate(["ab", "x", "x", "b", "b"]):
        stream.take(letters(text, begin=10 * number))
        stream.tell()
    assert [row["batch_id"] for row in stream.kept("al_held")] == [1, 2, 3, 4, 5]
    # 1, 1/2, 1/3, 2/4 and 3/5: it falls below the threshold of the subscription, and rises again.
    assert [row["found_in"] for row in stream.told("al_pager")] == [1, 4]
    assert [row["found_in"] for row in stream.told("al_early")] == [1]


def test_what_a_subscription_finds_in_another_stream_is_told_from_its_first_batch_on(lake: SketchLake) -> None:
    subscriptions, alerts = {"al_moved": "a ; b"}, {"al_moved told": {"of": "subscription", "name": "al_moved"}}
    stream = AlertStream(lake, "al_from", subscriptions, alerts)
    for number in range(3):
        stream.take(letters("ab", begin=10 * number))
    assert stream.tell()[0].rows_out == 3
    other = AlertStream(lake, "al_to", subscriptions, alerts)
    other.take(letters("ab", begin=100))
    assert other.tell()[0].rows_out == 1
    assert [row["stream"] for row in other.told("al_moved told")] == ["al_to"]
    assert other.tell()[0].batches == 0


JOINED = """p ; q ; r DEFINE p AS name = 'a' AND x = $v, q AS name = 'b' AND x = $v, r AS name = 'c' PARTITION BY key"""


def test_forecasts_that_are_kept_are_those_that_predict_match_gave_at_each_batch(lake: SketchLake) -> None:
    queries = {
        "al_kept": {
            "query": JOINED,
            "lookahead": 3, "smoothing": 0.5, "forecasts": "keep", "threshold": 0.05,
        },
        "al_whole": {"query": "a ; b , c", "lookahead": 2, "forecasts": "keep"},
        "al_forgotten": {"query": "a ; b , c", "lookahead": 2},
    }  # fmt: skip
    stream = AlertStream(lake, "al_kept", queries, {})
    rng = random.Random(4)
    events = [
        E(n * 1000, rng.choice("abcx"), rng.choice(["k1", "k2", None]), {"x": rng.randint(1, 2)}) for n in range(36)
    ]
    for cut in (0, 12, 24):
        stream.take(events[cut : cut + 12])
        stream.moments.append(stream.publications("predict")[-1]["published_at"])
    columns = ("key", "state", "bindings", "alpha", "probability", "trained_on", "is_best")
    for name in queries:
        kept = stream.kept(name)
        assert bool(kept) == (name != "al_forgotten")
        for number, moment in enumerate(stream.moments, start=1):
            asked = f"SELECT * FROM predict_match('{name}', as_of => {value_text(moment)})"
            expected = sorted(repr(tuple(row[column] for column in columns)) for row in lake.rows(asked))
            found = [row for row in kept if row["batch_id"] == number]
            if found or name != "al_forgotten":
                assert sorted(repr(tuple(row[column] for column in columns)) for row in found) == expected
                assert {row["forecast_at"] for row in found} <= {moment}
    joins = {tuple(row["joins"]) for row in stream.kept("al_kept")}
    assert joins == {("1",), ("2",)}


PARTITIONS = ("", "PARTITION BY key", "PARTITION BY x", "PARTITION BY key, x")


@pytest.mark.parametrize("way", ["driver", "tasks"])
def test_forecasts_are_kept_of_subscriptions_with_other_partitions_each(
    lake: SketchLake, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "tasks":
        monkeypatch.setattr(few, "FEW_BYTES", -1)
    queries = {
        f"al_parts_{way}_{number}": {
            "query": f"a ; b {partition} WITHIN 1 MIN",
            "lookahead": 2, "smoothing": 0.5, "forecasts": "keep",
        }
        for number, partition in enumerate(PARTITIONS)
    }  # fmt: skip
    stream = AlertStream(lake, f"al_parts_{way}", queries, {})
    events = [("a", "k1", 1), ("x", "k1", 1), ("a", "k2", 2), ("b", "k1", 2), ("a", None, 1), ("x", "k2", None)]
    for begin in (0, 10):
        stream.take([E((begin + n) * 1000, name, key, {"x": x}) for n, (name, key, x) in enumerate(events)])
    columns = ("key", "state", "bindings", "alpha", "probability", "trained_on", "is_best")
    shown = []
    for name in queries:
        kept = [row for row in stream.kept(name) if row["batch_id"] == 2]
        expected = lake.rows(f"SELECT * FROM predict_match('{name}')")
        assert sorted(repr([row[column] for column in columns]) for row in kept) == sorted(
            repr([row[column] for column in columns]) for row in expected
        )
        shown.append({row["key"] for row in kept})
    assert shown == [{None}, {"k1", "k2", None}, {"1", "2"}, {"k1,1", "k2,2", "NULL,1"}]


CUTS = {
    "al_pair": "a ; b , c PARTITION BY key",
    "al_join": "p ; q DEFINE p AS name = 'a' AND x = $v, q AS name = 'c' AND x = $v",
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 13))
def test_random_cuts_of_the_input_give_the_alerts_of_the_oracle(lake: SketchLake, seed: int) -> None:
    rng = random.Random(seed)
    names = {query: f"{query}_{seed}" for query in CUTS}
    queries = {names[query]: {"query": text, "lookahead": 2, "smoothing": 0.2} for query, text in CUTS.items()}
    alerts = {f"{name} matches": {"of": "subscription", "name": name} for name in queries}
    alerts |= {f"{name} soon": {"of": "forecast", "name": name, "where": "probability > 0.3"} for name in queries}
    stream = AlertStream(lake, f"al_cut_{seed}", queries, alerts)
    events = [E(n * 1000, rng.choice("abbcc"), rng.choice(["k1", "k2"]), {"x": rng.randint(1, 2)}) for n in range(28)]
    cuts = sorted(rng.sample(range(1, len(events)), rng.randint(1, 4)))
    published: dict[str, list[set[Any]]] = {name: [] for name in queries}
    for begin, end in zip([0, *cuts], [*cuts, None], strict=True):
        stream.take(events[begin:end])
        for name in queries:
            published[name].append({match_of(row) for row in lake.rows(f"SELECT * FROM match_subscription('{name}')")})
        if end is None or rng.random() < 0.6:
            stream.tell()
    for name in queries:
        told = [match_of(row) for row in stream.told(f"{name} matches")]
        assert len(told) == len(set(told))
        assert set(told) == set(told_once(published[name], lambda _: True))
        kept = stream.kept(name)
        batches: list[dict[Any, float]] = [{} for _ in published[name]]
        for row in kept:
            batches[row["batch_id"] - 1][(forecast_of(row), tuple(row["joins"]))] = row["probability"]
        rises = {(thing[0], number + 1) for thing, number in told_of_forecasts(batches, lambda p: p > 0.3)}
        soon = [(forecast_of(row), row["found_in"]) for row in stream.told(f"{name} soon")]
        assert set(soon) == rises
        assert len(soon) == len(told_of_forecasts(batches, lambda p: p > 0.3))
    assert any(stream.told(name) for name in alerts)


def test_forecasts_that_were_removed_before_they_could_be_told_are_a_warning(lake: SketchLake) -> None:
    alerts = {"al_gone told": {"of": "forecast", "name": "al_gone", **RISES}}
    stream = AlertStream(lake, "al_gone", {"al_gone": {"query": "a ; b", "lookahead": 1}}, alerts)
    stream.take(letters("ab"))
    stream.tell()
    for number, text in enumerate("xxb", start=1):
        stream.take(letters(text, begin=10 * number))
    horizon = stream.publications("predict")[-1]["published_at"].astimezone(timezone.utc)
    retention.forget(lake.db, job="predict", object=stream.name, horizon=horizon)
    assert [row["batch_id"] for row in stream.kept("al_gone")] == [4]
    (summary,) = stream.tell()
    assert summary.warnings == (
        "alert 'al_gone told': forecasts of 2 batches of `predict`, from 2 to 3, were removed by `maintain` before "
        "they could be told; run `alerts` more often",
    )
    assert [row["found_in"] for row in stream.told("al_gone told")] == [1, 4]


def test_a_group_is_told_once_it_is_closed(lake: SketchLake) -> None:
    section = {"step": "CAST(x AS INT)", "probability": "CAST(y AS DOUBLE) / 10"}
    groups = {"al_group": {"pattern": "a, b+", "within": 3}}
    likely = {"of": "group", "name": "al_group", "where": "probability >= 0.5"}
    stream = AlertStream(lake, "al_group", {}, {"al_group told": likely}, groups, **section)

    def steps(*given: tuple[int, str, int]) -> list[E]:
        return [E(step * 1000, name, "k", {"x": step, "y": tenths}) for step, name, tenths in given]

    stream.take(steps((1, "a", 10), (2, "b", 10)))
    stream.tell()
    assert stream.told("al_group told") == [], "another b would make the group longer"
    stream.take(steps((3, "b", 8), (3, "c", 2), (4, "c", 10), (5, "c", 10)))
    stream.tell()
    (row,) = stream.told("al_group told")
    assert (row["kind"], row["key"], row["t_start"], row["t_first"], row["t_end"]) == ("group", "k", 1, 2, 3)
    assert row["probability"] == pytest.approx(1.0)
    stream.take(steps((6, "a", 3), (7, "b", 10), (8, "c", 10), (9, "c", 10)))
    assert stream.tell()[0].rows_out == 0, "it is not likely enough"


def test_what_did_not_happen_is_told_once_when_the_watermark_has_passed_the_deadline(lake: SketchLake) -> None:
    """The a at 0 s has a b in time. The one at 3 s waits until 7 s, and its b at 8 s is too late."""
    patterns = {"al_silent": {"query": "a ; !b WITHIN 4 SEC"}}
    alerts = {"al_silent told": {"of": "pattern", "name": "al_silent"}}
    stream = PatternStream(lake, "al_silent", patterns, alerts)
    seen = []
    for events in ([(0, "a"), (2, "b"), (3, "a"), (6, "x")], [(8, "b")], [(20, "x")]):
        stream.take([E(second * 1000, name) for second, name in events])
        run(lake.spark, stream.configuration(), "alerts")
        told = f"SELECT bindings, last_time FROM {DATABASE}.alerts WHERE alert = 'al_silent told'"
        seen.append([(row["bindings"], row["last_time"].second) for row in lake.rows(told)])
    silent = ({"a": [3]}, 3)
    assert seen == [[], [silent], [silent]]


def test_what_is_not_published_or_means_something_else_is_refused(lake: SketchLake) -> None:
    told = {"al_bad told": {"of": "subscription", "name": "al_bad"}}
    stream = AlertStream(lake, "al_bad", {"al_bad": "a ; b"}, told)
    with pytest.raises(StateError, match="the stream 'al_bad' has no published events; run `ingest` first"):
        stream.tell()
    stream.write(letters("ab"))
    stream.run("ingest")
    with pytest.raises(StateError, match="`predict` has published nothing of it; run `predict` first"):
        stream.tell()
    stream.run("predict")
    for where, said in (
        ("last_position", "'last_position' gives bigint, not true or false"),
        ("rand() < 0.5", "rand gives another value when a batch is replayed"),
        ("key LIKE 3 +", "is not SQL"),
        ("no_such(key)", "no_such"),
    ):
        with pytest.raises(ConfigurationError) as raised:
            stream.tell(where=where)
        assert "alerts.al_bad told.where: " in str(raised.value)
        assert said in str(raised.value)
    stream.queries["al_new"] = {"query": "b ; a"}
    stream.alerts = {"al_new told": {"of": "subscription", "name": "al_new"}}
    with pytest.raises(StateError, match="`predict` has not published the subscription 'al_new'; run it first"):
        stream.tell()
    stream.alerts = {"al_soon told": {"of": "forecast", "name": "al_bad"}}
    with pytest.raises(StateError, match="`predict` has not published forecasts of the subscription 'al_bad'"):
        stream.tell()
    stream.alerts = told
    stream.tell()
    with pytest.raises(
        StateError, match=r"the configuration has changed since the last batch \(where: None → 'key IS NULL'"
    ):
        stream.tell(where="key IS NULL")
    assert stream.tell(where="key IS NULL", rebuild=True)[0].rows_out == 1


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def test_a_webhook_that_fails_at_times_gets_every_alert_and_tables_say_how(
    lake: SketchLake, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = {"of": "subscription", "name": "al_hook", "to": "webhook", "url": receiver.url}
    hook |= {"at_once": 1, "back_off": "1 ms", "dead_letter_after": 3}
    stream = AlertStream(lake, "al_hook", {"al_hook": "a ; b"}, {"al_hooked": hook})
    stream.take(letters("abb"))
    receiver.answers(503)
    (summary,) = stream.tell(retries=2)
    assert (summary.rows_out, summary.warnings) == (2, ())
    told = stream.told("al_hooked")
    assert sorted(post.alert_id or "" for post in receiver.taken) == sorted(row["alert_id"] for row in told)
    assert [row["attempts"] for row in told] == [2, 1]
    assert all(row["delivered_at"] is not None and not row["dead_letter"] for row in told)
    body = next(json.loads(post.body) for post in receiver.taken if post.alert_id == told[0]["alert_id"])
    assert (body["kind"], body["stream"], body["object"], body["key"]) == ("subscription", "al_hook", "al_hook", None)
    assert (body["bindings"], body["last_time"]) == ({"a": [1], "b": [2]}, "2024-01-01T00:00:01.000000Z")
    assert set(body) == BODY

    # The run dies between an attempt and its row.
    receiver.taken.clear()
    stream.take(letters("b", begin=3))

    def die(*given: Any, **named: Any) -> Any:
        if "alert_deliveries" in given[0]:
            raise RuntimeError("died")
        return append(*given, **named)

    append = writes.append
    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", die)
        with pytest.raises(RuntimeError, match="died"):
            stream.tell()
    (again,) = stream.tell()
    assert again.batches == 0
    assert [post.alert_id for post in receiver.taken] == [stream.told("al_hooked")[-1]["alert_id"]] * 2
    assert stream.told("al_hooked")[-1]["attempts"] == 1

    # Nobody answers in time: the alert becomes a dead letter, which a greater limit brings back.
    stream.take(letters("b", begin=4))
    receiver.answers(503, 503, 503)
    warned = [stream.tell(retries=0)[0].warnings for _ in range(3)]
    assert "did not take 1 alert (HTTP 503 Service Unavailable); a later run tries again" in warned[0][0]
    assert "1 alert became dead letters after 3 attempts" in warned[2][0]
    dead = stream.told("al_hooked")[-1]
    assert (dead["attempts"], dead["delivered_at"], dead["dead_letter"]) == (3, None, True)
    (standing,) = [
        each for each in status(lake.db, stream.configuration()) if (each.job, each.object) == ("alerts", "al_hooked")
    ]
    assert (standing.undelivered, standing.dead_letters, standing.stream, standing.lag_rows) == (0, 1, "al_hook", 0)
    stream.tell(retries=0)
    assert stream.told("al_hooked")[-1]["attempts"] == 3, "a dead letter rests"
    stream.tell(dead_letter_after=4)
    revived = stream.told("al_hooked")[-1]
    assert (revived["attempts"], revived["dead_letter"]) == (4, False)
    assert revived["delivered_at"] is not None
    attempts = lake.rows(
        f"SELECT * FROM {DATABASE}.alert_deliveries WHERE alert_id = '{dead['alert_id']}' ORDER BY attempt"
    )
    assert [(row["attempt"], row["delivered"], row["dead_letter"]) for row in attempts] == [
        (1, False, False), (2, False, False), (3, False, True), (4, True, False),
    ]  # fmt: skip
    assert {row["alert"] for row in attempts} == {"al_hooked"}
    stream.tell(rebuild=True)
    assert len(receiver.taken) == 3, "what has been delivered is not delivered again"


def test_a_command_gets_lines_of_json(lake: SketchLake, tmp_path: Path) -> None:
    taken = tmp_path / "taken.jsonl"
    program = f"import sys; open({str(taken)!r}, 'ab').write(sys.stdin.buffer.read())"
    told = {"of": "subscription", "name": "al_command", "to": "command", "command": [sys.executable, "-c", program]}
    stream = AlertStream(lake, "al_command", {"al_command": "a ; b"}, {"al_commanded": {**told, "timeout": "1 minute"}})
    stream.take(letters("abb"))
    stream.tell()
    stream.tell()
    lines = [json.loads(line) for line in taken.read_text().splitlines()]
    assert [line["alert_id"] for line in lines] == [row["alert_id"] for row in stream.told("al_commanded")]


@pytest.mark.parametrize("way", ["few", "many"])
def test_a_body_has_all_microseconds_of_its_moments(
    lake: SketchLake, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "many":
        monkeypatch.setattr(few, "FEW_BYTES", -1)
    taken = tmp_path / "taken.jsonl"
    program = f"import sys; open({str(taken)!r}, 'ab').write(sys.stdin.buffer.read())"
    name = f"al_micros_{way}"
    told = {"of": "subscription", "name": name, "to": "command", "command": [sys.executable, "-c", program]}
    stream = AlertStream(lake, name, {name: "a ; b"}, {f"{name}_told": told})
    stream.take([E(1.234, "a"), E(2000.001, "b")])
    stream.tell()
    (line,) = [json.loads(line) for line in taken.read_text().splitlines()]
    assert (line["first_time"], line["last_time"]) == ("2024-01-01T00:00:00.001234Z", "2024-01-01T00:00:02.000001Z")
    (row,) = stream.told(f"{name}_told")
    seen = row["first_seen_at"].astimezone(timezone.utc)
    assert line["first_seen_at"] == seen.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_kafka_without_its_package_says_what_is_missing(lake: SketchLake) -> None:
    told = {"of": "subscription", "name": "al_kafka", "to": "kafka", "topic": "t", "brokers": "127.0.0.1:1"}
    stream = AlertStream(lake, "al_kafka", {"al_kafka": "a ; b"}, {"al_sent": told})
    stream.take(letters("ab"))
    with pytest.raises(ConfigurationError, match=r"package org\.apache\.spark:spark-sql-kafka-0-10_2\.13:4\.\d"):
        stream.tell()
    assert len(stream.told("al_sent")) == 1, "the table has it; it is delivered once the package is there"


def test_the_table_is_read_as_a_stream(lake: SketchLake, tmp_path: Path) -> None:
    stream = AlertStream(
        lake, "al_stream", {"al_stream": "a ; b"}, {"al_streamed": {"of": "subscription", "name": "al_stream"}}
    )
    seen: list[str] = []

    def read() -> None:
        (
            lake.spark.readStream.option("skipChangeCommits", "true")
            .table(f"{DATABASE}_internal.alerts_log")
            .where("alert = 'al_streamed'")
            .writeStream.foreachBatch(lambda rows, _: seen.extend(row.alert_id for row in rows.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )

    stream.take(letters("ab"))
    stream.tell()
    read()
    stream.take(letters("b", begin=2))
    stream.tell()
    read()
    assert seen == [row["alert_id"] for row in stream.told("al_streamed")]
    assert len(seen) == 2

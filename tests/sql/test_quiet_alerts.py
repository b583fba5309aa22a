"""Alerts that are quiet: at most one of a key and span of event time, which counts what was held back before it."""

from __future__ import annotations

import contextlib
import json
import random
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from naive.alerts import Found, quieted
from sql.alert_lake import AlertStream
from sql.sketch_lake import DATABASE, E, SketchLake, letters, shared

from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.schema.timestamps import to_micros
from patternlake.jobs.batches import few
from patternlake.jobs.reports.status import status
from tests.faults.interrupted import KilledError, Writes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def seconds(moment: datetime) -> int:
    """Seconds since the first event of a stream may happen."""
    return (to_micros(moment.astimezone(timezone.utc)) - to_micros(datetime(2024, 1, 1, tzinfo=timezone.utc))) // 10**6


def held(stream: AlertStream, alert: str) -> list[Any]:
    where = f"WHERE alert = {literal(alert)} ORDER BY last_time, watermark, t_end, alert_id"
    return list(stream.lake.rows(f"SELECT * FROM {DATABASE}_internal.held_alerts {where}"))


def counts_of_status(stream: AlertStream, alert: str) -> tuple[int | None, int | None]:
    """How many `status` says were held back, and how many of them no alert has counted."""
    (found,) = [each for each in status(stream.lake.db, stream.configuration()) if each.object == alert]
    return found.held_back, found.held_back_uncounted


def told(stream: AlertStream, alert: str) -> list[tuple[str | None, int, int]]:
    """Key, second and what it counts, of each alert."""
    return [(row["key"], seconds(row["last_time"]), row["held_back"]) for row in stream.told(alert)]


@pytest.mark.parametrize("way", ["few", pytest.param("many", marks=pytest.mark.slow)])
def test_the_next_alert_of_a_key_counts_what_was_held_back_in_whatever_runs(
    lake: SketchLake, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a ; b`: each b completes a match, at seconds 1, 3, 11, 12 and 21 of k, 2 and 13 of the key that is NULL."""
    if way == "many":
        monkeypatch.setattr(few, "FEW_BYTES", -1)
    taken = tmp_path / "taken.jsonl"
    program = f"import sys; open({str(taken)!r}, 'ab').write(sys.stdin.buffer.read())"
    name = f"qu_{way}"
    outside = {"to": "command", "command": [sys.executable, "-c", program], "timeout": "1 minute"}
    alerts = {
        f"{name} each": {"of": "subscription", "name": name, "quiet": "10 seconds", **outside},
        f"{name} lagging": {"of": "subscription", "name": name, "quiet": "10 seconds"},
    }
    stream = AlertStream(lake, name, {name: "a ; b PARTITION BY key"}, alerts)
    keyed = {0: [("a", "k"), ("a", None)], 1: [("b", "k")], 2: [("b", None)], 3: [("b", "k")], 11: [("b", "k")]}
    first = [E(1000 * second, event, key) for second, those in keyed.items() for event, key in those]
    later = [E(12_000, "b", "k"), E(13_000, "b", None), E(21_000, "b", "k")]
    stream.take(first)
    assert counts_of_status(stream, f"{name} each") == (None, None), "it has told nothing yet"
    assert stream.tell(f"{name} each")[0].rows_out == 3
    assert counts_of_status(stream, f"{name} each") == (1, 0)
    stream.take(later)
    assert stream.tell(f"{name} each")[0].rows_out == 2
    stream.tell(f"{name} lagging")
    for alert in alerts:
        assert sorted(told(stream, alert), key=lambda row: row[1]) == [
            ("k", 1, 0), (None, 2, 0), ("k", 11, 1), (None, 13, 0), ("k", 21, 1),
        ]  # fmt: skip
        ids = {row["alert_id"]: seconds(row["last_time"]) for row in stream.told(alert)}
        assert [(seconds(row["last_time"]), ids[row["held_by"]]) for row in held(stream, alert)] == [(3, 1), (12, 11)]
    bodies = [json.loads(line) for line in taken.read_text().splitlines()]
    assert {body["alert_id"]: body["held_back"] for body in bodies} == {
        row["alert_id"]: row["held_back"] for row in stream.told(f"{name} each")
    }
    assert len(bodies) == 5, "what is held back is not delivered"

    # What is found again is known, be it told or held back.
    stream.run("predict", rebuild=True)
    before = stream.told(f"{name} each"), held(stream, f"{name} each")
    assert stream.tell(f"{name} each")[0].rows_out == 0
    assert (stream.told(f"{name} each"), held(stream, f"{name} each")) == before
    stream.tell(f"{name} lagging", rebuild=True)
    assert len(held(stream, f"{name} lagging")) == 2, "it begins anew and counts nothing twice"
    assert sum(row["held_back"] for row in stream.told(f"{name} lagging")) == 2


def test_another_quiet_holds_from_then_on_and_without_it_the_next_alert_counts_the_rest(lake: SketchLake) -> None:
    stream = AlertStream(
        lake, "qu_change", {"qu_change": "a ; b"}, {"qu_changed": {"of": "subscription", "name": "qu_change"}}
    )
    stream.take(letters("abb"))
    stream.tell()
    stream.take(letters("bb", begin=3))
    stream.tell(quiet="3 seconds")
    assert counts_of_status(stream, "qu_changed") == (2, 2)
    stream.take(letters("bb", begin=5))
    stream.tell()
    assert counts_of_status(stream, "qu_changed") == (2, 0)
    assert [row[1:] for row in told(stream, "qu_changed")] == [(1, 0), (2, 0), (5, 2), (6, 0)]


@pytest.mark.parametrize("stop", ["append held_alerts", "append alerts", "append publications"])
def test_a_batch_that_died_is_finished_as_it_was_begun_though_quiet_is_another_by_then(
    lake: SketchLake, stop: str
) -> None:
    name = f"qu_died_{stop.split()[1]}"
    stream = AlertStream(
        lake, name, {name: "a ; b"}, {f"{name} told": {"of": "subscription", "name": name, "quiet": "2 seconds"}}
    )
    stream.take(letters("abbb"))
    with Writes(stop).watched() as writes, contextlib.suppress(KilledError):
        stream.tell()
    assert writes.stopped
    stream.take(letters("bb", begin=4))
    stream.tell(quiet="1 minute")
    # Where it had written nothing, it is begun anew, and reads what has come since.
    anew = stop == "append held_alerts"
    assert [row[1:] for row in told(stream, f"{name} told")] == ([(1, 0)] if anew else [(1, 0), (3, 1)])
    assert [seconds(row["last_time"]) for row in held(stream, f"{name} told")] == ([2, 3, 4, 5] if anew else [2, 4, 5])


def test_a_forecast_happens_at_the_watermark_of_its_batch_and_the_most_probable_goes_first(lake: SketchLake) -> None:
    """Two states of one key rise at the first batch; `a` alone rises again at the fourth, 30 seconds later."""
    alert = {"of": "forecast", "name": "qu_soon", "where": "probability >= 0.5", "quiet": "25 seconds"}
    stream = AlertStream(lake, "qu_soon", {"qu_soon": {"query": "a ; b", "lookahead": 1}}, {"qu_soon told": alert})
    for number, text in enumerate(["ab", "x", "x", "b", "b"]):
        stream.take(letters(text, begin=10 * number))
        stream.tell()
    rows = [(row["found_in"], seconds(row["watermark"]), row["held_back"]) for row in stream.told("qu_soon told")]
    assert rows == [(1, 1, 0), (4, 30, 0)]
    assert [(row["found_in"], row["last_time"]) for row in held(stream, "qu_soon told")] == []
    stream.tell(rebuild=True, quiet="1 minute")
    assert [row["found_in"] for row in stream.told("qu_soon told")] == [1]
    (row,) = held(stream, "qu_soon told")
    assert (row["found_in"], seconds(row["watermark"])) == (4, 30)


def test_groups_are_quiet_for_steps(lake: SketchLake) -> None:
    section = {"step": "CAST(x AS INT)", "probability": "CAST(y AS DOUBLE) / 10"}
    alert = {"of": "group", "name": "qu_group", "quiet": 6}
    stream = AlertStream(
        lake, "qu_group", {}, {"qu_group told": alert}, {"qu_group": {"pattern": "a, b", "within": 2}}, **section
    )
    events = [E(step * 1000, name, "k", {"x": step, "y": 10}) for step, name in enumerate("abxabxabxx", start=1)]
    for begin, end in ((0, 3), (3, 8), (8, 10)):
        stream.take(events[begin:end])
        stream.tell()
    assert [(row["t_end"], row["held_back"]) for row in stream.told("qu_group told")] == [(2, 0), (8, 1)]
    assert [row["t_end"] for row in held(stream, "qu_group told")] == [5]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_cuts_of_the_input_and_of_the_runs_tell_what_the_oracle_tells(lake: SketchLake, seed: int) -> None:
    rng = random.Random(seed)
    name, quiet = f"qu_random_{seed}", rng.choice([2, 5, 9])
    alerts = {
        f"{name} {which}": {"of": "subscription", "name": name, "quiet": f"{quiet} seconds"}
        for which in ("now", "late")
    }
    stream = AlertStream(lake, name, {name: "a ; b PARTITION BY key"}, alerts)
    events = [E(n * 1000, rng.choice("abb"), rng.choice(["k1", "k2", None])) for n in range(30)]
    cuts = sorted(rng.sample(range(1, len(events)), 3))
    for begin, end in zip([0, *cuts], [*cuts, None], strict=True):
        stream.take(events[begin:end])
        stream.tell(f"{name} now")
        if end is None or rng.random() < 0.4:
            stream.tell(f"{name} late")
    for alert in alerts:
        rows, back = stream.told(alert), held(stream, alert)
        found = sorted(
            (row["last_time"], row["alert_id"], row["key"]) for row in (*rows, *back)
        )  # fmt: skip
        expected = quieted([Found(alert_id, key, seconds(at)) for at, alert_id, key in found], quiet)
        assert (
            {row["alert_id"]: row["held_back"] for row in rows},
            {r["alert_id"]: r["held_by"] for r in back},
        ) == expected

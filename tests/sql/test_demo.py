"""The demo on three days: the blizzard of 8 and 9 February, a bad day in July, and what arrives too late."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from math import prod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import yaml
from matplotlib.image import imread
from naive import funnels, groups, kleene
from naive.flight_chains import HOUR, Departure, chains, doubled, later_and_later
from naive.flight_patterns import Flight, everything, given_up, nothing_between
from naive.group_cases import is_named
from sql.empty_database import lay

import patternlake
from patternlake.jobs.configuration.file import Configuration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "demo"
NEW_YORK = ZoneInfo("America/New_York")


def here(query):
    """A query of the demo over the database of this file."""
    return re.sub(r"\bpatternlake(_internal)?\.", rf"{DATABASE}\1.", query)


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[ModuleType, ...]]:
    sys.path.insert(0, str(ROOT / "demo"))
    import chains
    import deliver
    import funnels
    import heat
    import machines
    import patterns
    import picture
    import questions
    import sky

    yield deliver, questions, chains, picture, sky, machines, heat, patterns, funnels
    sys.path.remove(str(ROOT / "demo"))


@pytest.fixture(scope="module")
def deliveries(demo):
    return demo[0].Deliveries()


def column(deliveries, row, name):
    return row[deliveries.header.index(name)]


def on_day(deliveries, month, day):
    return [row for row in deliveries.rows(month) if column(deliveries, row, "day") == str(day)]


@pytest.fixture(scope="module")
def batches(deliveries):
    """The rows of three deliveries."""
    held = [row for row in deliveries.rows(2) if column(deliveries, row, "month") == "1"]
    return [on_day(deliveries, 2, 8), on_day(deliveries, 2, 9) + held, on_day(deliveries, 7, 7)]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory, demo, deliveries, batches):
    """A session over the three batches, and the moments at which their sketches were published."""
    folder = tmp_path_factory.mktemp("demo")
    tree = yaml.safe_load((ROOT / "conf" / "demo.yaml").read_text())
    tree["database"] = DATABASE
    tree["location"] = lay(spark, folder / "lake")
    tree["streams"]["flights"]["source"]["path"] = str(folder / "data")
    for stream in ("sky", "days"):
        tree["streams"][stream]["source"]["path"] = str(folder / "weather")
    # Two late departures instead of the demo's three: the days of the blizzard hold few such aircraft.
    strike = tree["subscriptions"]["third_strike"]
    strike["query"] = strike["query"].replace("delayed AS d2, delayed AS d3", "delayed AS d2")
    configuration = folder / "demo.yaml"
    configuration.write_text(yaml.safe_dump(tree))
    moments = []
    for number, rows in enumerate(batches):
        deliveries.write_rows(rows, folder / "data" / f"{number}.csv")
        # The job trends takes the first two batches at once, then the third, as the demo's takes months.
        for job in ("ingest", "sketch") if number == 0 else ("ingest", "sketch", "trends"):
            patternlake.run(spark, str(configuration), job=job, object="flights" if job == "ingest" else None)
        latest = spark.sql(f"SELECT CAST(max(published_at) AS STRING) AS at FROM {DATABASE}.publications").collect()
        moments.append(latest[0]["at"])
    weather = demo[4].Weather()
    for months in (range(1, 2), range(2, 4)):
        weather.write(months, folder / "weather")
        patternlake.run(spark, str(configuration), job="ingest", object="sky")
        patternlake.run(spark, str(configuration), job="groups")
    demo[6].DailyMaxima().write(range(1, 13), folder / "weather")
    patternlake.run(spark, str(configuration), job="ingest", object="days")
    for job in ("predict", "evaluate"):
        patternlake.run(spark, str(configuration), job=job)
    yield patternlake.enable(spark, DATABASE, str(folder / "lake")), moments
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")


@pytest.mark.parametrize("name", ["demo", "full_example"])
def test_the_sample_configurations_load(name):
    assert Configuration.load(ROOT / "conf" / f"{name}.yaml").streams


def test_every_flight_of_the_year_is_delivered_once(demo, deliveries):
    assert sum(len(deliveries.rows(month)) for month in demo[0].MONTHS) == 336_776


def test_only_the_late_reporter_arrives_in_another_month_than_it_was_planned_for(demo, deliveries):
    moved = [
        column(deliveries, row, "carrier")
        for month in demo[0].MONTHS
        for row in deliveries.rows(month)
        if column(deliveries, row, "month") != str(month)
    ]
    assert moved == ["OO"] * 32


def test_every_row_is_an_event_or_in_quarantine(lake, batches):
    spark, _ = lake
    events = spark.table(f"{DATABASE}.events").where("stream = 'flights'").count()
    turned_down = [(row["reason"], "N978SW" in row["row"]) for row in spark.table(f"{DATABASE}.quarantine").collect()]
    assert turned_down == [("late", True)]
    assert events + len(turned_down) == sum(map(len, batches))


def test_a_departure_at_2400_is_an_event_at_midnight_of_new_york(lake):
    spark, _ = lake
    # Planned for 19:50 on 7 July, 250 minutes late: dep_time is 2400.
    rows = spark.sql(
        f"SELECT date_format(from_utc_timestamp(time, 'America/New_York'), 'MM-dd HH:mm') AS at "
        f"FROM {DATABASE}.events WHERE stream = 'flights' "
        f"AND date_format(from_utc_timestamp(time, 'America/New_York'), 'HH:mm') = '00:00'"
    ).collect()
    assert [row["at"] for row in rows] == ["07-08 00:00"]


def test_names_follow_the_delay(lake, deliveries, batches):
    spark, _ = lake
    expected: dict[str, int] = {}
    for row in batches[0] + batches[1] + batches[2]:
        if column(deliveries, row, "carrier") == "OO":
            continue
        if column(deliveries, row, "dep_time") == "NA":
            name = "cancelled"
        elif column(deliveries, row, "air_time") == "NA":
            name = "diverted"
        else:
            delay = int(column(deliveries, row, "dep_delay"))
            name = "very_late" if delay > 60 else "late" if delay > 15 else "on_time"
        expected[name] = expected.get(name, 0) + 1
    flights = f"(SELECT * FROM {DATABASE}.events WHERE stream = 'flights')"
    found = spark.sql(f"SELECT name, count(*) AS n FROM {flights} GROUP BY name").collect()
    assert {row["name"]: row["n"] for row in found} == expected


def test_the_story_of_every_aircraft_equals_that_of_a_loop_over_its_flights(lake, demo):
    spark, _ = lake
    # Three operands instead of the demo's four: two days hold few such days.
    call = (
        "match_seq('flights', 'late ; very_late ; cancelled PARTITION BY tailnum WITHIN 1 DAY', verify => true, "
        "after_match => 'next')"
    )
    rows = spark.sql(f"SELECT * FROM {call}").collect()
    found = {(row["key"], row["first_position"], row["last_position"]) for row in rows}
    events = spark.sql(
        f"SELECT position, unix_seconds(time) AS at, key, name FROM {DATABASE}.events WHERE stream = 'flights'"
    ).collect()
    by_key: dict[str | None, list] = {}
    for event in sorted(events):
        by_key.setdefault(event["key"], []).append(event)
    expected = set()
    for key, flights in by_key.items():
        for start, flight in enumerate(flights):
            steps = [flight] if flight["name"] == "late" else []
            for later in flights[start + 1 :] if steps else ():
                if len(steps) < 3 and later["name"] == ("late", "very_late", "cancelled")[len(steps)]:
                    steps.append(later)
            if len(steps) == 3 and steps[2]["at"] - steps[0]["at"] < 86_400:
                expected.add((key, steps[0]["position"], steps[2]["position"]))
    assert found == expected
    assert expected


def test_the_blizzard_is_found_and_as_of_its_first_day_only_that_day(lake, demo):
    spark, moments = lake
    waves = demo[1].WAVES
    days = [row.asDict() for row in spark.sql(here(waves.rows())).collect()]
    assert [day["day"] for day in days] == ["8 February", "9 February"]
    earlier = spark.sql(f"SELECT * FROM {waves.call(verify=True, as_of=moments[0])}").count()
    assert earlier == days[0]["waves"]


def test_every_question_runs_on_the_sketch_and_exactly(lake, demo):
    spark, _ = lake
    for question in demo[1].QUESTIONS:
        assert not any(row["exact"] for row in spark.sql(f"SELECT * FROM {question.call(verify=False)}").collect())
        spark.sql(here(question.rows())).collect()


def test_the_question_per_row_finds_what_the_exact_one_finds(lake, demo):
    spark, _ = lake
    question = demo[1].TIRED
    aircraft = spark.sql(here(question.table)).collect()
    spark.createDataFrame(aircraft).createOrReplaceTempView("aircraft")
    said = {row["tailnum"]: row["sketch_says"] for row in spark.sql(question.sketched()).collect()}
    exact = {row["tailnum"] for row in spark.sql(question.exact()).collect()}
    assert len(said) == 10
    assert all(said[tailnum] for tailnum in said if tailnum in exact)


PATTERNS = [("GIVEN_UP", given_up), ("EVERYTHING", everything), ("NOTHING_BETWEEN", nothing_between)]


@pytest.mark.parametrize(("question", "loop"), PATTERNS, ids=[name for name, _ in PATTERNS])
def test_exact_questions_find_what_loops_over_the_flights_of_each_aircraft_find(lake, demo, question, loop):
    spark, _ = lake
    asked = getattr(demo[7], question)
    # No aircraft of these days had a flight diverted beside the other two.
    asked = replace(asked, pattern=asked.pattern.replace("diverted", "late"))
    by_key: dict[str | None, list[Flight]] = {}
    for row in spark.sql(
        "SELECT key, unix_seconds(time) AS at, position, name, CAST(attributes['dep_delay'] AS DOUBLE) AS delay "
        f"FROM {DATABASE}.events WHERE stream = 'flights' ORDER BY time, position"
    ).collect():
        by_key.setdefault(row["key"], []).append(Flight(*row[1:]))
    expected = [
        (key, sorted(flight.position for flight in chosen))
        for key, flights in by_key.items()
        for chosen in loop(flights)
    ]
    found = spark.sql(
        f"SELECT key, array_sort(flatten(map_values(bindings))) AS positions FROM match_pattern({asked.arguments})"
    ).collect()
    assert sorted((str(row["key"]), row["positions"]) for row in found) == sorted(
        (str(key), positions) for key, positions in expected
    )
    assert expected
    assert spark.sql(here(asked.rows)).count() == len(expected)


def test_days_break_where_a_loop_over_the_flights_of_each_aircraft_says(lake, demo, monkeypatch, tmp_path):
    spark, _ = lake
    # Three steps instead of the demo's four: no aircraft of these days goes through all of them.
    question = replace(demo[8].BREAKS, steps=3)
    question = replace(question, pattern=question.pattern.replace(" ; very_late ;", " ;"))
    by_key: dict[str | None, list[kleene.Event]] = {}
    for row in spark.sql(
        "SELECT key, position, unix_micros(time) AS at, name, attributes['origin'] AS origin "
        f"FROM {DATABASE}.events WHERE stream = 'flights' ORDER BY time, position"
    ).collect():
        flight = kleene.Event(row["position"], row["at"], row["name"], {"origin": row["origin"]})
        by_key.setdefault(row["key"], []).append(flight)
    steps = funnels.named("on_time", "late|very_late", "cancelled")
    day = funnels.Window(24 * HOUR * 1_000_000)
    expected = funnels.funnel(by_key, steps, within=day, by=lambda flight: flight.values["origin"])
    found = spark.sql(f"SELECT * FROM {question.call} ORDER BY group, step").collect()
    assert [(row["group"], row["step"], row["reached"], row["dropped"], row["seconds_p50"]) for row in found] == [
        (one.group, one.step, one.reached, one.dropped, one.seconds_p50) for one in expected
    ]
    assert [[tuple(each) for each in row["next_events"]] for row in found] == [
        list(one.next_events) for one in expected
    ]
    assert spark.sql(here(question.counts)).count() == len(expected) == 9
    at_the_end = [one.reached for one in expected if one.step == 3]
    assert spark.sql(here(question.aircraft)).count() == sum(at_the_end) > 0
    question.draw(spark, tmp_path / "funnel.png")
    assert imread(tmp_path / "funnel.png").std() > 0.05


CHAINS = [
    ("growing_delays", "aircraft", 16, later_and_later, 24 * HOUR),
    ("snowballs", "dest", 5, doubled, 8 * HOUR),
]


@pytest.fixture(scope="module")
def departures(deliveries, batches) -> list[Departure]:
    made = []
    for row in batches[0] + batches[1] + batches[2]:
        delay, carrier = column(deliveries, row, "dep_delay"), column(deliveries, row, "carrier")
        if delay != "NA" and carrier != "OO":
            planned = [int(column(deliveries, row, name)) for name in ("year", "month", "day", "hour", "minute")]
            at = datetime(*planned, tzinfo=NEW_YORK).timestamp() + 60 * int(delay)
            names = [column(deliveries, row, name) for name in ("tailnum", "origin", "dest")]
            made.append(Departure(at, carrier + column(deliveries, row, "flight"), int(delay), *names))
    return made


@pytest.mark.parametrize(("trend", "key", "least", "follows", "width"), CHAINS)
def test_chains_of_delays_are_those_that_loops_over_the_delivered_rows_find(
    lake, departures, trend, key, least, follows, width
):
    spark, _ = lake
    expected = chains(departures, least, follows, width)
    at = {
        row["position"]: (row["at"], row["flight"])
        for row in spark.sql(
            "SELECT position, unix_seconds(time) AS at, concat(attributes['carrier'], attributes['flight']) AS flight "
            f"FROM {DATABASE}.events WHERE stream = 'flights'"
        ).collect()
    }
    listed = spark.sql(
        f"SELECT key, unix_seconds(window_start) AS start, positions FROM cet_trends('{trend}')"
    ).collect()
    found = sorted((row["key"], row["start"], [at[position] for position in row["positions"]]) for row in listed)
    assert found == sorted(
        (getattr(chain[0], key), start, [(one.at, one.flight) for one in chain]) for start, chain in expected
    )
    assert max(len(chain) for _, chain in expected) >= 3
    counted: dict[tuple[str, int], list[int]] = {}
    for start, chain in expected:
        counted.setdefault((getattr(chain[0], key), start), []).append(len(chain))
    rows = spark.sql(f"SELECT *, unix_seconds(window_start) AS start FROM cet_count('{trend}')").collect()
    assert {(row["key"], row["start"]): (int(row["trends"]), row["longest"]) for row in rows} == {
        window: (len(lengths), max(lengths)) for window, lengths in counted.items()
    }


def test_the_scenes_of_chains_show_each_flight_in_order(lake, demo, departures):
    spark, _ = lake
    growing, snowballs = demo[2].CHAIN_QUESTIONS
    assert spark.sql(here(growing.counts)).collect()
    fours = [(start, chain) for start, chain in chains(departures, 5, doubled, 8 * HOUR) if len(chain) >= 4]
    assert spark.sql(here(snowballs.chains)).count() == len(fours)
    assert spark.sql(here(snowballs.counts)).count() == len({(start, chain[0].dest) for start, chain in fours})
    days = [chain for start, chain in chains(departures, 16, later_and_later, 24 * HOUR) if start // HOUR % 24 == 8]
    at = {one: datetime.fromtimestamp(one.at, NEW_YORK) for chain in days for one in chain}
    shown = [(row["aircraft"], row["flights"]) for row in spark.sql(here(growing.chains)).collect()]
    assert shown
    assert sorted(shown) == sorted(
        (
            chain[0].aircraft,
            " | ".join(f"{at[one]:%H:%M} {one.flight} to {one.dest} {one.delay:+} min" for one in chain),
        )
        for chain in days
        if len(chain) >= 3 and at[chain[0]].month == 7
    )


def test_the_picture_shows_a_graph_whose_edges_carry_every_step_of_its_trends(lake, demo, monkeypatch, tmp_path):
    spark, _ = lake
    picture = demo[3]
    for name in ("WINDOW", "VERTICES", "RANGES", "EDGES", "TRENDS"):
        monkeypatch.setattr(picture, name, here(getattr(picture, name)))
    graph = picture.Graph.read(spark)
    into = {edge["position"]: edge["first"] for edge in graph.edges if edge["kind"] == "from"}
    out_of = {edge["position"]: (edge["first"], edge["last"]) for edge in graph.edges if edge["kind"] == "to"}
    assert set(into) == set(out_of) == set(graph.vertices)
    for earlier, later in (pair for trend in graph.trends for pair in pairwise(trend)):
        first, last = out_of[earlier]
        assert first <= into[later] <= last
    picture.draw(spark, tmp_path / "picture.png")
    pixels = imread(tmp_path / "picture.png")
    assert pixels.shape[1] > 1000
    assert pixels.std() > 0.05


def test_fronts_are_those_of_the_definition(lake, demo):
    spark, _ = lake
    sky = demo[4]
    steps: dict[int, list[groups.Row]] = {}
    for row in spark.sql(f"SELECT step, name, probability FROM {DATABASE}.events WHERE stream = 'sky'").collect():
        steps.setdefault(row["step"], []).append(groups.Row(row["name"], row["probability"]))
    assert all(sum(row.probability for row in rows) < 1 + 1e-6 for rows in steps.values())
    query = groups.Query(
        "(c|b)w+r",
        {name[0]: is_named(name) for name in ("calm", "breeze", "wind", "rain")},
        "(calm | breeze), wind+, rain",
        12,
        threshold=0.05,
    )
    rows = spark.sql(f"SELECT t_start, t_end, probability FROM {sky.CALL}").collect()
    # The oracle goes through all worlds.
    found = {(row["t_start"], row["t_end"]): row["probability"] for row in rows if row["t_end"] - row["t_start"] < 9}
    assert len(found) >= 3
    for (first, last), probability in found.items():
        nearby = {step: rows for step, rows in steps.items() if first <= step <= last}
        (expected,) = groups.groups(query, nearby)
        assert (expected.t_start, expected.t_end) == (first, last)
        assert probability == pytest.approx(expected.probability)


def test_the_scene_of_fronts_tells_of_the_flights_that_left_then(lake, demo, tmp_path):
    import front_picture

    spark, _ = lake
    shown = spark.sql(here(demo[4].FRONTS.rows)).collect()
    assert len(shown) == spark.sql(f"SELECT * FROM {demo[4].CALL}").count()
    assert [row["probability"] for row in shown] == sorted((row["probability"] for row in shown), reverse=True)
    front_picture.SKY = here(front_picture.SKY)
    front_picture.draw_front(spark, tmp_path / "front.png")
    assert imread(tmp_path / "front.png").std() > 0.05


@pytest.fixture
def airports(lake, demo, monkeypatch):
    """The days of the year's airports."""
    monkeypatch.setattr(demo[6], "DAYS", here(demo[6].DAYS))
    return demo[6].airports_of(lake[0])


def test_strikes_are_those_of_a_loop_over_the_flights_of_each_aircraft(lake):
    spark, _ = lake
    watermark = spark.sql(
        f"SELECT unix_seconds(max(watermark)) AS at FROM {DATABASE}.publications WHERE object = 'flights'"
    ).collect()[0]["at"]
    by_key: dict[str | None, list] = {}
    for event in spark.sql(
        "SELECT unix_seconds(time) AS at, position, key, name "
        f"FROM {DATABASE}.events WHERE stream = 'flights' ORDER BY time, position"
    ).collect():
        if event["at"] <= watermark:
            by_key.setdefault(event["key"], []).append(event)
    expected = {
        (key, last["position"])
        for key, flights in by_key.items()
        for number, last in enumerate(flights)
        if last["name"] == "cancelled"
        and any(
            all(flight["name"] in ("late", "very_late") for flight in flights[first : first + 2])
            and last["at"] - flights[first]["at"] < 24 * HOUR
            for first in range(number - 1)
        )
    }
    rows = spark.sql("SELECT key, last_position FROM match_subscription('third_strike')").collect()
    assert {(row["key"], row["last_position"]) for row in rows} == expected
    assert expected


def test_heat_waves_are_five_hot_days_in_a_row(lake, airports):
    spark, _ = lake
    expected = {
        (airport.name, day)
        for airport in airports
        for number, day in enumerate(airport.days)
        if number >= 4 and airport.hot[number - 4 : number + 1].all()
    }
    rows = spark.sql(
        "SELECT key, CAST(from_utc_timestamp(last_time, 'America/New_York') AS DATE) AS day "
        "FROM match_subscription('heat_wave')"
    ).collect()
    assert {(row["key"], row["day"]) for row in rows} == expected
    assert len(rows) == 19
    assert [len(airport.days) for airport in airports] == [364] * 3


def test_three_questions_have_the_same_answers_by_match_recognize(lake, demo):
    import both_ways

    spark, _ = lake
    counts = []
    for question in both_ways.BOTH_WAYS:
        ours, theirs = (
            sorted(tuple(map(str, row)) for row in spark.sql(here(query)).collect())
            for query in (question.of_stream, question.of_rows)
        )
        assert theirs == ours, question.title
        counts.append(len(ours))
    # The days of the tests have few aircraft that were late three times; the heat waves are those of the year.
    assert counts[1] > 0
    assert counts[2] == 19


def test_the_model_with_all_histories_is_judged_by_the_forecasts_that_evaluate_judges(
    lake, demo, airports, monkeypatch
):
    spark, _ = lake
    machines, heat = demo[5:7]
    monkeypatch.setattr(machines, "VERDICTS", here(machines.VERDICTS))
    asked = yaml.safe_load((ROOT / "conf" / "demo.yaml").read_text())["evaluate"]
    first, end = asked["train"]
    shares = []
    for length in range(1, 5):
        next_days = [
            airport.hot[number + 1]
            for airport in airports
            for number in range(length - 1, len(airport.days) - 1)
            if first <= airport.days[number - length + 1]
            and airport.days[number + 1] < end
            and airport.hot[number - length + 1 : number + 1].all()
        ]
        shares.append(sum(next_days) / len(next_days))

    class OnlyTheRow(heat.FullHistory):
        def probability(self, history, missing):
            return prod(shares[4 - missing :])

    model = OnlyTheRow(airports, asked["train"])
    expected = list(model.judged(asked["test"], asked["lookaheads"], asked["thresholds"]))
    found = machines.WAVE.judged(spark)
    assert [(one.lookahead, one.threshold, one.forecasts, one.hits) for one in found] == [
        (one.lookahead, one.threshold, one.forecasts, one.hits) for one in expected
    ]
    assert [one.recall for one in found] == pytest.approx([one.recall for one in expected])
    assert any(one.hits for one in found)


def test_a_history_forecasts_what_followed_it(demo):
    heat = demo[6]
    days = [date(2013, 6, 1) + timedelta(days=number) for number in range(12)]
    airport = heat.Airport("EWR", days, np.array([0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0]))
    model = heat.FullHistory([airport], (days[0], days[-1] + timedelta(days=1)))
    # After 01111 a hot day came; after 11110, too, and after 10111 one more.
    assert model.after[0b01111] == 0.5
    assert model.after[0b11110] == model.after[0b10111] == 1.0
    assert model.seen.sum() == 7
    assert model.probability(0b10111, 2) == 0.5
    assert model.probability(0b00000, 1) == 0.0


def test_the_scenes_of_machines_tell_what_happened_and_what_was_likely(lake, demo, monkeypatch, tmp_path):
    import forecast_picture

    spark, _ = lake
    machines = demo[5]
    for name in ("HAPPENED", "LIKELY", "VERDICTS"):
        monkeypatch.setattr(machines, name, here(getattr(machines, name)))
    (now,) = spark.sql(f"SELECT CAST(max(published_at) AS STRING) AS at FROM {DATABASE}.publications").collect()
    for question in machines.MACHINE_QUESTIONS:
        matches = spark.sql(f"SELECT * FROM match_subscription('{question.subscription}')").count()
        assert spark.sql(question.happened).count() == matches
        likely = [row["probability"] for row in spark.sql(question.likely(now["at"])).collect()]
        assert likely == sorted(likely, reverse=True)
    forecast_picture.draw_forecasts(spark, machines.MACHINE_QUESTIONS, {}, tmp_path / "forecasts.png")
    assert imread(tmp_path / "forecasts.png").std() > 0.05

"""`make demo`: a year of real flights and weather, delivered in two halves, and fifteen questions about order.

`make tour` takes its time: twelve deliveries, maintenance, and each question asked a second time, for its seconds when
warm.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from both_ways import BOTH_WAYS, BothWays
from chains import CHAIN_QUESTIONS, ChainQuestion
from deliver import LATE_REPORTER, MONTHS, Deliveries
from forecast_picture import draw_forecasts
from front_picture import draw_front
from funnels import BREAKS, FunnelQuestion
from heat import DailyMaxima, FullHistory, airports_of
from machines import MACHINE_QUESTIONS, WAVE, MachineQuestion, Verdict
from patterns import NOTHING_BETWEEN, PATTERN_QUESTIONS, PatternQuestion
from picture import draw
from questions import QUESTIONS, TIRED, Question, RowQuestion
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sky import FRONTS, FrontQuestion, Weather

import patternlake
from patternlake.jobs.command_line.local_spark import spark_output
from patternlake.jobs.progress.lines import write_summary
from patternlake.jobs.progress.reporting import ShownProgress

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from patternlake.jobs.batches.summary import Summary

HERE = Path(__file__).resolve().parent
CONFIGURATION = HERE.parent / "conf" / "demo.yaml"
DATA, WEATHER, LAKE, OUTPUT = HERE / "data", HERE / "weather", HERE / "lake", HERE / "output"

AS_OF_MONTH = 6
LATER = ("trends", "groups", "predict")
"""The jobs that run after June's file and after December's, each time on what came since they last ran."""


@dataclass(frozen=True)
class Route:
    """How much of the way is shown.

    Attributes
    ----------
    deliveries
        Months whose files arrive together.
    june
        The jobs of `LATER` that run after June's file; all do after December's.
    leisurely
        Whether maintenance runs, and each question is asked a second time for its seconds.
    """

    deliveries: tuple[range, ...]
    june: tuple[str, ...]
    leisurely: bool


DEMO = Route((range(1, 7), range(7, 13)), june=("predict",), leisurely=False)
TOUR = Route(tuple(range(month, month + 1) for month in MONTHS), june=LATER, leisurely=True)

SHOWN_ROWS = 10

console = Console(highlight=False)


def started() -> SparkSession:
    """A session over the lake, while the screen shows that there is work."""
    if not console.is_terminal:
        console.print("Starting Spark …")
    # What Spark says while it starts is held back, with all that goes to standard output.
    with (
        open(os.dup(1), "w", encoding="utf-8") as screen,
        Console(file=screen).status("starting Spark …"),
        spark_output(verbose=False),
    ):
        return patternlake.session(location=str(LAKE), settings={"spark.sql.warehouse.dir": str(LAKE / "warehouse")})


def main(route: Route) -> None:
    """Run the demo from an empty lake."""
    begun = time.monotonic()
    for folder in (DATA, WEATHER, LAKE, OUTPUT):
        shutil.rmtree(folder, ignore_errors=True)
    OUTPUT.mkdir()
    spark = started()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        as_of = deliver_and_run(spark, route, Deliveries(), Weather(), DailyMaxima(), begun)
        show_state(spark)
        for number, question in enumerate(QUESTIONS, start=1):
            answer(spark, route, number, question, as_of)
        answer_per_row(spark, route, len(QUESTIONS) + 1, TIRED)
        for number, chains in enumerate(CHAIN_QUESTIONS, start=len(QUESTIONS) + 2):
            answer_chains(spark, route, number, chains)
        with console.status("drawing …"):
            draw(spark, OUTPUT / "delays_that_double.png")
        console.print("One window of this question as a picture: demo/output/delays_that_double.png")
        if route.leisurely:
            # What the planner knows of the values of attributes, maintain tells it.
            work(spark, "maintain")
        for number, pattern in enumerate(PATTERN_QUESTIONS, start=len(QUESTIONS) + len(CHAIN_QUESTIONS) + 2):
            answer_pattern(spark, route, number, pattern)
        last = len(QUESTIONS) + len(CHAIN_QUESTIONS) + len(PATTERN_QUESTIONS) + 2
        answer_fronts(spark, route, last, FRONTS)
        with console.status("drawing …"):
            draw_front(spark, OUTPUT / "a_front.png")
        console.print("The most probable one as a picture: demo/output/a_front.png")
        answer_machines(spark, route, last + 1, MACHINE_QUESTIONS, as_of)
        answer_funnel(spark, route, last + 1 + len(MACHINE_QUESTIONS), BREAKS)
        answer_both_ways(spark, route, BOTH_WAYS)
    finally:
        spark.stop()
    console.print(f"\nDone in {time.monotonic() - begun:.0f} s. All rows: demo/output; the lake: demo/lake.")


def deliver_and_run(
    spark: SparkSession, route: Route, deliveries: Deliveries, weather: Weather, days: DailyMaxima, begun: float
) -> str:
    """Deliver the files and run the jobs on them; the moment at which June's file was published."""
    console.rule(f"Twelve files arrive, {'one a month' if route.leisurely else 'half a year at a time'}")
    as_of = ""
    for months in route.deliveries:
        for month in months:
            deliveries.write(month, DATA)
        work(spark, "ingest", "flights")
        if not as_of and not route.leisurely:
            answer_early(spark, NOTHING_BETWEEN, begun)
        work(spark, "sketch", "flights")
        if months[-1] in (AS_OF_MONTH, MONTHS[-1]):
            half = range(months[-1] - 5, months[-1] + 1)
            for reports in (weather, days):
                reports.write(half, WEATHER)
            for stream in ("sky", "days"):
                work(spark, "ingest", stream)
            for job in route.june if AS_OF_MONTH in months else LATER:
                work(spark, job)
        if months[-1] == AS_OF_MONTH:
            latest = "SELECT CAST(max(published_at) AS STRING) AS at FROM patternlake.publications"
            as_of = asked(spark, latest)[0]["at"]
    return as_of


def work(spark: SparkSession, job: str, stream: str | None = None) -> list[Summary]:
    """Run a job; what it is at moves on a terminal, and a line is left of each object."""
    with ShownProgress(console, spark) as progress:
        summaries = patternlake.run(spark, str(CONFIGURATION), job=job, object=stream, progress=progress)
    if not console.is_terminal:
        for summary in summaries:
            console.print(write_summary(summary), markup=False, soft_wrap=True)
    return summaries


def answer_early(spark: SparkSession, question: PatternQuestion, begun: float) -> None:
    """Ask of the events alone as soon as there are some; the year's answer comes later."""
    console.print(f"A first question, {time.monotonic() - begun:.0f} s after the start: {question.asked}")
    print_rows("From January to June", asked(spark, question.rows))
    console.print(f"Answered {time.monotonic() - begun:.0f} s after the start, from the events alone.")


def show_state(spark: SparkSession) -> None:
    """Show what the twelve runs left: events, their sketch, and the rows that were turned down."""
    console.rule("What is in the lake now")
    events = asked(
        spark,
        "SELECT stream, name, count(*) AS events FROM patternlake.events GROUP BY ALL ORDER BY stream, events DESC",
    )
    print_rows("Events by name", events)
    turned_down = asked(
        spark,
        "SELECT reason, get_json_object(`row`, '$.carrier') AS carrier, count(*) AS rows, any_value(detail) AS such_as "
        "FROM patternlake.quarantine GROUP BY reason, carrier ORDER BY rows DESC",
    )
    print_rows("Quarantine", turned_down)
    console.print(
        f"The reports of {LATE_REPORTER} (SkyWest) were held back for a month; those older than the day that the "
        "stream allows were turned down, with their row and the reason. Nothing else was, and nothing was lost."
    )


def answer(spark: SparkSession, route: Route, number: int, question: Question, as_of: str) -> None:
    """Ask a question of the sketch alone, exactly, and perhaps of an earlier state; print what came."""
    headline(number, question.title, question.asked)
    console.print(f"  PATTERN {question.pattern}" + (f"   (key {question.key})" if question.key else ""), markup=False)
    sketched, sketch_seconds = timed(spark, route, f"SELECT * FROM {question.call(verify=False)}")
    exact, exact_seconds = timed(spark, route, f"SELECT * FROM {question.call(verify=True)}")
    table = tally("matches", "of the exact ones")
    table.add_row("the sketch alone", f"{len(sketched)}", f"{covered(exact, sketched)}", f"{sketch_seconds:.2f} s")
    table.add_row("exact", f"{len(exact)}", f"{len(exact)}", f"{exact_seconds:.2f} s")
    if question.as_of:
        earlier, seconds = timed(spark, route, f"SELECT * FROM {question.call(verify=True, as_of=as_of)}")
        table.add_row("exact, as of June's file", f"{len(earlier)}", "", f"{seconds:.2f} s")
    console.print(table)
    print_rows("The exact answer", asked(spark, question.rows()), number)
    console.print(question.means.format(exact=len(exact)))


def answer_per_row(spark: SparkSession, route: Route, number: int, question: RowQuestion) -> None:
    """Ask a question for each row of a table."""
    headline(number, question.title, question.asked)
    aircraft = asked(spark, question.table)
    spark.createDataFrame(aircraft).createOrReplaceTempView("aircraft")
    console.print(f"  {question.sketched()}", markup=False)
    sketched, sketch_seconds = timed(spark, route, question.sketched())
    exact, exact_seconds = timed(spark, route, question.exact())
    matches = {row["tailnum"]: row["matches"] for row in exact}
    rows = [{**row.asDict(), "exact_matches": matches.get(row["tailnum"], 0)} for row in sketched]
    rows.sort(key=lambda row: (-row["very_late"], row["tailnum"]))
    print_rows("The sketch's answer, beside the exact number of matches", rows, number)
    table = tally("answers")
    table.add_row("match_exists, per row", f"{len(rows)}", f"{sketch_seconds:.2f} s")
    table.add_row("match_seq for every aircraft, exact", f"{sum(matches.values())}", f"{exact_seconds:.2f} s")
    console.print(table)
    console.print(question.means.format(yes=sum(row["exact_matches"] > 0 for row in rows), rows=len(rows)))


def answer_chains(spark: SparkSession, route: Route, number: int, question: ChainQuestion) -> None:
    """Ask how many chains of delays there are, and for the longest of them."""
    headline(number, question.title, question.asked)
    query = yaml.safe_load(CONFIGURATION.read_text())["trends"][question.trend]
    console.print(f"  {' '.join(query['query'].split())}", markup=False)
    if "params" in query:
        console.print("  with " + ", ".join(f"{name} = {value}" for name, value in query["params"].items()))
    counts, count_seconds = timed(spark, route, question.counts)
    chains, chain_seconds = timed(spark, route, question.chains)
    table = tally("rows")
    table.add_row("cet_count, the year", f"{len(counts)}", f"{count_seconds:.2f} s")
    table.add_row("cet_trends, the chains below", f"{len(chains)}", f"{chain_seconds:.2f} s")
    console.print(table)
    print_rows(question.counted, counts)
    print_rows(question.listed, chains, number)
    console.print(question.means.format(listed=len(chains)))


def answer_pattern(spark: SparkSession, route: Route, number: int, question: PatternQuestion) -> None:
    """Ask an exact question of the events, and for the plan."""
    headline(number, question.title, question.asked)
    console.print(f"  PATTERN {question.pattern}", markup=False)
    rows, seconds = timed(spark, route, question.rows)
    table = tally("matches")
    table.add_row("match_pattern", f"{len(rows)}", f"{seconds:.2f} s")
    console.print(table)
    print_rows("The matches", rows, number)
    print_rows("Its plan", asked(spark, question.plan))
    console.print(question.means.format(matches=len(rows)))


def answer_fronts(spark: SparkSession, route: Route, number: int, question: FrontQuestion) -> None:
    """Ask where something may have happened, and how probably."""
    headline(number, question.title, question.asked)
    console.print(f"  {question.call}", markup=False)
    groups, seconds = timed(spark, route, f"SELECT * FROM {question.call}")
    table = tally("groups")
    table.add_row("match_groups, kept by the job", f"{len(groups)}", f"{seconds:.2f} s")
    console.print(table)
    print_rows("The groups, the most probable first", asked(spark, question.rows), number)
    console.print(question.means.format(groups=len(groups)))


def answer_machines(
    spark: SparkSession, route: Route, number: int, questions: Sequence[MachineQuestion], as_of: str
) -> None:
    """Ask what has happened, what was likely next and whether it came, and how good forecasts are; draw that."""
    summaries = work(spark, "evaluate")
    full = full_history(spark)
    for place, question in enumerate(questions, start=number):
        headline(place, question.title, question.asked)
        query = yaml.safe_load(CONFIGURATION.read_text())["subscriptions"][question.subscription]
        console.print(f"  {' '.join(query['query'].split())}", markup=False)
        matches, match_seconds = timed(spark, route, f"SELECT * FROM match_subscription('{question.subscription}')")
        live, live_seconds = timed(spark, route, f"SELECT * FROM predict_match('{question.subscription}')")
        table = tally("rows")
        table.add_row("match_subscription, the year", f"{len(matches)}", f"{match_seconds:.2f} s")
        table.add_row("predict_match, now", f"{len(live)}", f"{live_seconds:.2f} s")
        console.print(table)
        print_rows("What has happened", asked(spark, question.happened), place)
        likely = asked(spark, question.likely(as_of))
        print_rows(f"What was likely within {query['lookahead']} steps, as of June's file, and whether it came", likely)
        print_verdicts("Forecasts of July to December", question.judged(spark))
        if question is WAVE:
            print_verdicts("The same, by how often a hot day followed each history of five days", full)
        console.print(question.means.format(matches=len(matches), keys=len({row["key"] for row in matches})))
    draw_forecasts(spark, questions, {WAVE.subscription: full}, OUTPUT / "forecasts.png")
    seconds = sum(summary.seconds for summary in summaries)
    console.print(f"How good forecasts are as a picture: demo/output/forecasts.png (evaluate took {seconds:.1f} s)")


def answer_funnel(spark: SparkSession, route: Route, number: int, question: FunnelQuestion) -> None:
    """Ask how many get how far, by airport, and which aircraft got to the last step; draw one airport's funnel."""
    headline(number, question.title, question.asked)
    console.print(f"  PATTERN {question.pattern}", markup=False)
    counts, count_seconds = timed(spark, route, question.counts)
    aircraft, row_seconds = timed(spark, route, question.aircraft)
    table = tally("rows")
    table.add_row("match_funnel, by airport", f"{len(counts)}", f"{count_seconds:.2f} s")
    table.add_row("match_funnel_rows, those at the last step", f"{len(aircraft)}", f"{row_seconds:.2f} s")
    console.print(table)
    print_rows("How many aircraft get how far, and what the others did next", counts, most=len(counts))
    print_rows("Whose day broke at the last step", aircraft, number)
    with console.status("drawing …"):
        question.draw(spark, OUTPUT / "a_day_breaks.png")
    console.print(question.means.format(aircraft=len(aircraft)))
    console.print(f"The funnel of {question.drawn} as a picture: demo/output/a_day_breaks.png")


def answer_both_ways(spark: SparkSession, route: Route, questions: Sequence[BothWays]) -> None:
    """Ask questions a second time, by MATCH_RECOGNIZE, and print whether the matches are the same."""
    console.rule("The same by MATCH_RECOGNIZE")
    console.print(
        "Three of these questions once more, as the SQL standard asks them of any table: of the view of events."
    )
    for question in questions:
        console.print(f"\n{question.title}{question.of_rows}", markup=False)
        ours, our_seconds = timed(spark, route, question.of_stream)
        theirs, their_seconds = timed(spark, route, question.of_rows)
        table = tally("matches", "the same ones")
        table.add_row(question.function, f"{len(ours)}", "", f"{our_seconds:.2f} s")
        same = "yes" if sorted(map(str, ours)) == sorted(map(str, theirs)) else "no"
        table.add_row("MATCH_RECOGNIZE", f"{len(theirs)}", same, f"{their_seconds:.2f} s")
        console.print(table)


def full_history(spark: SparkSession) -> list[Verdict]:
    """What the model with all histories of five days makes of the forecasts that `evaluate` has judged."""
    asked = yaml.safe_load(CONFIGURATION.read_text())["evaluate"]
    model = FullHistory(airports_of(spark), asked["train"])
    return list(model.judged(asked["test"], asked["lookaheads"], asked["thresholds"]))


def timed(spark: SparkSession, route: Route, query: str) -> tuple[list[Row], float]:
    """The rows of a query, and the seconds that it took; where there is leisure, when asked a second time."""
    if route.leisurely:
        asked(spark, query)
    begun = time.monotonic()
    rows = asked(spark, query)
    return rows, time.monotonic() - begun


def asked(spark: SparkSession, query: str) -> list[Row]:
    """The rows of a query; something moves on a terminal until they are there."""
    with console.status("asking …"):
        return spark.sql(query).collect()


def covered(exact: Sequence[Row], sketched: Sequence[Row]) -> int:
    """How many exact matches lie inside a match of the sketch, of the same key."""
    spans: dict[str | None, list[tuple[int, int]]] = {}
    for row in sketched:
        spans.setdefault(row["key"], []).append(
            (row["steps"][0]["from_position"], max(step["to_position"] for step in row["steps"]))
        )
    return sum(
        any(first <= row["first_position"] and row["last_position"] <= last for first, last in spans[row["key"]])
        for row in exact
        if row["key"] in spans
    )


def headline(number: int, title: str, asked: str) -> None:
    """Begin a question."""
    console.print()
    console.rule(f"{number}. {title}")
    console.print(asked)


def tally(*counted: str) -> Table:
    """An empty table of ways to ask, what each found, and the time."""
    table = Table(box=None, pad_edge=True)
    table.add_column("asked")
    for name in counted:
        table.add_column(name, justify="right")
    table.add_column("time", justify="right")
    return table


def print_verdicts(title: str, verdicts: Sequence[Verdict]) -> None:
    """Print precision and recall by threshold and lookahead, and how many forecasts there were."""
    lookaheads = sorted({verdict.lookahead for verdict in verdicts})
    table = Table(title=f"{title}: precision / recall (forecasts)", title_justify="left")
    table.add_column("above", justify="right")
    for lookahead in lookaheads:
        table.add_column(f"within {lookahead}", justify="right")
    for threshold in sorted({verdict.threshold for verdict in verdicts}):
        row = {verdict.lookahead: verdict for verdict in verdicts if verdict.threshold == threshold}
        if any(verdict.forecasts for verdict in row.values()):
            table.add_row(f"{threshold:g}", *(str(row[lookahead]) for lookahead in lookaheads))
    console.print(table)


def print_rows(
    title: str, rows: Sequence[Row] | Sequence[dict[str, Any]], number: int | None = None, *, most: int = SHOWN_ROWS
) -> None:
    """Print the first rows with their total; all of a question's rows go to a file, too."""
    records = [row if isinstance(row, dict) else row.asDict() for row in rows]
    columns = list(records[0]) if records else []
    table = Table(title=f"{title}: {len(records)} rows", title_justify="left")
    for column in columns:
        number_column = isinstance(records[0][column], int) and not isinstance(records[0][column], bool)
        table.add_column(column, justify="right" if number_column else "left", overflow="fold")
    for record in records[:most]:
        # As it is: b[i-1].x in a plan is no markup.
        table.add_row(*[Text(f"{value:,}" if type(value) is int else str(value)) for value in record.values()])
    console.print(table)
    if number is not None:
        with (OUTPUT / f"question_{number}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(record.values() for record in records)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tour", action="store_true", help="twelve deliveries, warm seconds, maintenance")
    main(TOUR if parser.parse_args().tour else DEMO)

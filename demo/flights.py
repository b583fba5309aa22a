"""`make demo`: a year of real flights and weather, delivered month by month, and fourteen questions about order."""

from __future__ import annotations

import csv
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from chains import CHAIN_QUESTIONS, ChainQuestion
from deliver import LATE_REPORTER, MONTHS, Deliveries
from forecast_picture import draw_forecasts
from front_picture import draw_front
from heat import DailyMaxima, FullHistory, airports_of
from machines import MACHINE_QUESTIONS, WAVE, MachineQuestion, Verdict
from patterns import PATTERN_QUESTIONS, PatternQuestion
from picture import draw
from questions import QUESTIONS, TIRED, Question, RowQuestion
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sky import FRONTS, FrontQuestion, Weather

import patternlake
from patternlake.jobs.command_line.local_spark import spark_output

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

HERE = Path(__file__).resolve().parent
CONFIGURATION = HERE.parent / "conf" / "demo.yaml"
DATA, WEATHER, LAKE, OUTPUT = HERE / "data", HERE / "weather", HERE / "lake", HERE / "output"

AS_OF_MONTH = 6
LATER_MONTHS = (6, 12)
"""After these months' files the jobs of `LATER` run, each time on what came since they last ran."""
LATER = ("trends", "groups", "predict")

SHOWN_ROWS = 10

console = Console(highlight=False)


def main() -> None:
    """Run the demo from an empty lake."""
    begun = time.monotonic()
    for folder in (DATA, WEATHER, LAKE, OUTPUT):
        shutil.rmtree(folder, ignore_errors=True)
    OUTPUT.mkdir()
    console.print("Starting Spark …")
    with spark_output(verbose=False):
        spark = patternlake.session(location=str(LAKE), settings={"spark.sql.warehouse.dir": str(LAKE / "warehouse")})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        as_of = deliver_and_run(spark, Deliveries(), Weather(), DailyMaxima())
        show_state(spark)
        for number, question in enumerate(QUESTIONS, start=1):
            answer(spark, number, question, as_of)
        answer_per_row(spark, len(QUESTIONS) + 1, TIRED)
        for number, chains in enumerate(CHAIN_QUESTIONS, start=len(QUESTIONS) + 2):
            answer_chains(spark, number, chains)
        draw(spark, OUTPUT / "delays_that_double.png")
        console.print("One window of this question as a picture: demo/output/delays_that_double.png")
        # What the planner knows of the values of attributes, maintain tells it.
        patternlake.run(spark, str(CONFIGURATION), job="maintain")
        for number, pattern in enumerate(PATTERN_QUESTIONS, start=len(QUESTIONS) + len(CHAIN_QUESTIONS) + 2):
            answer_pattern(spark, number, pattern)
        last = len(QUESTIONS) + len(CHAIN_QUESTIONS) + len(PATTERN_QUESTIONS) + 2
        answer_fronts(spark, last, FRONTS)
        draw_front(spark, OUTPUT / "a_front.png")
        console.print("The most probable one as a picture: demo/output/a_front.png")
        answer_machines(spark, last + 1, MACHINE_QUESTIONS, as_of)
    finally:
        spark.stop()
    console.print(f"\nDone in {time.monotonic() - begun:.0f} s. All rows: demo/output; the lake: demo/lake.")


def deliver_and_run(spark: SparkSession, deliveries: Deliveries, weather: Weather, days: DailyMaxima) -> str:
    """Deliver each month and run the jobs on it; the moment at which June's file was published."""
    console.rule("Twelve files arrive, one a month")
    titles = ("ingest", "sketch", *LATER)
    console.print(month_line("month", "rows in", "events", "quarantined", *titles))
    as_of, delivered = "", 0
    for month in MONTHS:
        deliveries.write(month, DATA)
        ingest, sketch = (
            patternlake.run(spark, str(CONFIGURATION), job=job, object="flights")[0] for job in ("ingest", "sketch")
        )
        counts = [f"{count:,}" for count in (ingest.rows_in, ingest.rows_out, ingest.rows_quarantined)]
        seconds = [ingest.seconds, sketch.seconds]
        if month in LATER_MONTHS:
            for reports in (weather, days):
                reports.write(range(delivered + 1, month + 1), WEATHER)
            delivered = month
            for stream in ("sky", "days"):
                patternlake.run(spark, str(CONFIGURATION), job="ingest", object=stream)
            for job in LATER:
                summaries = patternlake.run(spark, str(CONFIGURATION), job=job)
                seconds.append(sum(summary.seconds for summary in summaries))
        console.print(month_line(f"2013-{month:02}", *counts, *(f"{each:.1f} s" for each in seconds)))
        if month == AS_OF_MONTH:
            latest = "SELECT CAST(max(published_at) AS STRING) AS at FROM patternlake.publications"
            as_of = spark.sql(latest).collect()[0]["at"]
    return as_of


def month_line(month: str, rows: str, events: str, quarantined: str, *jobs: str) -> str:
    """A line of the table of months; a terminal of 80 columns holds it."""
    return f"{month:8}{rows:>8}{events:>8}{quarantined:>12}" + "".join(f"{job:>8}" for job in jobs)


def show_state(spark: SparkSession) -> None:
    """Show what the twelve runs left: events, their sketch, and the rows that were turned down."""
    console.rule("What is in the lake now")
    events = spark.sql(
        "SELECT stream, name, count(*) AS events FROM patternlake.events GROUP BY ALL ORDER BY stream, events DESC"
    )
    print_rows("Events by name", events.collect())
    turned_down = spark.sql(
        "SELECT reason, get_json_object(`row`, '$.carrier') AS carrier, count(*) AS rows, any_value(detail) AS such_as "
        "FROM patternlake.quarantine GROUP BY reason, carrier ORDER BY rows DESC"
    )
    print_rows("Quarantine", turned_down.collect())
    console.print(
        f"The reports of {LATE_REPORTER} (SkyWest) were held back for a month; those older than the day that the "
        "stream allows were turned down, with their row and the reason. Nothing else was, and nothing was lost."
    )


def answer(spark: SparkSession, number: int, question: Question, as_of: str) -> None:
    """Ask a question of the sketch alone, exactly, and perhaps of an earlier state; print what came."""
    headline(number, question.title, question.asked)
    console.print(f"  PATTERN {question.pattern}" + (f"   (key {question.key})" if question.key else ""), markup=False)
    # Questions of few events would be answered exactly without being asked to.
    spark.conf.set("spark.patternlake.exactWhenFew", "false")
    sketched, sketch_seconds = timed(spark, f"SELECT * FROM {question.call(verify=False)}")
    spark.conf.unset("spark.patternlake.exactWhenFew")
    exact, exact_seconds = timed(spark, f"SELECT * FROM {question.call(verify=True)}")
    table = tally("matches", "of the exact ones")
    table.add_row("the sketch alone", f"{len(sketched)}", f"{covered(exact, sketched)}", f"{sketch_seconds:.2f} s")
    table.add_row("exact (verify => true)", f"{len(exact)}", f"{len(exact)}", f"{exact_seconds:.2f} s")
    if question.as_of:
        earlier, seconds = timed(spark, f"SELECT * FROM {question.call(verify=True, as_of=as_of)}")
        table.add_row("exact, as of June's file", f"{len(earlier)}", "", f"{seconds:.2f} s")
    console.print(table)
    print_rows("The exact answer", spark.sql(question.rows()).collect(), number)
    console.print(question.means.format(exact=len(exact)))


def answer_per_row(spark: SparkSession, number: int, question: RowQuestion) -> None:
    """Ask a question for each row of a table."""
    headline(number, question.title, question.asked)
    aircraft = spark.sql(question.table).collect()
    spark.createDataFrame(aircraft).createOrReplaceTempView("aircraft")
    console.print(f"  {question.sketched()}", markup=False)
    sketched, sketch_seconds = timed(spark, question.sketched())
    exact, exact_seconds = timed(spark, question.exact())
    matches = {row["tailnum"]: row["matches"] for row in exact}
    rows = [{**row.asDict(), "exact_matches": matches.get(row["tailnum"], 0)} for row in sketched]
    rows.sort(key=lambda row: (-row["very_late"], row["tailnum"]))
    print_rows("The sketch's answer, beside the exact number of matches", rows, number)
    table = tally("answers")
    table.add_row("match_exists, per row", f"{len(rows)}", f"{sketch_seconds:.2f} s")
    table.add_row("match_seq for every aircraft, exact", f"{sum(matches.values())}", f"{exact_seconds:.2f} s")
    console.print(table)
    console.print(question.means.format(yes=sum(row["exact_matches"] > 0 for row in rows), rows=len(rows)))


def answer_chains(spark: SparkSession, number: int, question: ChainQuestion) -> None:
    """Ask how many chains of delays there are, and for the longest of them."""
    headline(number, question.title, question.asked)
    query = yaml.safe_load(CONFIGURATION.read_text())["trends"][question.trend]
    console.print(f"  {' '.join(query['query'].split())}", markup=False)
    if "params" in query:
        console.print("  with " + ", ".join(f"{name} = {value}" for name, value in query["params"].items()))
    counts, count_seconds = timed(spark, question.counts)
    chains, chain_seconds = timed(spark, question.chains)
    table = tally("rows")
    table.add_row("cet_count, the year", f"{len(counts)}", f"{count_seconds:.2f} s")
    table.add_row("cet_trends, the chains below", f"{len(chains)}", f"{chain_seconds:.2f} s")
    console.print(table)
    print_rows(question.counted, counts)
    print_rows(question.listed, chains, number)
    console.print(question.means.format(listed=len(chains)))


def answer_pattern(spark: SparkSession, number: int, question: PatternQuestion) -> None:
    """Ask an exact question of the events, and for the plan."""
    headline(number, question.title, question.asked)
    console.print(f"  PATTERN {question.pattern}", markup=False)
    rows, seconds = timed(spark, question.rows)
    table = tally("matches")
    table.add_row("match_pattern", f"{len(rows)}", f"{seconds:.2f} s")
    console.print(table)
    print_rows("The matches", rows, number)
    print_rows("Its plan", spark.sql(question.plan).collect())
    console.print(question.means.format(matches=len(rows)))


def answer_fronts(spark: SparkSession, number: int, question: FrontQuestion) -> None:
    """Ask where something may have happened, and how probably."""
    headline(number, question.title, question.asked)
    console.print(f"  {question.call}", markup=False)
    groups, seconds = timed(spark, f"SELECT * FROM {question.call}")
    table = tally("groups")
    table.add_row("match_groups, kept by the job", f"{len(groups)}", f"{seconds:.2f} s")
    console.print(table)
    print_rows("The groups, the most probable first", spark.sql(question.rows).collect(), number)
    console.print(question.means.format(groups=len(groups)))


def answer_machines(spark: SparkSession, number: int, questions: Sequence[MachineQuestion], as_of: str) -> None:
    """Ask what has happened, what was likely next and whether it came, and how good forecasts are; draw that."""
    summaries = patternlake.run(spark, str(CONFIGURATION), job="evaluate")
    full = full_history(spark)
    for place, question in enumerate(questions, start=number):
        headline(place, question.title, question.asked)
        query = yaml.safe_load(CONFIGURATION.read_text())["subscriptions"][question.subscription]
        console.print(f"  {' '.join(query['query'].split())}", markup=False)
        matches, match_seconds = timed(spark, f"SELECT * FROM match_subscription('{question.subscription}')")
        live, live_seconds = timed(spark, f"SELECT * FROM predict_match('{question.subscription}')")
        table = tally("rows")
        table.add_row("match_subscription, the year", f"{len(matches)}", f"{match_seconds:.2f} s")
        table.add_row("predict_match, now", f"{len(live)}", f"{live_seconds:.2f} s")
        console.print(table)
        print_rows("What has happened", spark.sql(question.happened).collect(), place)
        likely = spark.sql(question.likely(as_of)).collect()
        print_rows(f"What was likely within {query['lookahead']} steps, as of June's file, and whether it came", likely)
        print_verdicts("Forecasts of July to December", question.judged(spark))
        if question is WAVE:
            print_verdicts("The same, by how often a hot day followed each history of five days", full)
        console.print(question.means.format(matches=len(matches), keys=len({row["key"] for row in matches})))
    draw_forecasts(spark, questions, {WAVE.subscription: full}, OUTPUT / "forecasts.png")
    seconds = sum(summary.seconds for summary in summaries)
    console.print(f"How good forecasts are as a picture: demo/output/forecasts.png (evaluate took {seconds:.1f} s)")


def full_history(spark: SparkSession) -> list[Verdict]:
    """What the model with all histories of five days makes of the forecasts that `evaluate` has judged."""
    asked = yaml.safe_load(CONFIGURATION.read_text())["evaluate"]
    model = FullHistory(airports_of(spark), asked["train"])
    return list(model.judged(asked["test"], asked["lookaheads"], asked["thresholds"]))


def timed(spark: SparkSession, query: str) -> tuple[list[Row], float]:
    """The rows of a query, and the seconds that its second run took."""
    spark.sql(query).collect()
    begun = time.monotonic()
    rows = spark.sql(query).collect()
    return rows, time.monotonic() - begun


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
    """An empty table of ways to ask, what each found, and the time of a second call."""
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


def print_rows(title: str, rows: Sequence[Row] | Sequence[dict[str, Any]], number: int | None = None) -> None:
    """Print the first rows with their total; all of a question's rows go to a file, too."""
    records = [row if isinstance(row, dict) else row.asDict() for row in rows]
    columns = list(records[0]) if records else []
    table = Table(title=f"{title}: {len(records)} rows", title_justify="left")
    for column in columns:
        number_column = isinstance(records[0][column], int) and not isinstance(records[0][column], bool)
        table.add_column(column, justify="right" if number_column else "left", overflow="fold")
    for record in records[:SHOWN_ROWS]:
        # As it is: b[i-1].x in a plan is no markup.
        table.add_row(*[Text(f"{value:,}" if type(value) is int else str(value)) for value in record.values()])
    console.print(table)
    if number is not None:
        with (OUTPUT / f"question_{number}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(record.values() for record in records)


if __name__ == "__main__":
    main()

"""Runs cases through `spark.sql`, and tells what came of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.row_pattern_suites.cases import Case, Refusal, Rows, Runs, same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PASSED, DIFFERS, NOT_APPLICABLE = "passed", "differs", "not applicable"


@dataclass(frozen=True)
class Outcome:
    """What came of a case, and why where it is not passed."""

    case: Case
    kind: str
    reason: str = ""


def run_cases(spark: SparkSession, cases: Iterable[Case]) -> Iterator[Outcome]:
    """Run cases in their order."""
    failed: dict[str, str] = {}
    for case in cases:
        for view in case.views:
            failed.pop(view.name, None)
            try:
                spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{view.name}` AS {view.sql}")
            except Exception as error:  # a view that cannot be made is told with the first case that reads it
                failed[view.name] = first_line(error)
        yield _run(spark, case, failed)


def _run(spark: SparkSession, case: Case, failed: dict[str, str]) -> Outcome:
    if case.reason is not None:
        return Outcome(case, NOT_APPLICABLE, case.reason)
    try:
        frame = spark.sql(case.sql)
        columns = frame.columns
        answered = [tuple(_plain(value) for value in row) for row in frame.collect()]
        expected = case.expected
        if isinstance(expected, Rows) and expected.sql is not None:
            expected = Rows([tuple(_plain(value) for value in row) for row in spark.sql(expected.sql).collect()])
    except Exception as error:  # whatever Spark or a task says
        if isinstance(case.expected, Refusal):
            return Outcome(case, PASSED, first_line(error))
        broken = next((f"; the view {name}: {why}" for name, why in failed.items()), "")
        return Outcome(case, DIFFERS, f"failed: {first_line(error)}{broken}")
    if isinstance(expected, Runs):
        return Outcome(case, PASSED)
    if isinstance(expected, Refusal):
        return Outcome(case, DIFFERS, f"gives {len(answered)} rows, is to fail: {expected.message}")
    if expected.columns:
        lower = [column.lower() for column in columns]
        places = [lower.index(name.lower()) for name in expected.columns]
        answered = [tuple(row[place] for place in places) for row in answered]
    if same_rows(expected.values, answered):
        return Outcome(case, PASSED)
    return Outcome(case, DIFFERS, f"gives {_some(answered)}, expected {_some(expected.values)}")


def _plain(value: Any) -> Any:
    """A value of a row, nested rows as tuples."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(one) for one in value)
    return value


def _some(rows: Any) -> str:
    shown = ", ".join(str(tuple(row)) for row in list(rows)[:6])
    return f"{len(rows)} rows: {shown}{' …' if len(rows) > 6 else ''}"


def first_line(error: BaseException) -> str:
    """The first line of a message that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if "patternlake.udfs.errors" in line or line.startswith("[")]
    return (ours or lines or [type(error).__name__])[0][:300]


def counts(outcomes: Iterable[Outcome]) -> Counter[str]:
    """How many are of each kind."""
    return Counter(outcome.kind for outcome in outcomes)

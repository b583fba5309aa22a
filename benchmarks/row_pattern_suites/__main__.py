"""`python -m benchmarks.row_pattern_suites --suite NAME --path PATH`: a suite for MATCH_RECOGNIZE, asked of ours.

The path is that of a copy of the suite's files that is there already: of a folder with them, or of one file. Each
statement is rewritten in the words of Spark SQL, its tables being temporary views, and run by `spark.sql`. Rows are
compared whatever their order, an error is to be an error. Printed are how many cases passed, differ and are not
applicable, with the reason for each that did not pass.
"""

from __future__ import annotations

import importlib
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from benchmarks.row_pattern_suites.cases import Refusal
from benchmarks.row_pattern_suites.running import DIFFERS, NOT_APPLICABLE, PASSED, Outcome, counts, run_cases
from benchmarks.sessions import spark_session
from benchmarks.tables import console

SHOWN = 100
"""After so many cases it is told how many were asked."""
SUITES = ("duckdb", "zetasql", "trino", "calcite", "esper", "risingwave", "flink")

app = typer.Typer(add_completion=False, help=__doc__, pretty_exceptions_enable=False)


@app.command()
def run(
    suite: Annotated[list[str], typer.Option("--suite", help=f"one of {', '.join(SUITES)}; may be repeated")],
    path: Annotated[list[Path], typer.Option("--path", help="of its copy, in the order of the suites")],
    only: Annotated[str, typer.Option("--only", help="cases whose label holds this text")] = "",
    texts: Annotated[bool, typer.Option("--texts", help="also the statements, and errors that are expected")] = False,
) -> None:
    """Run suites, print what came of them."""
    unknown = sorted({*suite} - {*SUITES})
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}: the suites are {', '.join(SUITES)}", param_hint="--suite")
    if len(suite) != len(path):
        raise typer.BadParameter(
            f"{len(suite)} suites and {len(path)} paths; give a path for each", param_hint="--path"
        )
    missing = [str(one) for one in path if not one.exists()]
    if missing:
        raise typer.BadParameter(f"nothing is at {', '.join(missing)}", param_hint="--path")
    screen = console()
    found: dict[str, list[Outcome]] = {}
    with tempfile.TemporaryDirectory() as folder, spark_session(Path(folder)) as spark:
        for name, place in zip(suite, path, strict=True):
            cases = importlib.import_module(f"benchmarks.row_pattern_suites.{name}").read_files(place)
            chosen = (case for case in cases if only in case.label or case.views)
            found[name] = []
            for outcome in run_cases(spark, chosen):
                if only in outcome.case.label:
                    found[name].append(outcome)
                    if not len(found[name]) % SHOWN:
                        screen.print(f"[dim]{name}: {len(found[name])} cases asked…")
            _print_reasons(screen, name, found[name], texts)
    screen.print(_totals(found))
    if any(outcome.kind == DIFFERS for outcomes in found.values() for outcome in outcomes):
        raise typer.Exit(1)


def _print_reasons(screen: object, name: str, outcomes: list[Outcome], texts: bool) -> None:
    """The cases that did not pass: those that differ one by one, the others by their reasons."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.kind == NOT_APPLICABLE:
            grouped[outcome.reason].append(outcome.case.label)
        elif outcome.kind == DIFFERS:
            screen.print(f"[red]{name} {outcome.case.label}[/] differs: {escape(outcome.reason)}")  # type: ignore[attr-defined]
        elif texts and isinstance(outcome.case.expected, Refusal):
            message = f"{outcome.reason} [theirs: {outcome.case.expected.message}]"
            screen.print(f"[dim]{name} {outcome.case.label} fails as it is to: {escape(message)}")  # type: ignore[attr-defined]
        if texts and outcome.kind == DIFFERS:
            screen.print(f"[dim]{escape(outcome.case.sql)}")  # type: ignore[attr-defined]
    for reason, labels in sorted(grouped.items()):
        screen.print(f"{name}: {len(labels)} not applicable, {escape(reason)}: {escape(', '.join(labels))}")  # type: ignore[attr-defined]


def _totals(found: dict[str, list[Outcome]]) -> Table:
    table = Table("suite", PASSED, DIFFERS, NOT_APPLICABLE, "passed of those that apply")
    every = [one for outcomes in found.values() for one in outcomes]
    for name, outcomes in [*found.items(), *([("all", every)] if len(found) > 1 else [])]:
        count = counts(outcomes)
        applicable = count[PASSED] + count[DIFFERS]
        share = f"{count[PASSED] / applicable:.1%}" if applicable else ""
        table.add_row(name, *(str(count[kind]) for kind in (PASSED, DIFFERS, NOT_APPLICABLE)), share)
    return table


if __name__ == "__main__":
    app()

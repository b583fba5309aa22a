"""The kernel of row patterns on one core, beside Python's regular expressions over a letter for each row.

    python benchmarks/kernel_row_patterns.py [--quick]

- **v**: ``s d+ u+`` over 10 million prices of 10,000 symbols.
- **no b**: ``A+ B+`` where no B comes, over 20,000 and 1,000,000 rows of one partition. Regular expressions take the
  square of the rows, and are asked for the first only.
- **crimes**: ``R Z* B Z* M`` (a robbery, a battery, a theft) over 20,000 and 7 million rows: the kinds alone; then a
  match from each row on, with a battery and a theft near the robbery, the theft within 30 minutes of it. The last one
  beside itself with ``ABS`` around the time passed, which so sets no deadline, as far as 300 million steps.

Where both answer, they must find as many matches with as many rows. Seconds are of CPU time, the least of three, from
booleans for each row and variable to matches; compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.measures.matched_rows import Matches
from patternlake.udfs.measures.seen import LAST, Seen
from patternlake.udfs.rows.conditions import Call, Constant, Expression, Value
from patternlake.udfs.rows.matches import TooManyStepsError, match_rows
from patternlake.udfs.rows.query import compile_pattern

SEED = 47
MOST_STEPS = 300_000_000


def least(run: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least CPU time of some runs, and what the last one gives."""
    seconds = []
    for _ in range(times):
        begun = time.process_time()
        answer = run()
        seconds.append(time.process_time() - begun)
    return min(seconds), answer


def by_kernel(
    text: str,
    holding: Mapping[str, np.ndarray],
    partitions: np.ndarray,
    conditions: Mapping[str, Expression] | None = None,
    columns: Mapping[str, np.ndarray] | None = None,
) -> Callable[[], Matches]:
    """Ask the kernel."""
    clause = parse_clause(text)
    types = {name: "float" if values.dtype == np.float64 else "int" for name, values in (columns or {}).items()}
    given = {name: (values, np.full(len(values), True)) for name, values in (columns or {}).items()}
    pattern = compile_pattern(clause, conditions, types)
    rows = np.array([holding[name] for name in clause.variables])
    return lambda: match_rows(pattern, rows, partitions, given, most_steps=MOST_STEPS)


def by_expression(expression: str, letters: np.ndarray, partitions: np.ndarray) -> Callable[[], tuple[int, int]]:
    """Ask a regular expression in each partition: how many matches, and how many letters they have."""
    text = letters.tobytes()
    compiled = re.compile(expression.encode())

    def run() -> tuple[int, int]:
        matches = rows = 0
        for low, high in zip(partitions[:-1].tolist(), partitions[1:].tolist(), strict=True):
            for match in compiled.finditer(text, low, high):
                matches += 1
                rows += match.end() - match.start()
        return matches, rows

    return run


def show(name: str, kernel: Callable[[], Matches], beside: Callable[[], tuple[int, int]] | None = None) -> None:
    """Print a line, and fail where the answers differ."""
    try:
        seconds, found = least(kernel)
    except TooManyStepsError:
        sys.stdout.write(f"{name}: more than {MOST_STEPS:,} steps\n")
        return
    answer = len(found.starts), len(found.rows)
    line = f"{name}: {seconds:.3f} s, {answer[0]:,} matches of {answer[1]:,} rows, {found.steps:,} steps"
    if beside is not None:
        theirs, other = least(beside, 1)
        assert other == answer, f"{name}: {answer}, by an expression {other}"
        line += f"; by a regular expression {theirs:.3f} s"
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def measure_v(count: int, symbols: int) -> None:
    """``s d+ u+``."""
    rng = np.random.default_rng(SEED)
    partitions = np.linspace(0, count, symbols + 1).astype(np.int64)
    change = np.round(rng.normal(size=count), 1)
    change[partitions[:-1]] = 0
    letters = np.where(change < 0, ord("d"), np.where(change > 0, ord("u"), ord("z"))).astype(np.uint8)
    holding = {"s": np.full(count, True), "d": change < 0, "u": change > 0}
    show(
        f"v, {count:,} rows of {symbols:,} symbols",
        by_kernel("PATTERN (s d+ u+)", holding, partitions),
        by_expression(".d+u+", letters, partitions),
    )


def measure_no_b(count: int, *, beside: bool) -> None:
    """``A+ B+`` without a B."""
    whole = np.array([0, count])
    kernel = by_kernel("PATTERN (A+ B+)", {"A": np.full(count, True), "B": np.full(count, False)}, whole)
    expression = by_expression("a+b+", np.full(count, ord("a"), np.uint8), whole)
    show(f"no b, {count:,} rows", kernel, expression if beside else None)


def measure_crimes(count: int) -> None:
    """``R Z* B Z* M``, the kinds alone, then near the robbery."""
    rng = np.random.default_rng(SEED)
    kind = rng.choice([ord(letter) for letter in "rbmz"], count, p=[0.04, 0.18, 0.05, 0.73]).astype(np.uint8)
    holding = {name.upper(): kind == ord(name) for name in "rbm"} | {"Z": np.full(count, True)}
    whole = np.array([0, count])
    show(
        f"crimes, {count:,} rows",
        by_kernel("PATTERN (R Z* B Z* M)", holding, whole),
        by_expression("r.*b.*m", kind, whole),
    )

    def of_robbery(column: str) -> Value:
        return Value(column, Seen(LAST, ("R",)))

    near: list[Expression] = []
    for column, far in (("lon", 0.05), ("lat", 0.02)):
        near.append(Call("<=", (Value(column), Call("+", (of_robbery(column), Constant(far))))))
        near.append(Call(">=", (Value(column), Call("-", (of_robbery(column), Constant(far))))))
    passed = Call("-", (Value("at"), of_robbery("at")))
    columns = {
        "at": np.sort(rng.integers(0, 65 * count, count)),
        "lon": rng.normal(-87.7, 0.06, count),
        "lat": rng.normal(41.85, 0.09, count),
    }
    for name, time_passed in (("", passed), (" without a deadline", Call("abs", (passed,)))):
        soon = Call("<=", (time_passed, Constant(1800)))
        conditions = {"B": Call("and", tuple(near)), "M": Call("and", (*near, soon))}
        text = "AFTER MATCH SKIP TO NEXT ROW PATTERN (R Z* B Z* M)"
        show(f"crimes near each other{name}, {count:,} rows", by_kernel(text, holding, whole, conditions, columns))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    scale = 100 if parser.parse_args().quick else 1
    by_kernel("PATTERN (a)", {"a": np.full(1, True)}, np.array([0, 1]))()
    measure_v(10_000_000 // scale, 10_000 // scale)
    measure_no_b(20_000 // scale, beside=True)
    measure_no_b(1_000_000 // scale, beside=False)
    measure_crimes(20_000 // scale)
    measure_crimes(7_000_000 // scale)


if __name__ == "__main__":
    main()

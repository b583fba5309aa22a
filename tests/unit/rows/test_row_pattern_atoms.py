"""The values of measures: worked answers, and random ones beside the oracle."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from naive import row_pattern_measures as naive

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.language.row_pattern.tree import Clause
from patternlake.udfs.measures.matched_rows import Matches
from patternlake.udfs.measures.seen import FIRST, LAST, Seen
from patternlake.udfs.measures.translation import (
    AggregateAtom,
    Atom,
    ClassifierAtom,
    MatchNumberAtom,
    NavigationAtom,
    read_measures,
)
from patternlake.udfs.measures.values import AtomValues, RowsShown, is_computed_here
from patternlake.udfs.rows.matches import match_rows
from patternlake.udfs.rows.query import compile_pattern

TYPES = {"price": "int", "rate": "double", "symbol": "string", "fee": "decimal(10,2)"}


def values(
    text: str, measures: str, rows: list[str], partitions: list[int] | None = None, **columns: Any
) -> list[list[Any]]:
    """Of each measure, which is one atom, the value in each row of the answer; rows are of the variables named."""
    clause = parse_clause(
        text.replace("PATTERN", f"MEASURES {measures} PATTERN", 1)
        if "ROWS" not in text
        else f"MEASURES {measures} {text}"
    )
    holding = np.array([[name in row for row in rows] for name in clause.variables])
    starts = np.array(partitions or [0, len(rows)])
    found = match_rows(compile_pattern(clause), holding, starts)
    made = AtomValues(clause, found, starts, columns)
    read = read_measures(clause, TYPES)
    assert read.sql == tuple(f"__patternlake_atom_{number}" for number in range(len(read.atoms)))
    return [made.of(atom).to_pylist() for atom in read.atoms]


PRICES = pa.array([5, 3, None, 7, 8, 1], pa.int32())
ROWS = ["a", "b", "b", "c", "a", "b"]


def test_one_row_for_each_match() -> None:
    assert values(
        "PATTERN (a b+ c?)",
        "FIRST(price) AS f, LAST(b.price) AS l, LAST(b.price, 1) AS e, NEXT(c.price) AS n, PREV(FIRST(price)) AS p, "
        "CLASSIFIER() AS y, MATCH_NUMBER() AS m, count(*) AS k, count(b.price) AS v",
        ROWS,
        price=PRICES,
    ) == [
        [5, 8],
        [None, 1],
        [3, None],
        [8, None],
        [None, 7],
        ["c", "b"],
        [1, 2],
        [4, 2],
        [1, 1],
    ]  # fmt: skip


def test_all_rows_are_running_or_final() -> None:
    assert values(
        "ALL ROWS PER MATCH PATTERN (a b+ c?)",
        "price AS p, FIRST(b.price) AS f, FINAL LAST(price) AS l, sum(price) AS s, FINAL sum(price) AS t, "
        "CLASSIFIER() AS y, count(b.*) AS k, array_agg(price) AS g, max(price) AS x",
        ROWS,
        price=PRICES,
    ) == [
        [5, 3, None, 7, 8, 1],
        [None, 3, 3, 3, None, 1],
        [7, 7, 7, 7, 1, 1],
        [5, 8, 8, 15, 8, 9],
        [15, 15, 15, 15, 9, 9],
        ["a", "b", "b", "c", "a", "b"],
        [0, 1, 2, 2, 0, 1],
        [[5], [5, 3], [5, 3], [5, 3, 7], [8], [8, 1]],
        [5, 5, 5, 7, 8, 8],
    ]  # fmt: skip


def test_the_next_rows_variable_is_known_where_it_is_of_the_match() -> None:
    assert values(
        "ALL ROWS PER MATCH PATTERN (a b+ c?)",
        "NEXT(CLASSIFIER()) AS n, PREV(CLASSIFIER()) AS p, NEXT(FIRST(CLASSIFIER()), 2) AS t, "
        "NEXT(CLASSIFIER(b)) AS b, LAST(CLASSIFIER(c)) AS c",
        ROWS,
        price=PRICES,
    ) == [
        ["b", "b", "c", None, "b", None],
        [None, "a", "b", "b", None, "a"],
        ["b", "b", "b", "b", None, None],
        [None, "b", "c", "c", None, None],
        [None, None, None, "c", None, None],
    ]


def test_excluded_rows_count_and_are_not_shown() -> None:
    assert values("ALL ROWS PER MATCH PATTERN (a {- b+ -} c?)", "count(*) AS k, price AS p", ROWS, price=PRICES) == [
        [1, 4, 1],
        [5, 7, 8],
    ]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ("SHOW EMPTY MATCHES", [[1, 2, 3], [1, 0, 1], [5, None, 7]]),
        ("OMIT EMPTY MATCHES", [[1, 3], [1, 1], [5, 7]]),
        ("WITH UNMATCHED ROWS", [[1, 2, 3], [1, 0, 1], [5, None, 7]]),
    ],
)
def test_empty_matches(rows: str, wanted: list[Any]) -> None:
    measures = "MATCH_NUMBER() AS m, count(*) AS k, price AS p"
    assert (
        values(f"ALL ROWS PER MATCH {rows} PATTERN (a?)", measures, ["a", "-", "a"], price=pa.array([5, 6, 7]))
        == wanted
    )


def test_unmatched_rows_have_no_values() -> None:
    measures = (
        "MATCH_NUMBER() AS m, count(*) AS k, price AS p, CLASSIFIER() AS y, array_agg(price) AS g, sum(price) AS s"
    )
    text = "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a)"
    assert values(text, measures, ["-", "a"], price=pa.array([5, 6])) == [
        [1, None], [1, None], [6, None], ["a", None], [[6], None], [6, None],
    ]  # fmt: skip


def test_navigation_stays_in_its_partition() -> None:
    shown = values(
        "PATTERN (a+)",
        "PREV(FIRST(price)) AS p, NEXT(price) AS n",
        ["a"] * 4,
        [0, 2, 2, 4],
        price=pa.array([1, 2, 3, 4]),
    )
    assert shown == [[None, None], [None, None]]


def test_types_are_those_of_spark() -> None:
    columns = {
        "price": pa.array([-(2**62), -(2**62)], pa.int64()),
        "rate": pa.array([1.5, math.inf], pa.float32()),
        "fee": pa.array([Decimal("0.10"), Decimal("0.05")], pa.decimal128(10, 2)),
        "symbol": pa.array(["é", "z"]),
    }
    measures = (
        "sum(price) AS s, avg(price) AS a, sum(rate) AS r, min(fee) AS f, max(symbol) AS t, min(rate) AS m, "
        "sum(fee) AS d"
    )
    clause = parse_clause(f"MEASURES {measures} PATTERN (a+)")
    starts = np.array([0, 2])
    made = AtomValues(clause, match_rows(compile_pattern(clause), np.full((1, 2), True), starts), starts, columns)
    found = [made.of(atom) for atom in read_measures(clause, TYPES).atoms]
    assert [one[0].as_py() for one in found] == [
        -(2**63),
        -(2.0**62),
        math.inf,
        Decimal("0.05"),
        "é",
        1.5,
        Decimal("0.15"),
    ]
    assert [str(one.type) for one in found] == [
        "int64", "double", "double", "decimal128(10, 2)", "string", "float", "decimal128(20, 2)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        ([2**63 - 1, 1], None),
        ([-(2**63), -1], None),
        ([2**63 - 1, 1, -1], 2**63 - 1),
        ([2**62, 2**62 - 1], 2**63 - 1),
        ([-(2**63)], -(2**63)),
        ([-(2**63), 2**63 - 1, 5], 4),
        ([2**62] * 4, None),
    ],
)
def test_a_sum_of_integers_is_exact_or_refused(numbers: list[int], total: int | None) -> None:
    clause = parse_clause("MEASURES sum(price) AS s PATTERN (a+)")
    starts = np.array([0, len(numbers)])
    matches = match_rows(compile_pattern(clause), np.full((1, len(numbers)), True), starts)
    made = AtomValues(clause, matches, starts, {"price": pa.array(numbers, pa.int64())})
    (atom,) = read_measures(clause, TYPES).atoms
    if total is None:
        with pytest.raises(ArgumentError, match=r"^'sum\(price\)' is beyond BIGINT; write try_sum"):
            made.of(atom)
    else:
        assert made.of(atom).to_pylist() == [total]


NESTED = pa.array([[1], None, [1]], pa.list_(pa.int32()))


@pytest.mark.parametrize(
    ("measure", "here"),
    [
        ("LAST(xs)", True),
        ("array_agg(xs)", True),
        ("count(xs)", True),
        ("count(DISTINCT xs)", False),
        ("max(xs)", False),
    ],
)
def test_of_nested_values_spark_finds_the_equal_ones(measure: str, here: bool) -> None:
    clause = parse_clause(f"MEASURES {measure} AS m PATTERN (a+)")
    (atom,) = read_measures(clause, {"xs": "array<int>"}).atoms
    assert is_computed_here(atom, NESTED.type) == here
    if here:
        starts = np.array([0, 3])
        made = AtomValues(
            clause, match_rows(compile_pattern(clause), np.full((1, 3), True), starts), starts, {"xs": NESTED}
        )
        assert (
            made.of(atom).to_pylist()
            == {"LAST": [[1]], "array": [[[1], [1]]], "count": [2]}[re.split(r"\W|_", measure)[0]]
        )


def test_nothing_is_of_one_match_that_is_of_another() -> None:
    # An infinite value stays in its match.
    shown = values(
        "PATTERN (a b)", "sum(rate) AS s, avg(rate) AS a", ["a", "b"] * 2, rate=pa.array([math.inf, 1, 2, 3])
    )
    assert shown == [[math.inf, 5.0], [math.inf, 2.5]]


@pytest.mark.parametrize("digits", [1, 9, 18, 28])
def test_sums_of_decimals_are_exact(digits: int) -> None:
    rng = np.random.default_rng(digits)
    most = 10**digits - 1
    numbers = [int(sign) * int(rng.random() * most) for sign in rng.choice([-1, 1], 200)] + [most, -most, most, most]
    fees = [None if one % 7 == 3 else Decimal(one).scaleb(-2) for one in numbers]
    lengths = rng.multinomial(len(fees), [0.25] * 4)
    starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    shown = values(
        "ALL ROWS PER MATCH PATTERN (a+)", "sum(fee) AS s, FINAL sum(fee) AS f, sum(DISTINCT fee) AS d",
        ["a"] * len(fees), starts, fee=pa.array(fees, pa.decimal128(max(digits, 2), 2)),
    )  # fmt: skip

    def total(some: Iterable[Decimal | None]) -> Decimal | None:
        there = [one for one in some if one is not None]
        with localcontext() as context:
            context.prec = 50
            return sum(there, Decimal(0)) if there else None

    runs = [fees[begin:end] for begin, end in pairwise(starts)]
    assert shown[0] == [total(run[: at + 1]) for run in runs for at in range(len(run))]
    assert shown[1] == [total(run) for run in runs for _ in run]
    assert shown[2] == [total(set(run[: at + 1])) for run in runs for at in range(len(run))]


def test_aggregates_that_are_left_to_spark() -> None:
    clause = parse_clause("MEASURES median(a.price) AS m, avg(fee) AS s, max_by(price, rate) AS x PATTERN (a b)")
    starts = np.array([0, 3])
    found = match_rows(compile_pattern(clause), np.full((2, 3), True), starts)
    fee = pa.array([Decimal(1)] * 3, pa.decimal128(10, 2))
    made = AtomValues(clause, found, starts, {"price": pa.array([1, 2, 3]), "fee": fee})
    median, total, most = read_measures(clause, TYPES).atoms
    assert isinstance(median, AggregateAtom)
    assert not is_computed_here(median, pa.int64())
    assert not is_computed_here(total, fee.type)
    assert not is_computed_here(most)
    with pytest.raises(
        ArgumentError, match=re.escape("the aggregate 'avg(fee)' of decimal128(10, 2) is to be computed by Spark")
    ):
        made.of(total)
    offsets, places = made.rows_aggregated(median)
    assert (offsets.tolist(), found.rows[places].tolist()) == ([0, 1], [0])


def test_no_matches_and_no_rows() -> None:
    measures = (
        "price AS p, sum(price) AS s, CLASSIFIER() AS c, count(*) AS k, array_agg(price) AS g, MATCH_NUMBER() AS n"
    )
    empty = pa.array([], pa.int32())
    assert values("PATTERN (a)", measures, ["-"], price=pa.array([1])) == [[]] * 6
    assert values("PATTERN (a)", measures, [], [0, 0], price=empty) == [[]] * 6


COLUMNS: dict[str, list[Any]] = {
    "price": [None, -2, 0, 3, 3, 7],
    "rate": [None, 0.5, -1.25, math.nan, math.inf, 2.0],
    "symbol": [None, "b", "a", "é", "", "Z"],
}
ARROW = {"price": pa.int64(), "rate": pa.float64(), "symbol": pa.string()}
SETS = [(), ("a",), ("b",), ("c",), ("a", "b"), ("b", "c")]


def random_atom(chance: random.Random) -> Atom:
    kind, final = chance.random(), chance.random() < 0.4
    seen = Seen(
        chance.choice([FIRST, LAST]), chance.choice(SETS), chance.choice([0, 0, 1, 2]), chance.choice([0, 0, -1, 1, 3])
    )
    if kind < 0.05:
        return MatchNumberAtom()
    if kind < 0.35:
        return NavigationAtom(chance.choice(list(COLUMNS)), seen, final)
    if kind < 0.5:
        return ClassifierAtom(seen, final)
    column = chance.choice([*COLUMNS, "*", "__patternlake_classifier"])
    names = (
        ["count", "min", "max", "array_agg"]
        if column in ("symbol", "__patternlake_classifier")
        else ["count", "sum", "avg", "min", "max", "array_agg"]
    )
    name = "count" if column == "*" else chance.choice(names)
    condition = chance.choice([None, None, "holds"])
    distinct = column != "*" and chance.random() < 0.3
    return AggregateAtom(name, column, condition, distinct, chance.choice(SETS), final, "")


def wanted(atom: Atom, shown: naive.Shown, columns: dict[str, list[Any]]) -> Any:
    if shown.first is None:
        return None
    match atom:
        case MatchNumberAtom():
            return shown.number
        case NavigationAtom() | ClassifierAtom():
            seen = atom.seen
            row = shown.row(
                seen.variables, first=seen.kind == FIRST, offset=seen.offset, shift=seen.shift, final=atom.final
            )
            if isinstance(atom, ClassifierAtom):
                return shown.label(row)
            return None if row is None else columns[atom.column][row]
        case AggregateAtom():
            rows = shown.rows(atom.variables, final=atom.final)
            if atom.condition is not None:
                rows = [row for row in rows if columns["holds"][row]]
            if atom.column == "*":
                return len(rows)
            if atom.column == "__patternlake_classifier":
                return naive.aggregate(atom.name, [shown.label(row) for row in rows], distinct=atom.distinct)
            return naive.aggregate(atom.name, [columns[str(atom.column)][row] for row in rows], distinct=atom.distinct)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


def shown_rows(clause: Clause, found: Matches, shown: RowsShown, partitions: list[int]) -> list[naive.Shown]:
    made = []
    for match, taken, row in zip(shown.matches.tolist(), shown.taken.tolist(), shown.rows.tolist(), strict=True):
        low, high = next((low, high) for low, high in pairwise(partitions) if low <= row < high)
        if match < 0:
            made.append(naive.Shown(None, (), 0, 0, low, high))
            continue
        labels = found.variables[found.offsets[match] : found.offsets[match + 1]]
        names = tuple(clause.variables[label] for label in labels)
        made.append(naive.Shown(int(found.starts[match]), names, taken, int(found.numbers[match]), low, high))
    return made


PATTERNS = ["a b* c?", "(a | b | c)+", "(a | b)*? c", "a? b?", "a {- b* -} c", "(a | b | c){2,3}", "PERMUTE(a, b, c?)"]
SKIPS = ["PAST LAST ROW", "TO NEXT ROW"]
KINDS = ["", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH OMIT EMPTY MATCHES", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"]


def check(seed: int) -> None:
    chance = random.Random(seed)
    pattern = chance.choice(PATTERNS)
    kinds = KINDS[:-1] if "{-" in pattern else KINDS
    clause = parse_clause(f"{chance.choice(kinds)} AFTER MATCH SKIP {chance.choice(SKIPS)} PATTERN ({pattern})")
    count = chance.randrange(12)
    cuts = sorted(chance.randrange(count + 1) for _ in range(chance.randrange(3)))
    partitions = [0, *cuts, count]
    holding = np.array([[chance.random() < 0.6 for _ in range(count)] for _ in clause.variables], np.bool_)
    found = match_rows(compile_pattern(clause), holding.reshape(len(clause.variables), count), np.array(partitions))
    columns = {name: [chance.choice(some) for _ in range(count)] for name, some in COLUMNS.items()}
    columns["holds"] = [chance.choice([True, True, False, None]) for _ in range(count)]
    arrays = {
        name: pa.array(column, ARROW.get(name, pa.bool_()), from_pandas=False) for name, column in columns.items()
    }
    made = AtomValues(clause, found, np.array(partitions), arrays)
    rows = shown_rows(clause, found, made.shown, partitions)
    for _ in range(8):
        atom = random_atom(chance)
        given, due = made.of(atom).to_pylist(), [wanted(atom, row, columns) for row in rows]
        assert len(given) == len(due)
        assert all(map(same, given, due)), f"seed {seed}: {atom} of {clause}: {given} and not {due}"


def test_random_atoms_of_random_matches() -> None:
    for seed in range(400):
        check(seed)


@pytest.mark.slow
def test_many_random_atoms() -> None:
    for seed in range(10_000, 20_000):
        check(seed)

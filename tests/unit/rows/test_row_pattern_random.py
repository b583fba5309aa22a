"""The kernel finds what the oracle finds: matches, their variables and numbers, excluded rows and unmatched ones."""

from __future__ import annotations

import random

import pytest
from naive.row_pattern_aggregates import questions, random_condition
from naive.row_pattern_random import answer_of, answers_to, expected, found_by_kernel, random_case, variables_of
from naive.row_pattern_sql import clause_of, matches_of_text


def check(seeds: range, *, looks_back: bool, most_rows: int) -> int:
    """Compare; how many cases were not too large for the oracle."""
    asked = 0
    for seed in seeds:
        case = random_case(random.Random(seed), looks_back=looks_back, most_rows=most_rows)
        if case is not None:
            asked += 1
            wanted = expected(case)
            assert found_by_kernel(case) == wanted, f"seed {seed}: {case.text}, {case}"
            # With a table in the place of exact notes.
            assert found_by_kernel(case, most_notes=0) == wanted, f"seed {seed}, without notes: {case.text}, {case}"
    return asked


def test_conditions_of_the_row_alone() -> None:
    assert check(range(600), looks_back=False, most_rows=6) > 500


def test_conditions_of_the_match_so_far() -> None:
    assert check(range(10_000, 10_500), looks_back=True, most_rows=5) > 400


def check_text(seeds: range) -> int:
    """Compare clauses with DEFINE as text; how many were not too large for the oracle."""
    asked = 0
    for seed in seeds:
        case = random_case(random.Random(seed), looks_back=True, most_rows=5)
        if case is not None:
            asked += 1
            found = answer_of(case, lambda case=case: matches_of_text(case))  # type: ignore[misc]
            assert found == expected(case), f"seed {seed}: {clause_of(case)}, {case}"
    return asked


def test_conditions_as_text() -> None:
    assert check_text(range(10_000, 10_300)) > 250


def check_aggregates(seeds: range) -> int:
    """Compare clauses with aggregates in DEFINE; how many were not too large for the oracle."""
    asked = 0
    for seed in seeds:
        rng = random.Random(seed)
        case = random_case(rng, looks_back=False, most_rows=5)
        if case is not None and (names := variables_of(case.pattern)):
            asked += 1
            conditions = {name: random_condition(rng, names) for name in names if rng.random() < 0.7}
            parts = {name: [name] if name in case.alone else [] for name in names}
            for name, condition in conditions.items():
                parts[name].append(condition.text)
            defined = [f"{name} AS {' AND '.join(texts)}" for name, texts in parts.items() if texts]
            text = f"{case.text} DEFINE {', '.join(defined)}" if defined else case.text
            found = answer_of(case, lambda case=case, text=text: matches_of_text(case, text))  # type: ignore[misc]
            assert found == answers_to(questions(case, conditions), case), f"seed {seed}: {text}, {case}"
    return asked


def test_aggregates_as_text() -> None:
    assert check_aggregates(range(20_000, 20_600)) > 400


@pytest.mark.slow
def test_thousands_of_aggregates_as_text() -> None:
    assert check_aggregates(range(3_000_000, 3_006_000)) > 4000


@pytest.mark.slow
def test_thousands_of_conditions_as_text() -> None:
    assert check_text(range(2_000_000, 2_005_000)) > 4000


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_thousands_of_clauses(part: int) -> None:
    first = 100_000 * (part + 1)
    assert check(range(first, first + 3000), looks_back=part % 2 == 1, most_rows=8) > 2000

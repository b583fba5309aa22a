"""The kernel of row patterns: what failures it remembers, how many steps it takes, and what it refuses.

An answer is written as in `test_row_pattern_oracle`: ``2@5:sd[u]``. Rows are written as words, a letter for each
variable that the row may be of; ``-`` is a row of none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from patternlake.udfs.errors import ArgumentError, UnsupportedOperatorError
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.measures.matched_rows import Matches
from patternlake.udfs.measures.seen import FIRST, LAST, Seen
from patternlake.udfs.rows.conditions import (
    Aggregate,
    Call,
    Classifier,
    Constant,
    Expression,
    Label,
    MatchNumber,
    Value,
)
from patternlake.udfs.rows.matches import SkipTargetError, TooManyStepsError, match_rows
from patternlake.udfs.rows.query import MAX_INSTRUCTIONS, RowPattern, compile_pattern

NOW = Seen()


def compiled(
    text: str, conditions: Mapping[str, Expression] | None = None, types: Mapping[str, str] | None = None
) -> RowPattern:
    return compile_pattern(parse_clause(text if "PATTERN" in text else f"PATTERN ({text})"), conditions, types)


def searched(
    pattern: RowPattern,
    rows: Sequence[str],
    column: Sequence[float] = (),
    partitions: Sequence[int] = (),
    **bounds: int,
) -> Matches:
    names = pattern.clause.variables
    holding = np.array([[name in row for row in rows] for name in names], np.bool_).reshape(len(names), len(rows))
    columns = {"x": (np.array(column), np.full(len(column), True))} if len(column) else None
    return match_rows(pattern, holding, np.array(partitions or [0, len(rows)]), columns, **bounds)


def words(pattern: RowPattern, found: Matches) -> str:
    shown = []
    for at, (start, number) in enumerate(zip(found.starts.tolist(), found.numbers.tolist(), strict=True)):
        of = slice(found.offsets[at], found.offsets[at + 1])
        rows = zip(found.variables[of].tolist(), found.excluded[of].tolist(), strict=True)
        labels = ((pattern.clause.variables[variable], out) for variable, out in rows)
        shown.append(f"{number}@{start + 1}:{''.join(f'[{name}]' if out else name for name, out in labels)}")
    return " ".join(shown)


def answer(text: str, rows: str) -> str:
    pattern = compiled(text)
    return words(pattern, searched(pattern, rows.split()))


def test_matches_of_several_partitions() -> None:
    pattern = compiled("A {- B+ -} C?")
    found = searched(pattern, ["A", "B", "B", "C", "A", "B", "B", "A"], partitions=[0, 4, 4, 6, 8])
    # Numbers begin anew; the B of row 7 begins nothing, and no A is before it in its partition.
    assert words(pattern, found) == "1@1:A[B][B]C 1@5:A[B]"
    assert found.rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.lengths.tolist() == [4, 2]
    assert found.unmatched.tolist() == [6, 7]


def test_a_partition_looks_at_no_row_of_the_next() -> None:
    pattern = compiled("A+ $")
    found = searched(pattern, ["A", "A", "A", "A"], partitions=[0, 1, 4])
    assert words(pattern, found) == "1@1:A 1@2:AAA"
    assert words(pattern, searched(compiled("^ A"), ["A", "A", "A"], partitions=[0, 2, 3])) == "1@1:A 1@3:A"


def test_rows_that_an_earlier_match_covers_are_not_unmatched() -> None:
    # The first match has rows 1 to 4, the second row 2; row 4 then begins nothing.
    pattern = compiled("AFTER MATCH SKIP TO NEXT ROW PATTERN (A B B C | B)")
    found = searched(pattern, ["A", "B", "B", "C"])
    assert words(pattern, found) == "1@1:ABBC 2@2:B 3@3:B"
    assert found.unmatched.tolist() == []


def test_no_rows_and_no_variables() -> None:
    assert words(compiled("A*"), searched(compiled("A*"), [])) == ""
    assert words(compiled("A"), searched(compiled("A"), [], partitions=[0, 0, 0])) == ""
    assert answer("()", "- -") == "1@1: 2@2:"


def test_more_variables_than_a_word_has_bits() -> None:
    names = [f"v{number}" for number in range(130)]
    pattern = compile_pattern(parse_clause(f"PATTERN ({' '.join(names)})"))
    found = match_rows(pattern, np.eye(130, dtype=np.bool_), np.array([0, 130]))
    assert found.variables.tolist() == list(range(130))
    assert not len(match_rows(pattern, np.eye(130, dtype=np.bool_)[::-1], np.array([0, 130])).starts)


def test_a_match_of_many_rows_and_many_matches() -> None:
    # More of each than there is room for at first.
    found = searched(compiled("A+ B"), ["A"] * 5000 + ["B"])
    assert (found.starts.tolist(), found.lengths.tolist()) == ([0], [5001])
    found = searched(compiled("A B"), ["A", "B"] * 3000)
    assert found.numbers.tolist() == list(range(1, 3001))
    assert found.lengths.tolist() == [2] * 3000
    both = compiled("A+ B", {"B": Call("=", (Aggregate("count", None, ("A",)), Constant(5000)))})
    assert searched(both, ["A"] * 5000 + ["B"]).lengths.tolist() == [5001]


HISTORIES: list[tuple[str, Expression, list[float], str]] = [
    # Each has several ways to the place before C, of which the later one makes the condition true: what the first one
    # failed with may not count for the other. A and B take any row.
    ("(A | B){2} C", Call("=", (Aggregate("count", None, ("A",)), Constant(0))), [0, 0, 0], "1@1:BBC"),
    ("(A | B){2} C", Call("=", (Aggregate("sum", "x", ("A",)), Constant(7))), [7, 5, 0], "1@1:ABC"),
    ("(A | B){2} C", Call("=", (Aggregate("sum", "x", ("A",)), Constant(7.5))), [5, 7.5, 0], "1@1:BAC"),
    ("(A | B){2} C", Call("=", (Aggregate("avg", "x", ("A",)), Constant(7))), [5, 7, 0], "1@1:BAC"),
    ("(A | B){2} C", Call("=", (Aggregate("max", "x", ("A",)), Constant(5))), [5, 7, 0], "1@1:ABC"),
    ("(A | B){2} C", Call("=", (Value("x", Seen(LAST, ("A",))), Constant(7))), [7, 5, 0], "1@1:ABC"),
    ("(A | B){2} C", Call("=", (Value("x", Seen(FIRST, ("A",))), Constant(5))), [7, 5, 0], "1@1:BAC"),
    ("(A | B){2} C", Call("is null", (Value("x", Seen(LAST, ("A",), 1)),)), [7, 5, 0], "1@1:ABC"),
    # The A behind it is the first, the second or the third one.
    ("(A | B){2} A C", Call("is null", (Value("x", Seen(FIRST, ("A",), 1)),)), [0, 0, 0, 0], "1@1:BBAC"),
    ("(A | B){2} C", Call("=", (Classifier(Seen(LAST, (), 1)), Label("B"))), [0, 0, 0], "1@1:ABC"),
    ("(A | B){2} C", Call("=", (Classifier(Seen(FIRST)), Label("B"))), [0, 0, 0], "1@1:BAC"),
    ("(A | B){2} C", Call("=", (Classifier(Seen(LAST, (), 0, -1)), Label("B"))), [0, 0, 0], "1@1:ABC"),
    # A row before the match's first one has a value, and is of no variable.
    ("(A | B) C", Call("is null", (Classifier(Seen(LAST, (), 0, -2)),)), [0, 0], "1@1:AC"),
]


@pytest.mark.parametrize(("text", "condition", "column", "wanted"), HISTORIES, ids=lambda one: str(one)[:40])
def test_a_failure_counts_only_for_those_that_saw_the_same(
    text: str, condition: Expression, column: list[float], wanted: str
) -> None:
    kind = "float" if any(isinstance(value, float) for value in column) else "int"
    pattern = compiled(text, {"C": condition}, {"x": kind})
    assert words(pattern, searched(pattern, ["ABC"] * len(column), column)) == wanted


def test_a_failure_under_one_match_number_is_none_under_the_next() -> None:
    pattern = compiled("(A | B)+ C | D", {"C": Call("=", (MatchNumber(), Constant(2)))})
    # No C may be in the first match, so D is; from row 2 on, the second one ends with a C.
    assert words(pattern, searched(pattern, ["ABD", "ABC", "ABC", "ABC"])) == "1@1:D 2@2:AAC"


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        ({"D": Constant(1)}, "'D' is no variable of the pattern; there are: A, B"),
        ({"B": Call("=", (Classifier(Seen(LAST)), Label("D")))}, "'D' is no variable of the pattern; there are: A, B"),
        ({"B": Value("x", Seen(LAST, ("A", "D")))}, "'D' is no variable of the pattern; there are: A, B"),
        ({"B": Value("y")}, "no column of integers or doubles is called 'y'; there are: x"),
        ({"B": Aggregate("sum", "y")}, "no column of integers or doubles is called 'y'; there are: x"),
        ({"B": Aggregate("median", "x")}, "'median' is no aggregate of conditions; there are: count, sum"),
        ({"B": Aggregate("sum")}, "'sum' is no aggregate of conditions"),
        ({"B": Call("like", (Value("x"),))}, "'like' is no operator of conditions; there are: %, *"),
    ],
)
def test_conditions_that_name_what_is_not_there(conditions: Mapping[str, Expression], says: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(says)):
        compiled("A B", conditions, {"x": "int"})


def test_conditions_of_the_row_alone_and_of_the_match_both_hold() -> None:
    above = Call(">", (Value("x"), Value("x", Seen(FIRST))))
    pattern = compiled("A B+", {"B": above}, {"x": "int"})
    # Row 4 is above row 1, and may not be a B.
    assert words(pattern, searched(pattern, ["A", "B", "B", "-", "A", "B"], [1, 2, 3, 4, 5, 5])) == "1@1:ABB"


PERMUTED = "PERMUTE(A*, B*, C*, D*, E*, F*, G*, H*, I*)"
STEPS = [
    ("A+ B+", "A"),
    ("A* B* C* D", "ABC"),
    ("(A+)+ B", "A"),
    ("(A*)* B", "A"),
    ("((A | B)* | C)* D", "ABC"),
    ("(A | A A)* B", "A"),
    ("(A+ A+)+ B", "A"),
    ("A*? B*? C", "AB"),
    ("A{5,} B", "A"),
    ("PERMUTE(A+, B+, C+) D", "ABC"),
    ("(A B | B A | A | B)+ C", "AB"),
    ("^ (A | B)* C", "AB"),
]


@pytest.mark.parametrize(("text", "row"), STEPS)
def test_the_steps_of_a_search_that_fails_are_in_proportion_to_the_rows(text: str, row: str) -> None:
    pattern = compiled(text)

    def steps(rows: int) -> int:
        found = searched(pattern, [row] * rows)
        assert not len(found.starts)
        return found.steps

    few, many = steps(1000), steps(4000)
    # Each instruction is run once at each row for each of those that lead to it, twice where room is short at first.
    assert few <= 1000 * 4 * len(pattern.program.operation)
    assert many <= 4.5 * few + 4000 * 4


def test_the_steps_of_a_search_that_comes_back_from_each_row_are_in_proportion_too() -> None:
    # Robbery, battery, theft: the last theft is behind half of the robberies, which all have to go to the end.
    pattern = compiled("AFTER MATCH SKIP TO NEXT ROW PATTERN (R Z* B Z* M)")
    rows = (["RZ", "Z", "BZ"] * 300) + ["MZ"] + (["RZ", "Z", "BZ"] * 300)
    found = searched(pattern, rows)
    assert found.starts.tolist() == list(range(0, 900, 3))
    # Of the first half, the rows of the matches themselves; of the second half, some steps for each row.
    assert found.steps <= 3 * found.lengths.sum() + 40 * len(rows)


def test_what_a_search_sees_bounds_its_steps() -> None:
    near = Call("<", (Call("abs", (Call("-", (Value("x"), Value("x", Seen(LAST, ("R",))))),)), Constant(0)))
    pattern = compiled("R Z* B Z* M", {"M": near}, {"x": "int"})

    def steps(rows: int) -> int:
        found = searched(pattern, ["RZBM"] * rows, [0] * rows)
        assert not len(found.starts)
        return found.steps

    # From each R once to the end and back: the square of the rows, where plain backtracking takes the cube.
    assert steps(200) <= 5 * steps(100)


def within(most: int, *, own: Seen = NOW, operator: str = "<=") -> Expression:
    """``x - LAST(R.x) <= most``."""
    return Call(operator, (Call("-", (Value("x", own), Value("x", Seen(LAST, ("R",))))), Constant(most)))


DEADLINES: list[tuple[Expression, list[int], str]] = [
    (within(3), [0, 3, 3], "1@1:RZM"),
    (within(3), [0, 3, 4], "1@1:RM"),
    (within(3, operator="<"), [0, 2, 3], "1@1:RM"),
    (within(3), [0, 4, 5], ""),
    # A column that falls has no deadline: the last row is near again.
    (within(3), [0, 9, 1], "1@1:RZM"),
    # Nor has a condition with another way to hold,
    (Call("or", (within(3), Call("=", (Value("x"), Constant(9))))), [0, 8, 9], "1@1:RZM"),
    # or one that looks at the row before the one asked about, or at the M before it.
    (within(3, own=Seen(shift=-1)), [0, 3, 9], "1@1:RZM"),
    (Call("not", (within(3),)), [0, 1, 9], "1@1:RZM"),
    (Call("and", (Call(">", (Value("x"), Constant(2))), within(3))), [0, 3, 9], "1@1:RM"),
]


@pytest.mark.parametrize(("condition", "column", "wanted"), DEADLINES)
def test_the_search_stops_where_a_row_is_too_far(condition: Expression, column: list[int], wanted: str) -> None:
    pattern = compiled("^ R Z* M", {"M": condition}, {"x": "int"})
    assert words(pattern, searched(pattern, ["RZM"] * 3, column)) == wanted


def test_a_deadline_moves_with_the_row_that_it_counts_from() -> None:
    # The second R, of row 3, is near enough for the M of row 4, which is too far from the first R.
    pattern = compiled("(R Z*)+ M", {"M": within(3)}, {"x": "int"})
    assert words(pattern, searched(pattern, ["R", "Z", "R", "M"], [0, 5, 6, 9])) == "1@1:RZRM"


def test_a_search_within_a_time_takes_steps_in_proportion_to_the_rows() -> None:
    pattern = compiled("AFTER MATCH SKIP TO NEXT ROW PATTERN (R Z* B Z* M)", {"M": within(30)}, {"x": "int"})

    def steps(rows: int) -> int:
        found = searched(pattern, ["RZB"] * rows, list(range(rows)))
        assert not len(found.starts)
        return found.steps

    assert steps(4000) <= 4.5 * steps(1000)


def test_a_search_that_takes_too_long_ends_with_an_error() -> None:
    total = Call("=", (Aggregate("sum", "x", ("A",)), Constant(1)))
    pattern = compiled("(A | B)+ C", {"C": total}, {"x": "int"})
    column = [2 << number for number in range(30)]
    with pytest.raises(
        TooManyStepsError, match=r"more than 10,000 steps in one partition.*make the pattern narrower"
    ) as error:
        searched(pattern, ["-"] * 3 + ["ABC"] * 27, column, most_steps=10_000)
    assert error.value.row == 3
    # Each partition has its own steps.
    assert searched(compiled("A"), ["A"] * 3, partitions=[0, 1, 2, 3], most_steps=2).numbers.tolist() == [1, 1, 1]


def test_a_long_program_over_many_rows_ends_with_an_error_too() -> None:
    with pytest.raises(TooManyStepsError, match="up to 102 at each row, as its quantifiers are written out"):
        searched(compiled("A{100} B"), ["A"] * 1000, most_steps=500)


def test_where_notes_would_be_too_large_a_table_takes_their_place() -> None:
    pattern = compiled("A+ A+ A+ B")
    rows = ["A"] * 2000
    noted, tabled, least = (searched(pattern, rows, most_notes=most).steps for most in (2001 * 8, 2001 * 8 - 1, 0))
    # There is room for all failures of so few rows.
    assert noted == tabled == least


@pytest.mark.parametrize(
    ("shape", "partitions", "size", "says"),
    [
        ((2, 3), [0, 3], 3, "holding has the shape (2, 3); it must have a row for each of 1 variables"),
        ((1, 3), [0, 4], 3, "end with the number of rows, 3"),
        ((1, 3), [1, 3], 3, "partitions must begin with 0"),
        ((1, 3), [0, 2, 1, 3], 3, "never fall"),
        ((1, 3), [0, 3], 2, "column 'x' has [2, 2] values, not 3"),
    ],
)
def test_arrays_that_do_not_fit_each_other(shape: tuple[int, int], partitions: list[int], size: int, says: str) -> None:
    columns = {"x": (np.zeros(size), np.full(size, True))}
    with pytest.raises(ArgumentError, match=re.escape(says)):
        match_rows(compiled("A"), np.full(shape, True), np.array(partitions), columns)


def test_a_column_that_is_not_given() -> None:
    pattern = compiled("A", {"A": Call("is null", (Value("x"),))}, {"x": "int"})
    with pytest.raises(ArgumentError, match="the conditions look at columns that are not given: x"):
        searched(pattern, ["A"])


def test_matches_with_too_many_rows_end_with_an_error() -> None:
    text = "AFTER MATCH SKIP TO NEXT ROW PATTERN (A+)"
    assert len(searched(compiled(text), ["A"] * 10, most_rows=55).rows) == 55
    with pytest.raises(TooManyStepsError, match="more than 54 rows together; skip past the last row") as error:
        searched(compiled(text), ["A"] * 10, most_rows=54)
    assert error.value.row == 9


def test_skipping_nowhere_shows_the_variable() -> None:
    text = "AFTER MATCH SKIP TO LAST b PATTERN (a b?)"
    with pytest.raises(SkipTargetError) as error:
        searched(compiled(text), ["-", "ab", "b", "a"], partitions=[0, 1, 4])
    assert str(error.value).splitlines() == [
        "line 1, column 26: AFTER MATCH SKIP TO 'b': a match has no row of 'b'; "
        "skip to a variable that each match has, or PAST LAST ROW",
        f"  {text}",
        f"  {' ' * 25}^",
    ]
    assert error.value.row == 3
    with pytest.raises(SkipTargetError, match="begins with 's', where the search would begin again") as error:
        searched(compiled("AFTER MATCH SKIP TO FIRST s PATTERN (a b) SUBSET s = (a, b)"), ["-", "a", "b"])
    assert error.value.row == 1


def test_a_quantifier_stops_at_an_iteration_without_a_row() -> None:
    # Perl's rule, ISO/IEC TR 19075-5, 7.2.8: nothing is preferred to A, and then the iterations end.
    assert answer("(A??)* B", "AB B AB") == "1@1:B 2@2:B 3@3:B"
    assert answer("(A??)*", "A A") == "1@1: 2@2:"
    assert answer("(A??){3} B", "A AB AB B") == "1@1:AB 2@3:B 3@4:B"
    assert answer("((A | B?) C?)* D", "C A D") == "1@1:CAD"
    assert answer("(^ | A)* B", "A A B") == "1@1:AAB"


def test_programs_share_what_goes_on_alike() -> None:
    # Places are the sets of arguments that are left: 2 ** 8 of 8, each with at most 8 ways, where 8! orders are 40,320.
    assert len(compiled("PERMUTE(A, B, C, D, E, F, G, H)").program.operation) < 2**8 * 8
    assert answer("PERMUTE(A, B, C, D, E, F, G, H)", "H G F E D C B A") == "1@1:HGFEDCBA"
    assert len(compiled("A | A").program.operation) == 2
    assert len(compiled("(A?)*").program.operation) <= 5
    assert len(compiled("(((A*)*)*)*").program.operation) <= 13


def test_all_ways_of_an_order_come_before_the_next_order() -> None:
    # PERMUTE(A+, B, C) is (A+ B C | A+ C B | …): a shorter A+ with B first comes before the longest with C first.
    assert answer("PERMUTE(A+, B, C)", "A AB C B") == "1@1:ABC"
    assert answer("PERMUTE(A+, B, C)", "A A C B") == "1@1:AACB"


def test_long_programs_are_refused() -> None:
    assert len(compiled(f"A{{{MAX_INSTRUCTIONS - 1}}}").program.operation) == MAX_INSTRUCTIONS
    for text in (f"A{{{MAX_INSTRUCTIONS}}}", "(A{1000} B){1000}", "((A?){,1000}){,1000} B", "A{1000000}", PERMUTED):
        with pytest.raises(UnsupportedOperatorError, match="more than 50,000 steps once its quantifiers"):
            compiled(text)
    arguments = ", ".join(f"v{number}" for number in range(17))
    with pytest.raises(UnsupportedOperatorError, match="PERMUTE takes 12 arguments at most, and here are 17"):
        compiled(f"PERMUTE({arguments})")
    # What takes nothing takes no steps.
    assert answer("(){1000000} A", "A") == "1@1:A"
    assert answer("((){1000000}){1000000}", "A") == "1@1:"


def test_patterns_nested_as_deep_as_may_be() -> None:
    text = "A"
    for _ in range(49):
        text = f"({text} | B C+)+"
    assert answer(text, "A B C") == "1@1:ABC"

"""The oracle of row patterns gives answers that were worked out by hand.

An answer is written as one word for each match: its number, its first row (counted from 1) and the variables of its
rows, in brackets those that are excluded: ``2@5:sd[u]``. An empty match ends behind the colon.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from naive.row_patterns import (
    Alternation,
    Concatenation,
    Condition,
    End,
    Excluded,
    Found,
    Pattern,
    Permutation,
    Quantified,
    Question,
    Row,
    Running,
    Skip,
    SkipError,
    Start,
    Variable,
    ways,
)

A, B, C, D = (Variable(name) for name in "ABCD")
EMPTY = Concatenation(())
PAST_LAST = Skip()


def then(*items: Pattern) -> Pattern:
    return Concatenation(items)


def either(*items: Pattern) -> Pattern:
    return Alternation(items)


def star(item: Pattern, *, reluctant: bool = False) -> Pattern:
    return Quantified(item, 0, None, reluctant)


def plus(item: Pattern, *, reluctant: bool = False) -> Pattern:
    return Quantified(item, 1, None, reluctant)


def maybe(item: Pattern, *, reluctant: bool = False) -> Pattern:
    return Quantified(item, 0, 1, reluctant)


def words(found: Found) -> str:
    """Matches as words, see above."""
    shown = []
    for match in found.matches:
        rows = "".join(f"[{name}]" if out else name for name, out in zip(match.labels, match.excluded, strict=True))
        shown.append(f"{match.number}@{match.start + 1}:{rows}")
    return " ".join(shown)


def letters(text: str) -> list[Row]:
    """Rows of a column `x`, a letter each."""
    return [{"x": letter} for letter in text]


def prices(*values: float | None) -> list[Row]:
    return [{"price": value} for value in values]


def is_letter(name: str) -> Condition:
    """``name AS x = 'name'`` in lower case, so that a row may be of one variable only."""
    return lambda run: run.rows[run.current]["x"] == name.lower()


OWN = {name: is_letter(name) for name in "ABCD"}


def asked(pattern: Pattern, text: str, skip: Skip = PAST_LAST, *, define: dict[str, Condition] = OWN) -> str:
    return words(Question(pattern, define, {}, skip).ask(letters(text)))


def falls(run: Running) -> bool:
    before = run.prev("price")
    return before is not None and run.rows[run.current]["price"] < before


def rises(run: Running) -> bool:
    before = run.prev("price")
    return before is not None and run.rows[run.current]["price"] > before


def test_ways_come_in_the_order_of_preferment() -> None:
    def written(pattern: Pattern, rows: int) -> list[str]:
        return ["".join(name for name, _ in way) for way in ways(pattern, 0, rows)]

    assert written(star(A), 3) == ["AAA", "AA", "A", ""]
    assert written(star(A, reluctant=True), 2) == ["", "A", "AA"]
    assert written(then(star(A), star(B)), 2) == ["AA", "AB", "A", "BB", "B", ""]
    # The first place where two ways differ decides: not the longest.
    assert written(either(A, then(A, B)), 2) == ["A", "AB"]
    assert written(star(either(A, B)), 2) == ["AA", "AB", "A", "BA", "BB", "B", ""]
    assert written(Permutation((A, B, C)), 3) == ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"]
    # Arguments may be patterns, whose own order comes second.
    assert written(Permutation((A, maybe(B))), 3) == ["AB", "A", "BA", "A"]
    assert written(Quantified(A, 1, 2), 3) == ["AA", "A"]
    assert written(Quantified(A, 2, None, True), 3) == ["AA", "AAA"]
    assert written(Quantified(A, 0, 2, True), 3) == ["", "A", "AA"]
    assert written(then(Start(), A, End()), 1) == ["A"]
    assert written(then(A, Start()), 1) == []


def test_an_iteration_without_a_row_is_the_last_one() -> None:
    def written(pattern: Pattern, rows: int) -> list[str]:
        return ["".join(name for name, _ in way) for way in ways(pattern, 0, rows)]

    # One that takes nothing, or none: both give no row.
    assert written(star(EMPTY), 2) == ["", ""]
    # A A, then nothing or no more; A, then nothing or no more; nothing, or none.
    assert written(star(maybe(A)), 2) == ["AA", "AA", "A", "A", "", ""]
    assert written(star(maybe(A, reluctant=True)), 2) == ["", "A", "AA", "AA", "A", ""]
    # Before the least number is reached, others may follow. The eight ways of (A?){2,3}, ISO/IEC TR 19075-5, 7.2.8,
    # where - takes nothing: AAA, AA-, AA, A-, -AA, -A-, -A, --.
    assert written(Quantified(maybe(A), 2, 3), 3) == ["AAA", "AA", "AA", "A", "AA", "A", "A", ""]
    assert written(Quantified(maybe(A), 2, 2), 2) == ["AA", "A", "A", ""]
    # AA-, AA of two rows; A-, A; -.
    assert written(Quantified(maybe(A), 1, 3), 2) == ["AA", "AA", "A", "A", ""]


def test_a_v_of_prices() -> None:
    pattern = then(Variable("s"), plus(Variable("d")), plus(Variable("u")))
    question = Question(pattern, {"d": falls, "u": rises})
    #                       1   2   3   4   5   6   7   8   9   10
    found = question.ask(prices(90, 80, 70, 80, 80, 70, 60, 70, 75, 75))
    # s takes any row: 1, with two falls and a rise to 4. From 5 on: 70, 60 fall, 70, 75 rise, the second 75 does not.
    assert words(found) == "1@1:sddu 2@5:sdduu"
    assert found.unmatched == (9,)


def test_prices_of_two_vs_that_share_their_peak() -> None:
    pattern = then(Variable("s"), plus(Variable("d")), plus(Variable("u")))
    rows = prices(90, 80, 90, 80, 90)
    define = {"d": falls, "u": rises}
    # Past the last row, the second V has lost its first row: 4 may be s, and then nothing falls.
    assert words(Question(pattern, define).ask(rows)) == "1@1:sdu"
    assert words(Question(pattern, define, {}, Skip("to last", "u")).ask(rows)) == "1@1:sdu 2@3:sdu"
    # From 2, no fall follows: 3 rises.
    assert words(Question(pattern, define, {}, Skip("to next row")).ask(rows)) == "1@1:sdu 2@3:sdu"


@pytest.mark.parametrize(
    ("skip", "wanted"),
    [
        (Skip("past last row"), "1@1:ABBC"),
        (Skip("to next row"), "1@1:ABBC 2@2:ABC 3@4:ABC"),
        (Skip("to first", "C"), "1@1:ABBC 2@4:ABC"),
        (Skip("to last", "C"), "1@1:ABBC 2@4:ABC"),
        # From 3 on, the first B would have to be row 4, which rises.
        (Skip("to last", "B"), "1@1:ABBC 2@4:ABC"),
        (Skip("to first", "B"), "1@1:ABBC 2@2:ABC 3@4:ABC"),
    ],
)
def test_where_the_search_goes_on(skip: Skip, wanted: str) -> None:
    pattern = then(A, plus(B), plus(C), maybe(D))
    define: dict[str, Condition] = {"B": falls, "C": rises, "D": lambda run: False}
    found = Question(pattern, define, {}, skip).ask(prices(90, 80, 70, 80, 70, 80))
    assert words(found) == wanted


def test_skipping_to_a_variable_that_the_match_has_not_is_an_error() -> None:
    question = Question(then(A, plus(B), maybe(C)), OWN, {}, Skip("to last", "C"))
    with pytest.raises(SkipError, match="absent, match at row 1"):
        question.ask(letters("xabbx"))
    assert words(question.ask(letters("xabbcx"))) == "1@2:ABBC"


def test_skipping_to_the_first_row_of_the_match_is_an_error() -> None:
    with pytest.raises(SkipError, match="first row, match at row 0"):
        Question(then(plus(A), B), OWN, {}, Skip("to first", "A")).ask(letters("aab"))
    # The last A is another row, until a match has a single one.
    with pytest.raises(SkipError, match="first row, match at row 1"):
        Question(then(plus(A), B), OWN, {}, Skip("to last", "A")).ask(letters("aab"))


def test_a_subset_stands_for_the_rows_of_its_variables() -> None:
    question = Question(then(A, plus(either(B, C))), OWN, {"S": ("B", "C")}, Skip("to last", "S"))
    assert words(question.ask(letters("abcb"))) == "1@1:ABCB"
    sum_of: dict[str, Condition] = {"D": lambda run: sum(run.values("S", "x")) == 5}
    pattern = then(plus(either(B, C)), D)
    # 1 + 4 = 5: the greedy way gives rows back until the sum fits; D itself is not of S.
    rows = [{"x": value} for value in (1, 4, 9, 9)]
    assert words(Question(pattern, sum_of, {"S": ("B", "C")}).ask(rows)) == "1@1:BBD"


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        (star(B), "abba", "1@1: 2@2:BB 3@4:"),
        (plus(B), "abba", "1@2:BB"),
        (maybe(B, reluctant=True), "bb", "1@1: 2@2:"),
        (either(EMPTY, A), "aa", "1@1: 2@2:"),
        (either(A, EMPTY), "ab", "1@1:A 2@2:"),
        (EMPTY, "a", "1@1:"),
        (star(then(B, star(EMPTY))), "abba", "1@1: 2@2:BB 3@4:"),
        (Start(), "aa", "1@1:"),
        (End(), "aa", ""),
        (either(star(Start()), B), "bb", "1@1: 2@2:"),
        (either(plus(Start()), B), "abb", "1@1: 2@2:B 3@3:B"),
        (then(B, A, plus(End())), "bbaba", "1@4:BA"),
        (then(Start(), star(A), B), "aab", "1@1:AAB"),
        (then(Start(), B), "ab", ""),
    ],
)
def test_empty_matches_and_anchors(pattern: Pattern, text: str, wanted: str) -> None:
    assert asked(pattern, text) == wanted


def test_rows_of_no_match() -> None:
    question = Question(then(A, Quantified(B, 2, 2)), {"B": falls}, {}, Skip("to next row"))
    found = question.ask(prices(100, 100, 90, 80, 70, 100))
    # 4 and 5 begin nothing, but were rows of matches before.
    assert words(found) == "1@2:ABB 2@3:ABB"
    assert found.unmatched == (0, 5)
    assert Question(star(B), {"B": falls}).ask(prices(1, 2)).unmatched == ()


def test_excluded_rows_are_of_the_match() -> None:
    assert asked(then(A, Excluded(plus(B)), C), "abbc") == "1@1:A[B][B]C"
    assert asked(star(Excluded(either(A, Excluded(B)))), "ab") == "1@1:[A][B]"
    # After a match in full: excluded rows at its end are skipped, too.
    assert asked(then(A, Excluded(B)), "abab", Skip("past last row")) == "1@1:A[B] 2@3:A[B]"


def test_greedy_gives_back_and_reluctant_takes_more() -> None:
    anything: dict[str, Condition] = {"B": is_letter("B")}
    assert asked(then(star(A), B), "xbxb", define=anything) == "1@1:AAAB"
    assert asked(then(star(A, reluctant=True), B), "xbxb", define=anything) == "1@1:AB 2@3:AB"
    assert asked(then(Quantified(A, 2, 3), star(C)), "xxxx", define=anything) == "1@1:AAAC"
    assert asked(then(Quantified(A, 2, 3, True), B), "xxxb", define=anything) == "1@1:AAAB"


def test_the_left_alternative_wins_though_it_is_shorter() -> None:
    assert asked(either(A, then(A, B)), "abab") == "1@1:A 2@3:A"
    assert asked(then(either(A, then(A, B)), C), "abc") == "1@1:ABC"
    assert asked(Permutation((A, B, C)), "cab" + "bca") == "1@1:CAB 2@4:BCA"
    # Of all orders that fit, the one that comes first as the arguments are written.
    assert asked(Permutation((B, A)), "xx", define={}) == "1@1:BA"


def test_conditions_see_the_match_so_far() -> None:
    first = then(A, plus(B))
    below: dict[str, Condition] = {"B": lambda run: run.rows[run.current]["x"] < run.first("A", "x")}
    rows = [{"x": value} for value in (5, 4, 4, 6, 1)]
    assert words(Question(first, below).ask(rows)) == "1@1:ABB 2@4:AB"
    up_to_ten: dict[str, Condition] = {"A": lambda run: sum(run.values("A", "x")) <= 10}
    # 5 + 4 = 9, 4 + 6 = 10, and 1 alone.
    assert words(Question(plus(A), up_to_ten).ask(rows)) == "1@1:AA 2@3:AA 3@5:A"
    one_earlier: dict[str, Condition] = {"B": lambda run: run.last("B", "x", 1) in (None, run.rows[run.current]["x"])}
    assert words(Question(plus(B), one_earlier).ask(rows)) == "1@1:B 2@2:BB 3@4:B 4@5:B"
    by_number: dict[str, Condition] = {"A": lambda run: run.number < 3}
    assert words(Question(A, by_number).ask(rows)) == "1@1:A 2@2:A"


def test_a_condition_that_is_null_does_not_hold() -> None:
    unknown: dict[str, Condition] = {"A": lambda run: None if run.rows[run.current]["x"] is None else True}
    rows: Sequence[Row] = [{"x": None}, {"x": 1}]
    assert words(Question(A, unknown).ask(rows)) == "1@2:A"


def test_no_rows_no_matches() -> None:
    assert Question(star(A)).ask([]) == Found((), ())

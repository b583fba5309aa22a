"""What a user reads who mistypes a pattern: the place, what was found, what was expected."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternlake.udfs.errors import PatternSyntaxError
from patternlake.udfs.language.query.parser import MAX_NESTING, parse

UNITS = "EVENTS (or UNIT), MILLISECOND, SEC, MIN, HOUR, DAY or WEEK"
NAME_AFTER_NAME = "write ';' (then), ',' (directly next) or AS (another name) between them"
REPETITION = (
    "a repetition stands once, right behind what it repeats and before AS and @; parentheses repeat a repetition: (A+)+"
)
SHOWN = "as the page 'Absence' shows"
BEGINS = (
    "a match may begin anywhere: '^' is not in the language; write DEFINE A AS name = 'A' AND position = 1 for the "
    f"stream's first event; match_pattern takes '!any ; A' with DEFINE any AS TRUE, for nothing before, {SHOWN}"
)
ENDS = (
    "a match may end anywhere: '$' is not in the language; match_pattern takes 'A ; !any' with DEFINE any AS TRUE, "
    f"for nothing after, {SHOWN}"
)
QUOTED = "names with such characters stand in quotes:"
ORDER = "the order is DEFINE, WHERE, MEASURES, PARTITION BY, WITHIN, SLIDE"

MISTAKES = [
    # Operands that are missing.
    ("", 1, "expected a name or '(', found the end of the text"),
    ("PATTERN", 8, "expected a name or '(' after 'PATTERN', found the end of the text"),
    ("A ;  ", 4, "expected a name or '(' after ';', found the end of the text"),
    ("A ; ; B", 5, "expected a name or '(' after ';', found ';'"),
    ("A AND", 6, "expected a name or '(' after 'AND', found the end of the text"),
    ("A && B", 4, "expected a name or '(' after '&', found '&'"),
    ("!", 2, "expected a name or '(' after '!', found the end of the text"),
    ("SEQ()", 5, "expected a name or '(' after '(', found ')'"),
    ("SEQ(A,)", 7, "expected a name or '(' after ',', found ')'"),
    ("A ; OR B", 8, "expected '(' after OR, found 'B'"),
    ("+A", 1, "expected a name or '(', found '+'; a repetition stands behind what it repeats, as in A+"),
    # Operators that are missing.
    ("A B", 3, f"found 'B' right after 'A'; {NAME_AFTER_NAME}; in quotes it is one name: 'A B'"),
    (
        "pay ; add to cart WITHIN 1 HOUR",
        11,
        f"found 'to' right after 'add'; {NAME_AFTER_NAME}; in quotes it is one name: 'add to cart'",
    ),
    ("a b+ c", 3, f"found 'b' right after 'a'; {NAME_AFTER_NAME}; in quotes it is one name: 'a b'"),
    ("A 'B C'", 3, f"found 'B C' right after 'A'; {NAME_AFTER_NAME}"),
    ("SEQ(A B)", 7, f"found 'B' right after 'A'; {NAME_AFTER_NAME}; in quotes it is one name: 'A B'"),
    ("A b[3]", 3, f"found 'b' right after 'A'; {NAME_AFTER_NAME}; in quotes it is one name: 'A b'"),
    ("A 3", 3, f"found '3' right after 'A'; {NAME_AFTER_NAME}; a count is written A[3]"),
    ("A (B ; C)", 3, "found '(' right after 'A'; write ';' (then) or ',' (directly next) between them"),
    ("A !B", 3, "found '!' right after 'A'; write ';' (then) or ',' (directly next) between them"),
    ("A not B", 3, "found 'not' right after 'A'; write ';' (then) or ',' (directly next) between them"),
    # Names.
    ("where ; B", 1, "expected a name or '(', found 'where'; a keyword is a name only in quotes: 'where'"),
    (
        "A ; Pattern ; B",
        5,
        "expected a name or '(' after ';', found 'Pattern'; a keyword is a name only in quotes: 'Pattern'",
    ),
    ("A AS by ; B AS as", 16, "expected a name after AS, found 'as'; a keyword is a name only in quotes: 'as'"),
    (
        "check-in ; B",
        6,
        "found '-', expected ';', ',', '|', '&', a clause or the end of the text; "
        "names with such characters stand in quotes: 'check-in'",
    ),
    ("“A” ; B", 1, "expected a name or '(', found '“'; names are quoted with straight single quotes: 'name'"),
    ('"A" ; B', 1, "expected a name or '(', found '\"'; names are quoted with straight single quotes: 'name'"),
    ("s1 : x", 4, "found ':'; what a name stands for goes to DEFINE, as in DEFINE s1 AS …"),
    ("A ; 'B", 5, "this ' is never closed; a ' inside quotes is doubled"),
    ("A ; ''", 5, "a quoted name cannot be empty"),
    ("A\u200b;B", 2, "found the character U+200B, expected ';', ',', '|', '&', a clause or the end of the text"),
    # Anchors.
    ("^ A", 1, f"expected a name or '(', found '^'; {BEGINS}"),
    ("^A ; B", 1, f"expected a name or '(', found '^'; {BEGINS}"),
    ("A ; (^ B)", 6, f"expected a name or '(' after '(', found '^'; {BEGINS}"),
    ("A $", 3, f"found '$', expected ';', ',', '|', '&', a clause or the end of the text; {ENDS}"),
    ("A ; B$", 6, f"found '$', expected ';', ',', '|', '&', a clause or the end of the text; {ENDS}"),
    ("A$ WITHIN 5 MIN", 2, f"found '$', expected ';', ',', '|', '&', a clause or the end of the text; {ENDS}"),
    ("(A ; B $)", 8, f"found '$', expected ';', ',', '|', '&' or ')'; {ENDS}"),
    ("A ; $x", 5, "expected a name or '(' after ';', found '$'"),
    ("a^b", 2, f"found '^', expected ';', ',', '|', '&', a clause or the end of the text; {QUOTED} 'a^b'"),
    # Parentheses.
    ("A ; (B", 5, "this '(' is never closed"),
    ("SEQ(A, B", 4, "this '(' is never closed"),
    ("A)", 2, "this ')' closes nothing"),
    ("(A]", 3, "found ']', expected ')' first"),
    ("(A WITHIN 5 MIN", 4, "found 'WITHIN' inside parentheses; close them with ')' first"),
    # Repetitions and other names.
    ("A++", 3, f"found '+'; {REPETITION}"),
    ("A[2][3]", 5, f"found '['; {REPETITION}"),
    ("A AS x+", 7, f"found '+'; {REPETITION}"),
    ("A[]", 2, "[ ] needs a count, as in A[3]; a list of events is named behind its repetition, as in A+ a[]"),
    ("A[n]", 3, "expected a count inside [ ], as in A[3], found 'n'"),
    ("A[2,3]", 4, "expected ']' after the count, found ','"),
    ("A[0]", 2, "[0] repeats nothing; the count must be 1 or more"),
    ("A{0}", 2, "{0} repeats nothing; the greatest count must be 1 or more"),
    ("A{0,0}", 2, "{0,0} repeats nothing; the greatest count must be 1 or more"),
    ("A{3,2}", 2, "{3,2} counts down; write the smaller count first"),
    ("A{,}", 4, "expected a count after ',', found '}'"),
    ("A UNTIL B", 3, "UNTIL ends the collecting of a repetition; write it behind one, as in B+ UNTIL C"),
    ("A+ UNTIL (B ; C)", 10, "UNTIL takes a name, or several in parentheses, as in B+ UNTIL (C | D)"),
    ("3 OF (A, B)", 1, "3 OF 2 never comes; name as many at least"),
    ("0 OF (A, B)", 1, "0 OF asks for nothing; the count must be 1 or more"),
    ("A MEASURES t(A)", 12, "a measure needs a name: write expression AS name, as in LAST(b.x) AS highest"),
    ("A MEASURES AS n", 12, "a measure needs a name: write expression AS name, as in LAST(b.x) AS highest"),
    ("A MEASURES t(A) AS n, A.x AS N", 30, "measure N is named twice"),
    ("A MEASURES t(A) AS n,", 22, "expected a measure after ',', found the end of the text"),
    ("A{2;3}", 4, "expected ',' or '}' after the count, found ';'"),
    ("A{2,3;", 6, "expected '}' after the counts, found ';'"),
    ("A{2,x}", 5, "expected a count or '}' after ',', found 'x'"),
    ("A[1000001]", 3, "a repetition counts to 1000000 at most"),
    ("A[" + "9" * 5000 + "]", 3, "a repetition counts to 1000000 at most"),
    ("A AS x AS y", 8, "found 'AS'; another name stands once, behind the repetition and before @, as in A+ AS a @(…)"),
    ("A @(x) AS y", 8, "found 'AS'; another name stands once, behind the repetition and before @, as in A+ AS a @(…)"),
    ("(A AS x) AS y", 13, "y would be a second name here; the first is x"),
    ("A AS x[]", 6, "write AS x or x[], not both"),
    # Time conditions.
    ("A @ t1 < 5", 5, "expected '(' and a condition on times after '@', as in @(t(b) - t(a) < 5 MIN), found 't1'"),
    ("A @()", 5, "expected a predicate after '@(', found ')'"),
    ("A @(t1 - (t2", 10, "this '(' is never closed"),
    # DEFINE, WHERE, PARTITION BY.
    ("A DEFINE A", 11, "expected AS and a predicate after A, found the end of the text"),
    ("A DEFINE A AS", 14, "expected a predicate after A AS, found the end of the text"),
    ("A DEFINE A AS x > 1,", 21, "expected a definition (name AS predicate) after ',', found the end of the text"),
    ("A ; B DEFINE A AS x, B y", 24, "expected AS and a predicate after B, found 'y'"),
    ("A DEFINE A AS x, A AS y", 18, "A is defined twice"),
    ("A DEFINE B AS x", 10, "B is defined, but the pattern has no event of that name"),
    ("A AS a DEFINE a AS x", 15, "a is another name (AS) of an event; DEFINE takes the name before AS"),
    ("A DEFINE A AS x DEFINE A AS y", 17, "a second DEFINE; put ',' between definitions"),
    ("A WHERE", 8, "expected a predicate after WHERE, found the end of the text"),
    ("A WHERE WITHIN 5 MIN", 9, "expected a predicate after WHERE, found 'WITHIN'"),
    ("A WHERE x > 1 WHERE y", 15, "a second WHERE; join predicates with AND"),
    ("A WHERE (x", 9, "this '(' is never closed"),
    ("A WHERE x)", 10, "this ')' closes nothing"),
    ("A WHERE (x]", 11, "found ']', expected ')' first"),
    ("A WHERE x = 'it's'", 18, "this ' is never closed; a ' inside quotes is doubled"),
    ("A WHERE x DEFINE A AS y", 11, f"DEFINE must stand before WHERE; {ORDER}"),
    ("A PARTITION x", 13, "expected BY after PARTITION, found 'x'"),
    ("A PARTITION BY", 15, "expected a column to partition by, found the end of the text"),
    ("A PARTITION BY x, x", 19, "column x is named twice"),
    ("A PARTITION BY x y", 18, "found 'y', expected ',', WITHIN or the end of the text"),
    # WITHIN and SLIDE.
    ("A WITHIN", 9, "expected a whole number greater than 0 after WITHIN, found the end of the text"),
    ("A WITHIN min", 10, "expected a whole number greater than 0 after WITHIN, found 'min'"),
    ("A WITHIN -5 MIN", 10, "expected a whole number greater than 0 after WITHIN, found '-'"),
    ("A WITHIN 0 MIN", 10, "WITHIN must be greater than 0"),
    ("A WITHIN 1.5 HOUR", 10, "WITHIN takes a whole number; use a smaller unit, as 90 MIN for one hour and a half"),
    ("A WITHIN 5", 11, f"expected a unit after WITHIN 5: {UNITS}, found the end of the text"),
    ("A WITHIN 5 SLIDE 5 MIN", 12, f"expected a unit after WITHIN 5: {UNITS}, found 'SLIDE'"),
    ("A WITHIN 5 lots", 12, f"'lots' is not a unit; expected {UNITS}"),
    ("A WITHIN 1month", 11, f"'month' is not a unit; expected {UNITS} (months and years have no fixed length)"),
    ("A WITHIN 99999999999999 WEEK", 10, "WITHIN is longer than 9223372036854775807 events or microseconds"),
    ("A WITHIN " + "9" * 5000 + " EVENTS", 10, "WITHIN is longer than 9223372036854775807 events or microseconds"),
    ("A WITHIN 5 MIN WITHIN 6 MIN", 16, "a second WITHIN; a query has one"),
    ("A WITHIN 5 MIN WHERE x", 16, f"WHERE must stand before WITHIN; {ORDER}"),
    ("A WITHIN 5 MIN ; B", 16, "found ';', expected SLIDE or the end of the text"),
    ("A SLIDE 5 MIN", 3, "SLIDE needs a window: write WITHIN before it"),
    ("A WITHIN 5 MIN SLIDE 0 MIN", 22, "SLIDE must be greater than 0"),
    ("A WITHIN 5 MIN SLIDE 3 EVENTS", 16, "WITHIN and SLIDE must both count events or both be times"),
    ("A WITHIN 5 MIN SLIDE 1 MIN x", 28, "found 'x', expected the end of the text"),
]


@pytest.mark.parametrize(("text", "column", "message"), MISTAKES)
def test_a_mistake_is_named_with_its_place_and_what_would_be_right(text: str, column: int, message: str) -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        parse(text)
    assert (caught.value.message, caught.value.line, caught.value.column) == (message, 1, column)


def test_the_line_is_shown_with_a_caret() -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        parse("PATTERN A ;\n  B C\nWITHIN 5 MIN")
    assert str(caught.value) == (
        "line 2, column 5: found 'C' right after 'B'; "
        "write ';' (then), ',' (directly next) or AS (another name) between them; in quotes it is one name: 'B C'\n"
        "    B C\n"
        "      ^"
    )


def test_the_end_of_the_text_is_the_end_of_its_last_word() -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        parse("A ; B WITHIN 5\n\n  ")
    assert (caught.value.line, caught.value.column) == (1, 15)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "A" + ")" * 5000,
        "!" * 5000 + "A",
        "SEQ(" * 5000 + "A" + ")" * 5000,
        "NOT " * 5000 + "A",
        "(" * (MAX_NESTING + 1) + "A" + ")" * (MAX_NESTING + 1),
        "(A ; B , C | D & !" * 40 + "E" + ")+" * 40,
    ],
)
def test_nesting_has_a_stated_bound(text: str) -> None:
    with pytest.raises(PatternSyntaxError, match="the pattern is nested more than 100 levels deep"):
        parse(text)


def test_a_very_long_name_is_shown_shortened() -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        parse("x" * 10_000 + " B")
    assert caught.value.message == f"found 'B' right after '{'x' * 39}…'; {NAME_AFTER_NAME}"
    assert caught.value.column == 10_002
    assert all(len(line) < 200 for line in str(caught.value).splitlines())


TEXTS = (
    """A B 'x y' 5 5min + * ? [ ] [] [3] {2,3} ( ) ; , | & ! @( @ AS SEQ( AND OR NOT PATTERN DEFINE WHERE """
    """PARTITION BY WITHIN SLIDE EVENTS . : - $x ' " ` \\ é \0"""
)
PIECES = st.one_of(st.sampled_from([*TEXTS.split(" "), "\n"]), st.text(max_size=3))


@settings(max_examples=1500)
@given(st.lists(PIECES, max_size=14).map(" ".join))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    try:
        parse(text)
        return
    except PatternSyntaxError as error:
        refused = error
    assert 0 <= refused.start <= refused.end <= len(text)
    assert str(refused).startswith(f"line {refused.line}, column {refused.column}: ")

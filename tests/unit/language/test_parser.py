"""What a pattern's text means: the tree that it is read as."""

from __future__ import annotations

import pytest

from patternlake.udfs.language.query.parser import MAX_NESTING, parse
from patternlake.udfs.language.query.tree import (
    Conjunction,
    Contiguous,
    Disjunction,
    Event,
    Extent,
    Negation,
    Node,
    Repetition,
    Sequence,
    TimeCondition,
)


def event(name: str, alias: str | None = None) -> Event:
    return Event(name=name, alias=alias)


A, B, C, D, E = (event(name) for name in "ABCDE")


def seq(*items: Node) -> Sequence:
    return Sequence(items=items)


def run(*items: Node) -> Contiguous:
    return Contiguous(items=items)


def either(*items: Node) -> Disjunction:
    return Disjunction(items=items)


def both(*items: Node) -> Conjunction:
    return Conjunction(items=items)


def no(*items: Node) -> Negation:
    return Negation(items=items)


def plus(item: Node, alias: str | None = None, indexed: bool = False) -> Repetition:
    return Repetition(item=item, form="+", minimum=1, maximum=None, alias=alias, indexed=indexed)


def times(item: Node, count: int, alias: str | None = None, indexed: bool = False) -> Repetition:
    return Repetition(item=item, form="[n]", minimum=count, maximum=count, alias=alias, indexed=indexed)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("A", A),
        ("PATTERN A", A),
        ("pattern A ; B", seq(A, B)),
        ("A ; B , C", seq(A, run(B, C))),
        ("A, B | C, D", run(A, either(B, C), D)),
        ("A | B & C", either(A, both(B, C))),
        ("A & !B", both(A, no(B))),
        ("A or B AND C Or D", either(A, both(B, C), D)),
        ("A ∨ B ∧ C", either(A, both(B, C))),
        ("A ; ! B ; C", seq(A, no(B), C)),
        ("A ; NOT B ; C", seq(A, no(B), C)),
        ("!!A", no(no(A))),
        ("NOT ! A", no(no(A))),
        ("!A+", no(plus(A))),
        ("(A)", A),
        ("((A))", A),
        ("(A ; B) , C", run(seq(A, B), C)),
        ("(A ; B) ; C", seq(seq(A, B), C)),
    ],
)
def test_operators_bind_from_semicolon_the_loosest_to_not_the_tightest(text: str, pattern: Node) -> None:
    assert parse(text).pattern == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("SEQ(A, B)", seq(A, B)),
        ("seq(A)", A),
        ("AND(A, B, C)", both(A, B, C)),
        ("OR(A)", A),
        ("NOT(A)", no(A)),
        ("NOT(B, C)", no(B, C)),
        ("! (B, C)", no(run(B, C))),
        ("SEQ(A, (B, C))", seq(A, run(B, C))),
        ("NOT((B, C))", no(run(B, C))),
        ("SEQ(A ; B, C)", seq(seq(A, B), C)),
        ("SEQ(A, OR(B, C & D))", seq(A, either(B, both(C, D)))),
        ("SEQ(A, !B, C)", seq(A, no(B), C)),
        ("A AND AND(B, C)", both(A, both(B, C))),
        ("A, AND(B, C), D", run(A, both(B, C), D)),
        ("A AND (B ; C)", both(A, seq(B, C))),
        ("NOT(A)+", plus(no(A))),
    ],
)
def test_commas_directly_inside_a_function_separate_its_arguments(text: str, pattern: Node) -> None:
    assert parse(text).pattern == pattern


@pytest.mark.parametrize(
    ("text", "form", "minimum", "maximum"),
    [
        ("A+", "+", 1, None),
        ("A *", "*", 0, None),
        ("A?", "?", 0, 1),
        ("A[3]", "[n]", 3, 3),
        ("A [ 1 ]", "[n]", 1, 1),
        ("A{4}", "{}", 4, 4),
        ("A{2,}", "{}", 2, None),
        ("A{0, 5}", "{}", 0, 5),
        ("A{0,}", "{}", 0, None),
        ("A{,5}", "{}", 0, 5),
    ],
)
def test_repetitions(text: str, form: str, minimum: int, maximum: int | None) -> None:
    assert parse(text).pattern == Repetition(item=A, form=form, minimum=minimum, maximum=maximum)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("A AS a", event("A", "a")),
        ("A as a ; B", seq(event("A", "a"), B)),
        ("A b[]", Event(name="A", alias="b", indexed=True)),
        ("e+ e[]", plus(event("e"), "e", indexed=True)),
        ("check + c[ ]", plus(event("check"), "c", indexed=True)),
        ("A[3] b[]", times(A, 3, "b", indexed=True)),
        ("A[3] AS b", times(A, 3, "b")),
        ("(A AS a)+", plus(event("A", "a"))),
        ("(A) AS a", event("A", "a")),
        ("(A ; B) AS g", Sequence(items=(A, B), alias="g")),
        ("(A ; B)+", plus(seq(A, B))),
        ("(A+)+", plus(plus(A))),
    ],
)
def test_another_name_stands_behind_the_repetition(text: str, pattern: Node) -> None:
    assert parse(text).pattern == pattern


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("'a name'", "a name"),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("'or'", "or"),
        ("'late:ORD'", "late:ORD"),
        ("147073", "147073"),
        ("3rd", "3rd"),
        ("_", "_"),
        ("événement", "événement"),
        ("イベント", "イベント"),
        ("событие_1", "событие_1"),
        ("x" * 10_000, "x" * 10_000),
        ("'" + "y z" * 10_000 + "'", "y z" * 10_000),
        ("pattern pattern1", "pattern1"),
    ],
)
def test_names_are_words_of_any_script_or_stand_in_quotes(text: str, name: str) -> None:
    assert parse(text).pattern == event(name)


def test_names_are_case_sensitive_and_keywords_are_not() -> None:
    assert parse("Late ; late").pattern == seq(event("Late"), event("late"))
    assert parse("sEq(A, B) wItHiN 5 EvEnTs") == parse("SEQ(A, B) WITHIN 5 EVENTS")


def test_time_conditions_are_kept_as_text_with_their_place() -> None:
    text = "s1 ; s2 AS x @( t(s2) - t(s1) < 3 SEC )@(f(')') > (1)) ; s3"
    conditions = parse(text).pattern.children()[1].conditions
    assert conditions == (TimeCondition("t(s2) - t(s1) < 3 SEC"), TimeCondition("f(')') > (1)"))
    assert [text[one.span.start : one.span.end] for one in conditions] == [one.text for one in conditions]


def test_a_condition_on_a_group_belongs_to_the_group() -> None:
    assert parse("(A ; B) @(x)").pattern == Sequence(items=(A, B), conditions=(TimeCondition("x"),))
    assert parse("A ; B @(x)").pattern == seq(A, Event(name="B", conditions=(TimeCondition("x"),)))


def test_predicates_are_kept_as_written_with_their_place() -> None:
    text = (
        "a ; b DEFINE a AS x IN (1, 2) AND y = 'WHERE, b AS c',  b AS CAST(z AS INT) > 2\n"
        ' WHERE  a.within > b.x  OR `SLIDE` = "it\\" WITHIN" PARTITION BY k, \'a b\' WITHIN 5 MIN'
    )
    query = parse(text)
    assert [(one.name, one.predicate) for one in query.define] == [
        ("a", "x IN (1, 2) AND y = 'WHERE, b AS c'"),
        ("b", "CAST(z AS INT) > 2"),
    ]
    assert query.where == 'a.within > b.x  OR `SLIDE` = "it\\" WITHIN"'
    assert query.partition == ("k", "a b")
    assert query.within == Extent(300_000_000, counted=False)
    places = [(one.predicate_span, one.predicate) for one in query.define] + [(query.where_span, query.where)]
    assert all(text[span.start : span.end] == kept for span, kept in places)


@pytest.mark.parametrize(
    ("text", "amount", "counted"),
    [
        ("5 EVENTS", 5, True),
        ("1 event", 1, True),
        ("5 UNIT", 5, True),
        ("5000 unit", 5000, True),
        ("7units", 7, True),
        ("20 MILLISECOND", 20_000, False),
        ("10 SEC", 10_000_000, False),
        ("10 seconds", 10_000_000, False),
        ("5min", 300_000_000, False),
        ("5 MINUTES", 300_000_000, False),
        ("2 hours", 7_200_000_000, False),
        ("1 day", 86_400_000_000, False),
        ("1 week", 604_800_000_000, False),
        ("2Weeks", 1_209_600_000_000, False),
    ],
)
def test_windows_count_events_or_time(text: str, amount: int, counted: bool) -> None:
    assert parse(f"A WITHIN {text}").within == Extent(amount, counted)
    assert parse(f"A WITHIN {text} SLIDE {text}").slide == Extent(amount, counted)


def test_every_part_knows_its_text() -> None:
    text = " SEQ( A , (B | C)+ AS x , !D ) WITHIN 5min SLIDE 1 MIN"
    query = parse(text)
    written = {type(node).__name__: text[node.span.start : node.span.end] for node in query.pattern.walk()}
    assert written == {
        "Sequence": "SEQ( A , (B | C)+ AS x , !D )",
        "Repetition": "(B | C)+ AS x",
        "Disjunction": "(B | C)",
        "Negation": "!D",
        "Event": "D",
    }
    signs = {type(node).__name__: text[node.sign.start : node.sign.end] for node in query.pattern.walk()}
    assert signs == {"Sequence": "SEQ", "Repetition": "+", "Disjunction": "|", "Negation": "!", "Event": "D"}
    assert query.within is not None
    assert query.slide is not None
    assert text[query.within.span.start : query.within.span.end] == "WITHIN 5min"
    assert text[query.slide.span.start : query.slide.span.end] == "SLIDE 1 MIN"


def test_long_sequences_and_the_deepest_nesting_are_read() -> None:
    assert len(parse(" ; ".join("A" * 20_000)).pattern.children()) == 20_000
    assert parse("(" * MAX_NESTING + "A" + ")" * MAX_NESTING).pattern == A
    deep = parse("(" * MAX_NESTING + "A" + ")+" * MAX_NESTING)
    assert deep == parse(deep.text)


PRINTED = {
    "PATTERN Google; Microsoft+\nWHERE Google.value >100\nWITHIN 5 UNIT": seq(
        event("Google"), plus(event("Microsoft"))
    ),
    "PATTERN Google; Microsoft [3] and Del WITHIN 10 SEC": seq(
        event("Google"), both(times(event("Microsoft"), 3), event("Del"))
    ),
    "PATTERN 147073; 56437+ WITHIN 5000 unit": seq(event("147073"), plus(event("56437"))),
    "PATTERN  check + c[ ]\nWHERE       c[i].src = c[i - 1].dest\nWITHIN     1 week SLIDE 1 day": plus(
        event("check"), "c", indexed=True
    ),
    "SEQ(A, AND(B, C))": seq(A, both(B, C)),
    "s1; ((s2, s3) ∧ (s4, s5)); s6; (s7 ∨ s8)": seq(
        event("s1"),
        both(run(event("s2"), event("s3")), run(event("s4"), event("s5"))),
        event("s6"),
        either(event("s7"), event("s8")),
    ),
}


@pytest.mark.parametrize(("text", "pattern"), PRINTED.items())
def test_queries_as_papers_print_them(text: str, pattern: Node) -> None:
    assert parse(text).pattern == pattern

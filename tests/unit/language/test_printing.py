"""Canonical text: it reads back as the same tree, with the fewest parentheses and quotes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from patternlake.udfs.language.query.extents import extent
from patternlake.udfs.language.query.lexer import KEYWORDS
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.printing import pattern_text, to_text
from patternlake.udfs.language.query.tree import (
    Conjunction,
    Contiguous,
    Definition,
    Disjunction,
    Event,
    Extent,
    Measure,
    Negation,
    Node,
    Query,
    Repetition,
    Sequence,
    SomeOf,
    TimeCondition,
)

NAMES = st.one_of(
    st.sampled_from(
        ["A", "B", "a1", "147073", "it's", "late:ORD", "two words", "A#2", "été", "名", "[", "x\ny", *KEYWORDS]
    ),
    st.sampled_from(["Or", "within", "seq"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
)
PREDICATES = st.sampled_from(
    [
        "TRUE",
        "x > 1",
        "a.x IN (1, 2) AND y = 'WHERE, b AS c'",
        "t(b[i]) - t(b[i-1]) < 5 MIN",
        "[attr] AND a.within ≥ 2",
        '`SLIDE` = "it\\" WITHIN"',
        "CASE WHEN f(x, (y)) THEN 1\n ELSE 2 END = z",
    ]
)
UNITS = ["EVENTS", "MILLISECOND", "SEC", "MIN", "HOUR", "DAY", "WEEK"]


def grown(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda items: Sequence(items=items)),
        several.map(lambda items: Contiguous(items=items)),
        several.map(lambda items: Disjunction(items=items)),
        several.map(lambda items: Conjunction(items=items)),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: Negation(items=tuple(items))),
        st.builds(lambda items, count: SomeOf(count=min(count, len(items)), items=items), several, st.integers(1, 3)),
        st.builds(repeated, inner, st.sampled_from(["+", "*", "?", "[n]", "{}"]), st.data()),
        st.builds(named, inner, NAMES, st.booleans()),
        st.builds(
            lambda node, text: replace(node, conditions=(*node.conditions, TimeCondition(text))), inner, PREDICATES
        ),
    )


def repeated(item: Node, form: str, data: st.DataObject) -> Repetition:
    low, high = {"+": (1, None), "*": (0, None), "?": (0, 1)}.get(form, (None, None))
    if form == "[n]":
        low = high = data.draw(st.integers(1, 9))
    if form == "{}":
        low = data.draw(st.integers(0, 9))
        high = data.draw(st.one_of(st.none(), st.integers(max(low, 1), 12)))
    assert low is not None
    ends = st.lists(st.builds(lambda name: Event(name=name), NAMES), min_size=2, max_size=3)
    either = ends.map(lambda items: Disjunction(items=tuple(items)))
    until = data.draw(st.one_of(st.none(), st.builds(lambda name: Event(name=name), NAMES), either))
    return Repetition(item=item, form=form, minimum=low, maximum=high, until=until)


def named(node: Node, alias: str, indexed: bool) -> Node:
    return replace(node, alias=alias, indexed=indexed)


PATTERNS = st.recursive(st.builds(lambda name: Event(name=name), NAMES), grown, max_leaves=12)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    pattern = draw(PATTERNS)
    events = sorted({node.name for node in pattern.walk() if isinstance(node, Event)})
    defined = draw(st.lists(st.sampled_from(events), max_size=3, unique=True))
    within = draw(st.one_of(st.none(), st.builds(extent, st.integers(1, 10**6), st.sampled_from(UNITS))))
    slide = None
    if within is not None and draw(st.booleans()):
        slide = Extent(draw(st.integers(1, 10**6)), within.counted)
    return Query(
        pattern=pattern,
        define=tuple(Definition(name, draw(PREDICATES)) for name in defined),
        where=draw(st.one_of(st.none(), PREDICATES)),
        measures=tuple(
            Measure(name, draw(PREDICATES))
            for name in draw(
                st.lists(st.sampled_from(["n", "two words", "it`s", "'s", "été"]), max_size=3, unique=True)
            )
        ),
        partition=tuple(draw(st.lists(NAMES, max_size=3, unique=True))),
        within=within,
        slide=slide,
    )


@settings(max_examples=800, deadline=None)
@given(queries())
def test_canonical_text_reads_back_as_the_same_query(query: Query) -> None:
    text = to_text(query)
    again = parse(text)
    assert again == query
    assert to_text(again) == text


@settings(max_examples=300, deadline=None)
@given(PATTERNS)
def test_no_pair_of_parentheses_can_be_left_out(pattern: Node) -> None:
    text = pattern_text(pattern)
    # A time condition may hold parentheses and escaped quotes of its own.
    assume("@(" not in text)
    stack: list[int] = []
    quote = ""
    for at, character in enumerate(text):
        if quote or character in "'\"`":
            quote = "" if character == quote else quote or character
        elif character == "(":
            stack.append(at)
        elif character == ")":
            start = stack.pop()
            if text[:start].endswith(("NOT", "OF ")):
                continue
            without = text[:start] + " " + text[start + 1 : at] + " " + text[at + 1 :]
            try:
                other = parse(without).pattern
            except Exception:
                continue
            assert other != pattern, (text, without)


@settings(max_examples=300, deadline=None)
@given(PATTERNS)
def test_the_text_of_every_part_reads_as_that_part(pattern: Node) -> None:
    read = parse(pattern_text(pattern))
    for node in read.pattern.walk():
        assert parse(read.text[node.span.start : node.span.end]).pattern == node


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("PATTERN SEQ(A, B)", "A ; B"),
        ("A;B,C|D&!E", "A ; B, C | D & !E"),
        ("((A ; B)) , (C | D)", "(A ; B), C | D"),
        ("(A ; B) ; C", "(A ; B) ; C"),
        ("AND(A, OR(B, C))", "A & (B | C)"),
        ("NOT(A)", "!A"),
        ("NOT((B, C))", "!(B, C)"),
        ("NOT(B, C | D)", "NOT(B, C | D)"),
        ("NOT((B, C) ; D, E)", "NOT((B, C) ; D, E)"),
        ("(!A)+", "(!A)+"),
        ("A { 2 , 2 }", "A{2}"),
        ("(A b[])+ AS 'it''s' @( x )", "(A b[])+ AS 'it''s' @(x)"),
        ("B{,3} AS b until U", "B{0,3} AS b UNTIL U"),
        ("B+ UNTIL OR(U, V)", "B+ UNTIL (U | V)"),
        ("2 of (A, B ; C, (D, E))", "2 OF (A, B ; C, (D, E))"),
        ("1 OF (A)", "A"),
        ("a measures t(a) as `at`, a.x AS 'two words'", "a MEASURES t(a) AS at, a.x AS `two words`"),
        ("'plain' ; 'or' ; 'two words'", "plain ; 'or' ; 'two words'"),
        ("e+ e[] within 60 minutes slide 600 sec", "e+ e[] WITHIN 1 HOUR SLIDE 10 MIN"),
        ("A within 5 unit", "A WITHIN 5 EVENTS"),
        (
            "a ; b partition by 'a b', c",
            "a ; b PARTITION BY 'a b', c",
        ),
        (
            "pattern a define a as x>1 where a.y < 2 within 1500 millisecond",
            "a DEFINE a AS x>1 WHERE a.y < 2 WITHIN 1500 MILLISECOND",
        ),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert to_text(parse(text)) == canonical
    assert to_text(parse(canonical)) == canonical

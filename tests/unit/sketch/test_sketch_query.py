"""A query compiled for the sketch: what it asks the filters, and what it refuses."""

from __future__ import annotations

import pytest
from naive.sketch_cases import compiled

from patternlake.udfs.errors import PredicateError, UnsupportedOperatorError
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.sketch.conditions import conditions
from patternlake.udfs.sketch.query import MOST_NAMES_OF_AND, MOST_SLOTS, compile_pattern


def shape(text: str) -> list[list[list[list[str]]]]:
    """Terms, blocks, slots, names."""
    pattern = compiled(text)
    slots = [[alternative.name for alternative in slot.alternatives] for slot in pattern.slots]
    blocks = [slots[a:b] for a, b in zip(pattern.blocks, pattern.blocks[1:], strict=False)]
    return [blocks[a:b] for a, b in zip(pattern.terms, pattern.terms[1:], strict=False)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", [[[["A"]]]]),
        ("A ; B", [[[["A"]]], [[["B"]]]]),
        ("SEQ(A, B)", [[[["A"]]], [[["B"]]]]),
        ("A ; B , C", [[[["A"]]], [[["B"]], [["C"]]]]),
        ("A | B", [[[["A", "B"]]]]),
        ("A & B ; C", [[[["A"], ["B"]]], [[["C"]]]]),
        ("(A ; B) ; C", [[[["A"]]], [[["B"]]], [[["C"]]]]),
        ("A ; (B ; C)", [[[["A"]]], [[["B"]]], [[["C"]]]]),
        ("a, b | c, d", [[[["a"]], [["b", "c"]], [["d"]]]]),
    ],
)
def test_a_query_becomes_terms_of_blocks_of_slots(text: str, expected: list[list[list[list[str]]]]) -> None:
    assert shape(text) == expected


def test_a_repetition_is_a_sequence() -> None:
    assert shape("A[3]") == shape("SEQ(A, A, A)")
    assert compiled("A[3]").labels == compiled("SEQ(A, A, A)").labels == ("A", "A#2", "A#3")


def test_steps_are_called_by_alias_or_name_in_text_order() -> None:
    assert compiled("A ; B AS b ; A ; !A ; A").labels == ("A", "b", "A#2", "A#4")
    assert compiled("A | B AS b ; A & C").labels == ("A", "b", "A#2", "C")
    assert compiled("A[2] AS a ; A").labels == ("a", "a", "A")


def test_filters_are_asked_for_each_name_once_and_for_negated_names() -> None:
    assert compiled("A ; NOT(B, C) ; A | D").names == ("A", "D", "B", "C")


def test_negated_names_stand_in_the_gap_between_terms() -> None:
    pattern = compiled("A ; !B ; C ; D")
    assert [[negated.name for negated in gap] for gap in pattern.gaps] == [["B"], []]


def test_between_direct_neighbours_nothing_can_be_negated() -> None:
    assert compiled("A , !B , C").names == ("A", "C")


@pytest.mark.parametrize(
    ("predicate", "names"),
    [
        ("name = 'B'", frozenset("B")),
        ("name IN ('B', 'C') AND x > 1", frozenset("BC")),
        ("x > 1", None),
        ("TRUE", None),
    ],
)
def test_a_primitive_asks_for_the_names_that_it_can_hold_for(predicate: str, names: frozenset[str] | None) -> None:
    pattern = compiled(f"A ; e DEFINE e AS {predicate}", verify=True)
    assert pattern.admitted == {"e": names}
    assert pattern.names == ("A", *sorted(names or ()))


def test_without_the_name_among_the_tokens_a_primitive_may_be_any_event() -> None:
    query = parse("A ; e DEFINE e AS name = 'B'")
    assert compile_pattern(query, verify=True, names_are_tokens=False).admitted == {"e": None}


def test_the_columns_of_predicates_are_known_with_those_that_are_equal_along_the_match() -> None:
    pattern = compiled("A AS a ; e DEFINE e AS name = 'B' WHERE [x] AND a.time < e.time", verify=True)
    assert pattern.columns == {"name", "x", "time"}


@pytest.mark.parametrize(
    ("text", "found", "column"),
    [
        ("A+ ; B", "[+].*without verify => false", 2),
        ("A ; B*", "[*]", 6),
        ("A ; !B", "not", 5),
        ("!A ; B", "not", 1),
        ("A ; (B ; C) & D", "inside", 5),
        ("A ; B @(t(B) - t(A) < 5 MIN)", "@", 7),
        ("A ; B WITHIN 5 EVENTS SLIDE 2 EVENTS", "SLIDE", 23),
        ("A ; b DEFINE b AS x > 1", "DEFINE", 14),
        ("A ; B WHERE A.x > B.x", "WHERE", 13),
    ],
)
def test_what_the_sketch_does_not_take_is_refused_at_its_place(text: str, found: str, column: int) -> None:
    with pytest.raises(UnsupportedOperatorError, match=found) as caught:
        compiled(text)
    assert caught.value.column == column


def test_define_and_where_are_taken_with_verify() -> None:
    pattern = compiled("A ; b DEFINE b AS x > 1 WHERE A.x > b.x", verify=True)
    assert pattern.where is not None
    assert set(pattern.define) == {"b"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A ; B WHERE B[i].x > B[i-1].x + 1000", r"B\[i-1\] needs a repetition, and B takes one event; write B\+"),
        ("A ; B | C WHERE C[i-1].x > 1", r"C\[i-1\] needs a repetition, and C takes one event; write C\+"),
        ("A ; !B ; C WHERE B[i-1].x > A.x", r"B\[i-1\]: no event of B is in the match, it is negated"),
        ("A , !B , C WHERE B[i-1].x > A.x", r"B\[i-1\]: no event of B is in the match, it is negated"),
    ],
)
def test_an_operand_without_neighbours_has_none_to_compare(text: str, found: str) -> None:
    with pytest.raises(PredicateError, match=found) as caught:
        conditions(compiled(text, verify=True))
    assert caught.value.start == text.index("WHERE ") + len("WHERE ")


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("A ; B WHERE A.x > 1 AND B.x = $v", "B.x = $v", r"join variables \(\$x\) belong to subscriptions"),
        ("A ; b DEFINE b AS name = 'B' AND x = $v", "x = $v", r"join variables \(\$x\) belong to subscriptions"),
        ("A ; b DEFINE b AS name = 'B' AND [x]", "[x]", "is of a whole match: that is for WHERE"),
    ],
)
def test_what_other_parts_of_a_query_say_is_refused_at_its_place(text: str, place: str, found: str) -> None:
    with pytest.raises(PredicateError, match=found) as caught:
        conditions(compiled(text, verify=True))
    assert caught.value.start == text.index(place)


def test_a_name_that_no_event_has_is_refused_in_where() -> None:
    with pytest.raises(PredicateError, match="weight"):
        compiled("A ; B WHERE A.weight > 1", verify=True)


def test_patterns_have_limits_that_are_named() -> None:
    names = ", ".join(f"n{i}" for i in range(MOST_NAMES_OF_AND + 1))
    with pytest.raises(UnsupportedOperatorError, match="at most 8 names, this one has 9"):
        compiled(f"AND({names})")
    with pytest.raises(UnsupportedOperatorError, match=f"at most {MOST_SLOTS} operands"):
        compiled(f"A[{MOST_SLOTS + 1}]")
    with pytest.raises(UnsupportedOperatorError, match=f"at most {MOST_SLOTS} operands"):
        compiled(f"A[{MOST_SLOTS}] ; B")

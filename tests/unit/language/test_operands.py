"""How operands are called and counted."""

from __future__ import annotations

import pytest

from patternlake.udfs.errors import PatternSyntaxError
from patternlake.udfs.language.query.operands import number
from patternlake.udfs.language.query.parser import parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A ; B", ("A", "B")),
        ("A ; A ; A", ("A", "A#2", "A#3")),
        ("A ; B ; A ; B", ("A", "B", "A#2", "B#2")),
        ("F AS f1, F AS f2, F AS f3, S", ("f1", "f2", "f3", "S")),
        ("A AS x ; A ; A", ("x", "A", "A#2")),
        ("A AS A", ("A",)),
        ("e+ e[]", ("e",)),
        ("Google ; Microsoft+ m[] ; Del", ("Google", "m", "Del")),
        ("(A AS x)+ ; B", ("x", "B")),
        ("A ; !A ; (A | B)", ("A", "A#2", "A#3", "B")),
        ("(A ; A)+", ("A", "A#2")),
        ("a ; A", ("a", "A")),
    ],
)
def test_an_operand_is_called_by_its_alias_else_its_name_else_its_name_and_number(
    text: str, names: tuple[str, ...]
) -> None:
    assert number(parse(text)).names == names


def test_operands_are_numbered_in_text_order_negated_ones_too() -> None:
    operands = number(parse("A ; !X ; (B & C AS c)+"))
    assert [(one.number, one.name, one.negated) for one in operands] == [
        (1, "A", False),
        (2, "X", True),
        (3, "B", False),
        (4, "c", False),
    ]
    third = operands.numbered(3)
    assert third is not None
    assert third.name == "B"
    assert operands.numbered(0) is None
    assert operands.numbered(5) is None


def test_operands_are_found_by_name() -> None:
    operands = number(parse("A ; A AS x"))
    found = operands.named("x")
    assert found is not None
    assert found.number == 2
    assert operands.named("A#2") is None


def test_an_operand_is_an_event_with_the_repetitions_around_it() -> None:
    query = parse("A[3] ; (B+)* AS b")
    first, second = number(query)
    assert first.node == query.pattern.children()[0]
    assert second.node == query.pattern.children()[1]
    assert second.event.name == "B"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("A AS x ; B AS x", 15, "x already names operand 1; choose another name with AS"),
        ("A ; B AS A", 10, "A already names operand 1; choose another name with AS"),
        ("A AS B ; B", 10, "B already names operand 1; choose another name with AS"),
        ("A ; 'A#2' ; A", 13, "'A#2' already names operand 2; choose another name with AS"),
        ("A AS x | B AS x", 15, "x already names operand 1; choose another name with AS"),
        ("(A AS x)+ AS y", 14, "y would be a second name here; the first is x"),
    ],
)
def test_two_operands_of_one_name_are_an_error_at_the_later_one(text: str, column: int, message: str) -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        number(parse(text))
    assert (caught.value.message, caught.value.column) == (message, column)

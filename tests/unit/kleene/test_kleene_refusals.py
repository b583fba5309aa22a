"""What the kleene engine does not take: each refusal names the place and the value."""

from __future__ import annotations

import pytest
from naive.kleene_cases import TYPES, stream
from naive.kleene_kernels import compiled, events_of

from patternlake.udfs.errors import ArgumentError, PatternError
from patternlake.udfs.kleene.kernels.matching import match_events
from patternlake.udfs.kleene.plans.trees import forced_plan
from patternlake.udfs.kleene.rounds import has_rounds_in_doubt
from patternlake.udfs.language.query.parser import parse

REFUSED = [
    ("A ; (B ; C)+", "^(B ; C)^", "only with repetition => 'all'"),
    ("A ; B@(t(2) < 5 MIN)", "B^@^", "'@'"),
    ("A ; B WITHIN 5 EVENTS SLIDE 2 EVENTS", "^SLIDE 2 EVENTS^", "SLIDE"),
    ("A ; !(B*) ; C", "^!^(B*)", "may be without events"),
    ("A | !B WITHIN 5 MIN", "A | ^!^B", "stands alone"),
    ("A ; !(!B) ; C", "(^!^B)", "stands under '!'"),
    ("A ; B WHERE D.x > 1", "^D.x^", "D is not an operand"),
    ("A ; B WHERE A.velocity > 1", "^A.velocity^", "velocity is not an attribute"),
    ("A ; B WHERE A.x > limit", "^limit^", "limit is not a parameter"),
    ("A ; B WHERE A = B", "^A^ = B", "A is an operand; write A.column, or A.position for the event"),
    ("A ; 'B C' WHERE 'B C'.x > 1", "'B C'^.^x", "of an operand with other characters `a b`.x"),
    ("A ; B+ MEASURES B[2].x AS q", "MEASURES ^B^[2]", "a measure takes FIRST(B.x) or LAST(B.x, 1)"),
    ("A ; B MEASURES /* todo */ AS q", "MEASURES ^/* todo */^ AS", "expected an expression here"),
    ("A ; big DEFINE big AS big.x > 5", "AS ^big.x^", "one event, whose columns stand bare: write x, not big.x"),
    ("A ; B PARTITION BY plane", "PARTITION BY ^plane^", "plane"),
    ("A ; A WHERE A.x > 1", "^A.x^", "several operands"),
    ("A ; B WHERE B.x > B[i-1].x", "^B.x > B[i-1].x^", "B takes one event"),
    ("A+ ; B+ WHERE A[i-1].x > B[i-1].x", "^A[i-1].x > B[i-1].x^", "A and B"),
    ("A+ ; B+ WHERE A[i].x > A[i-1].x + B.x", "^A[i].x > A[i-1].x + B.x^", "A and B"),
    ("A+ ; B+ ; C* WHERE A.x + B.x > C.x", "^A.x + B.x > C.x^", "A, B, C"),
    ("A ; !B ; !C ; D WHERE B.x > C.x", "^B.x > C.x^", "of all of them"),
    ("A ; !B ; C WHERE B[i-1].x > A.x", "^B[i-1].x > A.x^", "negated"),
    ("A ; B WHERE A.x = $v", "^A.x = $v^", "subscriptions"),
    ("A ; b DEFINE b AS x > 1 AND s = $v", "^s = $v^", "join variables ($x) belong to subscriptions"),
    ("A ; b DEFINE b AS x > 1 AND [s]", "^[s]^", "is of a whole match: that is for WHERE"),
]


@pytest.mark.parametrize(("text", "marked", "said"), REFUSED, ids=lambda value: str(value))
def test_a_refusal_names_its_place_and_value(text: str, marked: str, said: str) -> None:
    with pytest.raises(PatternError) as raised:
        compiled(text, TYPES)
    before, place, after = marked.split("^")
    start = text.index(before + place + after) + len(before)
    assert (raised.value.start, raised.value.end) == (start, start + len(place))
    assert said in raised.value.message


@pytest.mark.parametrize("name", ["end", "select", "from", "like", "case", "as", "not", "in", "null", "date"])
def test_a_condition_names_operands_that_are_called_like_keywords(name: str) -> None:
    written = f"'{name}'" if name in ("as", "not") else name
    query = compiled(f"A ; {written}+ WHERE A.x = 1 AND {name}.x > A.x AND {name}[i].y > {name}[i-1].y", TYPES)
    assert query.operands[1].name == name


def test_comments_and_ordered_sets_stand_in_measures() -> None:
    text = (
        "A ; B+ MEASURES A.x -- of the first\n AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY B.x) AS median, "
        "LAST(B.x) AS b WITHIN 5 MIN"
    )
    measures = compiled(text, TYPES).measures
    assert measures is not None
    assert measures.names == ("a", "median", "b")


@pytest.mark.parametrize("policy", ["skip_till_next", "strict"])
@pytest.mark.parametrize(
    ("text", "marked", "said"),
    [
        ("A ; (B ; !C ; D)+", "(B ; ^!^C", "stands in a repeated group"),
        ("(A+ UNTIL C ; B)+ UNTIL D", "UNTIL ^C^ ;", "another UNTIL"),
    ],
)
def test_scans_refuse_what_has_no_reading(text: str, marked: str, said: str, policy: str) -> None:
    with pytest.raises(PatternError) as raised:
        compiled(text, TYPES, policy=policy)
    before, place, after = marked.split("^")
    start = text.index(before + place + after) + len(before)
    assert (raised.value.start, raised.value.end) == (start, start + len(place))
    assert said in raised.value.message


@pytest.mark.parametrize("text", ["x ; (A? ; B)+", "((A ; B) | (C* ; B)){2}", "((A? ; B) | C)?", "((A* & B) ; C){2,}"])
def test_every_choice_needs_rounds_that_begin_with_an_event(text: str) -> None:
    with pytest.raises(PatternError, match="may begin without this") as raised:
        compiled(text, TYPES, policy="skip_till_next", repetition="all")
    assert text[raised.value.start] in "?*"
    compiled(text, TYPES, policy="skip_till_next")


@pytest.mark.parametrize("text", ["(A ; B?)+", "(A? ; B)?", "((A+ ; B) | C){2}"])
def test_every_choice_takes_rounds_that_begin_with_an_event(text: str) -> None:
    compiled(text, TYPES, policy="strict", repetition="all")


@pytest.mark.parametrize(
    "text",
    [
        "(A? ; B)+",
        "(A+ ; B)+",
        "(A ; B*){2,3}",
        "(B ; A ; B? AS d)+",
        "(A & B)+",
        "((A ; B)+ ; C)*",
        "(A+)?",
        "(A{2} | B){2}",
    ],
)
def test_rounds_whose_end_is_known(text: str) -> None:
    assert not has_rounds_in_doubt(parse(text))
    assert compiled(text, TYPES, repetition="all").ways


@pytest.mark.parametrize(
    "text",
    [
        "(A+ | B)+",
        "(A? ; B?)+",
        "x ; (2 OF (A, B, C)){2}",
        "((A ; B)+ ; C?)*",
        "(A+ & B)+",
        "(B? ; A{1,2} ; B? AS d){3,}",
    ],
)
def test_rounds_whose_end_is_in_doubt(text: str) -> None:
    assert has_rounds_in_doubt(parse(text))
    assert compiled(text, TYPES, repetition="all").ways


def test_too_many_orders_are_refused() -> None:
    with pytest.raises(PatternError, match="more than 500 orders"):
        compiled(" & ".join(f"A{number}+" for number in range(7)), TYPES)


def test_too_many_operands_are_refused() -> None:
    with pytest.raises(PatternError, match="at most 64 operands, this has 65"):
        compiled(" ; ".join(f"A{number}" for number in range(65)), TYPES)


def test_a_count_that_cannot_stay_one_operand_is_limited() -> None:
    pattern = compiled("a[300] AS a WHERE a[i].x > a[i-1].x", TYPES)
    with pytest.raises(PatternError, match=r"a\[300\] needs each of its events on its own"):
        match_events(pattern, events_of([stream("a1")], TYPES))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("sideways", "'sideways' is not an operand of the pattern; operands are a, b, c"),
        ("(a b)", "missing c"),
        ("((a b) (c a))", "operand a stands twice"),
        ("((a b) c", "the end where ')' is expected"),
        ("(a b c)", "'c' where ')' is expected"),
        ("((a b) c) b", "'b' stands behind the tree"),
        ("", "it ends where an operand or '(' is expected"),
        ("((a `b) c)", "a ` is never closed"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(plan: str, said: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        forced_plan(compiled("a ; b+ ; !x ; c", TYPES), plan)
    assert said in str(raised.value)
    assert repr(plan) in str(raised.value)


def test_a_plan_of_parentheses_in_parentheses_is_refused_in_a_line() -> None:
    for plan in ("(" * 3_000, "(" * 3_000 + "a" + ")" * 3_000):
        with pytest.raises(ArgumentError, match="its parentheses stand more than 256 deep") as raised:
            forced_plan(compiled("a ; b", TYPES), plan)
        assert len(str(raised.value)) < 300


def test_events_out_of_order_are_refused() -> None:
    events = events_of([stream("a1 a2 a3")], TYPES)
    events.times[2] = 0
    with pytest.raises(ArgumentError, match="event number 2 is not"):
        match_events(compiled("a", TYPES), events)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "greedy"}, "not 'greedy'"),
        ({"after_match": "first"}, "not 'first'"),
        ({"max_matches": 0}, "not 0"),
    ],
)
def test_arguments_that_do_not_exist_are_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        match_events(compiled("a", TYPES), events_of([stream("a1")], TYPES), **arguments)  # type: ignore[arg-type]


def test_a_missing_column_is_named() -> None:
    events = events_of([stream("a1=1")], {})
    with pytest.raises(ArgumentError, match="column 'x'"):
        match_events(compiled("a WHERE a.x > 0", TYPES), events)


def test_more_ways_than_are_tried_are_refused() -> None:
    text = " ; ".join(f"a* AS a{number}" for number in range(9))
    with pytest.raises(PatternError, match=r"512 ways at least, which are tried one after another; 500 are the most"):
        compiled(text, TYPES, policy="strict")
    assert len(compiled(text, TYPES).linearizations) == 1

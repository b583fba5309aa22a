"""Subscriptions compile to machines, bounds and joins, or are refused by place."""

from __future__ import annotations

import pytest

from patternlake.udfs.errors import ConfigurationError, PatternLakeError
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.predicate.time_gaps import UNBOUNDED
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.from_config import groups_of
from patternlake.udfs.machines.query import Chain, Item, Subscription, compile_subscription
from patternlake.udfs.machines.time_conditions import TimeBound, TimeChoice
from patternlake.udfs.pattern_names import names_taken

SECOND = 1_000_000
SCOPE = Scope(attributes={"ip": "string", "status": "string", "x": "double"}, parameters={"d": "5 MIN"}, key="who")


def compiled(text: str) -> Subscription:
    return compile_subscription(parse(text), SCOPE)


def chain(*items: int | Item, next_to: tuple[int, ...] = ()) -> Chain:
    made = tuple(item if isinstance(item, Item) else Item(item) for item in items)
    return Chain(made, tuple(number in next_to for number in range(len(made))))


def test_a_sequence_is_one_chain_however_it_is_nested() -> None:
    assert compiled("a ; b , c").master == chain(0, 1, 2, next_to=(2,))
    assert compiled("(a ; b) ; c").master == chain(0, 1, 2)
    assert compiled("a , (b ; c) , d").master == chain(0, 1, 2, 3, next_to=(1, 3))


def test_boolean_machines_have_children() -> None:
    inner = Item(-1, True, (chain(1, 2), chain(3, 4, next_to=(1,))))
    last = Item(-1, False, (chain(6), chain(7)))
    text = "s1 ; ((s2 ; s3) & (s4 , s5)) ; s6 ; (s7 | s8)"
    assert compiled(text).master == chain(0, inner, 5, last)
    nested = Item(-1, True, (chain(1), chain(2)))
    assert compiled("a & (b & c)").master == chain(Item(-1, True, (chain(0), chain(nested))))


@pytest.mark.parametrize(
    ("condition", "bound"),
    [
        ("t(b) - t(a) < 3 SEC", TimeBound(1, 0, -UNBOUNDED, 3 * SECOND - 1, False)),
        ("t2 - t1 >= 3 SEC", TimeBound(1, 0, 3 * SECOND, UNBOUNDED, False)),
        ("t(b) > t(a) + 3 SEC", TimeBound(1, 0, 3 * SECOND + 1, UNBOUNDED, False)),
        ("b.time - t(1) = d", TimeBound(1, 0, 300 * SECOND, 300 * SECOND, False)),
    ],
)
def test_a_time_condition_bounds_a_difference(condition: str, bound: TimeBound) -> None:
    assert compiled(f"a ; b @({condition})").bounds == (bound,)


def test_conditions_between_siblings_of_and_have_no_sign() -> None:
    assert compiled("a & b @(t(b) - t(a) < 3 SEC)").bounds == (TimeBound(1, 0, -UNBOUNDED, 3 * SECOND - 1, True),)
    # Less than 3 seconds apart, as well.
    assert compiled("a & b @(t(b) - t(a) > -3 SEC)").bounds == (TimeBound(0, 1, -UNBOUNDED, 3 * SECOND - 1, True),)
    # At different times, whichever side of the comparison the difference stands on.
    apart = (TimeBound(1, 0, 1, UNBOUNDED, True),)
    assert compiled("a & b @(t(b) - t(a) > 0 SEC)").bounds == apart
    assert compiled("a & b @(0 SEC < t(b) - t(a))").bounds == apart
    assert [bound.absolute for bound in compiled("(a ; b @(t(b) - t(a) < d)) & (c ; e @(t(e) - t(b) < d))").bounds] == [
        False,
        True,
    ]


def test_or_and_another_time_leave_choices() -> None:
    soon, late = TimeBound(1, 0, -UNBOUNDED, 3 * SECOND - 1, False), TimeBound(1, 0, 9 * SECOND + 1, UNBOUNDED, False)
    text = "a ; b @(t(b) - t(a) < 3 SEC OR t(b) - t(a) > 9 SEC)"
    assert compiled(text).bounds == (TimeChoice(((soon,), (late,))),)
    at = 3 * SECOND
    before, behind = TimeBound(1, 0, -UNBOUNDED, at - 1, False), TimeBound(1, 0, at + 1, UNBOUNDED, False)
    assert compiled("a ; b @(t(b) - t(a) <> 3 SEC)").bounds == (TimeChoice(((before,), (behind,))),)
    assert compiled("a ; b @(NOT t(b) - t(a) = 3 SEC)").bounds == (TimeChoice(((before,), (behind,))),)
    # NOT turns what is inside of it: two conditions.
    not_either = "a ; b @(NOT (t(b) - t(a) >= 3 SEC OR t(b) - t(a) <= 1 SEC))"
    assert compiled(not_either).bounds == (soon, TimeBound(1, 0, SECOND + 1, UNBOUNDED, False))
    # AND inside of OR: both bounds of a choice hold.
    some = "a ; b @(t(b) - t(a) < 3 SEC OR (t(b) - t(a) > 9 SEC AND t(b) - t(a) < 3 SEC))"
    assert compiled(some).bounds == (TimeChoice(((soon,), (late, soon))),)


def test_joins_are_taken_out_of_the_predicate() -> None:
    made = compiled("a ; b DEFINE a AS ip = $x AND status = 'denied', b AS ip = $x PARTITION BY who WITHIN 5 MIN")
    assert [primitive.joins for primitive in made.primitives] == [(("x", "ip"),), (("x", "ip"),)]
    assert made.primitives[0].define is not None
    assert made.primitives[0].define.sql() == "status = 'denied'"
    assert (made.variables, made.partition, made.within and made.within.amount) == (("x",), ("key",), 300 * SECOND)
    assert made.columns == {"ip", "status"}


def test_names_that_can_take_part_are_known() -> None:
    def names(text: str) -> frozenset[str] | None:
        return names_taken((primitive.takes, primitive.define) for primitive in compiled(text).primitives)

    assert names("a ; b | c") == {"a", "b", "c"}
    assert names("a ; b DEFINE b AS name = 'q' AND x > 1") == {"a", "q"}
    assert names("a ; b DEFINE b AS x > 1") is None


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("a+ ; b", "does not take '+'", "+"),
        ("a ; !b ; c", "does not take '!'", "!"),
        ("a ; b WHERE a.x = 1", "does not take WHERE", "a.x"),
        ("a ; a", "a stands 2 times", "a"),
        ("a ; b @(t(b) - t(c) < 5 SEC)", "c is not an operand of the pattern", "t(c)"),
        ("a ; b @(t(b) - t(a) < 5)", "give the number a unit", "t(b)"),
        ("a & b @(t(a) < t(b))", "come in either order", "t(a)"),
        ("a & b @(t(b) >= t(a))", "come in either order", "t(b)"),
        ("a ; b @(t(b) - t(a) < 5 SEC OR a.x < b.x)", "AND, OR and NOT may join such comparisons", "a.x"),
        ("a ; b @(a.x < b.x)", "bounds the time between two operands", "a.x"),
        (
            "a ; (b | c) ; d @(t(d) - t(a) < 5 SEC OR t(b) - t(a) < 5 SEC)",
            "an OR of time conditions names b, which stands in an alternative of '|'",
            "t(d)",
        ),
        (
            f"a ; b @({' OR '.join(f't(b) - t(a) = {n} SEC' for n in range(257))})",
            "OR gives this time condition 257 choices; at most 256 are taken",
            "t(b)",
        ),
        (
            "a ; b " + " ".join(f"@(t(b) - t(a) <> {n} SEC)" for n in range(9)),
            "give 512 combinations; at most 256 are taken",
            "t(b) - t(a) <> 8",
        ),
        ("a ; b DEFINE a AS ip = $x", "$x stands once", "ip"),
        ("a ; b DEFINE a AS ip = $x, b AS x = $x", "$x is compared with double and string", "ip"),
        ("a ; b PARTITION BY machine", "PARTITION BY machine", "machine"),
        (" ; ".join(f"a{number}" for number in range(63)), "at most 62 operands, this has 63", "a62"),
    ],
)
def test_what_a_subscription_does_not_take_is_refused_by_place(text: str, said: str, at: str) -> None:
    with pytest.raises(PatternLakeError) as caught:
        compiled(text)
    assert said in str(caught.value)
    place = text.index(at) if at != "a" else 0
    assert f"column {place + 1}:" in str(caught.value)


def test_a_subscription_with_too_many_states_is_named_among_others() -> None:
    stream = {"attributes": {}, "key": None}
    entries = {"few": {"query": "a & b", "decay": 0}, "many": {"query": " & ".join("abcdefghijklm"), "decay": 0}}
    with pytest.raises(ConfigurationError, match=r"subscriptions\.many\.query: .* more than 4,096 states"):
        groups_of(entries, stream)

"""What each engine takes of the language, and what a user reads whose query it refuses."""

from __future__ import annotations

import pytest

from patternlake.udfs.errors import PatternSyntaxError, UnsupportedOperatorError
from patternlake.udfs.language.query.engines import ENGINES, check, is_matched_by_itself
from patternlake.udfs.language.query.operators import Operator
from patternlake.udfs.language.query.parser import parse

SKETCH = "the sketch engine (match_seq, match_exists, sketch_error)"
KLEENE = "the kleene engine (match_pattern, explain_pattern)"
GROUPS = "the groups engine (match_groups, group_members)"
TRENDS = "the trends engine (cet_trends, cet_count, cet_aggregate)"
MACHINES = "the machines engine (match_subscription, predict_match)"
TELLS = "which events alone can tell: ask match_seq or match_exists without verify => false"
ON_EVENTS = "of events alone: ask match_seq or match_exists without verify => false"
CHAIN = "a trend is a sequence of names, each plain or with '+'"
WRITTEN_OUT = "a subscription writes each event out, as in A AS a1 ; A AS a2"
NAMED = "a subscription names each, as in A AS a1, A AS a2"

TAKEN = [
    ("sketch", "A"),
    ("sketch", "SEQ(A, AND(B, C), OR(D, E))"),
    ("sketch", "SEQ(A, !B, C)"),
    ("sketch", "A ; NOT(B, C) ; !D ; E"),
    ("sketch", "A, B"),
    ("sketch", "A ; B | C, D, !E, F"),
    ("sketch", "A[3] ; B"),
    ("sketch", "(A ; B) ; (!C ; D)"),
    ("sketch", "A ; B DEFINE A AS x > 1 WHERE A.x < B.x PARTITION BY k WITHIN 5 MIN"),
    ("sketch", "A ; A ; A AS x WITHIN 5 EVENTS"),
    ("sketch", "!A ; ((B ; C)+ UNTIL D) | E? ; 2 OF (F, G{2,}) , H* ; !I @(t(I) - t(H) < 5 MIN) MEASURES t(H) AS h"),
    ("kleene", "Google ; Microsoft[3] & Del WHERE Google.value > 1.12 * Microsoft.value WITHIN 10 SEC"),
    ("kleene", "A+ ; !X ; B* ; C WHERE [id] PARTITION BY k WITHIN 5 EVENTS"),
    ("kleene", "(A ; !X ; B) | (C & D+)"),
    ("kleene", "G ; ((M ; D) ; I)"),
    ("kleene", "A , !X ; (B ; C)+ UNTIL D ; 2 OF (E, F?, G{2,}) ; !H @(t(H) - t(A) < 5 MIN) MEASURES t(A) AS began"),
    ("groups", "a, b+, c"),
    ("groups", "a, !b, c"),
    ("groups", "(a, b)*, c? | d{1,3} & e[2] WITHIN 6 EVENTS"),
    ("groups", "a, b WHERE a.x > 1 AND b.x < ratio PARTITION BY k"),
    ("trends", "E+ e[] WHERE [id] AND e[i].x > e[i-1].x WITHIN 1 WEEK SLIDE 1 DAY"),
    ("trends", "A ; B+ ; A"),
    ("trends", "e DEFINE e AS TRUE WITHIN 10 EVENTS"),
    ("machines", "s1 ; ((s2 ; s3 @(t(s3) - t(s1) < 5 MIN)) | (s4, s5)) ; s6 & s7 DEFINE s1 AS ip = $x PARTITION BY k"),
    ("machines", "F AS f1, F AS f2, S WITHIN 5 MIN"),
    ("funnels", "a ; b | (c | d) ; a AS again ; big DEFINE big AS x > 1 PARTITION BY k WITHIN 5 MIN"),
    ("funnels", "a | b WITHIN 5 EVENTS"),
]

REFUSED = [
    # sketch, without verify
    ("sketch", "A ; B+", 6, f"{SKETCH} takes '+' (one or more) {ON_EVENTS}"),
    ("sketch", "A* ; B", 2, f"{SKETCH} takes '*' (any number) {ON_EVENTS}"),
    ("sketch", "A? ; B", 2, f"{SKETCH} takes '?' (optional) {ON_EVENTS}"),
    ("sketch", "A{1,2} ; B", 2, f"{SKETCH} takes '{{n,m}}' (from n to m) {ON_EVENTS}"),
    ("sketch", "A ; B @(t2 - t1 < 5 MIN)", 7, f"{SKETCH} takes '@' (a condition on times) {ON_EVENTS}"),
    ("sketch", "2 OF (A, B)", 1, f"{SKETCH} takes n OF ( … ) (at least n of several) {ON_EVENTS}"),
    ("sketch", "A ; B WITHIN 5 MIN SLIDE 1 MIN", 20, f"{SKETCH} does not take SLIDE; leave it out"),
    ("sketch", "!A ; B", 1, f"'!' (not) stands first, {TELLS}"),
    ("sketch", "A ; !B", 5, f"'!' (not) stands last, {TELLS}"),
    ("sketch", "A ; (B ; NOT(C, D))", 10, f"'!' (not) stands last, {TELLS}"),
    ("sketch", "A ; !B, C", 5, f"'!' (not) stands first, {TELLS}"),
    ("sketch", "!A", 1, f"'!' (not) stands alone, {TELLS}"),
    ("sketch", "(A ; B), C", 1, f"{SKETCH} takes a sequence (;) inside a run (,) {ON_EVENTS}"),
    ("sketch", "A ; (B ; C) | D", 5, f"{SKETCH} takes a sequence (;) inside an alternative (|) {ON_EVENTS}"),
    ("sketch", "A & (B | C)", 5, f"{SKETCH} takes an alternative (|) inside a conjunction (&) {ON_EVENTS}"),
    ("sketch", "A ; !(B, C) ; D", 6, f"{SKETCH} takes a run (,) inside a negation (!) {ON_EVENTS}"),
    ("sketch", "(A ; B)[2]", 1, f"{SKETCH} takes a sequence (;) inside a repetition {ON_EVENTS}"),
    ("sketch", "A | B[2]", 5, f"{SKETCH} takes a repetition inside an alternative (|) {ON_EVENTS}"),
    (
        "sketch",
        "A ; (B | C) AS x",
        16,
        f"{SKETCH} does not take another name (AS) of a group; name the events inside the group",
    ),
    # kleene
    ("kleene", "A WITHIN 5 MIN SLIDE 1 MIN", 16, f"{KLEENE} does not take SLIDE; every match is found without it"),
    # groups
    ("groups", "a ; b", 3, f"{GROUPS} does not take ';' (then); its patterns are contiguous: write ','"),
    ("groups", "a, b @(t2 - t1 < 5)", 6, f"{GROUPS} does not take '@' (a condition on times)"),
    ("groups", "a WITHIN 6 EVENTS SLIDE 2 EVENTS", 19, f"{GROUPS} does not take SLIDE; leave it out"),
    (
        "groups",
        "a WITHIN 6 MIN",
        3,
        f"{GROUPS} does not take WITHIN a length of time; it counts steps: write WITHIN n EVENTS",
    ),
    (
        "groups",
        "a, b WHERE a.x > 1 AND a.x < b.x",
        24,
        f"{GROUPS} takes WHERE over one event at a time, not over several",
    ),
    ("groups", "a+ WHERE a[i].x > a[i-1].x", 10, f"{GROUPS} takes WHERE over one event at a time, not over several"),
    ("groups", "a, b WHERE [x]", 12, f"{GROUPS} takes WHERE over one event at a time, not over several"),
    ("groups", "a, b WHERE t2 - t1 < 5 MIN", 12, f"{GROUPS} takes WHERE over one event at a time, not over several"),
    # trends
    ("trends", "A ; !B ; C", 5, f"{TRENDS} does not take '!' (not); {CHAIN}"),
    ("trends", "A*", 2, f"{TRENDS} does not take '*' (any number); {CHAIN}"),
    ("trends", "A?", 2, f"{TRENDS} does not take '?' (optional); {CHAIN}"),
    ("trends", "A[2]", 2, f"{TRENDS} does not take '[n]' (exactly n); {CHAIN}"),
    ("trends", "A{1,2}", 2, f"{TRENDS} does not take '{{n,m}}' (from n to m); {CHAIN}"),
    ("trends", "A & B", 3, f"{TRENDS} does not take '&' (and, in any order); {CHAIN}"),
    ("trends", "A | B", 3, f"{TRENDS} does not take '|' (or); {CHAIN}"),
    ("trends", "A, B", 2, f"{TRENDS} does not take ',' (directly next); {CHAIN}"),
    ("trends", "(A ; B)+", 1, f"{TRENDS} does not take a sequence (;) inside a repetition; only a name"),
    (
        "trends",
        "(A ; B) ; C",
        1,
        f"{TRENDS} does not take a sequence (;) inside a sequence (;); only a name, a repetition",
    ),
    (
        "trends",
        "A ; B @(x)",
        7,
        f"{TRENDS} does not take '@' (a condition on times); "
        "WHERE takes gaps between neighbours, as in t(e[i]) - t(e[i-1]) < 5 MIN",
    ),
    # machines
    ("machines", "A ; !B ; C", 5, f"{MACHINES} does not take '!' (not)"),
    ("machines", "A+ ; B", 2, f"{MACHINES} does not take '+' (one or more); {WRITTEN_OUT}"),
    ("machines", "A* ; B", 2, f"{MACHINES} does not take '*' (any number); {WRITTEN_OUT}"),
    ("machines", "A? ; B", 2, f"{MACHINES} does not take '?' (optional); {WRITTEN_OUT}"),
    ("machines", "A[2] ; B", 2, f"{MACHINES} does not take '[n]' (exactly n); {WRITTEN_OUT}"),
    ("machines", "A{2} ; B", 2, f"{MACHINES} does not take '{{n,m}}' (from n to m); {WRITTEN_OUT}"),
    (
        "machines",
        "A ; B WHERE A.x < B.x",
        13,
        f"{MACHINES} does not take WHERE; "
        "conditions on one event go to DEFINE, on several to $x in DEFINE, on times to @( … )",
    ),
    ("machines", "A ; B WITHIN 5 MIN SLIDE 1 MIN", 20, f"{MACHINES} does not take SLIDE; leave it out"),
    ("machines", "A ; B ; A", 1, f"A stands 2 times; {NAMED}"),
    ("machines", "A AS a1 ; A", 11, f"A stands 2 times; {NAMED}"),
]


@pytest.mark.parametrize(("engine", "text"), TAKEN)
def test_taken(engine: str, text: str) -> None:
    check(parse(text), engine)


@pytest.mark.parametrize(("engine", "text", "column", "message"), REFUSED)
def test_refused_by_name_and_place(engine: str, text: str, column: int, message: str) -> None:
    with pytest.raises(UnsupportedOperatorError) as caught:
        check(parse(text), engine, verify=False)
    assert (caught.value.message, caught.value.column) == (message, column)


def test_the_first_of_several_refused_places_is_named() -> None:
    with pytest.raises(UnsupportedOperatorError) as caught:
        check(parse("A ; B+ ; C ; D?"), "sketch", verify=False)
    assert str(caught.value) == (
        f"line 1, column 6: {SKETCH} takes '+' (one or more) {ON_EVENTS}\n  A ; B+ ; C ; D?\n       ^"
    )


def test_what_goes_beyond_a_sketch_is_left_to_another_engine() -> None:
    beyond = [text for engine, text, _, _ in REFUSED if engine == "sketch" and "SLIDE" not in text and " x" not in text]
    assert not [text for text in beyond if is_matched_by_itself(parse(text), "sketch")]
    assert is_matched_by_itself(parse("A ; !B ; C | D , E ; F[3] WHERE A.x < D.x"), "sketch")


def test_a_sketch_takes_define_and_where_only_verified() -> None:
    check(parse("A ; B WHERE A.x < B.x"), "sketch", verify=True)
    with pytest.raises(UnsupportedOperatorError) as caught:
        check(parse("A ; B WHERE A.x < B.x"), "sketch", verify=False)
    assert caught.value.message == f"{SKETCH} takes WHERE {ON_EVENTS}"
    with pytest.raises(UnsupportedOperatorError, match="takes DEFINE of events alone"):
        check(parse("A ; B DEFINE A AS x > 1"), "sketch", verify=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_operands_of_one_name_are_refused_by_all(engine: str) -> None:
    with pytest.raises(PatternSyntaxError, match="x already names operand 1"):
        check(parse("A AS x, B AS x"), engine)


def test_every_operator_is_taken_by_an_engine_but_names_of_groups() -> None:
    taken = frozenset().union(*(engine.takes for engine in ENGINES.values()))
    assert set(Operator) - taken == {Operator.GROUP_NAME}
    assert set(ENGINES) == {"sketch", "kleene", "groups", "trends", "machines", "funnels"}

"""Worked answers of exact matching for each form of the language, hand-checked (SPEC 3, ROWS part 3)."""

from __future__ import annotations

from dataclasses import dataclass

from naive.kleene import Event
from naive.kleene_cases import stream

ANY, NEXT, STRICT = "skip_till_any", "skip_till_next", "strict"
MINUTE = 60_000_000


def letters(text: str) -> list[Event]:
    """``"A B C"``: one event a minute from position 1, which is also its x."""
    return [Event(at, at * MINUTE, name, {"x": float(at)}) for at, name in enumerate(text.split(), 1)]


LETTERS = letters("A B C B A A C B A D C B A B C B")


@dataclass(frozen=True)
class Answered:
    """A question of a form, and its rows as words in their order; `events` None: the letters of ROWS."""

    form: str
    policy: str
    pattern: str
    events: str | None
    rows: tuple[str, ...]
    after_match: str = "next"
    repetition: str = "maximal"

    @property
    def stream(self) -> list[Event]:
        return LETTERS if self.events is None else stream(self.events)

    def __str__(self) -> str:
        return f"{self.pattern} by {self.policy} on {self.events}"


def rows_on_letters(*rows: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(" ".join(f"{LETTERS[at - 1].name}{at}" for at in row) for row in rows)


ANSWERED = (
    # ',': directly next, in "can be added", too.
    Answered("directly", ANY, "a+ , b", "a1 b2 a3 b4", ("a1 b2", "a1 a3 b4")),
    Answered("directly", ANY, "a , b", "a1 b2 b3 a4 x5 b6", ("a1 b2",)),
    Answered("directly", ANY, "a ; b , c", "a1 b2 x3 b4 c5", ("a1 b4 c5",)),
    Answered("directly", ANY, "a , b+ , c", "a1 b2 x3 b4 c5", ("a1 b2 b4 c5",)),
    Answered("directly", ANY, "(a & b) , c", "a1 b2 c3 b4 a5 c6", ("a1 b2 c3", "b2 a5 c6", "b4 a5 c6")),
    Answered("directly", ANY, "(a , b) & c", "a1 c2 b3 a4 b5", ("c2 a4 b5",)),
    Answered("directly", NEXT, "a ; b , c", "a1 b2 x3 b4 c5", ()),
    Answered("directly", NEXT, "a ; b , c", "a1 x2 b3 c4", ("a1 b3 c4",)),
    Answered("directly", NEXT, "a+ , b", "a1 x2 b3 a4 b5", ("a1 a4 b5", "a4 b5")),
    Answered("directly", NEXT, "a , (b | c)", "a1 c2 b3", ("a1 c2",)),
    Answered("directly", STRICT, "a , b ; c", "a1 b2 c3", ("a1 b2 c3",)),
    # '?': taken where one can be.
    Answered("optional", ANY, "a ; b? ; c", "a1 c2 b3 c4", ("a1 c2", "a1 b3 c4")),
    Answered("optional", ANY, "a ; b? ; c", "a1 b2 b3 c4", ("a1 b2 c4", "a1 b3 c4")),
    Answered("optional", ANY, "a , b? , c", "a1 c2 a3 b4 c5 a6 b7 x8 c9", ("a1 c2", "a3 b4 c5")),
    Answered("optional", NEXT, "a ; b? ; c", "a1 c2 b3 c4", ("a1 b3 c4",)),
    Answered("optional", NEXT, "a ; b? ; c", "a1 c2 x3", ("a1 c2",)),
    Answered("optional", NEXT, "a , b? , c", "a1 c2 a3 b4 c5", ("a1 c2", "a3 b4 c5")),
    Answered("optional", STRICT, "a ; b? ; c", "a1 c2 a3 b4 c5", ("a1 c2", "a3 b4 c5")),
    # '{n,m}': every choice of the greatest number, else all.
    Answered("bounded", ANY, "a ; b{1,2} ; c", "a1 b2 b3 b4 c5", ("a1 b2 b3 c5", "a1 b2 b4 c5", "a1 b3 b4 c5")),
    Answered("bounded", ANY, "a ; b{1,3} ; c", "a1 b2 b3 c4", ("a1 b2 b3 c4",)),
    Answered("bounded", ANY, "a ; b{2,} ; c", "a1 b2 b3 c4 b5 c6", ("a1 b2 b3 c4", "a1 b2 b3 b5 c6")),
    Answered("bounded", ANY, "b{,2} ; c", "c1 b2 c3", ("c1", "b2 c3")),
    Answered("bounded", ANY, "a ; b{3,4}", "a1 b2 b3", ()),
    Answered("bounded", ANY, "a ; b{2}", "a1 b2 b3 b4", ("a1 b2 b3", "a1 b2 b4", "a1 b3 b4")),
    Answered("bounded", NEXT, "a ; b{1,2} ; c", "a1 b2 b3 b4 c5", ("a1 b2 b3 c5",)),
    Answered("bounded", NEXT, "a ; b{2,} ; c", "a1 b2 c3 b4 c5", ("a1 b2 b4 c5",)),
    Answered("bounded", NEXT, "a ; b{,2} ; c", "a1 c2 b3", ("a1 c2",)),
    Answered("bounded", STRICT, "a ; b{1,2} ; c", "a1 b2 b3 b4 c5", ()),
    Answered("bounded", STRICT, "a ; b{3,}", "a1 b2 b3 b4 x5", ("a1 b2 b3 b4",)),
    # UNTIL: no u between the first and the last b.
    Answered("until", ANY, "a ; b+ UNTIL u ; c", "a1 b2 b3 u4 b5 c6", ("a1 b2 b3 c6", "a1 b5 c6")),
    Answered("until", NEXT, "a ; b+ UNTIL u ; c", "a1 b2 b3 u4 b5 c6", ("a1 b2 b3 c6",)),
    Answered("until", NEXT, "a ; b+ UNTIL (u | v)", "a1 u2 b3 v4 b5", ("a1 b3",)),
    Answered("until", NEXT, "a ; b{2,} UNTIL u ; c", "a1 b2 u3 b4 c5", ()),
    Answered("until", STRICT, "a ; b+ UNTIL u", "a1 b2 b3 u4 b5", ("a1 b2 b3",)),
    # What ends the collecting is not collected, also where it would fit, unless it is the first.
    Answered("until", ANY, "a+ UNTIL a ; b", "a1 a2 a3 b4", ("a1 b4", "a2 b4", "a3 b4")),
    Answered("until", NEXT, "a+ UNTIL a ; b", "a1 a2 a3 b4", ("a1 b4", "a2 b4", "a3 b4")),
    Answered("until", ANY, "a{2} UNTIL a", "a1 a2", ()),
    Answered("until", NEXT, "(a ; b)+ UNTIL b", "a1 b2 a3 b4", ()),
    # n OF: every choice of so many, greater ones first.
    Answered("some_of", ANY, "2 OF (a, b, c)", "c1 a2 b3", ("c1 a2", "c1 a2 b3", "c1 b3", "a2 b3")),
    Answered("some_of", ANY, "x ; 1 OF (a, b)", "x1 b2", ("x1 b2",)),
    Answered("some_of", NEXT, "2 OF (a, b, c)", "c1 a2 b3", ("c1 a2 b3", "a2 b3")),
    Answered("some_of", NEXT, "2 OF (a, b) ; c", "b1 a2 c3", ("b1 a2 c3",)),
    # '&' takes the nearest event of either side; a repeated operand is one block.
    Answered("conjunction", NEXT, "a & b", "a1 b2 a3", ("a1 b2", "b2 a3")),
    Answered("conjunction", NEXT, "a ; (b & c) ; d", "a1 c2 c3 b4 d5", ("a1 c2 b4 d5",)),
    Answered("conjunction", NEXT, "a+ & b", "a1 a2 b3 a4", ("a1 a2 b3", "a2 b3", "b3 a4")),
    Answered("conjunction", NEXT, "(a ; b) & c", "a1 c2 b3 c4", ("a1 c2 b3",)),
    Answered("conjunction", NEXT, "a{2} & b", "a1 b2 a3", ()),
    Answered("conjunction", STRICT, "x ; (a & b) ; c", "x1 b2 a3 c4 x5 b6 c7", ("x1 b2 a3 c4",)),
    Answered("conjunction", STRICT, "a+ & b", "a1 a2 b3", ("a1 a2 b3", "a2 b3")),
    # Absence first and last, under WITHIN.
    Answered("absence", ANY, "A ; !B WITHIN 2 MIN", None, ("A5", "A6", "A9")),
    Answered("absence", NEXT, "A ; !B WITHIN 2 MIN", None, ("A5", "A6", "A9")),
    Answered("absence", STRICT, "A ; !B WITHIN 2 MIN", None, ("A5", "A6", "A9")),
    Answered("absence", ANY, "!C ; B WITHIN 2 MIN", None, ("B2", "B14")),
    Answered("absence", NEXT, "!C ; B WITHIN 2 MIN", None, ("B2", "B14")),
    Answered("absence", ANY, "A & !B WITHIN 2 MIN", None, ("A6",)),
    Answered("absence", ANY, "(A ; !B) | D WITHIN 2 MIN", None, ("A5", "A6", "A9", "D10")),
    Answered("absence", ANY, "A ; !B WITHIN 2 EVENTS", None, ("A5", "A6", "A9")),
    Answered("absence", ANY, "A ; !(B | C) WITHIN 2 MIN", None, ("A5", "A9")),
    Answered("absence", ANY, "A ; !B ; !C WITHIN 2 MIN", None, ("A5", "A9")),
    Answered("absence", ANY, "A ; !B ; C ; !D WITHIN 5 MIN", None, rows_on_letters((5, 7), (9, 11))),
    Answered("absence", ANY, "a ; !b WHERE b.x = a.x WITHIN 3 EVENTS", "a1=1 b2=2 a3=2 b4=2", ("a1",)),
    Answered("absence", ANY, "!a ; b WITHIN 3 EVENTS", "a1 x2 b3 b4", ("b4",)),
    # An event at the deadline itself is outside.
    Answered("absence", ANY, "a ; !b WITHIN 2 MILLISECOND", "a1 x2 b3", ("a1",)),
    Answered("absence", ANY, "a ; !b WITHIN 2001 MICROSECOND", "a1 x2 b3", ()),
    # Absence of a group.
    Answered("absence", ANY, "A ; !(B ; C) ; D", None, rows_on_letters((5, 10), (6, 10), (9, 10))),
    Answered("absence", ANY, "A ; !(B & C) ; D", None, rows_on_letters((9, 10))),
    Answered("absence", ANY, "A ; !(B | C) ; D", None, rows_on_letters((9, 10))),
    Answered("absence", ANY, "a ; !(b ; c) WITHIN 4 EVENTS", "a1 b2 x3 c4 a5 c6 b7", ("a5",)),
    Answered("absence", ANY, "a ; !(b ; c) ; d WHERE b.x = c.x", "a1 b2=1 c3=2 d4", ("a1 d4",)),
    # A deadline of its own.
    Answered(
        "absence",
        ANY,
        "A ; B ; !C @(t(C) - t(B) < 2 MIN)",
        None,
        rows_on_letters(
            *((1, 4), (1, 8), (1, 12), (1, 16), (5, 8), (5, 12), (5, 16)),
            *((6, 8), (6, 12), (6, 16), (9, 12), (9, 16), (13, 16)),
        ),
    ),
    Answered("absence", NEXT, "A ; B ; !C @(t(C) - t(B) < 2 MIN)", None, rows_on_letters((5, 8), (6, 8), (9, 12))),
    Answered("absence", ANY, "a ; b ; !c @(t(c) - t(a) < 4 MILLISECOND)", "a1 b2 x3 x4 c5", ("a1 b2",)),
    Answered("absence", ANY, "a ; b ; !c @(t(c) - t(b) < 5 MILLISECOND) WITHIN 2 EVENTS", "a1 b2 x3 c4", ()),
    Answered("absence", NEXT, "A ; !B @(t(B) - t(A) < 2 MIN) ; C", None, rows_on_letters((5, 7), (6, 7), (9, 11))),
    Answered(
        "absence",
        NEXT,
        "A ; !B @(t(B) - t(A) < 2 MIN) @(t(C) - t(A) >= 2 MIN) ; C",
        None,
        rows_on_letters((5, 7), (6, 11), (9, 11)),
    ),
    Answered("absence", ANY, "!a @(t(b) - t(a) < 2 MILLISECOND) ; b", "a1 b2 x3 a4 x5 b6", ("b6",)),
    # 'A , !X': the event directly behind A.
    Answered(
        "absence",
        ANY,
        "A , !B ; C",
        None,
        rows_on_letters((5, 7), (5, 11), (5, 15), (6, 7), (6, 11), (6, 15), (9, 11), (9, 15)),
    ),
    Answered("absence", NEXT, "A , !B ; C", None, rows_on_letters((5, 7), (6, 7), (9, 11))),
    # An absence fails a way, not the start.
    Answered("absence", NEXT, "a ; ((b ; !x) | c) WITHIN 4 EVENTS", "a1 b2 x3 c4", ("a1 c4",)),
    # repetition => 'all'.
    Answered("all", ANY, "a ; b+", "a1 b2 b3", ("a1 b2", "a1 b2 b3", "a1 b3"), repetition="all"),
    Answered("all", ANY, "a ; b* ; c", "a1 b2 c3", ("a1 b2 c3", "a1 c3"), repetition="all"),
    Answered("all", ANY, "b{1,2}", "b1 b2 b3", ("b1", "b1 b2", "b1 b3", "b2", "b2 b3", "b3"), repetition="all"),
    Answered(
        "all",
        ANY,
        "b+ b[] WHERE b[i].x > b[i-1].x",
        "b1=1 b2=3 b3=2",
        ("b1", "b1 b2", "b1 b3", "b2", "b3"),
        repetition="all",
    ),
    # An event that is passed over is not taken, so it may be the one that must be absent.
    Answered("all", ANY, "b+ & !b AS x & c", "b1 b2 b3 c4", ("b1 b2 b3 c4",), repetition="all"),
    Answered("bounded", ANY, "b{2} & !b AS x & c", "b1 b2 c3", ("b1 b2 c3",)),
    Answered("bounded", ANY, "b{2} & !b AS x & c", "b1 b2 b3 c4", ()),
    # What is left out at the end does not let a match leave its window.
    Answered(
        "all",
        ANY,
        "b+ b[] ; c+ ; d? WHERE b[i].x > b[i-1].x WITHIN 2 EVENTS",
        "b1 c2 c3",
        ("b1 c2",),
        repetition="all",
    ),
    # What is left out between two repetitions does not let them share an event.
    Answered(
        "all",
        ANY,
        "a ; b+ ; c* ; b+ d[] WHERE d[i].x > d[i-1].x",
        "a1 b2=1 b3=2",
        ("a1 b2 b3",),
        repetition="all",
    ),
    Answered("all", NEXT, "a ; b+ ; c", "a1 b2 b3 c4", ("a1 b2 b3 c4", "a1 b2 c4"), repetition="all"),
    Answered("all", NEXT, "a ; b+ ; c", "a1 b2 c3 b4 c5", ("a1 b2 c3", "a1 b2 b4 c5"), repetition="all"),
    Answered("all", NEXT, "a ; b* ; c", "a1 b2 c3", ("a1 b2 c3", "a1 c3"), repetition="all"),
    Answered("all", NEXT, "a ; b+", "a1 x2 b3 b4", ("a1 b3", "a1 b3 b4"), repetition="all"),
    Answered("all", STRICT, "a ; b+ ; c", "a1 b2 b3 c4", ("a1 b2 b3 c4",), repetition="all"),
    Answered("all", STRICT, "a ; b+", "a1 b2 b3 x4", ("a1 b2", "a1 b2 b3"), repetition="all"),
    # Groups under a repetition.
    Answered("group", ANY, "(a ; b)+", "a1 b2 a3 b4", ("a1 b2", "a1 b2 a3 b4", "a1 b4", "a3 b4"), repetition="all"),
    Answered("group", ANY, "(a ; b){2} ; c", "a1 b2 a3 b4 c5", ("a1 b2 a3 b4 c5",), repetition="all"),
    Answered(
        "group",
        ANY,
        "(a ; b)+ WHERE a.x = b.x",
        "a1=1 b2=2 b3=1 a4=2 b5=2",
        ("a1 b3", "a1 b3 a4 b5", "a4 b5"),
        repetition="all",
    ),
    # Under '&' a repeated group is one block.
    Answered("group", ANY, "(a ; b)+ & c", "a1 b2 c3 a4 b5", ("a1 b2 c3", "c3 a4 b5"), repetition="all"),
    Answered("group", ANY, "(a , b)+ ; c", "a1 x2 b3 a4 b5 c6", ("a4 b5 c6",), repetition="all"),
    Answered("group", ANY, "((a ; b) | c){2}", "a1 c2 b3 c4", ("a1 b3 c4", "c2 c4"), repetition="all"),
    # Where a round ends is in doubt, but not what the operands take: each match comes once.
    Answered("group", ANY, "(a+ | b)+", "a1 a2", ("a1", "a1 a2", "a2"), repetition="all"),
    Answered(
        "group",
        ANY,
        "(a+){2} ; c",
        "a1 a2 a3 c4",
        ("a1 a2 a3 c4", "a1 a2 c4", "a1 a3 c4", "a2 a3 c4"),
        repetition="all",
    ),
    Answered("group", ANY, "(a ; b?)+ ; c", "a1 a2 c3", ("a1 a2 c3", "a1 c3", "a2 c3"), repetition="all"),
    Answered("group", ANY, "(b ; c)+ UNTIL u", "b1 c2 u3 b4 c5", ("b1 c2", "b4 c5"), repetition="all"),
    Answered("group", ANY, "(a ; b)+ ; !x WITHIN 4 EVENTS", "a1 b2 a3 x4 b5", ("a3 b5",), repetition="all"),
    Answered("group", NEXT, "(a ; b)+ ; c", "a1 b2 a3 b4 a5 c6", ("a1 b2 a3 b4 c6", "a3 b4 c6")),
    Answered("group", NEXT, "(a | b){2} ; c", "a1 b2 c3", ("a1 b2 c3",)),
    Answered("group", NEXT, "x ; (a ; b)* ; c", "x1 a2 c3 b4 c5", ("x1 a2 b4 c5",)),
    Answered("group", NEXT, "x ; (a ; b)* ; c", "x1 a2 c3", ("x1 c3",)),
    Answered("group", NEXT, "(a ; b)+ WHERE a.x = b.x", "a1=1 b2=2 b3=1 a4=2 b5=2", ("a1 b3 a4 b5", "a4 b5")),
    # An alternative, or one of several, for which there are too few events does not keep a round from another.
    Answered("group", NEXT, "(a | (b ; c))+", "a1", ("a1",), repetition="all"),
    Answered("group", NEXT, "(2 OF (a, b, c))+", "a1 b2", ("a1 b2",), repetition="all"),
    Answered("group", NEXT, "((b ; c) | b{1})+", "b1", (), repetition="all"),
    # UNTIL looks at each round by itself.
    Answered("group", NEXT, "(b+ UNTIL u ; c){2}", "b1 b2 c3 u4 b5 c6", ("b1 b2 c3 b5 c6", "b2 c3 b5 c6")),
    Answered("group", NEXT, "(b ; c)+ UNTIL u", "b1 c2 u3 b4 c5", ("b1 c2", "b4 c5")),
    Answered("group", STRICT, "(c+ UNTIL b ; b){2}", "c1 b2 c3 b4", ("c1 b2 c3 b4",)),
    Answered("group", STRICT, "(a ; b)+ ; c", "a1 b2 a3 b4 c5", ("a1 b2 a3 b4 c5", "a3 b4 c5")),
    Answered("group", STRICT, "(a ; b)+ ; c", "a1 b2 a3 c4", ()),
    Answered("group", STRICT, "(a ; b)+", "a1 b2 a3 x4", ("a1 b2",)),
    # Conditions that steer: prices 1 2 3 2.
    Answered(
        "steering",
        STRICT,
        "s ; u+ u[] ; d WHERE u[i].x > u[i-1].x AND FIRST(u.x) > s.x AND d.x < LAST(u.x)",
        "s1=1 u2=2 u3=3 d4=2",
        ("s1 u2 u3 d4",),
    ),
    Answered("steering", NEXT, "a ; b+ ; c WHERE c.x > SUM(b.x)", "a1 b2=2 b3=3 c4=4 b5=1 c6=7", ("a1 b2 b3 b5 c6",)),
    Answered(
        "steering",
        NEXT,
        "b+ b[] WHERE b[i].x > AVG(b.x)",
        "b1=2 b2=1 b3=3 b4=2.6",
        ("b1 b3 b4", "b2 b3 b4", "b3", "b4"),
    ),
    Answered(
        "steering",
        NEXT,
        "b+ b[] ; c WHERE COALESCE(SUM(b.x), 0) + b[i].x < 5",
        "b1=2 b2=9 b3=2 b4=2 c5",
        ("b1 b3 c5", "b3 b4 c5", "b4 c5"),
    ),
    # What only reads a finished repetition judges the match.
    Answered("steering", NEXT, "a ; b+ ; c WHERE COUNT(b.x) >= 2", "a1 b2=1 c3 b4=1 c5", ()),
    # Where the search goes on.
    Answered("after_match", NEXT, "a AS s ; b ; a AS e", "a1 b2 a3 b4 a5", ("a1 b2 a3",), "past_last"),
    Answered("after_match", NEXT, "a AS s ; b ; a AS e", "a1 b2 a3 b4 a5", ("a1 b2 a3", "a3 b4 a5"), "last e"),
    Answered("after_match", NEXT, "a+ ; b+ ; c", "a1 a2 b3 b4 c5", ("a1 a2 b3 b4 c5",), "first b"),
    Answered("after_match", NEXT, "a AS s ; a+ AS r ; b", "a1 a2 a3 b4", ("a1 a2 a3 b4", "a2 a3 b4"), "first r"),
    Answered("after_match", NEXT, "a AS s ; a+ AS r ; b", "a1 a2 a3 b4", ("a1 a2 a3 b4",), "last r"),
)


@dataclass(frozen=True)
class Final:
    """Which rows are final at a watermark; without `events` in minutes, else in milliseconds."""

    form: str
    policy: str
    pattern: str
    events: str | None
    at: int
    rows: tuple[str, ...]
    repetition: str = "maximal"

    @property
    def stream(self) -> list[Event]:
        return LETTERS if self.events is None else stream(self.events)

    @property
    def watermark(self) -> int:
        return self.at * (MINUTE if self.events is None else 1000)

    def __str__(self) -> str:
        return f"{self.pattern} by {self.policy} at {self.at}"


FINAL = (
    # Events at the watermark are settled; the deadline itself is outside.
    *(
        Final("absence", policy, "A ; !B WITHIN 2 MIN", None, at, rows)
        for policy in (ANY, NEXT, STRICT)
        for at, rows in ((6, ()), (7, ("A5",)), (8, ("A5", "A6")), (10, ("A5", "A6")), (11, ("A5", "A6", "A9")))
    ),
    Final("absence", ANY, "!C ; B WITHIN 2 MIN", None, 13, ("B2",)),
    Final("absence", ANY, "!C ; B WITHIN 2 MIN", None, 14, ("B2", "B14")),
    Final("absence", ANY, "A & !B WITHIN 2 MIN", None, 7, ()),
    Final("absence", ANY, "A & !B WITHIN 2 MIN", None, 8, ("A6",)),
    Final("absence", ANY, "A ; !B WITHIN 2 EVENTS", None, 9, ("A5", "A6")),
    Final("absence", ANY, "A ; !B WITHIN 2 EVENTS", None, 10, ("A5", "A6", "A9")),
    Final("absence", ANY, "A , !B WITHIN 5 MIN", None, 6, ("A5",)),
    Final("absence", ANY, "A ; !B ; C ; !D WITHIN 5 MIN", None, 13, ("A5 C7",)),
    Final("absence", ANY, "A ; !B ; C ; !D WITHIN 5 MIN", None, 14, ("A5 C7", "A9 C11")),
    # Without an event before it, an absence has no place.
    Final("absence", ANY, "a* ; (b & !c) WITHIN 5 EVENTS", "b1", 1, ("b1",)),
    Final("absence", ANY, "a* ; (b & !c) WITHIN 5 EVENTS", "a1 b2", 2, ()),
    # A round takes an A or a B: no event of the other is missing from the row, which waits for its absence.
    Final("group", NEXT, "(D | E) ; (A | B)+ ; !C @(t(C) - t(D) < 9 MILLISECOND) WITHIN 3 MILLISECOND", "D1 A2", 9, ()),
    Final(
        "group",
        NEXT,
        "(D | E) ; (A | B)+ ; !C @(t(C) - t(D) < 9 MILLISECOND) WITHIN 3 MILLISECOND",
        "D1 A2",
        10,
        ("D1 A2",),
    ),
    Final("deadline", NEXT, "A ; B ; !C @(t(C) - t(B) < 2 MIN)", None, 9, ()),
    Final("deadline", NEXT, "A ; B ; !C @(t(C) - t(B) < 2 MIN)", None, 10, ("A5 B8", "A6 B8")),
    Final("deadline", NEXT, "A ; B ; !C @(t(C) - t(B) < 2 MIN) WITHIN 1 DAY", None, 10, ("A5 B8", "A6 B8")),
    Final("deadline", NEXT, "A ; !B @(t(B) - t(A) < 2 MIN) ; C", None, 7, ("A5 C7", "A6 C7")),
    # A repetition with room, and one without.
    Final("optional", ANY, "a ; b? WITHIN 3 MILLISECOND", "a1 a4", 3, ()),
    Final("optional", ANY, "a ; b? WITHIN 3 MILLISECOND", "a1 a4", 4, ("a1",)),
    Final("optional", ANY, "a ; b? ; c", "a1 c2", 2, ("a1 c2",)),
    Final("bounded", ANY, "a ; b{2}", "a1 b2 b3", 3, ("a1 b2 b3",)),
    Final("all", ANY, "a ; b+", "a1 b2 b3", 2, ("a1 b2",), "all"),
)


@dataclass(frozen=True)
class Begun:
    """What has begun and is not complete, each with what is awaited."""

    policy: str
    pattern: str
    events: str
    rows: tuple[str, ...]
    after_match: str = "next"
    repetition: str = "maximal"

    def __str__(self) -> str:
        return f"{self.pattern} by {self.policy} on {self.events}, {self.repetition}"


BEGUN = (
    Begun(NEXT, "a ; b ; c WITHIN 4 MILLISECOND", "a1 b2 a3 x4", ("a1 b2 ? c", "a3 ? b")),
    Begun(NEXT, "a ; b ; c", "a1 b2 c3 a4", ("a4 ? b",)),
    Begun(NEXT, "a ; b ; c", "a1 a2 b3 c4 a5", ("a5 ? b",), "past_last"),
    Begun(NEXT, "a ; (b | c) ; d", "a1 c2", ("a1 c2 ? d",)),
    Begun(NEXT, "a ; b{3} ; c", "a1 b2 x3 b4", ("a1 b2 b4 ? b",)),
    Begun(NEXT, "a ; b+ ; c", "a1 b2 b3", ("a1 b2 b3 ? c",)),
    Begun(NEXT, "a ; b? ; c", "a1 x2", ("a1 ? c",)),
    # Complete, but rejected, or never to be completed: it is no near miss.
    Begun(NEXT, "a ; !x ; b", "a1 x2 b3", ()),
    Begun(NEXT, "a ; !x ; b", "a1 x2", ()),
    Begun(STRICT, "a ; b ; c", "a1 b2 x3 a4", ("a1 b2 ? c", "a4 ? b")),
    # Of a repeated group the round at hand; after a complete round what stands behind the group, or the next round.
    Begun(NEXT, "(a ; b)+ ; c", "a1 b2", ("a1 b2 ? c",)),
    Begun(NEXT, "(a ; b)+ ; c", "a1 b2 a3", ("a1 b2 a3 ? b", "a3 ? b")),
    Begun(NEXT, "(a ; b){2} ; c", "a1 b2 x3", ("a1 b2 ? a",)),
    Begun(NEXT, "(a ; b)+", "a1 b2 a3", ("a3 ? b",)),
    Begun(NEXT, "x ; (a ; b)+", "x1", ("x1 ? a",)),
    Begun(NEXT, "x ; (a ; b)* ; c", "x1", ("x1 ? c",)),
    Begun(NEXT, "x ; (a ; b)* ; c", "x1 a2", ("x1 a2 ? b",)),
    Begun(NEXT, "x ; (a ; (b | c)){2}", "x1 a2 c3 a4", ("x1 a2 c3 a4 ? b",)),
    Begun(NEXT, "x ; ((a ; b)+ ; c)+ ; d", "x1 a2 b3 a4", ("x1 a2 b3 a4 ? b",)),
    Begun(NEXT, "x ; ((a ; b)+ ; c)+ ; d", "x1 a2 b3 c4", ("x1 a2 b3 c4 ? d",)),
    Begun(NEXT, "x ; (a? ; b?){2}", "x1 b2", ("x1 b2 ? a",)),
    Begun(STRICT, "(a ; b)+ ; c", "a1 b2 a3 x4", ("a1 b2 a3 ? b", "a3 ? b")),
    Begun(NEXT, "(a ; b)+ ; !x ; c", "a1 b2 x3", ()),
    Begun(NEXT, "(a ; b)+ ; !x ; c", "a1 b2 a3 x4", ("a1 b2 a3 ? b", "a3 ? b")),
    # Of every place to stop the one that came furthest.
    Begun(NEXT, "a ; b+ ; c", "a1 b2 b3", ("a1 b2 b3 ? c",), "next", "all"),
    Begun(NEXT, "a ; b{2,3} ; c", "a1 b2", ("a1 b2 ? b",), "next", "all"),
    Begun(NEXT, "a ; b+ ; c", "a1 b2 c3 a4", ("a4 ? b",), "next", "all"),
    Begun(
        STRICT,
        "a+ AS f ; a AS g , b ; c",
        "a1 a2 a3 b4 x5",
        ("a1 a2 a3 b4 ? c", "a2 a3 b4 ? c", "a3 ? g"),
        "next",
        "all",
    ),
    Begun(
        NEXT, "a+ AS f ; a AS g , b ; c", "a1 a2 a3 b4", ("a1 a2 a3 b4 ? c", "a2 a3 b4 ? c", "a3 ? g"), "next", "all"
    ),
    Begun(NEXT, "a+ AS f ; a AS g , b ; c", "a1 a2 a3 b4", ("a1 a2 ? b", "a2 a3 b4 ? c", "a3 ? g")),
    Begun(NEXT, "(a ; b)+ ; c", "a1 b2 a3", ("a1 b2 a3 ? b", "a3 ? b"), "next", "all"),
    Begun(NEXT, "(a+){2} ; c", "a1 a2", ("a1 a2 ? c", "a2 ? a"), "next", "all"),
    Begun(NEXT, "(a+){2} ; c", "a1 a2", ("a1 a2 ? c", "a2 ? a")),
    Begun(NEXT, "a ; b+ ; !x ; c", "a1 b2 x3 c4", (), "next", "all"),
    Begun(NEXT, "a ; b+ ; c", "a1 b2 b3 c4 a5", ("a5 ? b",), "past_last", "all"),
    # Under skip_till_any of all choices the one that came furthest, and of those the nearest.
    Begun(ANY, "a ; b ; c WITHIN 4 MILLISECOND", "a1 b2 a3 x4", ("a1 b2 ? c", "a3 ? b")),
    Begun(ANY, "a ; b ; !x ; c", "a1 b2 x3 b4", ("a1 b4 ? c",)),
    Begun(ANY, "a ; b ; !x ; c", "a1 b2 x3", ("a1 ? b",)),
    Begun(ANY, "a ; b ; !x ; c", "a1 b2 x3 c4 b5", ()),
    Begun(ANY, "a ; !x ; b", "a1 x2", ()),
    Begun(ANY, "a ; b , c ; d", "a1 b2 b3 c4", ("a1 b3 c4 ? d",)),
    Begun(ANY, "a ; b ; b AS e WHERE t(e) - t(b) > 1 MILLISECOND", "a1 b2 b3", ("a1 b2 ? e",)),
    Begun(ANY, "a ; b+ ; c", "a1 b2 b3", ("a1 b2 b3 ? c",)),
    Begun(ANY, "a ; b+ ; c ; d", "a1 b2 c3 b4 c5", ("a1 b2 c3 ? d",)),
    Begun(ANY, "a ; b{3} ; c", "a1 b2 x3 b4", ("a1 b2 b4 ? b",)),
    Begun(ANY, "a ; b? ; c", "a1 x2 b3", ("a1 b3 ? c",)),
    Begun(ANY, "a+ ; b", "a1 a2 x3", ("a1 a2 ? b", "a2 ? b")),
    Begun(ANY, "a+ ; b", "a1 b2 a3", ("a3 ? b",)),
    Begun(ANY, "a & b+ & c", "b1 b2 a3 b4", ("b1 b2 a3 ? c", "b2 a3 ? c", "a3 b4 ? c", "b4 ? a")),
    # What '&' has ended with too few can't be completed.
    Begun(ANY, "a & b{2}", "b1 a2", ("b1 ? a", "a2 ? b")),
    Begun(ANY, "(a ; d) | (a AS f ; b ; c)", "a1 b2", ("a1 b2 ? c",)),
    Begun(ANY, "a ; b ; c WHERE COUNT(b.x) > 5", "a1 b2 c3", (), "next", "all"),
    Begun(ANY, "(a ; b)+ ; c", "a1 b2 a3", ("a1 b2 ? c", "a3 ? b"), "next", "all"),
    Begun(ANY, "(a ; b){2} ; c", "a1 b2 a3", ("a1 b2 a3 ? b", "a3 ? b"), "next", "all"),
    Begun(ANY, "(a ; b)+ ; !x ; c", "a1 b2 x3", ("a1 ? b",), "next", "all"),
    Begun(ANY, "(a ; b)+ ; !x ; c", "a1 b2 x3 a4", ("a1 b2 a4 ? b", "a4 ? b"), "next", "all"),
    Begun(ANY, "x ; (a ; b)* ; c", "x1 a2", ("x1 a2 ? b",), "next", "all"),
    Begun(ANY, "(a+){2} ; c", "a1 a2", ("a1 a2 ? c", "a2 ? a"), "next", "all"),
)

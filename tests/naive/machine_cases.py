"""Composite subscriptions for the machines engine: worked answers of SPEC 6 and of the paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from naive.machines import (
    And,
    Condition,
    Either,
    Event,
    Match,
    Node,
    Or,
    Primitive,
    Seq,
    Subscription,
)

SECOND = 1_000_000
MINUTE = 60 * SECOND
ATTRIBUTES = {"x": "bigint", "y": "bigint", "n": "bigint"}
"""Attributes of the streams here and their types."""
LOGIN_ATTRIBUTES = {"status": "string", "ip": "string"}


def stream(text: str) -> list[Event]:
    """``"a b:k@3 c=1"``: positions from 1; ``:`` key, ``@`` second (by default the position), ``=`` attribute x."""
    found = []
    for position, word in enumerate(text.split(), 1):
        parts = re.fullmatch(r"(\w+)(?::(\w+))?(?:@(\d+))?(?:=(\d+))?", word)
        assert parts is not None, word
        name, key, second, value = parts.groups()
        values = {"x": int(value) if value else None, "y": None, "n": None}
        found.append(Event(position, int(second or position) * SECOND, name, key, values))
    return found


def words(bindings: Mapping[str, int]) -> str:
    """Positions by operand as the cases below write them."""
    return " ".join(f"{name}={position}" for name, position in bindings.items())


def rows(found: Sequence[Match]) -> tuple[str, ...]:
    """Rows as the cases below write them, by the completing event."""
    return tuple(words(row.bindings) for row in sorted(found, key=lambda row: row.completed))


def p(name: str, takes: str | None = None, joins: str = "") -> Primitive:
    """An operand that takes a name, by default its own; `joins` as in ``"x=v y=w"``."""
    pairs = [part.split("=") for part in joins.split()]
    return Primitive(name, is_named(takes or name), tuple((column, variable) for column, variable in pairs))


def is_named(*wanted: str) -> Callable[[Event], bool]:
    return lambda event: event.name in wanted


def then(*items: Node) -> Seq:
    """``;`` between all items."""
    return Seq(items, (False,) * (len(items) - 1))


def directly(*items: Node) -> Seq:
    """``,`` between all items."""
    return Seq(items, (True,) * (len(items) - 1))


def both(*items: Node) -> And:
    return And(items)


def either(*items: Node) -> Or:
    return Or(items)


def seconds(text: str) -> tuple[Condition | Either, ...]:
    """``"b - a < 3, c - a > 1 or c - b <> 2"``: conditions in seconds."""
    found: list[Condition | Either] = []
    for whole in text.split(","):
        parts = []
        for part in whole.split(" or "):
            left, _, right, sign, amount = part.split()
            parts.append(Condition(left, right, sign, int(amount) * SECOND))
        found.append(parts[0] if len(parts) == 1 else Either(tuple((part,) for part in parts)))
    return tuple(found)


@dataclass(frozen=True)
class Case:
    """A subscription over a stream with its rows of match_subscription and, where given, of predict_match at the end.

    Rows are operands with positions in text order.
    """

    title: str
    subscription: Subscription
    events: Sequence[Event]
    matches: tuple[str, ...] = ()
    live: tuple[str, ...] | None = None


def case(
    title: str,
    text: str,
    root: Node,
    events: str,
    matches: Sequence[str] = (),
    live: Sequence[str] | None = None,
    *,
    times: str = "",
    partition: tuple[str, ...] = (),
    within: int | None = None,
    counted: bool = False,
) -> Case:
    conditions = seconds(times) if times else ()
    subscription = Subscription(root, text, conditions, partition, within, counted)
    return Case(title, subscription, stream(events), tuple(matches), None if live is None else tuple(live))


# SPEC 6 and the paper's figures and tables.

FIG_7 = case(
    "figure 7: time conditions, judged jointly",
    "s1 ; s2 @(t(s2)-t(s1) < 3 SEC) ; s3 @(t(s3)-t(s1) < 6 SEC) @(t(s3)-t(s2) > 3 SEC)",
    then(p("s1"), p("s2"), p("s3")),
    "s1 s1 s1 s2 s2 s2 s3 s3",
    ["s1=3 s2=4 s3=8"],
    ["s1=3 s2=4"],
    times="s2 - s1 < 3, s3 - s1 < 6, s3 - s2 > 3",
)
FIG_2_TEXT = "F AS f1, F AS f2, F AS f3 @(t3 - t1 < 10 SEC), S"
FIG_2 = directly(p("f1", "F"), p("f2", "F"), p("f3", "F"), p("S"))
TABLE_2 = case(
    "table 2: three instances in N3, N2 and N1",
    FIG_2_TEXT,
    FIG_2,
    "F F F",
    live=["f1=1 f2=2 f3=3", "f1=2 f2=3", "f1=3"],
    times="f3 - f1 < 10",
)


def logins() -> list[Event]:
    """Table 1; its times as seconds of the day."""
    rows = [
        ("12:38:10", "denied", "128.100.2.15"),
        ("12:42:10", "denied", "128.100.2.15"),
        ("12:42:10", "denied", "128.100.2.15"),
        ("12:43:28", "success", "128.100.2.15"),
        ("12:43:56", "logoff", "128.100.2.15"),
        ("12:45:28", "success", "128.100.5.10"),
    ]
    found = []
    for position, (clock, status, address) in enumerate(rows, 1):
        hours, minutes, rest = (int(part) for part in clock.split(":"))
        time = (hours * 3600 + minutes * 60 + rest) * SECOND
        found.append(Event(position, time, status, None, {"status": status, "ip": address}))
    return found


def login(name: str, status: str) -> Primitive:
    return Primitive(name, lambda event: event.column("status") == status, (("ip", "x"),))


def defined(statuses: Mapping[str, str]) -> str:
    return "DEFINE " + ", ".join(f"{name} AS ip = $x AND status = '{status}'" for name, status in statuses.items())


TABLE_1 = Case(
    "table 1: an intrusion",
    Subscription(
        then(login("s1", "denied"), login("s2", "denied"), login("s3", "denied"), login("s4", "success")),
        "s1 ; s2 ; s3 @(t(s3) - t(s1) < 5 MIN) ; s4 "
        + defined({"s1": "denied", "s2": "denied", "s3": "denied", "s4": "success"}),
        (Condition("s3", "s1", "<", 5 * MINUTE),),
    ),
    logins(),
    ("s1=1 s2=2 s3=3 s4=4",),
    ("s1=2", "s1=2 s2=3", "s1=1 s2=2 s3=3"),
)
"""e0 is too old at the end for another s3, but not where s3 is bound."""


def compromised(limit: int) -> Subscription:
    """The paper's second example (section 3.2), d in minutes."""
    statuses = {"s1": "denied", "s2": "denied", "s3": "success", "s4": "success", "s5": "passwd", "s6": "logoff"}
    s1, s2, s3, s4, s5, s6 = (login(name, status) for name, status in statuses.items())
    text = f"s1 ; ((s2 ; s3 @(t(s3) - t(s1) < {limit} MIN)) | (s4, s5)) ; s6 "
    root = then(s1, either(then(s2, s3), directly(s4, s5)), s6)
    return Subscription(root, text + defined(statuses), (Condition("s3", "s1", "<", limit * MINUTE),))


def break_in() -> list[Event]:
    statuses = ["denied", "denied", "success", "passwd", "logoff"]
    return [
        Event(position, position * MINUTE, status, None, {"status": status, "ip": "128.100.2.15"})
        for position, status in enumerate(statuses, 1)
    ]


COMPROMISED = (
    Case("section 3.2: the first alternative", compromised(3), break_in(), ("s1=1 s2=2 s3=3 s6=5",)),
    Case("section 3.2: the second alternative", compromised(2), break_in(), ("s1=1 s4=3 s5=4 s6=5",)),
)

TABLE_3_EVENTS = "s1@1 s2@2 s4@3 s5@4 s3@5 s6@6 s8@7 s7@9"
TABLE_3_S8 = "s1=1 s2=2 s3=5 s4=3 s5=4 s6=6 s8=7"
TABLE_3_S7 = "s1=1 s2=2 s3=5 s4=3 s5=4 s6=6 s7=8"


def table_3(title: str, times: str, matches: Sequence[str]) -> Case:
    """The paper's table 3 with one condition ``y - x sign n`` in seconds, written at y."""
    s = {name: name for name in ("s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8")}
    if times:
        left, _, right, sign, amount = times.split()
        s[left] += f" @(t({left}) - t({right}) {sign} {amount} SEC)"
    text = "{s1} ; (({s2} ; {s3}) & ({s4}, {s5})) ; {s6} ; ({s7} | {s8})".format(**s)
    inner = both(then(p("s2"), p("s3")), directly(p("s4"), p("s5")))
    root = then(p("s1"), inner, p("s6"), either(p("s7"), p("s8")))
    return case(title, text, root, TABLE_3_EVENTS, matches, times=times)


TABLE_3 = (
    table_3("table 3 without a condition", "", [TABLE_3_S8, TABLE_3_S7]),
    table_3("table 3, case 1: inside a child machine, 3 seconds apart", "s3 - s2 < 4", [TABLE_3_S8, TABLE_3_S7]),
    table_3("table 3, case 1 fails", "s3 - s2 < 3", []),
    table_3("table 3, case 2: from the master to a child", "s4 - s1 >= 2", [TABLE_3_S8, TABLE_3_S7]),
    table_3("table 3, case 2 fails", "s4 - s1 > 2", []),
    table_3("table 3, case 3: from a child to the master", "s6 - s4 = 3", [TABLE_3_S8, TABLE_3_S7]),
    table_3("table 3, case 3 fails", "s6 - s4 <= 2", []),
    table_3("table 3, case 4: siblings are told apart absolutely", "s4 - s3 < 3", [TABLE_3_S8, TABLE_3_S7]),
    table_3("table 3, case 4 the other way round", "s4 - s3 > 1", [TABLE_3_S8, TABLE_3_S7]),
    table_3("table 3, case 4 fails, though s4 comes before s3", "s4 - s3 < 2", []),
    table_3("table 3, case 5: where s8 is taken, it does not apply", "s7 - s3 < 4", [TABLE_3_S8]),
    table_3("table 3, case 5 holds where s7 is taken", "s7 - s3 < 5", [TABLE_3_S8, TABLE_3_S7]),
)

A, B, C, D, E = p("a"), p("b"), p("c"), p("d"), p("e")

JOINED = "DEFINE p AS name = 'a' AND x = $v, q AS name = 'b' AND x = $v"
P, Q = p("p", "a", "x=v"), p("q", "b", "x=v")
TWO_AS = both(p("p", "a"), p("q", "a"))
BOUNDED = directly(A, both(B, C), D)
PAIRS = both(then(A, B), directly(C, D))
BRANCHES = then(A, either(then(B, C), then(D, E)))
CHAINED = "a ; b @(t(b) - t(a) < 3 SEC) ; c @(t(c) - t(b) < 2 SEC) @(t(c) - t(a) > {} SEC)"

SEQUENCES = (
    case("one primitive matches at each of its events", "a", A, "a b a", ["a=1", "a=3"], []),
    case("nothing is consumed", "a ; b", then(A, B), "a b b", ["a=1 b=2", "a=1 b=3"], ["a=1"]),
    case("the smallest assignment is shown", "a ; b", then(A, B), "a a b", ["a=1 b=3"], ["a=1"]),
    case("',' is next", "a, b", directly(A, B), "a x b a b", ["a=4 b=5"], []),
    case("',' waits for one event", "a, b", directly(A, B), "a", [], ["a=1"]),
    case("events are taken by time", "a ; b", then(A, B), "b@2 a@1", ["a=2 b=1"], ["a=2"]),
    case("equal times go by position", "a, b", directly(A, B), "a@1 b@1 a@1", ["a=1 b=2"], ["a=3"]),
    case("',' binds tighter", "a ; b, c", Seq((A, B, C), (False, True)), "a b b x b c", ["a=1 b=5 c=6"], ["a=1"]),
    case("sequences inside", "a, (b ; c)", directly(A, then(B, C)), "a b x c b c", ["a=1 b=2 c=4", "a=1 b=2 c=6"],
         ["a=1 b=2"]),
)  # fmt: skip

BOOLEANS = (
    case("any order", "a & b", both(A, B), "b a b", ["a=2 b=1", "a=2 b=3"], ["a=2", "b=1"]),
    case("one event never fills two operands", "a AS p & a AS q", TWO_AS, "a", [], ["p=1", "q=1"]),
    case("two events fill them, smaller first", "a AS p & a AS q", TWO_AS, "a a", ["p=1 q=2"], ["p=1", "q=1"]),
    case("operands of '&' interleave", "(a ; b) & (c, d)", PAIRS, "a c d b", ["a=1 b=4 c=2 d=3"],
         ["a=1", "c=2 d=3", "a=1 b=4", "a=1 c=2 d=3"]),
    case("',' inside '&' leaves no room", "(a ; b) & (c, d)", PAIRS, "a c b d", [], ["a=1", "a=1 b=3"]),
    case("two that must both be next are gone", "(a, b) & (c, d)", both(directly(A, B), directly(C, D)), "a c", [],
         ["c=2"]),
    case("',' binds the outer ends of '&'", "a, (b & c), d", BOUNDED, "a c x b d", ["a=1 b=4 c=2 d=5"],
         ["a=1 c=2"]),
    case("',' before '&' wants its first event next", "a, (b & c), d", BOUNDED, "a x b c d", [], []),
    case("',' behind '&' wants its last event before", "a, (b & c), d", BOUNDED, "a b c x d", [], ["a=1 b=2"]),
    case("inside '&' other events may come", "a, (b & c), d", BOUNDED, "a b x", [], ["a=1 b=2"]),
    case("either", "a ; (b | c)", then(A, either(B, C)), "a c b", ["a=1 c=2", "a=1 b=3"], ["a=1"]),
    case("alternatives that are sequences", "a ; ((b, c) | d) ; e", then(A, either(directly(B, C), D), E), "a b c d e",
         ["a=1 b=2 c=3 e=5"], ["a=1", "a=1 d=4", "a=1 b=2 c=3"]),
    case("two begun alternatives are two rows", "a ; ((b ; c) | (d ; e))", BRANCHES, "a b d", [],
         ["a=1", "a=1 b=2", "a=1 d=3"]),
    case("alternatives do not mix", "a ; ((b ; c) | (d ; e))", BRANCHES, "a b e d c e", ["a=1 b=2 c=5", "a=1 d=4 e=6"],
         ["a=1", "a=1 b=2", "a=1 d=4"]),
    case("an untaken alternative is greater than any event", "(a | b) ; c", then(either(A, B), C), "b a c",
         ["a=2 c=3"], ["a=2", "b=1"]),
)  # fmt: skip

JOINS_AND_WINDOWS = (
    case("joins agree", f"p ; q {JOINED}", then(P, Q), "a=1 a=2 b=2 b=3", ["p=2 q=3"], ["p=1", "p=2"]),
    case("NULL joins nothing", f"p ; q {JOINED}", then(P, Q), "a b a=1 b", [], ["p=3"]),
    case("a join that fails is no match for ','", f"p, q {JOINED}", directly(P, Q), "a=1 b=2 b=1", [], []),
    case("WITHIN events", "a ; b WITHIN 3 EVENTS", then(A, B), "a x b x b", ["a=1 b=3"], [], within=3, counted=True),
    case("WITHIN events, one left", "a ; b WITHIN 3 EVENTS", then(A, B), "a x", [], ["a=1"], within=3, counted=True),
    case("WITHIN events holds all that is missing", "a ; b ; c WITHIN 4 EVENTS", then(A, B, C), "a x x", [], [],
         within=4, counted=True),
    case("WITHIN time", "a ; b WITHIN 3 SEC", then(A, B), "a@1 b@3 b@4", ["a=1 b=2"], [], within=3 * SECOND),
    case("WITHIN time, some left", "a ; b WITHIN 3 SEC", then(A, B), "a@1 x@3", [], ["a=1"], within=3 * SECOND),
    case("next counts within the partition", "a, b PARTITION BY key", directly(A, B), "a:k a:l b:k x:l b:l",
         ["a=1 b=3"], [], partition=("key",)),
    case("EVENTS count within the partition", "a ; b PARTITION BY key WITHIN 2 EVENTS", then(A, B),
         "a:k x:l x:l b:k a x b", ["a=1 b=4"], [], partition=("key",), within=2, counted=True),
    case("NULL is a partition", "a ; b PARTITION BY key", then(A, B), "a b:k b", ["a=1 b=3"], ["a=1"],
         partition=("key",)),
    case("in the partition NULL its column joins nothing",
         "a AS p ; q DEFINE q AS name = 'b' AND x = $v PARTITION BY x", then(p("p", "a"), Q), "a a=1", [], ["p=2"],
         partition=("x",)),
)  # fmt: skip

TIMES = (
    case("a condition that names an untaken operand does not apply", "a ; (b | c) ; d @(t(d) - t(b) < 2 SEC)",
         then(A, either(B, C), D), "a@1 b@2 d@4 c@5 d@9", ["a=1 c=4 d=5"], ["a=1", "a=1 c=4"], times="d - b < 2"),
    case("conditions that contradict each other leave nothing alive", CHAINED.format(6), then(A, B, C), "a@1 b@3", [],
         [], times="b - a < 3, c - b < 2, c - a > 6"),
    case("conditions jointly leave the later b only", CHAINED.format(3), then(A, B, C), "a@1 b@2 b@3", [],
         ["a=1", "a=1 b=3"], times="b - a < 3, c - b < 2, c - a > 3"),
    case("the time of the last event ends what waits", "a ; b @(t(b) - t(a) < 2 SEC)", then(A, B), "a@1 x@3", [], [],
         times="b - a < 2"),
    case("siblings are apart in either direction", "a & b @(t(b) - t(a) > 2 SEC)", both(A, B), "b@1 a@3 a@4",
         ["a=3 b=1"], ["a=2", "b=1"], times="b - a > 2"),
    case("siblings close together are gone with time", "a & b @(t(b) - t(a) < 2 SEC)", both(A, B), "b@1 x@3 a@4 b@5",
         ["a=3 b=4"], ["a=3", "b=4"], times="b - a < 2"),
    case("a condition between '&' and what follows has a direction", "(a & b) ; c @(t(b) - t(c) < 2 SEC)",
         then(both(A, B), C), "b@1 a@2 c@9", ["a=2 b=1 c=3"], ["a=2", "b=1", "a=2 b=1"], times="b - c < 2"),
)  # fmt: skip

SOON_OR_LATE = "a ; b @(t(b) - t(a) < 2 SEC OR t(b) - t(a) > 4 SEC)"
CHOICES = (
    case("either part of a condition will do", SOON_OR_LATE, then(A, B), "a@1 b@2 b@3 b@5 b@6", ["a=1 b=2", "a=1 b=5"],
         ["a=1"], times="b - a < 2 or b - a > 4"),
    case("a part that has an end does not end the other", "a ; b @(t(b) - t(a) < 2 SEC OR t(b) - t(a) = 4 SEC)",
         then(A, B), "a@1 x@4", [], ["a=1"], times="b - a < 2 or b - a = 4"),
    case("what no part allows any more is gone", "a ; b @(t(b) - t(a) < 2 SEC OR t(b) - t(a) = 4 SEC)",
         then(A, B), "a@1 x@6", [], [], times="b - a < 2 or b - a = 4"),
    case("any other time", "a ; b @(t(b) - t(a) <> 2 SEC)", then(A, B), "a@1 b@2 b@3 b@4", ["a=1 b=2", "a=1 b=4"],
         ["a=1"], times="b - a <> 2"),
    case("siblings that are not so far apart, whichever comes first", "a & b @(t(b) - t(a) <> 2 SEC)", both(A, B),
         "b@1 a@3 b@4 b@5", ["a=2 b=3"], ["a=2", "b=1"], times="b - a <> 2"),
    case("parts on different operands: a late b needs an early c",
         "a ; b ; c @(t(b) - t(a) < 2 SEC OR t(c) - t(b) < 2 SEC)", then(A, B, C), "a@1 b@2 b@4 c@5 c@9",
         ["a=1 b=2 c=4", "a=1 b=2 c=5"], ["a=1", "a=1 b=2"], times="b - a < 2 or c - b < 2"),
    case("where neither can hold any more, it is gone",
         "a ; b ; c @(t(b) - t(a) < 2 SEC OR t(c) - t(b) < 2 SEC)", then(A, B, C), "a@1 b@4 x@6", [], ["a=1"],
         times="b - a < 2 or c - b < 2"),
)  # fmt: skip

CASES = (FIG_7, TABLE_2, TABLE_1, *COMPROMISED, *TABLE_3, *SEQUENCES, *BOOLEANS, *JOINS_AND_WINDOWS, *TIMES, *CHOICES)


@dataclass(frozen=True)
class Trained:
    """A subscription over a stream with the counts that it leaves, at all ages together, by (state, next state)."""

    title: str
    subscription: Subscription
    events: Sequence[Event]
    counts: Mapping[tuple[str, str], int]


def trained(
    title: str,
    text: str,
    root: Node,
    events: str,
    counts: str,
    *inside: str,
    times: str = "",
    partition: tuple[str, ...] = (),
) -> Trained:
    """Counts as ``01=1`` for one move from N0 to N1, ``1x=2`` for two from N1 to death; `inside`: with names of states,
    as ``N1 > N1(N1, N0) = 1``.
    """
    found: dict[tuple[str, str], int] = {}
    for word in counts.split():
        moved, count = word.split("=")
        found[f"N{moved[0]}", "dead" if moved[1] == "x" else f"N{moved[1]}"] = int(count)
    for line in inside:
        one, other, often = re.split(" [>=] ", line)
        found[one, other] = int(often)
    subscription = Subscription(root, text, seconds(times) if times else (), partition)
    return Trained(title, subscription, stream(events), found)


SPEC_TRAINED = trained("SPEC 6: a;b,c", "a ; b, c", Seq((A, B, C), (False, True)), "a b b x b c",
                       "01=1 00=5 11=2 12=3 21=1 22=1 23=1")  # fmt: skip

AND_TRAINED = trained("two sides of '&'", "a ; (b & c)", then(A, both(B, C)), "a b c", "01=1 00=2",
                      "N1 > N1(N1, N0) = 1", "N1 > N1(N0, N1) = 1", "N1(N1, N0) > N2 = 1")  # fmt: skip
AND_THEN_TRAINED = trained(
    "'&', then one more", "a ; (b & c) ; d", then(A, both(B, C), D), "a b c d", "01=1 00=3 11=1 23=1",
    "N1 > N1(N1, N0) = 1", "N1 > N1(N0, N1) = 1", "N1(N1, N0) > N2 = 1", "N1(N1, N0) > N1(N1, N0) = 1",
    "N1(N0, N1) > N1(N0, N1) = 1",
)  # fmt: skip
OR_TRAINED = trained("two sides of '|'", "a ; (b | c)", then(A, either(B, C)), "a x b c", "01=1 00=3 11=1 12=2")
BRANCH_TRAINED = trained(
    "a longer alternative", "a ; ((b, c) | d)", then(A, either(directly(B, C), D)), "a d b c b x",
    "01=1 00=5 11=2 12=1",
    "N1 > N1(1: N1) = 2", "N1(1: N1) > N2 = 1", "N1(1: N1) > N1 = 1",
)  # fmt: skip

TRAINED = (
    SPEC_TRAINED,
    trained("SPEC 6: a;b", "a ; b", then(A, B), "a a b", "01=2 00=1 11=1 12=1"),
    trained("one term has nowhere to go back to", "a, b, c", directly(A, B, C), "a b x a x",
            "01=2 00=3 12=1 1x=1 2x=1"),
    trained("counts are pooled over keys", "a ; b PARTITION BY key", then(A, B), "a:k x:l a:l x:k b:l b:k",
            "01=2 00=4 11=1 12=2", partition=("key",)),
    trained("join values are told apart, N0 is one", f"p ; q {JOINED}", then(P, Q), "a=1 a=2 b=1",
            "01=2 00=1 11=2 12=1"),
    trained("one move for all instances of a state", "a ; b", then(A, B), "a a a b", "01=3 00=1 11=2 12=1"),
    trained("under a deadline each instance moves", "a ; b @(t(b) - t(a) < 5 SEC)", then(A, B), "a a b",
            "01=2 00=1 11=1 12=2", times="b - a < 5"),
    trained("an instance that an event shows to be too old is dead",
            "a ; b @(t(b) - t(a) < 2 SEC)", then(A, B), "a@1 x@9 b@10", "01=1 00=2 1x=1", times="b - a < 2"),
    trained("an event that fails a condition is no match", "a ; b @(t(b) - t(a) > 2 SEC)", then(A, B), "a@1 b@2 b@4",
            "01=1 00=2 11=1 12=1", times="b - a > 2"),
    trained("',' discards at an event that fails a condition", "a, b @(t(b) - t(a) < 2 SEC)", directly(A, B),
            "a@1 b@4", "01=1 00=1 1x=1", times="b - a < 2"),
    trained("a copy whose first boundary timed out is dead", "a ; b, c @(t(c) - t(a) < 4 SEC)",
            Seq((A, B, C), (False, True)), "a@1 b@2 x@9", "01=1 00=2 12=1 1x=1 2x=1", times="c - a < 4"),
    trained("a copy goes back to the instance that it is a copy of", "a ; b, c @(t(c) - t(a) < 4 SEC)",
            Seq((A, B, C), (False, True)), "a@1 b@2 x@3", "01=1 00=2 12=1 11=1 21=1", times="c - a < 4"),
    trained("a copy goes back to values among its own", f"c ; p, q {JOINED}",
            Seq((C, P, Q), (False, True)), "c a=1 x", "01=1 00=2 12=1 11=1 21=1"),
    AND_TRAINED,
    AND_THEN_TRAINED,
    OR_TRAINED,
    BRANCH_TRAINED,
    trained("what is inside '&' is discarded alone", "a ; (b & (c, d))", then(A, both(B, directly(C, D))),
            "a c x c d b", "01=1 00=5 11=2", "N1 > N1(N0, N1) = 2", "N1 > N1(N1, N0) = 1", "N1(N0, N1) > N1 = 1",
            "N1(N0, N1) > N1(N0, N2) = 1", "N1(N0, N2) > N2 = 1"),
    trained("',' before '&' waits while the '&' goes on", "a, (b & c)", directly(A, both(B, C)), "a b x c",
            "01=1 00=3", "N1 > N1(N1, N0) = 1", "N1(N1, N0) > N1(N1, N0) = 1", "N1(N1, N0) > N2 = 1"),
    trained("',' before '&' discards where it cannot begin", "a, (b & c)", directly(A, both(B, C)), "a x b",
            "01=1 00=2 1x=1"),
)  # fmt: skip


@dataclass(frozen=True)
class Foreseen:
    """What a trained subscription forecasts where some operands are bound: within 1, 2, … events."""

    title: str
    trained: Trained
    bound: str
    within: tuple[float, ...]


FORESEEN = (
    Foreseen("SPEC 6: from N1", SPEC_TRAINED, "a", (0, 1 / 5, 26 / 75, 526 / 1125)),
    Foreseen("from N2", SPEC_TRAINED, "a b", (1 / 3, 4 / 9, 4 / 9 + 14 / 135)),
    Foreseen("'&': one order was seen to its end", AND_TRAINED, "a", (0, 1 / 2, 1 / 2)),
    Foreseen("'&' with one side bound", AND_TRAINED, "a b", (1, 1)),
    Foreseen("'|': one of two", OR_TRAINED, "a", (2 / 3, 8 / 9)),
    Foreseen("'&', then a certain d", AND_THEN_TRAINED, "a", (0, 0, 1 / 6, 11 / 36)),
    Foreseen("one side of '&', then a certain d", AND_THEN_TRAINED, "a b", (0, 1 / 2, 3 / 4)),
    Foreseen("behind '&'", AND_THEN_TRAINED, "a b c", (1, 1)),
    Foreseen("an alternative that is discarded goes back to all of them", BRANCH_TRAINED, "a b", (1 / 2, 3 / 5)),
)

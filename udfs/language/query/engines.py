"""What each engine takes of the language: one declaration per engine, and the check of a query against it.

The declarations follow SPEC sections 2 to 6. A query is refused at the first place that its engine does not take,
with the operator's name and what to write instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.query import mistakes, operands
from patternlake.udfs.language.query.operators import Operator, uses
from patternlake.udfs.language.query.tree import (
    Conjunction,
    Contiguous,
    Disjunction,
    Event,
    Negation,
    Node,
    Query,
    Repetition,
    Sequence,
    SomeOf,
    Span,
    open_groups,
)

Refusal = tuple[Span, str]
Rule = Callable[[Query], Iterator[Refusal]]
Hint = Callable[[Query, Span], str]
"""What to write instead of the operator at a place."""

_TIME = re.compile(r"t([1-9][0-9]{0,8})")

_KINDS: dict[type[Node], str] = {
    Event: "a name",
    Repetition: "a repetition",
    Sequence: "a sequence (;)",
    Contiguous: "a run (,)",
    Disjunction: "an alternative (|)",
    Conjunction: "a conjunction (&)",
    Negation: "a negation (!)",
    SomeOf: "some of several (OF)",
}


@dataclass(frozen=True, slots=True)
class Engine:
    """What one engine takes.

    Attributes
    ----------
    name
        Its key in `ENGINES`.
    functions
        Its SQL functions, for messages.
    takes
        Operators and clauses that it takes.
    inside
        For a kind of node, the kinds that may stand directly inside it; a kind without entry takes all.
    rules
        What else it refuses, by place.
    instead
        What to write instead of an operator that it does not take.
    verified
        Operators of `takes` that need ``verify => true``.
    on_events
        Those of `verified` that another engine matches, which then matches the whole pattern. Where there are such,
        `inside` and `rules` say what is taken without them.
    """

    name: str
    functions: str
    takes: frozenset[Operator]
    inside: Mapping[type[Node], frozenset[type[Node]]] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    instead: Mapping[Operator, str | Hint] = field(default_factory=dict)
    verified: frozenset[Operator] = frozenset()
    on_events: frozenset[Operator] = frozenset()

    @property
    def title(self) -> str:
        """How messages call the engine."""
        return f"the {self.name} engine ({self.functions})"


def check(query: Query, engine: str, *, verify: bool = True) -> None:
    """Refuse a query that an engine does not take.

    Parameters
    ----------
    query
        A query as `parse` returns it.
    engine
        A key of `ENGINES`.
    verify
        For the sketch engine: whether the answer is verified on events, which DEFINE and WHERE need.

    Raises
    ------
    UnsupportedOperatorError
        The query uses what the engine does not take; the place is the first such one.
    PatternSyntaxError
        Two operands have the same name.
    """
    declared = ENGINES[engine]
    operands.number(query)
    refusals = list(_operators(query, declared, verify))
    if not (verify and declared.on_events):
        refusals += _arrangement(query, declared)
    if refusals:
        place, message = min(refusals, key=lambda refusal: refusal[0].start)
        raise query.unsupported(message, place)


def is_matched_by_itself(query: Query, engine: str) -> bool:
    """Whether an engine matches a query that `check` takes, and leaves it to no other one; parameters as above."""
    declared = ENGINES[engine]
    lent = any(operator in declared.on_events for operator, _ in uses(query))
    return not lent and not any(_arrangement(query, declared))


def _arrangement(query: Query, engine: Engine) -> Iterator[Refusal]:
    """Places of operators that the engine does not take."""
    yield from _nesting(query.pattern, engine)
    for rule in engine.rules:
        yield from rule(query)


def _operators(query: Query, engine: Engine, verify: bool) -> Iterator[Refusal]:
    """Operators and clauses that the engine does not take."""
    for operator, place in uses(query):
        if operator not in engine.takes:
            hint = engine.instead.get(operator) or _EVERYWHERE.get(operator)
            hint = hint(query, place) if callable(hint) else hint
            message = f"{engine.title} does not take {operator.value}"
            yield place, f"{message}; {hint}" if hint else message
        elif operator in engine.verified and not verify:
            yield place, f"{engine.title} takes {operator.value} {_ON_EVENTS}"


def _nesting(node: Node, engine: Engine) -> Iterator[Refusal]:
    """Nodes that stand inside one that the engine does not take them in."""
    allowed = engine.inside.get(type(node))
    for child in node.children():
        if allowed is not None and type(child) not in allowed:
            stands = f"{_KINDS[type(child)]} inside {_KINDS[type(node)]}"
            only = ", ".join(text for kind, text in _KINDS.items() if kind in allowed)
            message = f"{engine.title} does not take {stands}; only {only}"
            yield child.span, f"{engine.title} takes {stands} {_ON_EVENTS}" if engine.on_events else message
        yield from _nesting(child, engine)


def _negation_between(query: Query) -> Iterator[Refusal]:
    """``!`` stands between two operands of a sequence or run (sequences inside sequences are one)."""
    placed: dict[int, str] = {}
    for node in query.pattern.walk():
        if isinstance(node, Sequence | Contiguous):
            items = open_groups(node, Sequence)
            for at, item in enumerate(items):
                if isinstance(item, Negation) and 0 < at < len(items) - 1:
                    placed[id(item)] = ""
                else:
                    placed.setdefault(id(item), "first" if at == 0 else "last")
    for node in query.pattern.walk():
        if isinstance(node, Negation) and (where := placed.get(id(node), "alone")):
            yield node.sign, f"'!' (not) stands {where}, which events alone can tell: {ASK_EVENTS}"


def _names_told_apart(query: Query) -> Iterator[Refusal]:
    """A name that stands more than once has an alias everywhere."""
    named = operands.number(query)
    count = Counter(operand.event.name for operand in named)
    for operand in named:
        name = operand.event.name
        if count[name] > 1 and operand.span == operand.event.sign:
            shown = mistakes.name(name)
            message = (
                f"{shown} stands {count[name]} times; a subscription names each, as in {shown} AS a1, {shown} AS a2"
            )
            yield operand.span, message


def _steps_apart(query: Query) -> Iterator[Refusal]:
    """``;`` stands between steps alone."""
    for node in query.pattern.walk():
        for child in node.children():
            if isinstance(child, Sequence):
                message = (
                    f"a sequence (;) stands inside {_KINDS[type(node)]}; a step of a funnel is a name, an alternative "
                    "of names (|) or a DEFINE condition"
                )
                yield child.span, message


def _where_over_one_operand(query: Query) -> Iterator[Refusal]:
    """Each conjunct of WHERE judges one event."""
    if query.where is None:
        return
    # Here and not above: only this rule needs the SQL parser, and workers should not load it for nothing.
    from patternlake.udfs.language.predicate.predicates import parse_predicate

    named = operands.number(query)
    for part in parse_predicate(query.where, query_text=query.text, offset=query.where_span.start).conjuncts:
        compared = {_operand_of(reference, named) for reference in part.references} - {None}
        if len(compared) > 1 or part.equal_along or any(reference.index == "i-1" for reference in part.references):
            engine = "the groups engine (match_groups, group_members)"
            yield part.span, f"{engine} takes WHERE over one event at a time, not over several"


def _operand_of(reference: Reference, named: operands.Operands) -> str | None:
    """The operand that an unbound reference is to, also as ``t(N)`` or ``tN``."""
    if reference.operand is not None:
        return reference.operand
    time = _TIME.fullmatch(reference.column)
    ordinal = reference.ordinal or (int(time[1]) if time else 0)
    operand = named.numbered(ordinal)
    return None if operand is None else operand.name


_EVERYWHERE = {
    Operator.GROUP_NAME: "name the events inside the group",
    Operator.SLIDE: "leave it out",
}
_GROUPING = frozenset({Operator.OR, Operator.AND})
_CLAUSES = frozenset({Operator.DEFINE, Operator.WHERE, Operator.PARTITION})
_WITHIN = frozenset({Operator.WITHIN_EVENTS, Operator.WITHIN_TIME})
_ANY_NUMBER = frozenset({Operator.PLUS, Operator.STAR, Operator.OPTIONAL, Operator.RANGE})
_REPEATED = _ANY_NUMBER | {Operator.COUNT}
ASK_EVENTS = "ask match_seq or match_exists without verify => false"
"""What to do where a sketch alone cannot answer, also of `sketch_error`, which has no such argument."""
_ON_EVENTS = f"of events alone: {ASK_EVENTS}"
_LENT_BY_KLEENE = _ANY_NUMBER | {Operator.UNTIL, Operator.SOME_OF, Operator.TIMES}
_CHAIN = "a trend is a sequence of names, each plain or with '+'"
_WRITTEN_OUT = "a subscription writes each event out, as in A AS a1 ; A AS a2"

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            name="sketch",
            functions="match_seq, match_exists, sketch_error",
            takes=frozenset({Operator.THEN, Operator.NEXT, Operator.NOT, Operator.COUNT, Operator.MEASURES})
            | _GROUPING
            | _CLAUSES
            | _WITHIN
            | _LENT_BY_KLEENE,
            inside={
                Contiguous: frozenset({Event, Disjunction, Conjunction, Negation}),
                Disjunction: frozenset({Event}),
                Conjunction: frozenset({Event}),
                Negation: frozenset({Event}),
                Repetition: frozenset({Event}),
            },
            rules=(_negation_between,),
            verified=frozenset({Operator.DEFINE, Operator.WHERE, Operator.MEASURES}) | _LENT_BY_KLEENE,
            on_events=_LENT_BY_KLEENE,
        ),
        Engine(
            name="kleene",
            functions="match_pattern, explain_pattern",
            takes=frozenset(Operator) - {Operator.SLIDE, Operator.GROUP_NAME},
            instead={Operator.SLIDE: "every match is found without it"},
        ),
        Engine(
            name="groups",
            functions="match_groups, group_members",
            takes=_REPEATED | _GROUPING | _CLAUSES | {Operator.NEXT, Operator.NOT, Operator.WITHIN_EVENTS},
            inside={Negation: frozenset({Event})},
            rules=(_where_over_one_operand,),
            instead={
                Operator.THEN: "its patterns are contiguous: write ','",
                Operator.WITHIN_TIME: "it counts steps: write WITHIN n EVENTS",
            },
        ),
        Engine(
            name="trends",
            functions="cet_trends, cet_count, cet_aggregate",
            takes=frozenset({Operator.THEN, Operator.PLUS, Operator.SLIDE, Operator.MEASURES}) | _CLAUSES | _WITHIN,
            inside={Sequence: frozenset({Event, Repetition}), Repetition: frozenset({Event})},
            instead={
                **dict.fromkeys(_GROUPING | (_REPEATED - {Operator.PLUS}) | {Operator.NEXT, Operator.NOT}, _CHAIN),
                Operator.TIMES: "WHERE takes gaps between neighbours, as in t(e[i]) - t(e[i-1]) < 5 MIN",
            },
        ),
        Engine(
            name="machines",
            functions="match_subscription, predict_match",
            takes=frozenset({Operator.THEN, Operator.NEXT, Operator.TIMES, Operator.MEASURES})
            | (_CLAUSES - {Operator.WHERE})
            | _GROUPING
            | _WITHIN,
            rules=(_names_told_apart,),
            instead={
                **dict.fromkeys(_REPEATED, _WRITTEN_OUT),
                Operator.WHERE: "conditions on one event go to DEFINE, on several to $x in DEFINE, on times to @( … )",
            },
        ),
        Engine(
            name="funnels",
            functions="match_funnel, match_funnel_rows",
            takes=frozenset({Operator.THEN, Operator.OR, Operator.DEFINE, Operator.PARTITION}) | _WITHIN,
            rules=(_steps_apart,),
            instead={
                Operator.NEXT: "write ';' with mode => 'strict' for events directly next to each other",
                Operator.AND: "write the steps in the order in which they are counted",
                Operator.NOT: "mode => 'strict_order' or 'steps_in_order' says what must not come between",
                **dict.fromkeys(
                    (Operator.PLUS, Operator.STAR),
                    "write the name once: its events may recur in every mode but 'once' and 'strict'",
                ),
                **dict.fromkeys((Operator.COUNT, Operator.RANGE), "write each step out, as in A ; A ; B"),
                Operator.OPTIONAL: "leave the step out, or ask twice: with it and without",
                Operator.TIMES: "WITHIN counts from the first step; seconds_p50 and seconds_p90 tell the times",
                Operator.WHERE: "conditions on one event go to DEFINE, as in DEFINE big AS price > 100",
            },
        ),
    )
}
"""The engines by name."""

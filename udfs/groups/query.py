"""A pattern over a probabilistic stream, compiled: its symbols, its positions, its parameters.

Source: Sugiura et al. 2015, section 2 (query pattern) and SPEC section 4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from patternlake.udfs.errors import ArgumentError, UnsupportedOperatorError
from patternlake.udfs.groups.automaton.alphabet import Alphabet, Letter, Symbol
from patternlake.udfs.groups.automaton.positions import Positions, positions_of
from patternlake.udfs.language.predicate.expressions import EqualAlong
from patternlake.udfs.language.predicate.predicates import Predicate, Scope, conjunction, read_definitions, read_where
from patternlake.udfs.language.query import engines, operands
from patternlake.udfs.language.query.operands import Operand, Operands
from patternlake.udfs.language.query.partitions import partition_columns
from patternlake.udfs.language.query.tree import Event, Negation, Query
from patternlake.udfs.limits import MOST_NAMES

OVERLAPS = ("single", "complete")
WILDCARD = "_"
"""Any event, also one that is not stored; in quotes, or with a DEFINE, it is a name as any other."""


@dataclass(frozen=True)
class GroupQuery:
    """A compiled query.

    Attributes
    ----------
    alphabet
        What the pattern tells apart in an event.
    positions
        Its places that take events.
    overlap
        ``single`` or ``complete``.
    threshold
        θ: matches with a lesser probability do not exist.
    within
        w: the most steps that a match takes.
    partition
        Columns of PARTITION BY; the stream's key is called ``key``.
    columns
        All columns of events that the query reads.
    parsed
        As it was read, for messages.
    """

    alphabet: Alphabet
    positions: Positions
    overlap: str
    threshold: float
    within: int
    partition: tuple[str, ...]
    columns: frozenset[str]
    parsed: Query


def compile_query(
    query: Query,
    scope: Scope | None = None,
    *,
    overlap: str | None = None,
    threshold: float | None = None,
    within: int | None = None,
) -> GroupQuery:
    """Compile a query for the groups engine.

    Parameters
    ----------
    query
        The parsed query.
    scope
        Attributes, parameters and key column that predicates may use; its operands are replaced by the query's.
    overlap, threshold, within
        As of `match_groups`; None stands for ``single``, 0 and the query's WITHIN.

    Raises
    ------
    UnsupportedOperatorError
        Naming the operator and its place: what `engines.check` refuses, and a pattern that is too large.
    PatternSyntaxError, PredicateError
        Two operands have one name; a predicate is not allowed, names what is not in scope or speaks of several
        events; a PARTITION BY column that does not exist.
    ArgumentError
        A parameter that cannot be, or that is missing.
    """
    engines.check(query, "groups")
    scope = scope or Scope()
    chosen, least, window = _overlap(overlap), _threshold(threshold), _within(query, within)
    named = operands.number(query)
    _check_names(query, named)
    defined = read_definitions(query, scope)
    wild = {operand.name for operand in named if _is_wild(query, operand, defined)}
    filters = _filters(query, replace(scope, operands=named.names), wild)
    symbols: dict[Symbol, int] = {}
    asked: dict[str, tuple[int, ...]] = {}
    for operand in named:
        name = operand.event.name
        parts = filters.get(operand.name, [])
        symbol = Symbol(name, defined.get(name), conjunction(parts) if parts else None)
        asked[operand.name] = () if operand.name in wild else (symbols.setdefault(symbol, len(symbols)),)
    together = _find_negated(query, named)
    letters: dict[Letter, int] = {}
    numbers = []
    for operand in named:
        mine = together.get(operand.name, (operand,))
        names = ", ".join(one.event.name for one in mine)
        shown = f"!{names}" if operand.negated and len(mine) == 1 else f"NOT({names})" if operand.negated else names
        of = tuple(number for one in mine for number in asked[one.name])
        letter = Letter(shown, of, open=operand.negated or operand.name in wild)
        numbers.append(letters.setdefault(letter, len(letters)))
    alphabet = Alphabet.of(tuple(symbols), tuple(letters), query)
    positions = positions_of(query, numbers)
    _check_ends(query, named, positions, [alphabet.letters[number].open for number in numbers], numbers)
    partition = partition_columns(query, scope)
    return GroupQuery(
        alphabet=alphabet,
        positions=positions,
        overlap=chosen,
        threshold=least,
        within=window,
        partition=partition,
        columns=alphabet.columns | set(partition),
        parsed=query,
    )


def _check_names(query: Query, named: Operands) -> None:
    """Refuse more names than can be told apart: each is a letter, and every letter is asked of each class of events."""
    names = {operand.event.name for operand in named}
    if len(names) > MOST_NAMES:
        place = query.pattern.span
        raise UnsupportedOperatorError(
            f"the pattern has {len(names):,} different names; at most {MOST_NAMES:,} are possible: let one name stand "
            "for many of them by DEFINE, as in any AS name IN ('a', 'b')",
            query.text,
            place.start,
            place.end,
        )


def _overlap(overlap: str | None) -> str:
    if overlap is None:
        return "single"
    if overlap not in OVERLAPS:
        raise ArgumentError(f"overlap {overlap!r}: must be one of {', '.join(map(repr, OVERLAPS))}")
    return overlap


def _threshold(threshold: float | None) -> float:
    if threshold is None:
        return 0.0
    if not 0 <= threshold <= 1:
        raise ArgumentError(f"threshold {threshold}: must be from 0 to 1")
    return float(threshold)


def _within(query: Query, within: int | None) -> int:
    written = None if query.within is None else query.within.amount
    if within is not None and within < 1:
        raise ArgumentError(f"within {within}: must be 1 or more")
    if within is None and written is None:
        raise ArgumentError("within is missing: give the most steps that a match may take, or write WITHIN n EVENTS")
    if within is not None and written is not None and within != written:
        raise ArgumentError(f"within {within} contradicts WITHIN {written} EVENTS of the pattern; leave one out")
    found = written if within is None else within
    assert found is not None
    return found


def is_quoted(query: Query, event: Event) -> bool:
    """Whether ``_`` stands in quotes, where it is a name; of other names quotes say nothing."""
    return event.name == WILDCARD and query.text[event.sign.start : event.sign.end].startswith("'")


def _is_wild(query: Query, operand: Operand, defined: Mapping[str, Predicate]) -> bool:
    """Whether an operand is ``_``, which in quotes is a name."""
    wild = operand.event.name == WILDCARD and WILDCARD not in defined and not is_quoted(query, operand.event)
    if wild and operand.negated:
        raise UnsupportedOperatorError(
            "'!_' takes nothing: '_' is any event, also one that is not stored", query.text, *_place(operand)
        )
    return wild


def _place(operand: Operand) -> tuple[int, int]:
    return operand.event.sign.start, operand.event.sign.end


def _find_negated(query: Query, named: Operands) -> dict[str, tuple[Operand, ...]]:
    """For each operand under ``!`` or NOT all operands that stand there with it."""
    found: dict[str, tuple[Operand, ...]] = {}
    of_event = {id(operand.event): operand for operand in named}
    for node in query.pattern.walk():
        if isinstance(node, Negation):
            mine = tuple(of_event[id(item)] for item in node.items)
            found |= {operand.name: mine for operand in mine}
    return found


def _check_ends(
    query: Query, named: Operands, positions: Positions, is_open: Sequence[bool], numbers: Sequence[int]
) -> None:
    """Refuse a pattern of which a match may begin or end with an open letter."""
    ends = {positions.symbol[position] for position in positions.first}
    ends |= {symbol for symbol, last in zip(positions.symbol, positions.last, strict=True) if last}
    for operand, one_is_open, number in zip(named, is_open, numbers, strict=True):
        if one_is_open and number in ends:
            raise UnsupportedOperatorError(
                "'!' and '_' also take what is not stored, of which there is no first and no last; put a name on "
                "either side, as in a, !b, c",
                query.text,
                *_place(operand),
            )


def _filters(query: Query, scope: Scope, wild: Collection[str]) -> dict[str, list[Predicate]]:
    """The conjuncts of WHERE by operand; one without operands goes to all of them but for ``_``."""
    found: dict[str, list[Predicate]] = {}
    where = read_where(query, scope)
    for conjunct in () if where is None else where.conjuncts:
        if isinstance(conjunct.root, EqualAlong) or conjunct.variables:
            raise conjunct.error("the groups engine (match_groups, group_members) takes WHERE over one event at a time")
        for operand in conjunct.operands or [name for name in scope.operands if name not in wild]:
            if operand in wild:
                raise conjunct.error(
                    "'_' is any event, also one that is not stored and has no values; for any stored event write "
                    "DEFINE e AS TRUE"
                )
            found.setdefault(operand, []).append(conjunct)
    return found

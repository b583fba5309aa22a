"""A pattern over a probabilistic stream, compiled: its symbols, its positions, its parameters.

Source: Sugiura et al. 2015, section 2 (query pattern) and SPEC section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.groups.automaton.alphabet import Alphabet, Symbol
from patternlake.udfs.groups.automaton.positions import Positions, positions_of
from patternlake.udfs.language.predicate.expressions import EqualAlong
from patternlake.udfs.language.predicate.predicates import Predicate, Scope, bind, conjunction, parse_predicate
from patternlake.udfs.language.query import engines, operands
from patternlake.udfs.language.query.partitions import partition_columns
from patternlake.udfs.language.query.tree import Query

OVERLAPS = ("single", "complete")


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
    defined = {
        part.name: bind(
            parse_predicate(part.predicate, query_text=query.text or None, offset=part.predicate_span.start),
            replace(scope, operands=()),
        )
        for part in query.define
    }
    filters = _filters(query, replace(scope, operands=named.names))
    symbols: dict[Symbol, int] = {}
    numbers = []
    for operand in named:
        name = operand.event.name
        parts = filters.get(operand.name, [])
        symbol = Symbol(name, defined.get(name), conjunction(parts) if parts else None)
        numbers.append(symbols.setdefault(symbol, len(symbols)))
    alphabet = Alphabet.of(tuple(symbols), query)
    partition = partition_columns(query, scope)
    return GroupQuery(
        alphabet=alphabet,
        positions=positions_of(query, numbers),
        overlap=chosen,
        threshold=least,
        within=window,
        partition=partition,
        columns=alphabet.columns | set(partition),
        parsed=query,
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


def _filters(query: Query, scope: Scope) -> dict[str, list[Predicate]]:
    """The conjuncts of WHERE by operand; one without operands goes to all of them."""
    found: dict[str, list[Predicate]] = {}
    if query.where is None:
        return found
    where = parse_predicate(query.where, query_text=query.text or None, offset=query.where_span.start)
    for conjunct in bind(where, scope).conjuncts:
        if isinstance(conjunct.root, EqualAlong) or conjunct.variables:
            raise conjunct.error("the groups engine (match_groups) takes WHERE over one event at a time")
        for operand in conjunct.operands or scope.operands:
            found.setdefault(operand, []).append(conjunct)
    return found

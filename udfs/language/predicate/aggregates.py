"""Aggregates of predicates: from the values of many events to one value for each match.

Meaning, types and NULLs are those of Spark SQL with ANSI mode off: NULL takes part in FIRST and LAST only; COUNT of
nothing is 0, every other aggregate of nothing is NULL; SUM of integers wraps at 64 bits; AVG adds doubles; NaN is above
every other number. Departures: DECIMAL is computed as DOUBLE, as everywhere in predicates, and doubles are added in the
order of events, where Spark's order is open. A predicate reads an aggregate as it reads a column, so `evaluate` knows
nothing of them: `with_columns` puts a column in the place of each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.language.predicate.casting import cast
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Aggregate, Expression, Field, to_sql
from patternlake.udfs.language.predicate.predicates import Predicate, value_of
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.predicate.scopes import map_nodes
from patternlake.udfs.sort_keys import order_keys

_ENDS = {"FIRST": 1, "LAST": 0}
"""What are places, too, as `place_of` counts them."""


def aggregates_in(predicate: Predicate) -> tuple[Aggregate, ...]:
    """The aggregates of a predicate, each once, in text order; ``b[last].x`` and ``b[2].x`` among them."""
    return tuple(with_columns(predicate)[1].values())


def operand_of(aggregate: Aggregate) -> str:
    """The operand whose events an aggregate of a bound predicate is over."""
    return next(part.reference.operand or "" for part in aggregate.walk() if isinstance(part, Field))


def with_columns(predicate: Predicate) -> tuple[Predicate, dict[Reference, Aggregate]]:
    """A bound WHERE in which each aggregate is a bare column, as nothing else in it is; and what these stand for."""
    aggregate_of: dict[Reference, Aggregate] = {}

    def column(part: Aggregate) -> Expression:
        reference = Reference(None, None, to_sql(part))
        aggregate_of[reference] = part
        return Field(reference=reference, span=part.span)

    def numbered(part: Field) -> Expression:
        own = part.reference.numbered
        return column(Aggregate(function="AT", argument=part, span=part.span)) if own else part

    root = map_nodes(map_nodes(predicate.root, column, Aggregate), numbered)
    return Predicate(root, predicate.text), aggregate_of


def place_of(aggregate: Aggregate) -> int | None:
    """Of ``b[2].x`` the 2, of ``b[last].x`` 0, of other aggregates None."""
    match aggregate:
        case Aggregate(function="AT", argument=Field(reference=reference)):
            return 0 if reference.index == "last" else int(reference.index or 0)
    return None


def aggregated(aggregate: Aggregate, column_at: Callable[[str], Column], group: IntArray, groups: int) -> Column:
    """The value of an aggregate for each of some matches.

    Parameters
    ----------
    aggregate
        Of a bound predicate.
    column_at
        A column's n values: of the events that the matches bind to the aggregate's operand, those of a match in order.
    group
        int64[n]: the match of each event, from 0; it never falls.
    groups
        How many matches there are.

    Returns
    -------
    Column
        One value a match.
    """
    made = value_of(aggregate.argument, lambda reference: column_at(reference.column))
    values, known = (np.broadcast_to(part, group.shape) for part in (made.values, made.known))
    column = Column(values, known, made.type)
    place = _ENDS.get(aggregate.function, place_of(aggregate))
    if place is not None:
        begin, end = (np.searchsorted(group, np.arange(groups), side=side) for side in ("left", "right"))
        at = begin + place - 1 if place else end - 1
        return _take(column, at, (begin <= at) & (at < end))
    there = np.flatnonzero(known)
    group, column = group[there], Column(values[there], known[there], made.type)
    if aggregate.distinct:
        keys, _ = order_keys(column, column, ordered=False)
        group = np.unique(np.stack([group, keys], axis=1), axis=0)[:, 0]
    count = np.bincount(group, minlength=groups)
    match aggregate.function:
        case "COUNT":
            return Column(count, np.ones(groups, np.bool_), "bigint")
        case "SUM":
            return Column(_sum(column, group, groups), count > 0, made.type)
        case "AVG":
            total = _sum(cast(column, "double"), group, groups)
            return Column(total / np.maximum(count, 1), count > 0, "double")
    keys, _ = order_keys(column, column)
    # Of equal values the first one counts; ~ turns the order around where minus would overflow.
    order = np.lexsort((keys if aggregate.function == "MIN" else ~keys, group))
    # A match without values may begin behind the last one.
    return _take(column, np.append(order, 0)[np.cumsum(count) - count], count > 0)


def _take(column: Column, at: IntArray, there: NDArray[np.bool_]) -> Column:
    """The values at some places; NULL where there is none."""
    if not len(column.values):
        filler = np.array([""], object) if column.type == "string" else np.zeros(1, column.values.dtype)
        return Column(np.repeat(filler, len(at)), there, column.type)
    at = np.where(there, at, 0)
    return Column(column.values[at], column.known[at] & there, column.type)


def _sum(column: Column, group: IntArray, groups: int) -> NDArray[np.int64] | NDArray[np.float64]:
    """Sums by group, added one after another; integers wrap."""
    if column.type == "double":
        return np.bincount(group, weights=column.values, minlength=groups)
    total = np.zeros(groups, np.int64)
    np.add.at(total, group, column.values)
    return total

"""A query for complete event trends, compiled: terms, steps between neighbours, window.

Source: Mei et al. 2021, section 3 (query, predicate) and SPEC section 5. A **term** takes events: a name, plain or
with ``+``. A **step** leads from an event of one term to the next event of the trend: from a ``+`` term to itself, and
from each term to the following one. WHERE is cut into its conjuncts, and each belongs to one place:

- over one event: the term's filter;
- ``[attr]``: every step;
- over two neighbours: the step between them, as a **comparison** of a value of the later event (left) with a value of
  the earlier one (right), as a **gap** between their times, or, where it is neither, as a **remainder** that is judged
  for each pair that the rest of the step lets through.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.predicate.expressions import Call, Expression
from patternlake.udfs.language.predicate.predicates import Predicate, Scope, conjunction, read_definitions, read_where
from patternlake.udfs.language.query import engines, operands
from patternlake.udfs.language.query.partitions import partition_columns
from patternlake.udfs.language.query.tree import Extent, Query, Repetition
from patternlake.udfs.measures.pattern_measures import PatternMeasures, read_pattern_measures
from patternlake.udfs.trends.conjuncts import Place, Splitter, TermName

FARTHEST = 2**62
"""Stands for "no greatest gap", in microseconds."""
MOST_WINDOWS = 1_000_000
"""Windows that one event may lie in: it is worked on in each of them."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the pattern.

    Attributes
    ----------
    name
        Event name, or DEFINE primitive.
    operand
        What predicates call it.
    plus
        True where it takes one event or more.
    define
        The predicate of the primitive, over bare columns; None: the event's name must equal `name`.
    filter
        The conjuncts of WHERE over one event of the term; None where there are none.
    """

    name: str
    operand: str
    plus: bool
    define: Predicate | None
    filter: Predicate | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left(later) operator right(earlier)``, both sides cast to one type.

    Attributes
    ----------
    step
        (source term, target term).
    operator
        ``= <> < <= > >=``.
    left, right
        Bound expressions over the later and over the earlier event.
    type
        Value type of both sides.
    """

    step: tuple[int, int]
    operator: str
    left: Expression
    right: Expression
    type: str


@dataclass(frozen=True, slots=True)
class Step:
    """From an event of term `source` to the next event of the trend, of term `target`.

    Attributes
    ----------
    comparisons
        Their numbers in `TrendQuery.comparisons`.
    least, greatest
        Bounds of the time between the two events, in microseconds, both inclusive; `least` is 1 or more, because time
        must rise, and `greatest` is `FARTHEST` where nothing limits it.
    remainder
        What is judged pair by pair, or None.
    """

    source: int
    target: int
    comparisons: tuple[int, ...]
    least: int
    greatest: int
    remainder: Predicate | None


@dataclass(frozen=True)
class TrendQuery:
    """A compiled query.

    Attributes
    ----------
    terms, steps, comparisons
        As above; steps in the order of (source, target).
    along
        Columns that are equal along the whole trend.
    partition
        Columns of PARTITION BY; the stream's key is called ``key``.
    within, slide
        Window and its step; None without WITHIN. Without SLIDE windows tumble.
    columns
        All columns of events that the query reads, but for ``position`` and ``time``.
    carried
        Columns that remainders read pair by pair, ``position`` and ``time`` left out.
    measures
        MEASURES, or None; the n-th operand is the n-th term.
    """

    terms: tuple[Term, ...]
    steps: tuple[Step, ...]
    comparisons: tuple[Comparison, ...]
    along: tuple[str, ...]
    partition: tuple[str, ...]
    within: Extent | None
    slide: Extent | None
    columns: frozenset[str]
    carried: tuple[str, ...]
    measures: PatternMeasures | None = None

    @property
    def measured(self) -> tuple[str, ...]:
        """Columns of events that measures read beside position and time."""
        return () if self.measures is None else tuple(sorted(self.measures.columns - {"position", "time"}))


def compile_query(query: Query, scope: Scope | None = None) -> TrendQuery:
    """Compile a query for the trends engine.

    Parameters
    ----------
    query
        The parsed query.
    scope
        Attributes, parameters and key column that predicates may use; its operands are replaced by the query's.

    Raises
    ------
    UnsupportedOperatorError
        Naming the operator and its place: what `engines.check` refuses, and a SLIDE that leaves an event in more than
        `MOST_WINDOWS` windows.
    PatternSyntaxError, PredicateError
        Two operands have one name; a predicate is not allowed, names what is not in scope, compares other events than
        neighbours, or cannot be indexed; a PARTITION BY column that does not exist.
    """
    engines.check(query, "trends")
    _check_windows(query)
    scope = scope or Scope()
    named = operands.number(query)
    names = tuple(TermName(operand.name, isinstance(operand.node, Repetition)) for operand in named)
    defined = read_definitions(query, scope)
    within_terms = replace(scope, operands=named.names)
    splitter = Splitter(names, within_terms)
    where = read_where(query, within_terms)
    if where is not None:
        splitter.split(where)
    terms = tuple(
        Term(
            name=operand.event.name,
            operand=operand.name,
            plus=name.plus,
            define=defined.get(operand.event.name),
            filter=conjunction(splitter.filters[number]) if splitter.filters[number] else None,
        )
        for number, (operand, name) in enumerate(zip(named, names, strict=True))
    )
    comparisons, steps = _steps(names, splitter)
    carried = {ref.column for step in steps if step.remainder is not None for ref in step.remainder.references}
    partition = partition_columns(query, scope)
    return TrendQuery(
        terms=terms,
        steps=steps,
        comparisons=comparisons,
        along=splitter.along,
        partition=partition,
        within=query.within,
        slide=query.slide or query.within,
        columns=_columns(terms, splitter, partition),
        carried=tuple(sorted(carried - {"position", "time"})),
        measures=read_pattern_measures(query, named, scope),
    )


def _check_windows(query: Query) -> None:
    """Refuse windows of which an event would lie in too many."""
    if query.within is None or query.slide is None:
        return
    windows = -(-query.within.amount // query.slide.amount)
    if windows > MOST_WINDOWS:
        raise UnsupportedOperatorError(
            f"each event would lie in {windows:,} windows, more than {MOST_WINDOWS:,}; let SLIDE be a greater part of "
            "WITHIN",
            query.text,
            query.slide.span.start,
            query.slide.span.end,
        )


def _steps(names: tuple[TermName, ...], splitter: Splitter) -> tuple[tuple[Comparison, ...], tuple[Step, ...]]:
    """All comparisons, and the steps that they belong to."""
    comparisons: list[Comparison] = []
    steps: list[Step] = []
    for source, name in enumerate(names):
        for target in (source, source + 1):
            if target == len(names) or (target == source and not name.plus):
                continue
            place = splitter.places.get((source, target), Place())
            numbers = tuple(range(len(comparisons), len(comparisons) + len(place.comparisons)))
            comparisons += [Comparison((source, target), *parts) for parts in place.comparisons]
            least = max([1, *(low for low, _ in place.gaps)])
            greatest = min([FARTHEST, *(high for _, high in place.gaps)])
            narrowed = numbers or splitter.along or greatest < FARTHEST
            if place.remainders and not narrowed and not any(map(_is_choice, place.remainders)):
                raise place.remainders[0].error(
                    "nothing narrows down the pairs that this is judged for; write it with one event on either side of "
                    "a comparison, or add [attr], another comparison of the two, or a greatest gap between their times"
                )
            remainder = conjunction(place.remainders) if place.remainders else None
            steps.append(Step(source, target, numbers, least, greatest, remainder))
    return tuple(comparisons), tuple(steps)


def _is_choice(predicate: Predicate) -> bool:
    """Whether it is an OR, which no other way of writing makes a comparison of two values."""
    return isinstance(predicate.root, Call) and predicate.root.operator == "OR"


def _columns(terms: tuple[Term, ...], splitter: Splitter, partition: tuple[str, ...]) -> frozenset[str]:
    predicates = [part for term in terms for part in (term.define, term.filter) if part is not None]
    for place in splitter.places.values():
        predicates += place.remainders
        predicates += [Predicate(side) for _, left, right, _ in place.comparisons for side in (left, right)]
    read = {reference.column for predicate in predicates for reference in predicate.references}
    if any(term.define is None for term in terms):
        read.add("name")
    return frozenset(read | set(splitter.along) | set(partition)) - {"position", "time"}

"""Complete event trends, slow and obviously right: every pair is judged, every path is walked (SPEC section 5).

A query is given as Python functions beside its text, so that nothing of the language is used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Value = float | int | str | None
Vertex = tuple[int, int]
"""(number of the event, number of the term)."""


@dataclass(frozen=True)
class Event:
    """One event of a stream; `time` in microseconds."""

    position: int
    time: int
    name: str
    key: str | None = None
    values: dict[str, Value] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Term:
    """An event name, plain or with ``+``, under an alias."""

    name: str
    alias: str
    plus: bool


@dataclass(frozen=True)
class Filter:
    """A conjunct over one event of term `term`."""

    term: int
    holds: Callable[[Event], bool]
    text: str


@dataclass(frozen=True)
class Step:
    """A conjunct over two neighbours: an event of term `source` and the next one, of term `target`; None: any terms."""

    source: int | None
    target: int | None
    holds: Callable[[Event, Event], bool]
    text: str


@dataclass(frozen=True)
class Query:
    """A query; `within` and `slide` in microseconds or, where `counted`, in events."""

    terms: tuple[Term, ...]
    filters: tuple[Filter, ...] = ()
    steps: tuple[Step, ...] = ()
    partitioned: bool = False
    within: int | None = None
    slide: int | None = None
    counted: bool = False

    def text(self) -> str:
        """The query in the language."""
        terms = [f"{term.name}+ {term.alias}[]" if term.plus else f"{term.name} AS {term.alias}" for term in self.terms]
        text = " ; ".join(terms)
        conjuncts = [part.text for part in (*self.filters, *self.steps)]
        if conjuncts:
            text += " WHERE " + " AND ".join(conjuncts)
        if self.partitioned:
            text += " PARTITION BY key"
        if self.within is not None:
            text += f" WITHIN {self.amount(self.within)}"
        if self.slide is not None:
            text += f" SLIDE {self.amount(self.slide)}"
        return text

    def amount(self, extent: int) -> str:
        return f"{extent} EVENTS" if self.counted else f"{extent // 1000} MILLISECOND"


Cell = tuple[str | None, int | None]
"""(partition, number k of the window [k·s, k·s + w)); None: there is only one."""


def windows(query: Query, event: Event) -> Iterator[int | None]:
    """The windows that hold an event, by trying all that are near."""
    if query.within is None:
        yield None
        return
    slide = query.slide or query.within
    at = event.position - 1 if query.counted else event.time
    for k in range((at - query.within) // slide - 1, at // slide + 2):
        if k * slide <= at < k * slide + query.within:
            yield k


def cells(query: Query, events: Sequence[Event]) -> dict[Cell, list[Event]]:
    """The events of each partition and window."""
    found: dict[Cell, list[Event]] = {}
    for event in sorted(events, key=lambda event: event.position):
        for k in windows(query, event):
            found.setdefault((event.key if query.partitioned else None, k), []).append(event)
    return found


def is_vertex(query: Query, event: Event, term: int) -> bool:
    if event.name != query.terms[term].name:
        return False
    return all(part.holds(event) for part in query.filters if part.term == term)


def is_edge(query: Query, events: Sequence[Event], source: Vertex, target: Vertex) -> bool:
    """Whether an event may directly follow another; everything is judged for this very pair."""
    (i, s), (j, t) = source, target
    if not (t == s + 1 or (t == s and query.terms[s].plus)):
        return False
    if not events[i].time < events[j].time:
        return False
    return all(
        step.holds(events[i], events[j])
        for step in query.steps
        if step.source is None or (step.source, step.target) == (s, t)
    )


def matching(query: Query, events: Sequence[Event]) -> set[tuple[int, ...]]:
    """All sequences of events, by number, that match under some assignment of their events to the terms."""
    last = len(query.terms) - 1
    vertices = [(i, t) for i in range(len(events)) for t in range(last + 1) if is_vertex(query, events[i], t)]
    follow = {v: [w for w in vertices if is_edge(query, events, v, w)] for v in vertices}
    # What was walked already: a sequence with the term that its last event is taken by.
    walked: set[tuple[tuple[int, ...], int]] = set()

    def walk(sequence: tuple[int, ...], term: int) -> None:
        if (sequence, term) in walked:
            return
        walked.add((sequence, term))
        for i, t in follow[sequence[-1], term]:
            walk((*sequence, i), t)

    for i, t in vertices:
        if t == 0:
            walk((i,), t)
    return {sequence for sequence, term in walked if term == last}


def trends_of_cell(query: Query, events: Sequence[Event]) -> list[tuple[int, ...]]:
    """The matching sequences that stay matching with no event put before the first or after the last, in order.

    Whether a longer sequence matches is asked of the sequence, whichever terms the shorter one gave its events to.
    """
    found = matching(query, events)
    grown = {sequence[1:] for sequence in found} | {sequence[:-1] for sequence in found}
    return sorted(tuple(events[i].position for i in sequence) for sequence in found - grown)


def trends(query: Query, events: Sequence[Event]) -> dict[Cell, list[tuple[int, ...]]]:
    """All trends of each partition and window that has any."""
    found = {cell: trends_of_cell(query, part) for cell, part in cells(query, events).items()}
    return {cell: rows for cell, rows in found.items() if rows}


def edges(query: Query, events: Sequence[Event]) -> set[tuple[int, int, int, int]]:
    """All edges of one cell: (position, term) of source and target."""
    terms = range(len(query.terms))
    vertices = [(i, t) for i in range(len(events)) for t in terms if is_vertex(query, events[i], t)]
    return {
        (events[v[0]].position, v[1], events[w[0]].position, w[1])
        for v in vertices
        for w in vertices
        if is_edge(query, events, v, w)
    }


def aggregate(
    function: str, rows: Sequence[tuple[int, ...]], values: dict[int, int | float | Fraction | None] | None
) -> Fraction | None:
    """An aggregate over listed trends; `values` by position, None for COUNT(*): every event of every trend is seen."""
    if values is None:
        return Fraction(len(rows))
    seen = [Fraction(value) for row in rows for at in row if (value := values[at]) is not None]
    if function == "COUNT":
        return Fraction(len(seen))
    if not seen:
        return None
    return {"SUM": sum(seen, Fraction()), "MIN": min(seen), "MAX": max(seen), "AVG": sum(seen) / len(seen)}[function]

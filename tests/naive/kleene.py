"""Exact matching, the whole language, slow and obviously right (SPEC 3, ROWS part 3).

Under skip_till_any every assignment of events to operands is tried (`naive.kleene_any`, over the orders of
`naive.kleene_orders`); under skip_till_next and strict each start takes event by event (`naive.kleene_steps`). Absence
is judged of whole matches, the same for all policies (`naive.kleene_absence`). Predicates are judged tuple by tuple in
plain Python (`naive.kleene_asked`, `naive.predicates`).

A pattern is read as a union of **orders**, each a plain row of operands: an alternative gives one per choice, ``&`` one
per way to interleave its sides. What is inside a side of ``&`` keeps its order, and each operand is one block. ``n OF
(a, b, c)`` is the alternative of all ``&`` of at least n of them, greater sets first.

Readings chosen where SPEC 3 leaves room:

- *Orders.* Whether an event can be added is judged within one order, as ``A+ & B`` = ``(A+ ; B) ∪ (B ; A+)`` literally
  says: an untaken alternative, or another order, has no operand to add to. Equal rows of several orders count once.
- *Neighbours.* A conjunct with ``b[i-1]`` is judged for each kept event of b and the kept one before it; "can be added"
  asks it of the added event and the kept one before that only. With ``[n]`` and ``{n,m}`` it holds between neighbours
  of each combination.
- *Directly next.* ``A , B? , C``: C is directly behind whatever stands before it in the run. ``(A & B) , C``: directly
  behind the later of both. Being next is part of order, so that it counts in "can be added".
- *UNTIL.* Behind the first event of b, up to the last one, there is no u: an event that is b and u can only be first.
- ``[attr]``: any two events of the match have equal, known values; a negated event counts only where it has the value
  too. A match of one event passes whatever its value.
- *Absence.* What is negated must not fit: no event (or, of a group, no match of it) in its place, which is behind the
  last event of the sides before it and before the first one of the sides behind it, that lies with the match within the
  window and satisfies its conditions for all kept events. An event of the match is never one that is absent. Where a
  side that has operands has no event (an empty ``b*``), there is no place, and nothing is forbidden. In ``A & !B`` the
  place is anywhere.
- *Deadlines.* A condition ``@`` on what is negated is a condition of that event like any other, so that in the middle
  an event counts only between its neighbours. It replaces the window at the side where it sets a bound: in ``A ; B ; !C
  @(t(C) - t(B) < 1 HOUR) WITHIN 5 MIN`` the C counts an hour after B, not five minutes after A. A condition ``@`` of no
  negated operand is one of WHERE. ``A , !X``: the event directly behind A alone counts; ``!X , A``: the one directly
  before it.
- *Groups under a repetition* count every number of rounds, one after another, each of one event at least. Under ``&``
  such a group is one block, as a repeated operand is. A condition whose operands all stand in the same repeated group
  is judged in each round, another for all kept events; ``b[i-1]`` is the event of b kept before, perhaps of an earlier
  round. Aggregates are always of all kept events of their operand.
- *A condition with aggregates*, ``b[last].x`` or ``b[2].x`` is asked of whole matches, as ``!X`` is: it says which
  count, and never what is collected. An operand without events has a COUNT of 0, all else of it is NULL; a conjunct
  that names another operand besides does not apply where that has no event, nor where ``b[2]`` is not there.
- *Steering.* Under skip_till_next and strict such a condition is judged when an event is taken, if it reads the event
  itself (``down.x < LAST(up.x)``, ``b[i].x > AVG(b.x)``), all other single events that it reads are bound, and what it
  reads collected comes before in the text. It reads what was collected before the event, which is not counted in. Where
  nothing of the same operand (or group) is collected yet, a condition that is unknown passes, as the first event does
  with ``b[i-1]``: ``b[i].x > MAX(b.x)`` takes any first b; ``COALESCE(SUM(b.x), 0) + b[i].x < 9`` asks of the first,
  too.
- ``skip_till_next`` and ``strict`` scan from each start, way by way: a way is a choice at every ``|`` and ``n OF``, and
  at each ``? * {0,…}`` of taken before left out, in the order of the text. The first way that gives a match, absences
  and all, is the match. In a way the furthest place that can take an event takes it; a kept event is never dropped
  again. A last ``+`` or ``*`` collects to the end of the window, under ``strict`` to the first event that does not
  qualify.
- ``&`` under them: each side goes on by itself, and of several that can take an event the first in the text does. A
  repeated operand ends when another side takes an event, with too few or not.
- *Rounds* under them: an event goes to what follows the group, else it begins a new round, else it continues the round.
  A round that is not complete is dropped when what follows takes its event (under strict it cannot, for the dropped
  events stand between), and at the end. Inside a round what is optional is taken if it comes first.
- ``repetition => 'all'`` under them: each repetition stops after every number of events that it may take, so the answer
  of a way is that of all patterns with ``{k}`` in its place. Of ``|`` the first way that gives any match counts. Under
  ``past_last`` the search goes on behind the last event of all matches of a start.
- ``after_match`` means nothing under ``skip_till_any``.
- Rows are ordered by the positions of their events in the order of events, then by operand in text order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from naive.kleene_any import every
from naive.kleene_asked import EPOCH, Asked, Event, Kept, Row, aggregates_in
from naive.kleene_final import is_final, open_end
from naive.kleene_orders import Absence
from naive.kleene_steps import per_start, ways_of

from patternlake.udfs.language.predicate.expressions import to_sql

__all__ = ["EPOCH", "Event", "Row", "final_rows", "matches", "valued"]


def matches(
    text: str,
    events: Sequence[Event],
    types: Mapping[str, str] | None = None,
    *,
    parameters: Mapping[str, str] | None = None,
    policy: str = "skip_till_any",
    after_match: str = "next",
    repetition: str = "maximal",
) -> list[Row]:
    """All rows of one partition, in their order."""
    asked = Asked(text, events, types, parameters)
    return [asked.row(kept) for kept in distinct_matches(asked, policy, after_match, repetition)]


def found_by(asked: Asked, policy: str, after_match: str, repetition: str) -> list[tuple[Kept, tuple[Absence, ...]]]:
    """All matches as they are found, each with the absences that it rests on."""
    if policy == "skip_till_any":
        return every(asked, repetition)
    return per_start(asked, policy == "strict", after_match, repetition)


def distinct_matches(asked: Asked, policy: str, after_match: str, repetition: str) -> list[Kept]:
    """All matches, each binding once, in the order of rows."""
    ordered = sorted((kept for kept, _ in found_by(asked, policy, after_match, repetition)), key=asked.rank)
    return [kept for at, kept in enumerate(ordered) if not at or asked.row(kept) != asked.row(ordered[at - 1])]


def final_rows(
    text: str,
    events: Sequence[Event],
    watermark: int,
    types: Mapping[str, str] | None = None,
    *,
    policy: str = "skip_till_any",
    repetition: str = "maximal",
) -> list[Row]:
    """The rows that are final at a watermark, by `after_match` ``next``: see `naive.kleene_final`."""
    asked = Asked(text, events, types)
    may_change = repetition == "maximal" and open_end(asked.pattern)
    may_change |= policy != "skip_till_any" and len(ways_of(asked, asked.pattern, repetition == "all")) > 1
    rows = [
        asked.row(kept)
        for kept, absences in found_by(asked, policy, "next", repetition)
        if is_final(asked, kept, absences, watermark, may_change)
    ]
    return [row for at, row in enumerate(rows) if row not in rows[:at]]


def valued(
    text: str,
    events: Sequence[Event],
    types: Mapping[str, str] | None = None,
    *,
    policy: str = "skip_till_any",
    after_match: str = "next",
) -> list[tuple[Row, dict[str, Any]]]:
    """As `matches`, each row with the values of the query's aggregates."""
    asked = Asked(text, events, types)
    parts = dict.fromkeys(part for conjunct in asked.totals for part in aggregates_in(conjunct.root))
    return [
        (asked.row(kept), {to_sql(part): asked.aggregated(part, kept) for part in parts})
        for kept in distinct_matches(asked, policy, after_match, "maximal")
    ]

"""What has begun and is not complete: ``partial => true`` (SPEC 3).

Readings chosen where SPEC leaves room:

- Under skip_till_next and strict each start that has no match gives what it has taken, in the way in which most
  operands have enough, the first such in the order of the text; a start that a way completes, and an absence or a
  condition over what is collected rejects, gives nothing. `missing` is the first operand, in the order of the way,
  without enough.
- Under skip_till_any it is an assignment in one order to which no event can be added, neither in a repeated operand nor
  in the one that is awaited, and which no match and no other such assignment holds whole. Of several orders with the
  same events the first one in the text says what is missing. ``repetition => 'all'``: a repeated operand that has
  enough may have room.
- Absences, and conditions over what is collected, are asked of whole matches alone.
- `deadline` is the end of the window of the first event, nothing where there is none or it counts events. A row is
  final when its window is over; under strict also when its next event is settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from naive.kleene_any import Assignment, assignments, can_grow, every, kept_of, valid
from naive.kleene_asked import Asked, Event, Kept, Row, numbers_of
from naive.kleene_final import settled, window_over
from naive.kleene_orders import Order, Slot, orders_of
from naive.kleene_steps import (
    Beside,
    Either,
    Form,
    One,
    Round,
    Rounds,
    Start,
    State,
    dropped,
    enough,
    fresh,
    names_in,
    resumed,
    ways_of,
    whole_rounds,
)
from naive.kleene_steps import Row as Line
from naive.kleene_steps import kept_of as kept_in


class Partial(NamedTuple):
    """What has begun; `deadline` in microseconds."""

    row: Row
    missing: str
    deadline: int | None
    final: bool


def partial_matches(
    text: str,
    events: Sequence[Event],
    watermark: int,
    types: Mapping[str, str] | None = None,
    *,
    policy: str = "skip_till_any",
    after_match: str = "next",
    repetition: str = "maximal",
) -> list[Partial]:
    """All that has begun and is not complete, in the order of rows."""
    asked = Asked(text, events, types)
    strict = policy == "strict"
    if policy == "skip_till_any":
        found = begun(asked, repetition)
    else:
        found = begun_by_starts(asked, strict, after_match)
    return [
        told(asked, kept, missing, watermark, strict) for kept, missing in sorted(found, key=lambda f: asked.rank(f[0]))
    ]


def told(asked: Asked, kept: Kept, missing: str, watermark: int, strict: bool) -> Partial:
    numbers = numbers_of(kept)
    deadline = None
    if asked.within is not None and not asked.within.counted:
        deadline = asked.events[numbers[0]].time + asked.within.amount
    broken = strict and numbers[-1] + 1 < settled(asked, watermark)
    return Partial(asked.row(kept), missing, deadline, broken or window_over(asked, numbers[0], watermark))


# skip_till_any


def begun(asked: Asked, repetition: str) -> list[tuple[Kept, str]]:
    whole = [asked.row(kept) for kept, _ in every(asked, repetition)]
    found: dict[str, tuple[Kept, str]] = {}
    for order in dict.fromkeys(orders_of(asked, asked.pattern)):
        for at, slot in enumerate(order.slots):
            if not slot.least:
                continue
            limited, awaited = up_to(order, at)
            for assignment in assignments(asked, limited):
                if any(assignment.values()) and waits(asked, limited, assignment, awaited, slot.least, repetition):
                    kept = kept_of(limited, assignment)
                    found.setdefault(str(asked.row(kept)), (kept, slot.name))
    rows = [asked.row(kept) for kept, _ in found.values()]
    return [
        (kept, missing)
        for (kept, missing), row in zip(found.values(), rows, strict=True)
        if not any(holds_whole(other, row) for other in [*whole, *(o for o in rows if o != row)])
    ]


def up_to(order: Order, at: int) -> tuple[Order, Slot]:
    """An order with nothing behind one slot, which may have too few; and that slot."""
    made = {
        slot: replace(slot, least=0, most=slot.least if place == at else 0) if place >= at else slot
        for place, slot in enumerate(order.slots)
    }

    def of(slots: frozenset[Slot]) -> frozenset[Slot]:
        return frozenset(made[slot] for slot in slots)

    limited = replace(
        order,
        slots=tuple(made.values()),
        adjacent=tuple((of(first), of(second)) for first, second in order.adjacent),
        untils=tuple((of(slots), until) for slots, until in order.untils),
        rounds=(),
    )
    return limited, made[order.slots[at]]


def waits(asked: Asked, order: Order, assignment: Assignment, awaited: Slot, least: int, repetition: str) -> bool:
    """Whether an assignment is one that has too few in the slot that it awaits, and can take no event more."""
    if len(assignment[awaited]) >= least or not valid(asked, order, assignment):
        return False
    return not can_grow(asked, order, assignment, [awaited] if repetition == "all" else None)


def holds_whole(other: Row, row: Row) -> bool:
    """Whether a row binds all that another one does."""
    return all(set(positions) <= set(other.get(name, ())) for name, positions in row.items())


# skip_till_next and strict


def begun_by_starts(asked: Asked, strict: bool, after_match: str) -> list[tuple[Kept, str]]:
    found = []
    ways = ways_of(asked, asked.pattern, False)
    resume = 0
    for start in range(len(asked.events)):
        if start < resume:
            continue
        matched = next((kept for way in ways if (kept := Start(asked, way, start, strict).match()) is not None), None)
        if matched is not None:
            resume = resumed(matched, start, after_match)
            continue
        scans = [Start(asked, way, start, strict) for way in ways]
        for scan in scans:
            scan.scan()
        if any(kept_in(scan.way, scan.state) and enough(scan.way, scan.state) for scan in scans):
            continue
        best = max(scans, key=lambda scan: reached(scan.way, scan.state))
        kept = kept_in(best.way, without_spare(best.way, best.state))
        if kept:
            found.append((kept, awaited(best.way, best.state)))
    return found


def reached(form: Form, state: State) -> int:
    """How many operands have enough, of those that need any."""
    if isinstance(form, One):
        return int(form.least > 0 and enough(form, state))
    if isinstance(form, Rounds):
        done, current, _ = state
        return sum(reached(form.form, one) for one in (*done, *([] if current is None else [current])))
    if isinstance(form, Either):
        return 0 if state is None else reached(form.forms[state[0]], state[1])
    return sum(reached(one, below) for one, below in inside_of(form, state))


def awaited(form: Form, state: State) -> str:
    """The first operand without enough, of a form that has not."""
    if isinstance(form, One):
        return form.name
    if isinstance(form, Rounds):
        current = state[1]
        return awaited(form.form, fresh(form.form) if current is None or enough(form.form, current) else current)
    if isinstance(form, Either):
        return names_in(form)[0] if state is None else awaited(form.forms[state[0]], state[1])
    return next(awaited(one, below) for one, below in inside_of(form, state) if not enough(one, below))


def without_spare(form: Form, state: State) -> State:
    """The state without rounds that are not complete, of groups that have enough without them."""
    if isinstance(form, Rounds) and len(whole_rounds(form, state)) >= form.least:
        return dropped(form, state)
    if isinstance(form, Line):
        below = [without_spare(item, one) for item, one in zip(form.items, state[1], strict=True)]
        return (state[0], tuple(below))
    return state


def inside_of(form: Form, state: State) -> list[tuple[Form, State]]:
    if isinstance(form, Line):
        return list(zip(form.items, state[1], strict=True))
    if isinstance(form, Beside):
        return list(zip(form.sides, state, strict=True))
    return [(form.form, state)] if isinstance(form, Round) else []

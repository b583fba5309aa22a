"""Near misses under skip_till_next and strict, start by start: how far each came, and what it awaits (SPEC 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from naive.kleene_absence import absent
from naive.kleene_asked import Asked, Event, Kept, Row, numbers_of
from naive.kleene_orders import Absence
from naive.kleene_steps import (
    Beside,
    Either,
    Form,
    One,
    Round,
    Rounds,
    Start,
    State,
    absences_in,
    dropped,
    enough,
    exact,
    fresh,
    kept_of,
    names_in,
    resumed,
    stopped,
    ways_of,
)
from naive.kleene_steps import Row as Items


@dataclass(frozen=True)
class Reached:
    """What a start has taken in a way when no event goes on.

    `form`: the way, or with `all` the way with exact numbers, that was scanned. `rank`: which way it is.
    """

    way: Form
    form: Form
    state: State
    rank: int

    @property
    def kept(self) -> Kept:
        return kept_of(self.form, self.state)

    @property
    def is_whole(self) -> bool:
        without = dropped(self.form, self.state)
        return enough(self.form, without) and bool(kept_of(self.form, without))

    @property
    def missing(self) -> str:
        return awaited(self.way, self.form, self.state)

    def is_ruled_out(self, asked: Asked) -> bool:
        return ruled_out(asked, absences_in(self.way), frozenset(names_in(self.way)), self.kept, self.missing)


def near_misses(
    text: str,
    events: Sequence[Event],
    types: Mapping[str, str],
    *,
    policy: str,
    after_match: str = "next",
    repetition: str = "maximal",
) -> list[tuple[Row, str]]:
    """What each start without a match has taken, and the operand that it awaits."""
    asked = Asked(text, events, types)
    every = repetition == "all"
    ways = ways_of(asked, asked.pattern, every)
    tries = [exact(way, len(asked.events) + 2 * needed(way)) if every else [way] for way in ways]
    found: list[tuple[Row, str]] = []
    resume = 0
    for start in range(len(asked.events)):
        if start < resume:
            continue
        for forms in tries:
            whole = [kept for form in forms if (kept := scan_of(asked, form, start, policy).match()) is not None]
            if whole:
                resume = max(resumed(kept, start, after_match) for kept in whole)
                break
        else:
            came = [
                Reached(way, form, reached(scan_of(asked, form, start, policy)), rank)
                for rank, (way, forms) in enumerate(zip(ways, tries, strict=True))
                for form in forms
            ]
            if any(one.is_whole for one in came):
                continue
            begun = [one for one in came if one.kept and one.missing and not one.is_ruled_out(asked)]
            if begun:
                furthest = min(begun, key=lambda one: place_of(asked, one))
                found.append((asked.row(furthest.kept), furthest.missing))
    return found


def scan_of(asked: Asked, form: Form, start: int, policy: str) -> Start:
    return Start(asked, form, start, policy == "strict")


def reached(one: Start) -> State:
    """What a start has taken when no event goes on, with the round at hand, whether UNTIL has ended it or not."""
    taken = one.state
    for number in range(one.start, len(one.asked.events)):
        one.state = stopped(one.asked, one.way, one.state, number)
        if one.take(number):
            taken = one.state
        elif one.strict or number == one.start:
            break
    return taken


def place_of(asked: Asked, one: Reached) -> Any:
    """The order of what a start reached: first what has an event of the furthest operand; then the first way; then
    more events; then what awaits a later operand; then the order of rows.
    """
    written = [name for name in asked.names if name in names_in(one.way)]
    came = 1 + max(written.index(name) for name in one.kept)
    return -came, one.rank, -len(numbers_of(one.kept)), -asked.names.index(one.missing), asked.rank(one.kept)


def needed(form: Form) -> int:
    """How many events a form takes at least, with a round of each group."""
    if isinstance(form, One):
        return max(1, form.least)
    if isinstance(form, Rounds):
        return max(1, form.least) * needed(form.form)
    if isinstance(form, Round):
        return needed(form.form)
    return sum(map(needed, parts_of(form)))


def parts_of(form: Form) -> tuple[Form, ...]:
    if isinstance(form, Items):
        return form.items
    return form.sides if isinstance(form, Beside) else form.forms if isinstance(form, Either) else ()


def has_enough(way: Form, form: Form, state: State) -> bool:
    """Whether a part needs no further event, by the least numbers of the pattern (`way`), whatever those of `form`."""
    if isinstance(way, One):
        return len(state[0]) >= way.least
    if isinstance(way, Rounds):
        rounds = rounds_of(form, state)
        return sum(has_enough(way.form, one, own) for one, own in rounds) >= way.least
    if isinstance(way, Either) and isinstance(form, Either):
        if state is None:
            return any(enough(one, fresh(one)) for one in way.forms)
        return has_enough(way.forms[state[0]], form.forms[state[0]], state[1])
    ready = [has_enough(*part) for part in below(way, form, state)]
    return sum(ready) >= (len(ready) if not isinstance(way, Beside) or way.needed is None else way.needed)


def awaited(way: Form, form: Form, state: State) -> str:
    """The operand that a part awaits: of a round at hand that is not complete, or the first one that has too few."""
    if isinstance(way, One):
        return "" if has_enough(way, form, state) or way.optional else way.name
    if isinstance(way, Rounds):
        rounds = rounds_of(form, state)
        at_hand = next((name for one, own in rounds if (name := awaited(way.form, one, own))), "")
        if at_hand or has_enough(way, form, state) or (way.optional and not rounds):
            return at_hand
        return first_of(way.form) or names_in(way.form)[0]
    if isinstance(way, Either) and isinstance(form, Either):
        if state is None:
            return first_of(way)
        return awaited(way.forms[state[0]], form.forms[state[0]], state[1])
    parts = below(way, form, state)
    if has_enough(way, form, state):
        # Of n OF some need nothing.
        parts = [(one, own, its) for one, own, its in parts if kept_of(own, its)]
    return next((name for part in parts if (name := awaited(*part))), "")


def below(way: Form, form: Form, state: State) -> list[tuple[Form, Form, State]]:
    states = state[1] if isinstance(way, Items) else state
    return list(zip(parts_of(way), parts_of(form), states or (), strict=True))


def rounds_of(form: Form, state: State) -> list[tuple[Form, State]]:
    """The rounds of a repeated group that have begun, by their forms."""
    if isinstance(form, Rounds):
        done, current, _ = state
        return [(form.form, one) for one in (*done, *(() if current is None else (current,)))]
    assert isinstance(form, Items)
    rounds = [(one.form, own) for one, own in zip(form.items, state[1], strict=True) if isinstance(one, Round)]
    return [(one, own) for one, own in rounds if kept_of(one, own)]


def first_of(form: Form) -> str:
    """The operand that a part awaits that has not begun; none where it needs no event."""
    if enough(form, fresh(form)):
        return ""
    if isinstance(form, One):
        return form.name
    if isinstance(form, Rounds):
        return first_of(form.form) or names_in(form.form)[0]
    return next((name for part in parts_of(form) if (name := first_of(part))), "")


def ruled_out(
    asked: Asked, absences: Sequence[Absence], names: frozenset[str], kept: Mapping[str, Any], missing: str
) -> bool:
    """Whether what must be absent is there already, up to the end of the window or before what has come; `names` are
    the operands of the way.
    """
    taken = {name: run for name, run in kept.items() if run}
    for absence in absences:
        before = [name for name in absence.left if name in names]
        begun = any(name in taken for name in before) and missing not in before
        follows = bool(absence.right & taken.keys())
        if absence.directly == "before" and not follows:
            continue
        if (before and begun) or (not before and (not absence.right or follows)):
            known = replace(absence, right=absence.right & taken.keys())
            if not absent(asked, known, names, taken):
                return True
    return False

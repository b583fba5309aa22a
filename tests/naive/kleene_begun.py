"""Near misses under skip_till_next and strict, start by start: how far each came, and what it awaits (SPEC 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from naive.kleene_absence import absent
from naive.kleene_asked import Asked, Event, Kept, Row
from naive.kleene_steps import (
    Beside,
    Form,
    One,
    Start,
    State,
    absences_in,
    enough,
    kept_of,
    names_in,
    resumed,
    ways_of,
)
from naive.kleene_steps import Row as Items

from patternlake.udfs.language.query import tree


def near_misses(
    text: str,
    events: Sequence[Event],
    types: Mapping[str, str],
    *,
    policy: str,
    after_match: str = "next",
) -> list[tuple[Row, str]]:
    """What each start without a match has taken, and the operand that it awaits."""
    asked = Asked(text, events, types)
    ways = ways_of(asked, asked.pattern, False)
    found: list[tuple[Row, str]] = []
    resume = 0
    for start in range(len(asked.events)):
        if start < resume:
            continue
        tries = [Start(asked, way, start, policy == "strict") for way in ways]
        best = next((kept for one in tries if (kept := one.match()) is not None), None)
        if best is not None:
            resume = resumed(best, start, after_match)
            continue
        states = [(way, reached(Start(asked, way, start, policy == "strict"))) for way in ways]
        if any(enough(way, state) and kept_of(way, state) for way, state in states):
            continue
        begun = [(way, state) for way, state in states if kept_of(way, state) and awaited(asked, way, state)]
        begun = [(way, state) for way, state in begun if not ruled_out(asked, way, state)]
        if begun:
            way, state = max(begun, key=lambda one: length(asked, *one))
            found.append((asked.row(kept_of(way, state)), awaited(asked, way, state)))
    return found


def reached(one: Start) -> State:
    """What a start has taken when no event goes on."""
    one.scan()
    return one.state


def length(asked: Asked, way: Form, state: State) -> int:
    """How many operands stand up to the last one that has an event."""
    written = [name for name in asked.names if name in names_in(way)]
    return 1 + max(written.index(name) for name in kept_of(way, state))


def awaited(asked: Asked, form: Form, state: State) -> str:
    """The first operand that has too few events, but one that need have none."""
    if isinstance(form, One):
        nodes = [node for node in asked.pattern.walk() if isinstance(node, tree.Repetition) and not node.minimum]
        optional = {asked.name_of[id(node.item)] for node in nodes if isinstance(node.item, tree.Event)}
        return "" if enough(form, state) or form.name in optional else form.name
    if isinstance(form, Items | Beside):
        below = zip(*((form.items, state[1]) if isinstance(form, Items) else (form.sides, state)), strict=True)
        return next((name for one, own in below if (name := awaited(asked, one, own))), "")
    return ""


def ruled_out(asked: Asked, way: Form, state: State) -> bool:
    """Whether what must be absent is there already, up to the end of the window or before what has come."""
    kept: Kept = kept_of(way, state)
    names = frozenset(names_in(way))
    missing = awaited(asked, way, state)
    for absence in absences_in(way):
        before = [name for name in absence.left if name in names]
        begun = any(name in kept for name in before) and missing not in before
        follows = bool(absence.right & kept.keys())
        if absence.directly == "before" and not follows:
            continue
        if (before and begun) or (not before and (not absence.right or follows)):
            known = replace(absence, right=absence.right & kept.keys())
            if not absent(asked, known, names, kept):
                return True
    return False

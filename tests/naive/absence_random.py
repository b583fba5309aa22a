"""Random patterns with absences, for the tests of the kleene engine."""

from __future__ import annotations

import random
from itertools import pairwise

from naive.kleene import Event

NAMES = "ABCD"
MINUTE = 60_000_000


def random_events(rng: random.Random, count: int) -> list[Event]:
    """Events at whole minutes, some at the same one."""
    minute, events = 0, []
    for position in range(1, count + 1):
        minute += rng.choice([0, 1, 1, 1, 2])
        values = {"x": rng.choice([None, 1.0, 2.0, 3.0]), "y": float(rng.randint(1, 2))}
        events.append(Event(position, minute * MINUTE, rng.choice(NAMES), values))
    return events


def shape_of(negation: str) -> str:
    """``"name"`` where a negation is of one event."""
    return "name" if not set("([{+").intersection(negation) else ""


class Pattern:
    """A pattern with one or more absences; `scan`: of the part of the language that scans take."""

    def __init__(self, rng: random.Random, *, scan: bool, kept: bool = False) -> None:
        self.rng, self.kept = rng, kept
        self.positive: list[str] = []
        self.absent: list[str] = []
        self.where: list[str] = []
        choice = rng.random()
        if choice < 0.15 and not scan:
            body = self.beside()
        elif choice < 0.3:
            body = f"({self.sequence()}) | ({self.sequence()})"
        else:
            body = self.sequence()
        for one in self.absent:
            if self.positive and rng.random() < 0.3:
                sign, other = rng.choice(["=", "<", ">="]), rng.choice(self.positive)
                self.where.append(f"{one}.x {sign} {other}.x")
        if rng.random() < 0.15:
            self.where.append("[y]")
        window = rng.choice(["", f" WITHIN {rng.randint(1, 5)} MIN", f" WITHIN {rng.randint(1, 5)} EVENTS"])
        if kept and not window:
            window = f" WITHIN {rng.randint(1, 5)} MIN"
        conditions = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        self.text = f"{body}{conditions}{window}"

    def event(self) -> str:
        name = f"p{len(self.positive)}"
        self.positive.append(name)
        return f"{self.rng.choice(NAMES)}{self.rng.choice(['', '', '', '+', '*'])} AS {name}"

    def name(self) -> str:
        name = f"n{len(self.absent)}"
        self.absent.append(name)
        return f"{self.rng.choice(NAMES)} AS {name}"

    def negation(self, before: list[str]) -> str:
        rng, first = self.rng, len(self.absent)
        shape = rng.random()
        if shape < 0.6:
            text = f"!{self.name()}"
        elif shape < 0.7:
            text = f"!({self.name()} | {self.name()})"
        elif shape < 0.85:
            text = f"!({self.name()} {rng.choice([';', ';', '&', ','])} {self.name()})"
            if rng.random() < 0.3:
                self.where.append(f"n{first}.x {rng.choice(['=', '<'])} n{first + 1}.x")
        else:
            name = f"n{len(self.absent)}"
            self.absent.append(name)
            text = f"!{rng.choice(NAMES)}{rng.choice(['[2]', '+', '{2,}'])} AS {name}"
        if shape < 0.6 and before and rng.random() < 0.4:
            sign, minutes = rng.choice(["<", "<="]), rng.randint(1, 6)
            text += f" @(t(n{first}) - t({rng.choice(before)}) {sign} {minutes} MIN)"
        return text

    def sequence(self) -> str:
        rng = self.rng
        own = len(self.positive)
        items = [self.event() for _ in range(rng.choice([1, 1, 2, 2, 3]))]
        names = self.positive[own:]
        for at in sorted(rng.sample(range(len(items) + 1), rng.randint(1, min(2, len(items) + 1))), reverse=True):
            text = self.negation(names[:at])
            if not at and "@" not in text and rng.random() < 0.3 and shape_of(text) == "name":
                text += f" @(t({names[0]}) - t({self.absent[-1]}) < {rng.randint(1, 6)} MIN)"
            items.insert(at, text)
        parts = [items[0]]
        for earlier, item in pairwise(items):
            run = item.startswith("!") != earlier.startswith("!") and rng.random() < 0.15 and "," not in parts[-1]
            parts += [" , " if run else " ; ", item]
        return "".join(parts)

    def beside(self) -> str:
        rng = self.rng
        one, other = self.event(), rng.choice([self.event, self.sequence])()
        if rng.random() < 0.3:
            return f"{one} & {self.negation(['p0'])}"
        if rng.random() < 0.5:
            return f"{one} & ({other}) & {self.negation([])}"
        return f"{one} & ({other}) & ({self.sequence()})"

"""Random composite subscriptions for the machines engine, their text beside their tree, and random events."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from naive.machine_cases import SECOND, is_named
from naive.machines import (
    And,
    Condition,
    Either,
    Event,
    Node,
    Or,
    Primitive,
    Seq,
    Subscription,
    Value,
    primitives,
)

_MOST_WAYS = 256


@dataclass
class Growing:
    """A random subscription as it grows; `unit` is what one unit of time is, in microseconds and as text."""

    rng: random.Random
    unit: tuple[int, str] = (SECOND, "SEC")

    def __post_init__(self) -> None:
        self.primitives: list[Primitive] = []
        self.patterns: dict[str, str] = {}
        self.defines: list[str] = []

    def primitive(self, joins: bool) -> Primitive:
        rng, name = self.rng, f"o{len(self.primitives) + 1}"
        letter = rng.choice("aabbcd")
        takes, parts = is_named(letter), [f"name = '{letter}'"]
        kind = rng.random()
        if kind < 0.05:
            takes, parts = (lambda event: True), ["TRUE"]
        elif kind < 0.15:
            other = rng.choice("abcd")
            takes, parts = is_named(letter, other), [f"name IN ('{letter}', '{other}')"]
        elif kind < 0.25:
            limit = rng.randint(1, 3)
            takes, parts = named_from(letter, limit), [*parts, f"n >= {limit}"]
        pairs = [(rng.choice("xy"), rng.choice("vw")) for _ in range(rng.choice([0, 1, 1, 1, 1, 2]))] if joins else []
        parts += [f"{column} = ${variable}" for column, variable in pairs]
        if kind < 0.25 or pairs or rng.random() < 0.1:
            self.patterns[name] = name
            self.defines.append(f"{name} AS {' AND '.join(parts)}")
        else:
            self.patterns[name] = f"{letter} AS {name}"
        self.primitives.append(Primitive(name, takes, tuple(pairs)))
        return self.primitives[-1]

    def node(self, budget: int, joins: bool, depth: int = 0) -> Node:
        """A part with that many operands."""
        if budget == 1:
            return self.primitive(joins)
        cuts = sorted(self.rng.sample(range(1, budget), self.rng.randint(1, min(budget - 1, 3 if depth else 4))))
        sizes = [high - low for low, high in zip([0, *cuts], [*cuts, budget], strict=True)]
        items = tuple(self.node(size, joins, depth + 1) for size in sizes)
        kind = self.rng.choice(["seq", "seq", "and", "or"] if depth else ["seq", "seq", "seq", "seq", "and", "or"])
        if kind == "and":
            return And(items)
        if kind == "or":
            return Or(items)
        return Seq(items, tuple(self.rng.random() < 0.4 for _ in items[1:]))

    def condition(self, root: Node) -> Condition | Either:
        """Between two operands, mostly from a later one to an earlier one, written at the left one; some with OR."""
        rng = self.rng
        first = self.comparison()
        if rng.random() > 0.3:
            self.patterns[first.left] += f" @({self.text_of(first)})"
            return first
        alternatives = [[first]]
        free = [primitive for primitive in self.primitives if not within_alternative(root, primitive.name)]
        for _ in range(rng.choice([1, 1, 1, 2])):
            more = [self.comparison((first.left, first.right))]
            if {first.left, first.right} <= {primitive.name for primitive in free} and rng.random() < 0.5:
                one, other = rng.sample([primitive.name for primitive in free], 2)
                more = [self.comparison((one, other))]
            if rng.random() < 0.3:
                more.append(self.comparison((first.left, first.right)))
            alternatives.append(more)
        written = [" AND ".join(map(self.text_of, some)) for some in alternatives]
        self.patterns[first.left] += f" @({' OR '.join(written)})"
        return Either(tuple(tuple(some) for some in alternatives))

    def comparison(self, names: tuple[str, str] | None = None) -> Condition:
        """Of two operands, or of these."""
        rng = self.rng
        right, left = sorted(rng.sample(range(len(self.primitives)), 2))
        if rng.random() < 0.15:
            right, left = left, right
        one, other = names or (self.primitives[left].name, self.primitives[right].name)
        signs = [("<", 3), ("<", 5), ("<=", 2), ("<=", 4), (">", 1), (">", 2), (">=", 2), ("=", 2), ("<>", 2)]
        sign, amount = rng.choice(signs)
        return Condition(one, other, sign, amount * self.unit[0])

    def text_of(self, part: Condition) -> str:
        return f"t({part.left}) - t({part.right}) {part.sign} {part.amount // self.unit[0]} {self.unit[1]}"

    def subscription(self, most: int) -> Subscription:
        rng = self.rng
        joins = rng.random() < 0.35
        root = self.node(min(most, rng.choice([1, 2, 2, 3, 3, 3, 4, 4, 5])), joins)
        several = len(self.primitives) > 1
        conditions = tuple(self.condition(root) for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3]) if several else 0))
        partition = ("key",) if rng.random() < 0.35 else ()
        text, within = self.written(root, outside=True), None
        counted = rng.random() < 0.5
        if self.defines:
            text += " DEFINE " + ", ".join(self.defines)
        if partition:
            text += " PARTITION BY key"
        if rng.random() < 0.35:
            within = rng.randint(2, 8)
            text += f" WITHIN {within} {'EVENTS' if counted else self.unit[1]}"
            within *= 1 if counted else self.unit[0]
        return Subscription(root, text, conditions, partition, within, counted and within is not None)

    def written(self, node: Node, *, outside: bool = False) -> str:
        if isinstance(node, Primitive):
            return self.patterns[node.name]
        parts = [self.written(item) for item in node.items]
        if isinstance(node, Seq):
            signs = [", " if direct else " ; " for direct in node.direct]
        else:
            signs = [" & " if isinstance(node, And) else " | "] * (len(parts) - 1)
        text = parts[0] + "".join(sign + part for sign, part in zip(signs, parts[1:], strict=True))
        return text if outside else f"({text})"


def within_alternative(node: Node, name: str) -> bool:
    """Whether an operand stands inside of an ``|``."""
    if isinstance(node, Primitive):
        return False
    return any(
        isinstance(node, Or) or within_alternative(item, name)
        for item in node.items
        if name in {primitive.name for primitive in primitives(item)}
    )


def named_from(name: str, least: int) -> Callable[[Event], bool]:
    def takes(event: Event) -> bool:
        value = event.column("n")
        return event.name == name and isinstance(value, int) and value >= least

    return takes


def random_subscription(rng: random.Random, most: int = 5, unit: tuple[int, str] = (SECOND, "SEC")) -> Subscription:
    """One to `most` operands with nesting, conditions, joins, partitions and windows; no variable stands once.

    Of six hundred one has time conditions that an oracle meets in more ways than it can try out, and is left out.
    """
    while True:
        made = Growing(rng, unit).subscription(most)
        if ways(made) > _MOST_WAYS:
            continue
        uses = Counter(variable for primitive in made.primitives.values() for _, variable in primitive.joins)
        if all(often > 1 for often in uses.values()):
            return made


def ways(subscription: Subscription) -> int:
    """In how many ways the time conditions can hold, at most: by alternatives, by the later event, by the side."""
    return prod(
        sum(prod(4 if part.sign == "<>" else 2 for part in some) for some in condition.alternatives)
        for condition in subscription.conditions
    )


def random_events(rng: random.Random, longest: int = 12, unit: int = SECOND) -> list[Event]:
    """Events at positions 1, 2, … with ties in time, some of them late, some values NULL."""
    found, time = [], 0
    names = rng.choice(["abcd", "abc", "abc", "ab"])
    for position in range(1, max(rng.randint(1, longest) for _ in range(3)) + 1):
        time += rng.choice([0, 1, 1, 2])
        late = rng.randint(1, 3) if rng.random() < 0.1 else 0
        values: dict[str, Value] = {
            "x": rng.choice([None, 1, 1, 1, 2]),
            "y": rng.choice([None, 1, 1, 1, 2]),
            "n": rng.choice([None, 1, 2, 3, 3]),
        }
        key = rng.choice(["k", "k", "k", "l", None])
        found.append(Event(position, (time - late) * unit, rng.choice(names), key, values))
    return found


def random_case(rng: random.Random, longest: int = 12) -> tuple[Subscription, list[Event]]:
    """A subscription, and the fewer events the more operands it has: an oracle tries all that these could take."""
    subscription = random_subscription(rng)
    return subscription, random_events(rng, min(longest, {4: 9, 5: 7}.get(len(subscription.primitives), longest)))

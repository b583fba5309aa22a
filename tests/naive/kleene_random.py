"""Random patterns and streams for the tests of the kleene engine."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import Any

from naive.kleene import Event

TYPES = {"x": "double", "n": "bigint", "s": "string"}
SIGNS = ["<", "<=", ">", ">=", "=", "<>"]
DEFINED = {"P": "name IN ('A', 'B')", "Q": "x > 1", "R": "name = 'C' OR n = 1"}


def random_events(rng: random.Random, n: int, names: Sequence[str] = "ABC") -> list[Event]:
    """Events with ties in time, some late, some values NULL."""
    found, time = [], 0
    for position in range(1, n + 1):
        time += rng.choice([0, 1, 1, 2])
        late = rng.randint(1, 3) if rng.random() < 0.15 else 0
        values: dict[str, Any] = {
            "x": rng.choice([None, -0.0, 0.0, 1.0, 2.0, 2.5, float("nan")]),
            "n": rng.choice([None, 0, 1, 2, 3]),
            "s": rng.choice([None, "a", "b", "b"]),
        }
        found.append(Event(position, (time - late) * 1000, rng.choice(names), values))
    return found


UNITS = ("EVENTS", "EVENT", "unit")
KEYWORDS = ("A", "network_partition", "where_events")
"""Names that contain keywords of the language."""


class Pattern:
    """A random pattern as text.

    `scan`: without ``&``, for the policies that scan. `aggregated`: how often a condition on an aggregate is drawn,
    where an operand is repeated. `steering`: whether such a condition of a pattern to scan may steer what is taken.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        scan: bool = False,
        most: int = 4,
        names: Sequence[str] = "ABC",
        aggregated: float = 0.2,
        steering: bool = False,
    ) -> None:
        self.rng = rng
        self.taken = names
        self.scan = scan
        self.steering = steering
        self.names: list[str] = []
        self.repeated: dict[str, str] = {}
        self.negated: list[str] = []
        self.defined: set[str] = set()
        self.budget = rng.randint(1, most)
        body = self.sequence(0)
        define = [f"{name} AS {DEFINED[name]}" for name in sorted(self.defined)]
        where = [part for _ in range(rng.choice([0, 1, 1, 2, 3])) if (part := self.conjunct())]
        if rng.random() < 0.15:
            where.append(f"[{rng.choice(['s', 'n'])}]")
        # Drawn apart, so that a seed gives the same pattern with and without.
        own = random.Random(body)
        while own.random() < aggregated and (part := self.aggregate(own)):
            where.insert(own.randint(0, len(where)), part)
        if len(self.names) > 1 and own.random() < 0.4:
            where.insert(own.randint(0, len(where)), self.wide(own))
        text = body
        if define:
            text += " DEFINE " + ", ".join(define)
        if where:
            text += " WHERE " + " AND ".join(where)
        if rng.random() < 0.6 or self.needs_window:
            text += rng.choice(
                [f" WITHIN {rng.randint(2, 7)} {rng.choice(UNITS)}", f" WITHIN {rng.randint(1, 7)} MILLISECOND"]
            )
        self.text = text

    needs_window = False

    def takes(self) -> str:
        if self.rng.random() < 0.15:
            name = self.rng.choice(list(DEFINED))
            self.defined.add(name)
            return name
        return self.rng.choice(self.taken)

    def operand(self) -> str:
        self.budget -= 1
        alias = f"o{len(self.names)}"
        self.names.append(alias)
        form = self.rng.choice(["", "", "", "+", "+", "*", "[2]", "[3]"])
        self.repeated[alias] = form
        return f"{self.takes()}{form} AS {alias}"

    def sequence(self, depth: int) -> str:
        items = [self.item(depth)]
        while self.budget > 0 and self.rng.random() < 0.8:
            if not self.under_and and self.rng.random() < 0.15:
                count = self.rng.choice([1, 1, 2])
                negated = []
                for _ in range(count):
                    alias = f"z{len(self.negated)}"
                    self.negated.append(alias)
                    negated.append(f"{self.takes()} AS {alias}")
                items.append(f"!{negated[0]}" if count == 1 else f"NOT({', '.join(negated)})")
            items.append(self.item(depth))
        return " ; ".join(items)

    under_and = 0

    def item(self, depth: int) -> str:
        kind = self.rng.random()
        if depth < 2 and self.budget > 1 and kind < 0.35:
            if kind < 0.18 and not self.scan:
                self.under_and += 1
                sides = [self.side(depth) for _ in range(2)]
                self.under_and -= 1
                return "(" + " & ".join(sides) + ")"
            return "(" + " | ".join(self.side(depth) for _ in range(2)) + ")"
        return self.operand()

    def side(self, depth: int) -> str:
        if self.budget > 1 and self.rng.random() < 0.4:
            return "(" + self.sequence(depth + 1) + ")"
        return self.operand()

    def conjunct(self) -> str:
        """A conjunct over one, two or three operands, or over neighbours."""
        rng = self.rng
        a, b = rng.choice(self.names), rng.choice(self.names)
        sign, column = rng.choice(SIGNS), rng.choice("xn")
        index = rng.random()
        if index < 0.3:
            own = [name for name in self.names if self.repeated[name]]
            if not own:
                return ""
            name = rng.choice(own)
            plain = [other for other in self.names if not self.repeated[other]]
            if index < 0.05 and plain:
                return f"{name}[i].n >= {name}[i-1].n - {rng.choice(plain)}.n"
            if index < 0.1:
                return f"t({name}[i]) - t({name}[i-1]) < {rng.randint(1, 4)} MILLISECOND"
            if index < 0.13:
                return f"ABS({name}[i].n - {name}[i-1].n) <= 1"
            return f"{name}[i].{column} {sign} {name}[i-1].{column}"
        if index < 0.4:
            return f"{a}.{column} {sign} {rng.randint(0, 2)}"
        if index < 0.5 and self.negated:
            return f"{rng.choice(self.negated)}.{column} {sign} {a}.{column}"
        if index < 0.55 and self.negated:
            return f"{rng.choice(self.negated)}.n + {a}.n > {b}.n"
        if index < 0.65:
            return f"ABS({a}.n - {b}.n) <= 1"
        if index < 0.72:
            c = rng.choice(self.names)
            return f"{a}.n + {b}.n > {c}.n"
        if index < 0.78:
            return f"{a}.s = {b}.s"
        if index < 0.8:
            return "1 < 2"
        return f"{a}.{column} {sign} {b}.{column}"

    def wide(self, rng: random.Random) -> str:
        """A conjunct over three or four operands, or two in an expression that no side of a comparison holds alone."""
        a, b, c, d = (rng.choice(self.names) for _ in range(4))
        sign, column = rng.choice(SIGNS), rng.choice("xn")
        forms = [
            f"{c}.{column} {sign} {a}.{column} + {b}.{column}",
            f"{a}.{column} * {b}.{column} {sign} {c}.{column} - {d}.n",
            f"{a}.n + {b}.n + {c}.n {sign} {d}.{column}",
            f"CONCAT({a}.s, {b}.s) {sign} CONCAT({c}.s, {d}.s)",
            f"({a}.s = {b}.s OR {c}.s IS NULL)",
            f"COALESCE({a}.n, {b}.n, 0) {sign} {c}.n",
            f"NOT ({a}.{column} {sign} {b}.{column} AND {c}.s = {d}.s)",
        ]
        repeated = [name for name in self.names if self.repeated[name]]
        plain = [name for name in self.names if not self.repeated[name]]
        if repeated and plain:
            name, e, f = rng.choice(repeated), rng.choice(plain), rng.choice(plain)
            forms.append(f"{name}[i].n + {name}[i-1].n {sign} {e}.n + {f}.n")
            forms.append(f"CONCAT({name}[i].s, {e}.s) {sign} CONCAT({name}[i-1].s, {f}.s)")
        return rng.choice(forms)

    def aggregate(self, rng: random.Random) -> str:
        """A conjunct over aggregates, perhaps beside a plain operand; nothing where no operand is repeated."""
        repeated = [name for name in self.names if self.repeated[name]]
        if not repeated:
            return ""
        name, other = rng.choice(repeated), rng.choice(repeated)
        plain = [each for each in self.names if not self.repeated[each]]
        sign, column = rng.choice(SIGNS), rng.choice("xn")
        function = rng.choice(["COUNT", "COUNT", "SUM", "SUM", "MIN", "MAX", "AVG", "FIRST", "LAST"])
        one = f"{function}({name}.{column})"
        kind = rng.random()
        if kind < 0.35:
            return f"{one} {sign} {rng.randint(0, 4)}"
        if kind < 0.45 and plain and (self.steering or not self.scan):
            return f"{one} {sign} 2 * {rng.choice(plain)}.n"
        if kind < 0.6:
            return f"{one} {sign} {rng.choice(['COUNT', 'MAX', 'LAST'])}({other}.n)"
        if kind < 0.7:
            return f"{rng.choice(['MIN', 'MAX', 'FIRST', 'LAST'])}({name}.s) {sign} 'b'"
        if kind < 0.8:
            return f"MAX(t({name})) - MIN(t({name})) {sign} 2 MILLISECOND"
        if kind < 0.9:
            return f"SUM({name}.n * {name}.n + 1) {sign} 4"
        return f"(COUNT({name}.{column}) {sign} 1 OR {one} IS NULL)"


FORMS = {
    "directly": "','",
    "optional": "'?'",
    "bounded": "'{n,m}'",
    "until": "UNTIL",
    "some_of": "n OF",
    "absence": "'!' first, last, beside '&', of groups, behind ','",
    "deadline": "'@' on what is negated",
    "conjunction": "'&' under policies that scan; skip_till_any always has it",
    "group": "groups under a repetition; under skip_till_any with 'all'",
    "steering": "conditions over what is collected",
    "all": "repetition => 'all'",
    "after_match": "after_match => 'first b', 'last b'",
}
"""What `Language` may draw besides what `Pattern` draws."""


class Language(Pattern):
    """A random pattern of the whole language, and how it is asked.

    `forms`: some of `FORMS`, which the pattern may have.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        policy: str,
        forms: Collection[str],
        most: int = 4,
        names: Sequence[str] = "ABC",
        aggregated: float = 0.2,
    ) -> None:
        assert set(forms) <= FORMS.keys(), forms
        self.policy = policy
        self.forms = forms
        self.repetition = "all" if "all" in forms and rng.random() < 0.5 else "maximal"
        self.grouped = 0
        scan = policy != "skip_till_any"
        super().__init__(rng, scan=scan, most=most, names=names, aggregated=aggregated, steering="steering" in forms)
        own = random.Random(self.text)
        self.after_match = "next" if policy == "skip_till_any" else own.choice(["next", "past_last"])
        if "after_match" in forms and scan and self.repetition == "maximal" and own.random() < 0.7:
            self.after_match = f"{own.choice(['first', 'last'])} {own.choice(self.names)}"

    def draws(self, form: str, chance: float) -> bool:
        return form in self.forms and self.rng.random() < chance

    def operand(self) -> str:
        self.budget -= 1
        alias = f"o{len(self.names)}"
        self.names.append(alias)
        form = self.rng.choice(["", "", "", "+", "+", "*", "[2]"])
        if self.draws("optional", 0.3):
            form = "?"
        elif self.draws("bounded", 0.3):
            form = self.rng.choice(["{1,2}", "{2,3}", "{2,}", "{,2}", "{0,1}", "{2}", "{1,}", "{,1}"])
        text = f"{self.takes()}{form} AS {alias}"
        if form not in ("", "?", "{0,1}", "{,1}") and self.draws("until", 0.4):
            ends = " | ".join(self.takes() for _ in range(self.rng.choice([1, 1, 2])))
            text += f" UNTIL ({ends})"
        # Conditions with [i] and aggregates are of what may take more than one event.
        self.repeated[alias] = "" if form in ("?", "{0,1}", "{,1}") else form
        if not self.repeated[alias] and self.grouped:
            self.in_groups.append(alias)
        return text

    @property
    def in_groups(self) -> list[str]:
        """Operands that take one event in each round of a repeated group."""
        return self.__dict__.setdefault("grouped_names", [])

    def group_may_repeat(self) -> bool:
        allowed = self.repetition == "all" if self.policy == "skip_till_any" else not self.under_and
        return "group" in self.forms and allowed and not self.grouped

    def sequence(self, depth: int) -> str:
        text = ""
        negates = not self.under_and and not self.grouped
        absent = negates and "absence" in self.forms
        if absent and depth == 0 and self.rng.random() < 0.15:
            text = self.absence("first") + " ; "
        text += self.item(depth)
        while self.budget > 0 and self.rng.random() < 0.8:
            sign = ";"
            if absent and self.rng.random() < 0.25:
                sign = (
                    self.rng.choice([";", ";", ";", ","])
                    if "directly" in self.forms or self.rng.random() < 0.5
                    else ";"
                )
                text += f" {sign} {self.absence('directly' if sign == ',' else 'middle')}"
                sign = ";"
            elif negates and not absent and self.rng.random() < 0.1:
                text += f" ; {self.plain_absence()}"
            elif self.draws("directly", 0.4):
                sign = ","
            text += f" {sign} {self.item(depth)}"
        if absent and depth == 0 and self.rng.random() < 0.3:
            text += f" ; {self.absence('last')}"
        return text

    def plain_absence(self) -> str:
        return f"!{self.negative()}"

    def negative(self) -> str:
        """A negated operand with its alias."""
        alias = f"z{len(self.negated)}"
        self.negated.append(alias)
        return f"{self.takes()} AS {alias}"

    def absence(self, place: str) -> str:
        """A negation; `place` is first, last, middle, beside or directly."""
        kind = self.rng.random()
        positive = [name for name in self.names if name not in self.in_groups]
        if kind < 0.25 and place != "directly":
            sign = self.rng.choice([";", "&", "|", ","] if "directly" in self.forms else [";", "&", "|"])
            text = f"!({self.negative()} {sign} {self.negative()})"
        elif kind < 0.35:
            text = f"NOT({self.negative()}, {self.negative()})"
        else:
            text = f"!{self.negative()}"
            limit = self.rng.randint(1, 5)
            sign = self.rng.choice(["<", "<="])
            if "deadline" in self.forms and positive and place in ("last", "middle", "directly") and kind < 0.7:
                other = self.rng.choice(positive)
                text += f" @(t({self.negated[-1]}) - t({other}) {sign} {limit} MILLISECOND)"
                if place == "last":
                    return text
            elif "deadline" in self.forms and place == "first" and kind < 0.7:
                # The operand that comes next in the text; whatever it is, it comes behind this.
                text += f" @(t(o{len(self.names)}) - t({self.negated[-1]}) {sign} {limit} MILLISECOND)"
                return text
        self.needs_window |= place in ("first", "last", "beside")
        return text

    def item(self, depth: int) -> str:
        kind = self.rng.random()
        if depth < 2 and self.budget > 1 and kind < 0.45:
            if kind < 0.12 and self.group_may_repeat():
                self.grouped += 1
                text = f"({self.sequence(depth + 1)}){self.rng.choice(['+', '*', '{2}', '{1,2}', '?', '{2,}'])}"
                self.grouped -= 1
                return text
            if kind < 0.2 and "some_of" in self.forms and not self.grouped:
                self.under_and += 1
                sides = [self.side(depth) for _ in range(self.rng.choice([2, 2, 3]))]
                self.under_and -= 1
                return f"{self.rng.randint(1, len(sides))} OF ({', '.join(sides)})"
            if kind < 0.32 and (not self.scan or "conjunction" in self.forms):
                self.under_and += 1
                sides = [self.side(depth) for _ in range(2)]
                self.under_and -= 1
                if "absence" in self.forms and not self.under_and and not self.grouped and self.rng.random() < 0.3:
                    sides.insert(self.rng.randint(1, 2), self.absence("beside"))
                return "(" + " & ".join(sides) + ")"
            return "(" + " | ".join(self.side(depth) for _ in range(2)) + ")"
        return self.operand()

    def conjunct(self) -> str:
        """As of `Pattern`, or a condition that steers."""
        if self.draws("steering", 0.3):
            return self.steer()
        return super().conjunct()

    def steer(self) -> str:
        rng = self.rng
        repeated = [name for name in self.names if self.repeated[name]]
        if not repeated:
            return super().conjunct()
        b, other = rng.choice(repeated), rng.choice(self.names)
        sign, column = rng.choice(SIGNS), rng.choice("xn")
        function = rng.choice(["COUNT", "SUM", "MIN", "MAX", "AVG", "FIRST", "LAST"])
        at = f"{other}[i]" if self.repeated[other] else other
        return rng.choice(
            [
                f"{at}.{column} {sign} {function}({b}.{column})",
                f"{b}[i].{column} {sign} {function}({b}.{column})",
                f"COALESCE(SUM({b}.n), 0) + {b}[i].n {sign} {rng.randint(1, 6)}",
                f"{at}.{column} {sign} {b}[last].{column}",
                f"{at}.{column} {sign} {b}[{rng.randint(1, 3)}].{column}",
                f"COUNT(DISTINCT {b}.{column}) {sign} {rng.randint(1, 3)}",
                f"{at}.n {sign} COUNT(DISTINCT {b}.{column})",
            ]
        )


def random_plan(rng: random.Random, names: Sequence[str]) -> str:
    """A tree over operands in any order."""
    if len(names) == 1:
        return names[0]
    if rng.random() < 0.3:
        names = rng.sample(list(names), len(names))
    cut = rng.randint(1, len(names) - 1)
    return f"({random_plan(rng, names[:cut])} {random_plan(rng, names[cut:])})"


def random_runs(rng: random.Random) -> str:
    """A pattern in which ``+`` and ``*`` operands stand next to each other and one event suits several of them."""
    numbers = iter(range(9))
    chains: list[str] = []
    taken = ["P", "P", "Q", "R", *"AB"]

    def operand(form: str) -> str:
        name = f"o{next(numbers)}"
        if form and rng.random() < 0.25:
            column = rng.choice("xn")
            chains.append(f"{name}[i].{column} {rng.choice(SIGNS)} {name}[i-1].{column}")
        return f"{rng.choice(taken)}{form} AS {name}"

    def line(most: int) -> str:
        forms = [rng.choice(["+", "*", "+", "*", ""]) for _ in range(rng.randint(2, most))]
        if rng.random() < 0.1:
            forms.insert(rng.randint(0, len(forms)), "[2]")
        return " ; ".join(operand(form) for form in forms)

    kind = rng.random()
    if kind < 0.15:
        text = f"({line(3)}) | ({line(3)})"
    elif kind < 0.25:
        text = f"({operand('+')} & {operand(rng.choice('+*'))}) ; {line(2)}"
    else:
        text = line(5)
    text += " DEFINE " + ", ".join(f"{name} AS {predicate}" for name, predicate in DEFINED.items())
    if chains:
        text += " WHERE " + " AND ".join(chains)
    if rng.random() < 0.6:
        text += rng.choice([f" WITHIN {rng.randint(2, 7)} EVENTS", f" WITHIN {rng.randint(1, 7)} MILLISECOND"])
    return text

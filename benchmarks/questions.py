"""The questions asked of the sketch, each with the best exact SQL over `events` that we know, for Spark and for DuckDB.

One axis at a time differs from the default question: SEQ of three rare names, `skip_till_next`, the whole stream, all
starts (`after_match => 'next'`; `past_last` is an axis, because it is no window function but a fold). The exact SQL
filters on names first. Then one window function per operand carries the nearest next event backwards through the
stream: its frame ends one row before, in descending order, which Spark evaluates in one pass (a frame from the next
row to the end takes quadratic time).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from benchmarks.events import RARE, frequent, middling

STREAM = "bench"

_NEAREST = {
    "spark": "last({value}, true) OVER w",
    "duckdb": "last_value({value} IGNORE NULLS) OVER w",
}


@dataclass(frozen=True)
class Step:
    """One operand: a name, one of several (`any`), or several in any order (`all`); `without` must not come before."""

    names: tuple[str, ...]
    kind: str = "one"
    without: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As the pattern language has it."""
        joined = {"one": "", "any": " | ", "all": " & "}[self.kind].join(self.names)
        text = joined if len(self.names) == 1 else f"({joined})"
        return "".join(f"!{name} ; " for name in self.without) + text

    @property
    def slots(self) -> int:
        """Steps of a match that it gives."""
        return len(self.names) if self.kind == "all" else 1


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes
    ----------
    axis, label
        What differs from the default question, and how the tables call it.
    steps
        The operands.
    policy, after_match
        As for `match_seq`.
    share
        From and to position as shares of the stream, or None for all of it.
    keyed
        Asked of one key.
    """

    axis: str
    label: str
    steps: tuple[Step, ...]
    policy: str = "skip_till_next"
    after_match: str = "next"
    share: tuple[float, float] | None = None
    keyed: bool = False

    @property
    def pattern(self) -> str:
        """Text in the pattern language."""
        return " ; ".join(step.text for step in self.steps)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that an exact answer has to look at."""
        return tuple(dict.fromkeys(name for step in self.steps for name in (*step.names, *step.without)))

    @property
    def slots(self) -> int:
        """Steps of each match."""
        return sum(step.slots for step in self.steps)

    def bounds(self, events: int) -> tuple[int, int] | None:
        """First and last position asked for, inclusive."""
        if self.share is None:
            return None
        return int(self.share[0] * events) + 1, int(self.share[1] * events)

    def sketch_sql(self, events: int, key: str | None, *, verify: bool) -> str:
        """A query of `match_seq`'s rows: columns p1, p2, …, where each step begins."""
        arguments = [f"'{STREAM}'", f"'{self.pattern}'", f"policy => '{self.policy}'"]
        arguments += [f"after_match => '{self.after_match}'", "max_matches => 1000000000"]
        if self.keyed:
            arguments.append(f"key => '{key}'")
        bounds = self.bounds(events)
        if bounds is not None:
            arguments += [f"from_position => {bounds[0]}", f"to_position => {bounds[1]}"]
        if not verify:
            arguments.append("verify => false")
        columns = ", ".join(f"steps[{slot}].from_position AS p{slot + 1}" for slot in range(self.slots))
        return f"SELECT {columns} FROM match_seq({', '.join(arguments)})"

    def exact_sql(self, table: str, where: str, events: int, key: str | None, dialect: str) -> str | None:
        """The exact answer in SQL, with the same columns; None where a dialect has no good way to say it.

        Parameters
        ----------
        table
            Name of the events table.
        where
            What selects the stream's rows, or an empty text.
        dialect
            ``spark`` or ``duckdb``.
        """
        conditions = [where] if where else []
        conditions.append(f"name IN ({', '.join(map(_quote, self.names))})")
        if self.keyed:
            conditions.append(f"key = '{key}'")
        bounds = self.bounds(events)
        if bounds is not None:
            conditions.append(f"position BETWEEN {bounds[0]} AND {bounds[1]}")
        filtered = f"SELECT position, name FROM {table} WHERE {' AND '.join(conditions)}"
        if self.policy == "strict":
            return self._adjacent(filtered)
        if self.policy == "skip_till_any":
            return self._all_pairs(filtered, dialect)
        if self.after_match == "past_last":
            return self._folded(self._nearest(filtered, dialect)) if dialect == "spark" else None
        return self._first_way(filtered, dialect)

    def _first_way(self, filtered: str, dialect: str) -> str:
        """Of each start the first way in the order of the text that gives a match."""
        choices = [[replace(step, names=(one,), kind="one") for one in step.names] for step in self.steps]
        ways = [
            replace(self, steps=steps)
            for steps in product(*(c if s.kind == "any" else [s] for s, c in zip(self.steps, choices, strict=True)))
        ]
        if len(ways) == 1:
            return self._nearest(filtered, dialect)
        found = "\nUNION ALL\n".join(
            f"SELECT *, {number} AS way FROM ({way._nearest(filtered, dialect)})" for number, way in enumerate(ways)
        )
        columns = ", ".join(f"p{slot + 1}" for slot in range(self.slots))
        ranked = f"SELECT *, row_number() OVER (PARTITION BY p1 ORDER BY way) AS rank FROM ({found})"
        return f"SELECT {columns} FROM ({ranked}) WHERE rank = 1"

    def _nearest(self, filtered: str, dialect: str) -> str:
        """One nested query per operand, from the last one to the second; 0 marks a dead end."""

        def nearest(value: str) -> str:
            return _NEAREST[dialect].format(value=value)

        inner = filtered
        carried: list[str] = []
        slot = self.slots
        for index in range(len(self.steps) - 1, 0, -1):
            step = self.steps[index]
            if step.kind == "all":
                if index != len(self.steps) - 1:
                    raise ValueError(f"{self.pattern}: the exact SQL has AND at the end only")
                slot -= step.slots - 1
                fresh = {f"p{slot + place}": nearest(_when([name])) for place, name in enumerate(step.names)}
            else:
                fresh = {f"p{slot}": nearest(_when(step.names))}
            expressions = fresh | {column: nearest(_when(step.names, f"coalesce({column}, 0)")) for column in carried}
            if step.without:
                expressions["barrier"] = nearest(_when(step.without))
            columns = ", ".join(f"{text} AS {column}" for column, text in expressions.items())
            inner = (
                f"SELECT position, name, {columns}\nFROM ({inner})\n"
                "WINDOW w AS (ORDER BY position DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
            )
            carried = [*fresh, *carried]
            if step.without:
                kept = f"CASE WHEN coalesce(barrier, p{slot} + 1) < p{slot} THEN 0 ELSE p{slot} END AS p{slot}"
                others = [column for column in carried if column != f"p{slot}"]
                inner = f"SELECT {', '.join(['position', 'name', kept, *others])} FROM ({inner})"
            slot -= 1
        alive = " AND ".join(f"{column} > 0" for column in carried)
        return (
            f"SELECT {', '.join(['position AS p1', *carried])}\nFROM ({inner})\n"
            f"WHERE {_is(self.steps[0].names)} AND {alive}"
        )

    def _adjacent(self, filtered: str) -> str:
        """`strict`: the rows that follow have the names, and positions without a hole."""
        later = range(1, len(self.steps))
        columns = ", ".join(
            f"lead(position, {n}) OVER w AS p{n + 1}, lead(name, {n}) OVER w AS n{n + 1}" for n in later
        )
        inner = f"SELECT position AS p1, name, {columns}\nFROM ({filtered})\nWINDOW w AS (ORDER BY position)"
        follow = " AND ".join(f"{_is(self.steps[n].names, f'n{n + 1}')} AND p{n + 1} = p1 + {n}" for n in later)
        return (
            f"SELECT {', '.join(f'p{n + 1}' for n in range(len(self.steps)))}\nFROM ({inner})\n"
            f"WHERE {_is(self.steps[0].names)} AND {follow}"
        )

    def _all_pairs(self, filtered: str, dialect: str) -> str:
        """`skip_till_any`: one scan gathers the positions by operand, then all rising tuples."""
        columns = ", ".join(f"p{n + 1}" for n in range(len(self.steps)))
        if dialect == "spark":
            lists = ", ".join(
                f"collect_list({_when(step.names)}) AS l{number}" for number, step in enumerate(self.steps, start=1)
            )
            text = f"SELECT {columns}\nFROM (SELECT {lists} FROM ({filtered}))\nLATERAL VIEW explode(l1) AS p1"
            for number in range(2, len(self.steps) + 1):
                text += f"\nLATERAL VIEW explode(filter(l{number}, x -> x > p{number - 1})) AS p{number}"
            return text
        joins = "e AS e1" + "".join(
            f" JOIN e AS e{n} ON e{n}.position > e{n - 1}.position" for n in range(2, len(self.steps) + 1)
        )
        where = " AND ".join(_is(step.names, f"e{n}.name") for n, step in enumerate(self.steps, start=1))
        chosen = ", ".join(f"e{n + 1}.position AS p{n + 1}" for n in range(len(self.steps)))
        return f"WITH e AS MATERIALIZED ({filtered})\nSELECT {chosen}\nFROM {joins}\nWHERE {where}"

    def _folded(self, matches: str) -> str:
        """`past_last`: of the matches of all starts, in order, those that begin after the last one kept."""
        columns = [f"p{slot}" for slot in range(1, self.slots + 1)]
        row = f"struct({', '.join(columns)})"
        empty = f"named_struct('last', 0L, 'kept', array_remove(array({_zeros(columns)}), {_zeros(columns)}))"
        kept = f"named_struct('last', m.{columns[-1]}, 'kept', a.kept || array(m))"
        return (
            f"SELECT inline(aggregate(array_sort(collect_list({row})), {empty},\n"
            f"  (a, m) -> IF(m.p1 > a.last, {kept}, a)).kept)\nFROM ({matches})"
        )


def _quote(name: str) -> str:
    return f"'{name}'"


def _is(names: tuple[str, ...] | list[str], column: str = "name") -> str:
    if len(names) == 1:
        return f"{column} = '{names[0]}'"
    return f"{column} IN ({', '.join(map(_quote, names))})"


def _when(names: tuple[str, ...] | list[str], value: str = "position") -> str:
    return f"CASE WHEN {_is(names)} THEN {value} END"


def _zeros(columns: list[str]) -> str:
    return f"named_struct({', '.join(f'{_quote(column)}, 0L' for column in columns)})"


def _seq(names: tuple[str, ...]) -> tuple[Step, ...]:
    return tuple(Step((name,)) for name in names)


DEFAULT = Question("default", "SEQ 3, rare", _seq(RARE[:3]))


def questions() -> Iterator[Question]:
    """All questions of the benchmark at 1 and 10 million events; keyed ones last."""
    a, b, c, d = RARE[:4]
    yield DEFAULT
    yield Question("operator", "OR", (Step((a,)), Step((b, d), "any"), Step((c,))))
    yield Question("operator", "AND", (Step((a,)), Step((b, c), "all")))
    yield Question("operator", "NOT", (Step((a,)), Step((c,), without=(b,))))
    for length in (2, 4, 5, 6):
        yield Question("length", f"SEQ {length}, rare", _seq(RARE[:length]))
    yield Question("policy", "strict", _seq(RARE[:3]), policy="strict")
    yield Question("policy", "skip_till_any", _seq(RARE[:3]), policy="skip_till_any")
    yield Question("policy", "past_last", _seq(RARE[:3]), after_match="past_last")
    yield Question("names", "SEQ 3, middling", _seq(middling(3)))
    yield Question("names", "SEQ 3, frequent", _seq(frequent(3)))
    yield Question("window", "a tenth of the stream, rare", _seq(RARE[:3]), share=(0.4, 0.5))
    yield Question("window", "a tenth of the stream, frequent", _seq(frequent(3)), share=(0.4, 0.5))
    yield ONE_KEY


ONE_KEY = Question("key", "one key of 100,000, frequent", _seq(frequent(3)), keyed=True)


def large_questions() -> Iterator[Question]:
    """The few questions that are asked of a hundred million events."""
    for length in (2, 4):
        yield Question("length", f"SEQ {length}, rare", _seq(RARE[:length]))
    for length in (2, 4):
        yield Question("names", f"SEQ {length}, frequent", _seq(frequent(length)))
    yield ONE_KEY

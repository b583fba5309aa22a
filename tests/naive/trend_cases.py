"""Random trend queries and streams, and their way into the kernels."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from naive import trends as naive

from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.trends.kernels.extraction import Batch
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.kernels.vertices import Vertices, vertices_of
from patternlake.udfs.trends.query import TrendQuery, compile_query

ATTRIBUTES = {"x": "double", "y": "double", "n": "bigint", "s": "string", "u": "string"}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Rows = dict[naive.Cell, list[tuple[int, ...]]]


def compiled(text: str, parameters: dict[str, str | None] | None = None) -> TrendQuery:
    return compile_query(parse(text), Scope(attributes=ATTRIBUTES, parameters=parameters or {}, key="carrier"))


def keys_of(events: Sequence[naive.Event]) -> list[str | None]:
    """The partitions, NULL first: what codes stand for."""
    return sorted({event.key for event in events}, key=lambda key: (key is not None, key or ""))


def events_of(events: Sequence[naive.Event], *, partitioned: bool) -> Events:
    keys = keys_of(events)
    words = sorted({event.name for event in events})

    def column(name: str, type_: str) -> Column:
        given = [event.values.get(name) for event in events]
        dtype: Any = object if type_ == "string" else np.int64 if type_ == "bigint" else np.float64
        values = np.array([("" if type_ == "string" else 0) if value is None else value for value in given], dtype)
        return Column(values, np.array([value is not None for value in given], np.bool_), type_)

    return Events(
        positions=np.array([event.position for event in events], np.int64),
        times=np.array([event.time for event in events], np.int64),
        keys=np.array([keys.index(event.key) if partitioned else 0 for event in events], np.int64),
        names=np.array([words.index(event.name) for event in events], np.int64),
        vocabulary=words,
        columns={name: column(name, type_) for name, type_ in ATTRIBUTES.items()},
    )


def vertices(query: naive.Query, events: Sequence[naive.Event]) -> tuple[TrendQuery, Vertices]:
    question = compiled(query.text())
    return question, vertices_of(question, events_of(events, partitioned=query.partitioned))


def cells_of(query: naive.Query, events: Sequence[naive.Event], trends: Trends) -> list[naive.Cell]:
    """The cells as the oracle calls them."""
    keys = keys_of(events)
    pairs = zip(trends.cells.key.tolist(), trends.cells.window.tolist(), strict=True)
    return [
        (keys[key] if query.partitioned else None, window if query.within is not None else None)
        for key, window in pairs
    ]


def rows_of(trends: Trends, batches: Sequence[Batch]) -> list[tuple[int, tuple[int, ...]]]:
    """Cell and positions of each trend, in order."""
    return [
        (int(cell), tuple(trends.cells.position[batch.row[begin:end]].tolist()))
        for batch in batches
        for cell, begin, end in zip(batch.cell, batch.offsets[:-1], batch.offsets[1:], strict=True)
    ]


def known(test: Callable[[Any, Any], bool], *values: Any) -> bool:
    """A comparison in which NULL never holds."""
    return None not in values and test(*values)


def random_events(
    rng: random.Random, n: int, *, names: str = "AB", keys: Sequence[str | None] = ("k", "l", None)
) -> list[naive.Event]:
    """Events at positions 1, 2, …, with ties in time, NULLs, and some of them late."""
    found, time = [], rng.randint(-5, 5)
    for position in range(1, n + 1):
        time += rng.choice([0, 1, 1, 2])
        late = rng.randint(1, 4) if rng.random() < 0.15 else 0
        values: dict[str, naive.Value] = {
            "x": rng.choice([None, -0.0, 0.0, 1.5, 2.0, 3.0, 4.5, 7.0]),
            "y": float(rng.randint(0, 5)),
            "n": rng.choice([None, 0, 1, 2, 3, 4]),
            "s": rng.choice([None, "a", "b", "c"]),
            "u": rng.choice(["a", "b", "c"]),
        }
        found.append(naive.Event(position, (time - late) * 1000, rng.choice(names), rng.choice(keys), values))
    return found


def random_query(
    rng: random.Random, *, names: str = "AB", partitioned: bool | None = None, window: bool | None = None
) -> naive.Query:
    size = rng.choice([1, 1, 1, 2, 2, 2, 3, 3, 4])
    # Of one name, an event fits several neighbouring terms where filters let it; fewer conditions leave more trends.
    same = size > 1 and rng.random() < 0.5
    names = rng.choice(names) if same else names
    terms = tuple(naive.Term(rng.choice(names), f"e{at}", rng.random() < 0.6) for at in range(size))
    filters = [random_filter(rng, terms, at) for at in range(size) if rng.random() < 0.25]
    steps = []
    places = [(at, at) for at in range(size) if terms[at].plus] + [(at, at + 1) for at in range(size - 1)]
    for source, target in places:
        for _ in range(rng.choice([0, 0, 0, 1] if same else [0, 1, 1, 2, 3])):
            steps.append(random_step(rng, terms, source, target))
    if rng.random() < 0.25:
        steps.append(equal_along(rng.choice("su")))
    # A remainder needs something beside it, and not every gap between times is enough.
    indexed = {(step.source, step.target) for step in steps if not step.text.startswith("t(")}
    if rng.random() < 0.2 and (place := rng.choice(places or [None])) in indexed:
        steps.append(random_remainder(rng, terms, *place))
    within = slide = None
    counted = rng.random() < 0.4
    if window if window is not None else rng.random() < 0.6:
        unit = 1 if counted else 1000
        within = rng.randint(2, 16) * unit
        slide = rng.choice([None, rng.randint(2, 9) * unit])
    return naive.Query(
        terms,
        tuple(filters),
        tuple(steps),
        rng.random() < 0.4 if partitioned is None else partitioned,
        within,
        slide,
        counted and within is not None,
    )


def random_filter(rng: random.Random, terms: Sequence[naive.Term], at: int) -> naive.Filter:
    """A comparison of an event of one term with a constant."""
    index = rng.choice(["", "[i]"]) if terms[at].plus else ""
    column, sign, value = rng.choice("xyn"), rng.choice(["<", "<=", ">", ">=", "<>"]), rng.randint(1, 4)
    test = COMPARE[sign]
    return naive.Filter(at, lambda e: known(test, e.values[column], value), f"e{at}{index}.{column} {sign} {value}")


def equal_along(name: str) -> naive.Step:
    return naive.Step(None, None, lambda p, e: known(operator.eq, p.values[name], e.values[name]), f"[{name}]")


def operands(terms: Sequence[naive.Term], source: int, target: int) -> tuple[str, str]:
    """How a predicate calls the earlier and the later event."""
    earlier = f"e{source}[i-1]" if terms[source].plus else f"e{source}"
    return earlier, f"e{target}[i]" if terms[target].plus else f"e{target}"


def random_step(rng: random.Random, terms: Sequence[naive.Term], source: int, target: int) -> naive.Step:
    earlier, later = operands(terms, source, target)
    sign = rng.choice(list(COMPARE))
    test = COMPARE[sign]
    if rng.random() < 0.15:
        return random_choice(rng, terms, source, target)
    kind = rng.random()
    if kind < 0.2:
        gap = rng.randint(1, 9) * 1000
        sign = rng.choice(["<", "<=", ">", ">=", "<>", "="])
        if rng.random() < 0.5:
            text = f"t({later}) - t({earlier}) {sign} {gap // 1000} MILLISECOND"
            return naive.Step(source, target, lambda p, e: COMPARE[sign](e.time - p.time, gap), text)
        text = f"t({earlier}) + {gap // 1000} MILLISECOND {sign} t({later})"
        return naive.Step(source, target, lambda p, e: COMPARE[sign](p.time + gap, e.time), text)
    if kind < 0.35:
        text = f"{later}.s {sign} {earlier}.u"
        return naive.Step(source, target, lambda p, e: known(test, e.values["s"], p.values["u"]), text)
    if kind < 0.5:
        text = f"{earlier}.y + 1 {sign} {later}.n"
        return naive.Step(
            source, target, lambda p, e: known(lambda a, b: test(a + 1, b), p.values["y"], e.values["n"]), text
        )
    if kind < 0.6 and source == target:
        text = f"{earlier}.y > 1"
        return naive.Step(source, target, lambda p, e: known(operator.gt, p.values["y"], 1), text)
    factor = rng.choice([0.5, 1.0, 1.3, 2.0])
    text = f"{later}.x {sign} {earlier}.x * {factor}"
    return naive.Step(
        source, target, lambda p, e: known(lambda a, b: test(a, b * factor), e.values["x"], p.values["x"]), text
    )


def random_choice(rng: random.Random, terms: Sequence[naive.Term], source: int, target: int) -> naive.Step:
    """A condition over both events or another one, over both or over one of them."""
    earlier, later = operands(terms, source, target)
    one = random_step(rng, terms, source, target)
    if rng.random() < 0.4:
        limit, of_earlier = rng.randint(1, 4), rng.random() < 0.5
        text = f"{earlier if of_earlier else later}.n >= {limit}"
        other = naive.Step(
            source, target, lambda p, e: known(operator.ge, (p if of_earlier else e).values["n"], limit), text
        )
    else:
        other = random_step(rng, terms, source, target)
    arms = [one, other] if rng.random() < 0.5 else [other, one]
    text = f"({arms[0].text} OR {arms[1].text})"
    return naive.Step(source, target, lambda p, e: one.holds(p, e) or other.holds(p, e), text)


def random_remainder(rng: random.Random, terms: Sequence[naive.Term], source: int, target: int) -> naive.Step:
    earlier, later = operands(terms, source, target)
    limit = rng.randint(1, 4)
    text = f"ABS({later}.y - {earlier}.y) < {limit}"
    return naive.Step(
        source, target, lambda p, e: known(lambda a, b: abs(a - b) < limit, e.values["y"], p.values["y"]), text
    )

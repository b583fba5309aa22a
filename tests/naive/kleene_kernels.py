"""The way of an oracle's events into the kernels, and of answers back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from naive.kleene import EPOCH, Event, Row

from patternlake.udfs.arrays import expanded
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.finality import Moment, final
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.kernels.matching import match_events, observed
from patternlake.udfs.kleene.plans.trees import Plan, forced_plan
from patternlake.udfs.kleene.query import KleenePattern, compile_pattern
from patternlake.udfs.kleene.work import MATCHES, Work
from patternlake.udfs.language.predicate.aggregates import aggregated
from patternlake.udfs.language.predicate.columns import Column, value_type
from patternlake.udfs.language.predicate.expressions import Aggregate
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse

Keyed = tuple[int, Row]


def compiled(
    text: str,
    types: Mapping[str, str],
    *,
    policy: str = "skip_till_any",
    repetition: str = "maximal",
    parameters: Mapping[str, str] | None = None,
) -> KleenePattern:
    scope = Scope(attributes=types, parameters=parameters or {})
    return compile_pattern(parse(text), scope, policy=policy, repetition=repetition)


def column(values: Sequence[Any], spark_type: str) -> Column:
    type_ = value_type(spark_type) or ""
    dtype: Any = {"string": object, "double": np.float64, "boolean": np.bool_}.get(type_, np.int64)
    filler: Any = "" if type_ == "string" else 0
    stored = [(v - EPOCH) // dt.timedelta(microseconds=1) if isinstance(v, dt.datetime) else v for v in values]
    filled = np.array([filler if value is None else value for value in stored], dtype)
    return Column(filled, np.array([value is not None for value in stored], np.bool_), type_)


def events_of(
    streams: Sequence[Sequence[Event]], types: Mapping[str, str], only: frozenset[str] | None = None
) -> Events:
    """The streams as partitions 0, 1, …; with `only`, events of these names alone, with their ordinals."""
    rows = [
        (key, number, event)
        for key, stream in enumerate(streams)
        for number, event in enumerate(sorted(stream, key=lambda event: (event.time, event.position)))
        if only is None or event.name in only
    ]
    words = sorted({event.name for _, _, event in rows})
    return Events(
        keys=np.array([key for key, _, _ in rows], np.int64),
        times=np.array([event.time for _, _, event in rows], np.int64),
        positions=np.array([event.position for _, _, event in rows], np.int64),
        names=np.array([words.index(event.name) for _, _, event in rows], np.int64),
        vocabulary=words,
        columns={
            name: column([event.values.get(name) for _, _, event in rows], type_) for name, type_ in types.items()
        },
        ordinals=np.array([number for _, number, _ in rows], np.int64),
    )


def rows_of(matches: Matches) -> list[Keyed]:
    """The rows as the oracle gives them, with their key."""
    width = len(matches.operands)
    found: list[Keyed] = []
    for row, key in enumerate(matches.key.tolist()):
        bound: Row = {}
        for place, name in enumerate(matches.operands):
            low, high = matches.offsets[row * width + place], matches.offsets[row * width + place + 1]
            if high > low:
                bound[name] = tuple(matches.positions[low:high].tolist())
        found.append((key, bound))
    return found


def answered(
    text: str,
    streams: Sequence[Sequence[Event]],
    types: Mapping[str, str],
    *,
    policy: str = "skip_till_any",
    after_match: str = "next",
    repetition: str = "maximal",
    plan: str | None = None,
    **asked: Any,
) -> list[Keyed]:
    pattern = compiled(text, types, policy=policy, repetition=repetition)
    tree = None if plan is None else forced_plan(pattern, plan)
    events = events_of(streams, types, pattern.names)
    return rows_of(match_events(pattern, events, policy=policy, after_match=after_match, plan=tree, **asked))


def count_matches(pattern: KleenePattern, events: Events, plan: Plan | None = None) -> int:
    """How many matches a run counts that lists no combinations of ``[n]``."""
    return observed(pattern, events, plan=plan).done[MATCHES].rows


def rows_of_nodes(work: Work) -> dict[tuple[str | int, ...], int]:
    """Partial matches by the operands of a node, of all linearizations together."""
    found: dict[tuple[str | int, ...], int] = {}
    for (first, *operands), one in work.done.items():
        if isinstance(first, int):
            node = tuple(operands)
            found[node] = found.get(node, 0) + one.rows
    return found


def final_rows(
    text: str,
    stream: Sequence[Event],
    watermark: int,
    types: Mapping[str, str],
    *,
    policy: str = "skip_till_any",
    after_match: str = "next",
    repetition: str = "maximal",
    **asked: Any,
) -> tuple[list[Row], list[Row]]:
    """All rows, and those that are final at a watermark."""
    pattern = compiled(text, types, policy=policy, repetition=repetition)
    events = events_of([stream], types)
    found = match_events(pattern, events, policy=policy, after_match=after_match, **asked)
    sure = final(pattern, found, events, Moment(watermark), policy=policy, after_match=after_match)
    rows = [row for _, row in rows_of(found)]
    return rows, [row for row, is_sure in zip(rows, sure.tolist(), strict=True) if is_sure]


def values_of(pattern: KleenePattern, events: Events, matches: Matches) -> Mapping[Aggregate, Column]:
    """Each aggregate of a query for each row of an answer.

    Parameters
    ----------
    pattern, events
        What was matched.
    matches
        r rows.

    Returns
    -------
    dict
        For each aggregate a column of r values.
    """
    width = len(matches.operands)
    found: dict[Aggregate, Column] = {}
    for one, number in pattern.aggregates.items():
        place = np.arange(len(matches), dtype=np.int64) * width + pattern.positive.index(number)
        match, at = expanded(matches.offsets[place], matches.offsets[place + 1])
        found[one] = aggregated(one, partial(events.column, rows=matches.bound[at]), match, len(matches))
    return found

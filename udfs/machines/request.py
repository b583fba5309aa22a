"""The first step of `match_subscription` and `predict_match`: from a call and what was published to what is read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.arguments import check_bounds, given_or
from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language import durations
from patternlake.udfs.language.query import extents
from patternlake.udfs.language.query.partitions import join_columns
from patternlake.udfs.machines.forecasts.grids import limits_of
from patternlake.udfs.machines.forecasts.limits import LEAST_COUNT, MOST_LOOKAHEAD
from patternlake.udfs.machines.forecasts.passage import DEAD, Cell, Counts, Forecaster, Passage, Waited
from patternlake.udfs.machines.forecasts.waiting_times import Waiting, chance_of_more, from_document
from patternlake.udfs.machines.from_config import Group, groups_of, subscription_of
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete, state_name
from patternlake.udfs.machines.wanted_precision import WantedPrecision
from patternlake.udfs.measures.pattern_measures import PatternMeasures
from patternlake.udfs.nearest_names import did_you_mean
from patternlake.udfs.published import Published, PublishedBatch
from patternlake.udfs.requests import BatchRange, compile_once

DEFAULT_LOOKAHEAD, DEFAULT_THRESHOLD = 10, 0.0
MOVE_NAMES = {
    "left_state": "state",
    "age": "age",
    "following_state": "next_state",
    "following_age": "next_age",
    "moves": "moves",
}
"""Column of `machine_transitions` to what `forecast` calls it."""
_SHOWN_NAMES = 20
MOST_TRUNCATED = 1e-3
"""The probability that a lookahead in time brings more than `MOST_LOOKAHEAD` events is this at the most."""
_WHOLE = re.compile(r"[+-]?\d{1,18}")
COUNTING = 4
"""What moves are, as `machine_transitions` counts them; subscriptions of which others were counted begin anew."""
DEAD_NAME = "dead"
"""What `DEAD` is called in `machine_transitions`."""
ROUGHLY = " (each instance by its own way)"
"""Follows the name of a state where there are more than `passage.MOST_FRONTS` fronts."""


@dataclass(frozen=True)
class Question:
    """A subscription that is asked, by itself.

    Attributes
    ----------
    group
        It, compiled.
    types
        Spark type of each of the stream's attributes.
    lookahead
        How many events it looks ahead.
    smoothing
        Of its forecasts.
    """

    group: Group
    types: Mapping[str, str]
    lookahead: int
    smoothing: float

    @property
    def measures(self) -> PatternMeasures | None:
        """Its MEASURES."""
        (subscription,) = self.group.compiled.subscriptions
        return subscription.measures

    @property
    def operands(self) -> list[str]:
        """Names of its operands, in text order."""
        (subscription,) = self.group.compiled.subscriptions
        return [primitive.name for primitive in subscription.primitives]


@dataclass(frozen=True)
class MachineReads:
    """A checked call, and what is to be read for it.

    Attributes
    ----------
    question
        The subscription.
    rows
        Where its rows are; their number is the stream's.
    events
        Where the events are that it has taken.
    stream
        The stream's name.
    threshold
        What forecasts must exceed: a probability, or the precision that is wanted of them.
    now
        Microseconds: the watermark up to which events were taken, or None.
    waited
        The waits of partitions up to it.
    time
        A lookahead in time in microseconds, or None.
    """

    question: Question
    rows: BatchRange
    events: BatchRange
    stream: str
    threshold: float | WantedPrecision
    now: int | None
    waited: Waited
    time: int | None


def check_request(arguments: Mapping[str, Any], published: Mapping[str, Published]) -> MachineReads:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments
        The function's arguments by name; times in microseconds since the epoch.
    published
        What `predict` published, by stream with subscriptions.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    name = arguments.get("subscription")
    if name is None:
        raise ArgumentError("subscription is NULL; give the name of a subscription")
    check_bounds(arguments, ("from_time", "to_time"))
    lookahead, time = _lookahead(arguments.get("lookahead"))
    threshold = arguments.get("threshold")
    if threshold is not None and not 0 <= threshold <= 1:
        raise ArgumentError(f"threshold => {threshold} is out of range; from 0 to 1 would be right")
    at = _published_stream(name, arguments.get("as_of"), published)
    configuration, source = json.loads(at.configuration), json.loads(at.source)
    if "lookahead" in arguments and json.loads(at.state or "{}").get("counting") != COUNTING:
        raise ArgumentError(
            f"the moves of {name!r} were counted by an older PatternLake then, from which no forecast is made; run "
            "`predict`, and ask for what it publishes"
        )
    entry = configuration["subscriptions"][name]
    chosen = given_or(arguments, "threshold", entry.get("threshold", DEFAULT_THRESHOLD))
    waited = waited_of(at, subscription_of(entry, configuration["stream"]).partition)
    if time is not None and "lookahead" in arguments:
        _check_time(name, arguments["lookahead"], time, waited)
        if isinstance(chosen, Mapping):
            raise ArgumentError(
                f"the subscription {name!r} wants the threshold of precision {chosen['precision']:g}, which is "
                "evaluated of numbers of events, not of a time; call with a threshold of your own"
            )
    entry = {**entry, "lookahead": lookahead or entry.get("lookahead", DEFAULT_LOOKAHEAD)}
    question = question_of(name, entry, configuration["stream"])
    if arguments.get("key") is not None and not question.group.partition:
        raise ArgumentError(
            f"key => {arguments['key']!r}: the subscription {name!r} has no PARTITION BY, so its matches belong to no "
            "key; leave key out, or add a PARTITION BY to the subscription"
        )
    return MachineReads(
        question=question,
        rows=at.rows,
        events=BatchRange(at.stream_id, source["ingest_base"], source["ingest_batch"]),
        stream=at.object,
        threshold=WantedPrecision(name, chosen["precision"], entry) if isinstance(chosen, Mapping) else chosen,
        now=at.watermark,
        waited=waited,
        time=time,
    )


def _lookahead(text: str | None) -> tuple[int | None, int | None]:
    """A lookahead as a number of events, or as microseconds."""
    if text is None:
        return None, None
    right = f"1 to {MOST_LOOKAHEAD:,} events would be right"
    if _WHOLE.fullmatch(text):
        if not 1 <= int(text) <= MOST_LOOKAHEAD:
            raise ArgumentError(f"lookahead => {text} is out of range; {right}")
        return int(text), None
    time = durations.read(text)
    if time is None or time <= 0:
        raise ArgumentError(
            f"lookahead => {text!r} is neither a number of events nor a time to come; {right}, or a time such as "
            "'2 HOURS'"
        )
    return None, min(time, extents.MOST_MICROS)


def waited_of(at: PublishedBatch, partition: Sequence[str]) -> Waited:
    """The waits that a publication of `predict` has counted, of the partitions of some columns."""
    rows = json.loads(at.state or "{}").get("waits", {}).get(join_columns(partition), [])
    return Waited(from_document(rows), at.watermark or 0)


def _check_time(name: str, asked: str, time: int, waited: Waited) -> None:
    """Refuse a lookahead in time of which it is not known how many events it brings, or that brings too many."""
    if not any(key.bin >= 0 for key in waited.counts):
        raise ArgumentError(
            f"lookahead => {asked!r}: no time between two events of one partition of {name!r} was counted by then, "
            "which would tell how many events come in a time; run `predict`, or look a number of events ahead"
        )
    more = chance_of_more(Waiting.of(waited.counts, waited.now), time, MOST_LOOKAHEAD)
    if more > MOST_TRUNCATED:
        raise ArgumentError(
            f"lookahead => {asked!r}: more than {MOST_LOOKAHEAD:,} events of a partition of {name!r} come in that time "
            f"with probability {more:.3g}, and no more are looked ahead; give a shorter time"
        )


def question_of(name: str, entry: Mapping[str, Any], stream: Mapping[str, Any]) -> Question:
    """Compile a subscription by itself.

    Parameters
    ----------
    name
        Its name.
    entry
        What was published of it, with ``lookahead``.
    stream
        The stream's configuration.
    """
    meant = {part: each for part, each in entry.items() if part in ("query", "params", "decay")}
    group = compile_once(_group_of, name, meant, {part: stream[part] for part in ("attributes", "key")})
    return Question(group, types_of_attributes(stream), int(entry["lookahead"]), float(entry["smoothing"]))


def _group_of(name: str, entry: Mapping[str, Any], stream: Mapping[str, Any]) -> Group:
    (group,) = groups_of({name: entry}, stream)
    return group


def _published_stream(name: str, as_of: int | None, published: Mapping[str, Published]) -> PublishedBatch:
    """What was published of the stream that has a subscription of this name.

    Raises
    ------
    ArgumentError
        There was none, or several.
    """
    known: list[str] = []
    found: dict[str, PublishedBatch] = {}
    for stream, one in published.items():
        if one.at is None:
            continue
        names = json.loads(one.at.configuration)["subscriptions"]
        if name in names:
            found[stream] = one.at
        known += names
    if len(found) > 1:
        streams = " and ".join(map(repr, sorted(found)))
        raise ArgumentError(
            f"the streams {streams} each have a subscription {name!r}, so that it is not said which one answers; "
            "configure it under one of the streams, or under another name, and run `predict` of both"
        )
    for stream, at in found.items():
        published[stream].check_moment(f"the subscriptions of {stream!r}", as_of)
        return at
    if not known:
        for stream, one in published.items():
            one.check_moment(f"the subscriptions of {stream!r}", as_of)
    shown = ", ".join(map(repr, sorted(known)[:_SHOWN_NAMES])) or "none yet; run `predict`"
    more = f" and {len(known) - _SHOWN_NAMES:,} more" if len(known) > _SHOWN_NAMES else ""
    raise ArgumentError(f"there is no subscription {name!r}{did_you_mean(name, known)}; subscriptions: {shown}{more}")


@dataclass(frozen=True)
class Told:
    """What the states of a subscription forecast.

    Attributes
    ----------
    states
        Of each state that partial matches can be in ``state_id``, ``state`` (its name), ``composite_state`` and
        ``trained_on``.
    passage
        How likely they are to be completed.
    """

    states: Sequence[Mapping[str, Any]]
    passage: Passage


def forecast(question: Question, moves: Sequence[Mapping[str, Any]], waited: Waited, time: int | None = None) -> Told:
    """What every state of a subscription forecasts.

    Parameters
    ----------
    question
        The subscription.
    moves
        Rows of `machine_transitions`: ``state``, ``age``, ``next_state``, ``next_age``, ``moves``.
    waited
        The waits of its partitions.
    time
        A lookahead in time: microseconds; None: it is the number of events that the question has.
    """
    compiled = question.group.compiled
    (subscription,), graph = compiled.subscriptions, compiled.graph
    counts = counts_from(
        moves,
        {state_name(subscription.master, composite_state): composite_state for composite_state in graph.states[0]},
    )
    limits = limits_of(graph, compiled.ages, 0, subscription.master)
    forecaster = Forecaster(
        subscription, counts, question.lookahead, question.smoothing, limits=limits, waited=waited, time=time
    )
    found = [
        {
            "state_id": graph.ids[state],
            "state": state_name(subscription.master, composite_state) + ("" if forecaster.exact else ROUGHLY),
            "composite_state": composite_state,
            "trained_on": round(forecaster.trained_on(composite_state)),
        }
        for composite_state, state in graph.states[0].items()
        if composite_state != START and not complete(subscription.master, composite_state)
    ]
    return Told(found, forecaster.passage)


def counts_from(moves: Sequence[Mapping[str, Any]], composite_states: Mapping[str, CompositeState]) -> Counts:
    """Rows of `machine_transitions` as the forecaster takes them; `composite_states`: by the names of states."""
    found: dict[Cell, dict[Cell, float]] = {}
    for row in moves:
        if row["moves"] < LEAST_COUNT:
            continue
        after = DEAD if row["next_state"] == DEAD_NAME else (composite_states[row["next_state"]], row["next_age"])
        found.setdefault((composite_states[row["state"]], row["age"]), {})[after] = row["moves"]
    return found

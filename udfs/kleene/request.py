"""The first step of `match_pattern` and `explain_pattern`: from arguments and a publication to a checked request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from patternlake.udfs.arguments import check_bounds, check_key, given_or
from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.finality import Moment
from patternlake.udfs.kleene.from_config import compile_text
from patternlake.udfs.kleene.near_misses import check_partial
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.judged_conditions import seen_texts, shares_of
from patternlake.udfs.kleene.plans.observations import Seen
from patternlake.udfs.kleene.plans.planning import PlanLine, Planned, choose_plan, explain_choice
from patternlake.udfs.kleene.plans.replanning import Replanning
from patternlake.udfs.kleene.plans.selectivity import AttributeCounts, selectivities
from patternlake.udfs.kleene.plans.trees import Plan, forced_plan
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.state import Carried
from patternlake.udfs.kleene.work import Work
from patternlake.udfs.language.predicate.columns import value_type
from patternlake.udfs.language.query import extents
from patternlake.udfs.limits import MAX_MATCHES, WHOLE_EVENTS
from patternlake.udfs.partitions import count_portions
from patternlake.udfs.policies import check_arguments, check_repetition, operand_after, resumes
from patternlake.udfs.published import NameCount, Published, PublishedBatch, known_until, published_stream
from patternlake.udfs.requests import BatchRange, compile_once
from patternlake.udfs.unseen_names import unseen_names, unseen_text

TASK_EVENTS = 100_000
"""Events that one portion has, about; a partition, or a window, is never divided."""
MARGINS = 8
"""Widths of a window in one block of a stream without partitions, at least: a block reads one more on either side."""


@dataclass(frozen=True)
class Portions:
    """How the work is dealt out: to numbered portions, by partition or by blocks that overlap by a window.

    Attributes
    ----------
    low, high
        Numbers of the first and the last portion.
    width
        Of a block, in events or microseconds; None: there are no blocks. The first and the last one have no outer end.
    within
        How far before and behind its events a match looks, where there is a window: that, and what deadlines add.
    counted
        True where a block is a range of ranks; else it is one of times.
    ranked
        Whether it matters how many events lie between two, those that can't take part among them.
    bucket
        Microseconds of event time: events are counted by so many, where blocks are ranges of ranks.
    """

    low: int = 0
    high: int = 0
    width: int | None = None
    within: int | None = None
    counted: bool = False
    ranked: bool = False
    bucket: int = 1

    @property
    def count(self) -> int:
        """How many there are."""
        return self.high - self.low + 1


@dataclass(frozen=True)
class KleeneRequest:
    """What the portions of an answer need to know.

    Attributes
    ----------
    pattern, plan
        What is looked for, and along which tree.
    types
        Spark type of each of the stream's attributes.
    policy, after_match, max_matches, truncate
        As asked.
    key
        The key asked for, or None.
    watermark
        Up to when, microseconds, nothing is to come: that of the publication, no later than what is read for an
        absence; or None.
    before
        Matches that were final at this earlier moment are left out; None: no match is. Under ``past_last`` the events
        that they rule out are not given.
    portions
        How the work is dealt out.
    replanning
        By what the plan was chosen, and how far it may be off; None: it stays.
    partial
        Whether near misses are among the rows.
    """

    pattern: KleenePattern
    plan: Plan
    types: Mapping[str, str]
    policy: str
    after_match: str
    max_matches: int
    truncate: bool
    key: str | None
    watermark: int | None
    before: Moment | None
    portions: Portions
    replanning: Replanning | None = None
    partial: bool = False

    @property
    def now(self) -> Moment | None:
        """The moment of the answer; None: events never settle."""
        return None if self.watermark is None else Moment(self.watermark)

    @property
    def resumes(self) -> bool:
        """Whether a match begins behind the one before it."""
        return resumes(self.policy, self.after_match)


@dataclass(frozen=True)
class KleeneReads:
    """A checked call, and what is to be read for it.

    Attributes
    ----------
    request
        What the portions need to know.
    events
        Where the stream's events are.
    names
        Of the events that can take part; None: any.
    """

    request: KleeneRequest
    events: BatchRange
    names: Sequence[str] | None

    @property
    def names_read(self) -> Sequence[str] | None:
        """Names of the events that are read; None: any."""
        return None if self.request.portions.ranked else self.names


def check_request(
    arguments: Mapping[str, Any],
    publication: Published,
    known: Sequence[str],
    counts: Sequence[NameCount],
    *,
    whole: bool = False,
    carried: Carried | None = None,
    factor: float | None = None,
    observed: Seen | None = None,
) -> KleeneReads:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments
        The SQL function's arguments by name; times in microseconds since the epoch.
    publication
        What `ingest` published of the stream.
    known
        Names of all streams.
    counts
        Of the stream's names.
    whole
        Whether the work is not to be dealt out.
    carried
        What the answer goes on from; None: it begins with the first event.
    factor
        How far what is found may be off what is expected, before a plan that nobody asked for is changed; None: any.
    observed
        What earlier runs saw of conditions; it goes before what is told of attributes, and before guesses.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    check, at = _check(arguments, publication, known)
    pattern = check.pattern
    if carried is not None:
        counts = _read(counts, carried, at.source_to)
    statistics = _statistics(check, counts, observed)
    plan = _choice(check, arguments, statistics).plan
    taken = pattern.names
    own = {name: count for name, count in statistics.counts.items() if taken is None or name in taken}
    replanning = None
    if factor is not None and arguments.get("plan") is None:
        replanning = Replanning(replace(statistics, counts=own, events=statistics.total), factor)
    names = None if taken is None else sorted(taken)
    tasks = max(1, -(-int(statistics.total) // TASK_EVENTS))
    taking = sum(own.values()) if counts else float(at.source_to)
    width, low, high = (None, 0, 0) if whole else _portions(check, arguments, counts, taking, statistics)
    request = KleeneRequest(
        pattern=pattern,
        plan=plan,
        types=check.types,
        policy=check.policy,
        after_match=given_or(arguments, "after_match", "next"),
        max_matches=given_or(arguments, "max_matches", MAX_MATCHES),
        truncate=given_or(arguments, "truncate", False),
        key=arguments.get("key"),
        watermark=_known_until(pattern, at.watermark, arguments.get("to_time")),
        before=None if carried is None else carried.before,
        portions=Portions(
            low=low,
            high=high,
            width=width,
            within=None if pattern.within is None else pattern.within.amount + pattern.beyond_window,
            counted=pattern.within is not None and pattern.within.counted,
            ranked=_needs_ranks(check),
            bucket=max(1, int(statistics.duration) // tasks),
        ),
        replanning=replanning,
        partial=given_or(arguments, "partial", False),
    )
    return KleeneReads(request, at.rows, names)


def explain(
    arguments: Mapping[str, Any],
    publication: Published,
    known: Sequence[str],
    counts: Sequence[NameCount],
    work: Work | None = None,
    observed: Seen | None = None,
) -> list[PlanLine]:
    """The plan of a pattern as lines of text, with costs and rows; parameters as of `check_request`.

    `work` is what matching along that plan did, where it was measured.

    A name of the pattern that never occurred has a line of its own behind the first, a condition that earlier runs saw
    one behind all others.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    check, _ = _check(arguments, publication, known)
    head, *steps = explain_choice(check.pattern, _choice(check, arguments, _statistics(check, counts, observed)), work)
    unseen = unseen_names(check.pattern.asked_names, [row.name for row in counts])
    told = [f"  {unseen_text(name, nearest)}" for name, nearest in unseen]
    seen = [] if observed is None else seen_texts(check.pattern, observed)
    return [
        head,
        *(PlanLine(text, None, None) for text in told),
        *steps,
        *(PlanLine(text, None, None) for text in seen),
    ]


@dataclass(frozen=True)
class _Compiled:
    pattern: KleenePattern
    types: Mapping[str, str]
    policy: str


def _check(
    arguments: Mapping[str, Any], publication: Published, known: Sequence[str]
) -> tuple[_Compiled, PublishedBatch]:
    """The compiled pattern of a call whose other arguments are right, and what was published of its stream."""
    at, configuration = published_stream(arguments, publication, known)
    check_bounds(arguments, ("from_time", "to_time"))
    types = types_of_attributes(configuration)
    policy = given_or(arguments, "policy", "skip_till_any")
    after_match, most = given_or(arguments, "after_match", "next"), given_or(arguments, "max_matches", MAX_MATCHES)
    check_arguments(policy, after_match if operand_after(after_match) is None else "next", most, ())
    repetition = given_or(arguments, "repetition", "maximal")
    check_repetition(repetition)
    parameters = dict(arguments.get("params") or {})
    pattern = compile_once(compile_text, arguments["pattern"], configuration, parameters, policy, repetition)
    names = [pattern.operands[number].name for number in pattern.positive]
    check_arguments(policy, after_match, most, names)
    check_key(arguments, configuration, partitioned=bool(pattern.partition))
    if given_or(arguments, "partial", False):
        check_partial(pattern, policy)
    return _Compiled(pattern, types, policy), at


def _known_until(pattern: KleenePattern, watermark: int | None, to_time: int | None) -> int | None:
    """The watermark, or the end of what is read where something must be absent: behind it nothing is known."""
    if all(gap.right for gap in pattern.gaps):
        return watermark
    return known_until(watermark, to_time)


def _needs_ranks(check: _Compiled) -> bool:
    """Whether it matters how many events lie between two, those that the pattern can't take among them."""
    return check.policy == "strict" or check.pattern.ranked


def _read(counts: Sequence[NameCount], carried: Carried, last: int) -> list[NameCount]:
    """Counts of names in the events that are read, up to a last position, as if all names lay alike."""
    share = min(1.0, (carried.events + last - (carried.before.position or 0)) / max(1, last))

    def clipped(end: int | None) -> int | None:
        return end if carried.from_time is None or end is None else max(end, carried.from_time)

    return [
        replace(row, events=max(1, round(row.events * share)), first=clipped(row.first), last=clipped(row.last))
        for row in counts
    ]


def _portions(
    check: _Compiled,
    arguments: Mapping[str, Any],
    counts: Sequence[NameCount],
    taking: float,
    statistics: Statistics,
) -> tuple[int | None, int, int]:
    """Width of a block, or None, and the numbers of the first and the last portion."""
    pattern = check.pattern
    if pattern.partition and _needs_ranks(check):
        taking = max(taking, statistics.total)
    tasks = count_portions(int(taking), TASK_EVENTS)
    if pattern.partition:
        return None, 0, tasks - 1
    one_key = arguments.get("key") is not None
    # past_last asks in each place what came of all places before it.
    chained = resumes(check.policy, given_or(arguments, "after_match", "next"))
    apart = pattern.within is not None and pattern.within.counted and pattern.beyond_window > 0
    if pattern.within is None or chained or tasks == 1 or pattern.choice_first or apart:
        bounded = any(arguments.get(name) is not None for name in ("key", "from_time", "to_time"))
        if taking > WHOLE_EVENTS and not one_key and not bounded:
            reasons = {
                "has no WITHIN": pattern.within is None,
                f"asks for {given_or(arguments, 'after_match', 'next')}": chained,
                "has a deadline in time beside WITHIN in events": apart,
                "begins with [n]": True,
            }
            raise ArgumentError(_too_large(int(taking), next(why for why, holds in reasons.items() if holds)))
        return None, 0, 0
    amount = pattern.within.amount + pattern.beyond_window
    if pattern.within.counted:
        first, last = 0, int(statistics.total)
    else:
        # Bounds may lie far from all events.
        first = min(row.first for row in counts if row.first is not None)
        last = max(row.last for row in counts if row.last is not None)
        first = max(given_or(arguments, "from_time", first), first)
        last = min(given_or(arguments, "to_time", last), last)
    width = max(min(MARGINS * amount, extents.MOST_MICROS), -(-max(last - first, 0) // tasks), 1)
    return width, first // width, max(last // width, first // width)


def _too_large(events: int, why: str) -> str:
    return (
        f"the pattern can take {events:,} events, and {why} and has no PARTITION BY, so one task would hold them all, "
        f"{WHOLE_EVENTS:,} at most; partition it, or narrow the question with key, from_time and to_time"
    )


def too_many_events(events: int) -> ArgumentError:
    """The error for a portion that cannot be held."""
    return ArgumentError(_too_large(events, "nothing else divides it"))


def _choice(check: _Compiled, arguments: Mapping[str, Any], statistics: Statistics) -> Planned:
    """The plan: the cheapest by what is known of the stream, or the one that is asked for."""
    hint = arguments.get("plan")
    return choose_plan(check.pattern, statistics, None if hint is None else forced_plan(check.pattern, hint))


def _statistics(check: _Compiled, counts: Sequence[NameCount], observed: Seen | None) -> Statistics:
    times = [end for row in counts for end in (row.first, row.last) if end is not None]
    known = {
        row.name: {
            each["attribute"]: AttributeCounts(
                each["events"], each["known"], each["distinct"], tuple(each["quantiles"]) if each["quantiles"] else None
            )
            for each in row.attributes
        }
        for row in counts
        if row.attributes is not None
    }
    types = {name: value_type(type_) or "" for name, type_ in check.types.items()}
    partition = check.pattern.partition
    seen = {} if observed is None else shares_of(check.pattern, observed)
    keys = [of[column].distinct for of in known.values() for column in partition if column in of]
    return Statistics(
        counts={row.name: float(row.events) for row in counts},
        keys=max([1.0, *keys]),
        duration=float(max(times) - min(times)) if times else 0.0,
        selectivities={**selectivities(check.pattern, known, types), **seen},
    )

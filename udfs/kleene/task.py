"""What one task of an exact answer does: the events of some partitions, or of a block of a stream, are matched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events, integers, micros, read_events
from patternlake.udfs.kleene.beginnings import WHOLE
from patternlake.udfs.kleene.finality import Moment, final
from patternlake.udfs.kleene.first_events import by_first_events, can_be_divided
from patternlake.udfs.kleene.kernels.bindings import MOST_BOUND, Matches
from patternlake.udfs.kleene.kernels.matching import match_events, observed
from patternlake.udfs.kleene.near_misses import with_near_misses
from patternlake.udfs.kleene.plans.replanning import Replanning
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.request import KleeneRequest, too_many_events
from patternlake.udfs.kleene.result import answer_rows, with_missing
from patternlake.udfs.kleene.work import Work, work_rows
from patternlake.udfs.limits import WHOLE_EVENTS, by_partition
from patternlake.udfs.ordering import order_in_partitions
from patternlake.udfs.partitions import number_partitions, partition_codes


def match_partitions(
    request: KleeneRequest, portion: int, rows: Mapping[str, pa.Array], work: Work | None = None
) -> Iterator[pa.Table]:
    """Match the events of one portion.

    Parameters
    ----------
    request
        The request.
    portion
        Its number.
    rows
        ``part`` (list of the values that PARTITION BY names), ``position``, ``time`` and ``name`` of n `events` in any
        order; ``step``, ``key``, ``probability`` and ``attributes`` where the pattern reads them; ``rank`` of each
        inside its partition, where some were left out and it matters how many.
    work
        Filled with what the run did, once all tables are taken.

    Returns
    -------
    Rows of `result.ROWS`, those of a partition in one table.

    Raises
    ------
    PatternLakeError
        A partition, or a block, has more matches than are asked for; what matching itself raises.
    """

    def write(matches: Matches, given: Portion, sure: BoolArray, taken: Mapping[str, pa.Array]) -> pa.Table:
        return answer_rows(matches, given.shown, sure, request.pattern.measures, taken)

    yield from answer_portion(request, portion, portion_of(request, rows), write, work)


def observe_partitions(request: KleeneRequest, portion: int, rows: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
    """Match the events of one portion under ``skip_till_any``, and say what was done; parameters as above.

    Returns
    -------
    Rows of `work.ROWS`.

    Raises
    ------
    PatternLakeError
        What matching itself raises.
    """
    given = portion_of(request, rows)
    events = given.events(request, 0, len(given.shown))
    work = observed(request.pattern, events, plan=request.plan, begins=_may_begin(request, portion, events))
    yield work_rows(work)


def portion_of(request: KleeneRequest, rows: Mapping[str, pa.Array]) -> Portion:
    """The events of a portion by partition and in order; parameters as of `match_partitions`.

    Raises
    ------
    ArgumentError
        They are too many for one task, and nothing divides them.
    """
    # To put lists and texts in order takes longer than all else.
    coded = {**rows, "name": rows["name"].dictionary_encode()}
    if not request.pattern.partition:
        return sorted_portion(request, coded, partition_numbers(request, coded))
    codes, texts = number_partitions(coded.pop("part"))  # what partitions them is known now
    return _in_order(request, coded, codes, texts, None)


def partition_numbers(request: KleeneRequest, rows: Mapping[str, pa.Array]) -> IntArray:
    """int64[n]: numbers of partitions that are in no order of their own, which are found sooner."""
    return partition_codes(rows["part"]) if request.pattern.partition else np.zeros(len(rows["position"]), np.int64)


def sorted_portion(
    request: KleeneRequest, rows: Mapping[str, pa.Array], codes: IntArray, chosen: BoolArray | None = None
) -> Portion:
    """As `portion_of`, of partitions of which nothing is shown.

    Parameters
    ----------
    request, rows
        As of `match_partitions`.
    codes
        As `partition_numbers` gives them.
    chosen
        bool[n]: the rows that are meant; None: all.
    """
    count = len(codes) if chosen is None else int(np.count_nonzero(chosen))
    if request.pattern.partition:
        return _in_order(request, rows, codes, [None] * (int(codes.max(initial=-1)) + 1), chosen)
    if request.portions.width is None and count > WHOLE_EVENTS:
        raise too_many_events(count)
    return _in_order(request, rows, codes, [request.key], chosen)


def _in_order(
    request: KleeneRequest,
    rows: Mapping[str, pa.Array],
    codes: IntArray,
    texts: Sequence[str | None],
    chosen: BoolArray | None,
) -> Portion:
    by = micros(rows["time"]), integers(rows["position"])
    if chosen is None or chosen.all():
        order, _ = order_in_partitions(codes, *by)
    else:
        places = np.flatnonzero(chosen)
        order = places[order_in_partitions(codes[places], *(key[places] for key in by))[0]]
    taken = pa.array(order)
    read = [name for name in ("part", "rank", *request.pattern.matched_columns(request.types)) if name in rows]
    return Portion({name: rows[name].take(taken) for name in read}, codes[order], texts)


def answer_portion(
    request: KleeneRequest,
    portion: int,
    given: Portion,
    write: Write,
    work: Work | None = None,
    *,
    in_portions: bool = False,
) -> Iterator[pa.Table]:
    """Match a portion.

    Parameters
    ----------
    request, portion
        As of `match_partitions`.
    given
        Its events.
    write
        Makes rows of the matches of some partitions, of whether each is final, and of the events that they are of.
    work
        As of `match_partitions`.
    in_portions
        Whether a partition may have more matches than are asked for, where `by_first_events` can divide them.

    Yields
    ------
    What `write` gives, in the order of the partitions.
    """

    def matched(first: int, last: int) -> pa.Table:
        events = given.events(request, first, last)
        begins = _may_begin(request, portion, events)
        if request.partial:
            cut = request.truncate and last - first <= 1
            return _written_with_near_misses(request, given, first, last, events, begins, write, truncate=cut)
        found = _matches(request, events, begins, work, truncate=request.truncate and last - first <= 1)
        return _write_matches(request, given, first, last, events, found, write)

    def divided(partition: int) -> Iterator[pa.Table]:
        events = given.events(request, partition, partition + 1)
        begins = _may_begin(request, portion, events)

        def match(events: Events, begins: BoolArray | None, takes: Mapping[int, BoolArray] | None) -> Matches:
            return _matches(request, events, begins, work, truncate=False, takes=takes)

        for found in by_first_events(request, events, begins, match):
            yield _write_matches(request, given, partition, partition + 1, events, found, write)

    dividing = in_portions and can_be_divided(request)
    yield from by_partition(0, len(given.shown), matched, divided if dividing else None)


@dataclass(frozen=True)
class Portion:
    """The events of a portion, by partition and in order.

    Attributes
    ----------
    rows
        As of `match_partitions`.
    codes
        int64[n]: number of each event's partition.
    shown
        What is shown of each partition.
    """

    rows: Mapping[str, pa.Array]
    codes: IntArray
    shown: Sequence[str | None]

    @cached_property
    def offsets(self) -> IntArray:
        """int64[p + 1]: partition i has the events ``offsets[i]:offsets[i + 1]``."""
        return np.searchsorted(self.codes, np.arange(len(self.shown) + 1))

    @cached_property
    def parts(self) -> pa.ListArray:
        """The values of each partition; NULL for one without events."""
        first, behind = self.offsets[:-1], self.offsets[1:]
        return self.rows["part"].take(pa.array(first, mask=first == behind))

    def where(self, chosen: BoolArray) -> Portion:
        """The portion with some of its events."""
        if chosen.all():
            return self
        mask = pa.array(chosen)
        return replace(
            self, rows={name: column.filter(mask) for name, column in self.rows.items()}, codes=self.codes[chosen]
        )

    def events(self, request: KleeneRequest, first: int, last: int, columns: Collection[str] | None = None) -> Events:
        """The events of partitions `first` to `last` (exclusive), with the columns that matching reads, or others."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        wanted = request.pattern.columns if columns is None else columns
        return read_events(self.rows_of(first, last), wanted, request.types, self.codes[begin:end])

    def rows_of(self, first: int, last: int) -> Mapping[str, pa.Array]:
        """The rows of partitions `first` to `last` (exclusive)."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        return {name: column.slice(begin, end - begin) for name, column in self.rows.items()}


Write = Callable[[Matches, Portion, BoolArray, Mapping[str, pa.Array]], pa.Table]


def _matches(
    request: KleeneRequest,
    events: Events,
    begins: BoolArray | None,
    work: Work | None,
    *,
    truncate: bool,
    takes: Mapping[int, BoolArray] | None = None,
) -> Matches:
    """The matches of events of some partitions that begin with some of them, and in which operands take some."""
    return match_events(
        request.pattern,
        events,
        policy=request.policy,
        after_match=request.after_match,
        plan=request.plan,
        max_matches=request.max_matches,
        truncate=truncate,
        work=work,
        begins=begins,
        takes=takes,
        replanning=_replanning(request, events),
    )


def _write_matches(
    request: KleeneRequest, given: Portion, first: int, last: int, events: Events, matches: Matches, write: Write
) -> pa.Table:
    """The rows of the matches that the answer does not go on from."""
    sure = _final(request, matches, events, request.now)
    if request.before is not None and not request.resumes:
        new = np.flatnonzero(~_final(request, matches, events, request.before))
        matches, sure = matches.take(new), sure[new]
    return write(matches, given, sure, given.rows_of(first, last))


def _written_with_near_misses(
    request: KleeneRequest,
    given: Portion,
    first: int,
    last: int,
    events: Events,
    begins: BoolArray | None,
    write: Write,
    *,
    truncate: bool,
) -> pa.Table:
    """The rows of the matches, and of what began and is not complete: what each awaits, and until when."""
    pattern = request.pattern

    # All are needed to know which starts have none; each binds an event. Under skip_till_any that is known otherwise.
    chosen = request.policy == "skip_till_any"

    def match(part: KleenePattern, after_match: str = "next") -> Matches:
        return match_events(
            part,
            events,
            policy=request.policy,
            after_match=after_match,
            plan=request.plan,
            max_matches=request.max_matches + truncate if chosen else MOST_BOUND,
            truncate=chosen and truncate,
            begins=begins,
        )

    found = match(pattern, request.after_match)
    begun = with_near_misses(
        pattern,
        events,
        found,
        match,
        policy=request.policy,
        begins=begins,
        after_match=request.after_match,
        max_matches=request.max_matches,
        truncate=truncate,
    )
    sure = _final(request, begun.matches, events, request.now)
    sure = begun.final(pattern, events, request.now, sure, policy=request.policy)
    rows = write(begun.matches, given, sure, given.rows_of(first, last))
    return with_missing(
        rows,
        [None if n == WHOLE else pattern.operands[n].name for n in begun.missing.tolist()],
        begun.deadlines(pattern),
    )


def _final(request: KleeneRequest, matches: Matches, events: Events, moment: Moment | None) -> BoolArray:
    return final(request.pattern, matches, events, moment, policy=request.policy, after_match=request.after_match)


def _replanning(request: KleeneRequest, events: Events) -> Replanning | None:
    """How the plan may be changed for some of the events."""
    if request.replanning is None:
        return None
    statistics = request.replanning.statistics
    expected = statistics.total if request.pattern.names is None else sum(statistics.counts.values())
    share = min(1.0, len(events) / max(1.0, expected))
    scaled = statistics.scaled(share, by_key=bool(request.pattern.partition))
    return replace(request.replanning, statistics=scaled)


def _may_begin(request: KleeneRequest, portion: int, events: Events) -> BoolArray | None:
    """bool[n]: the events of the block itself; None where all are."""
    portions = request.portions
    if portions.width is None:
        return None
    span = events.times
    if portions.counted:
        assert events.ordinals is not None
        span = events.ordinals
    block = np.clip(np.floor_divide(span, portions.width), portions.low, portions.high)
    return np.asarray(block == portion)

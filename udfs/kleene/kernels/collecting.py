"""From partial matches of the plain operands to whole matches: what repeated operands take around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray, expanded
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels import cliques, first_ways, runs
from patternlake.udfs.kleene.kernels.choices import choose
from patternlake.udfs.kleene.kernels.comparisons import Comparison, comparison, comparisons_of
from patternlake.udfs.kleene.kernels.joins import Joiner
from patternlake.udfs.kleene.kernels.runs import NEVER
from patternlake.udfs.kleene.kernels.tables import Table
from patternlake.udfs.kleene.layout import Layout, SlotCondition
from patternlake.udfs.language.predicate.references import Reference

EVENTS_AT_ONCE = 1 << 23
"""Events that the matches of one step bind together, about."""
MOST_WAYS = 1 << 20
"""Ways to fill the groups of one partial match, where all of them must be seen to know the first ones."""


@dataclass(frozen=True)
class Limits:
    """How far the ways to fill the groups of one partial match are followed.

    Attributes
    ----------
    ways
        So many of them, at most.
    enough
        True: so many of them say all that is wanted; False: more are an error.
    first
        Which ones: the first in the order of the answer, or any.
    events
        So many events, at most, bound by them together; more are an error.
    rows
        Of so many partial matches, about, the first ways are looked for at once.
    """

    ways: int
    enough: bool
    first: bool
    events: int
    rows: int


@dataclass(frozen=True)
class Collected:
    """Matches of one linearization whose picks are still open.

    Attributes
    ----------
    part
        int64[k]: the part of each match.
    ones
        For each slot of kind ``one`` int64[k]: its event.
    lists
        For each group, choice or pick (int64[k + 1], int64[e]): offsets by match, and events in order. A pick takes any
        of them, as many as its slot says, others all.
    """

    part: IntArray
    ones: Mapping[int, IntArray]
    lists: Mapping[int, tuple[IntArray, IntArray]]

    def __len__(self) -> int:
        return len(self.part)

    def take(self, kept: IntArray | BoolArray) -> Collected:
        """Some of the matches."""
        rows = np.arange(len(self), dtype=np.int64)[kept]
        lists = {slot: sliced(offsets, events, rows) for slot, (offsets, events) in self.lists.items()}
        return Collected(self.part[rows], {slot: events[rows] for slot, events in self.ones.items()}, lists)

    def first(self) -> IntArray:
        """int64[k]: the first event of each match, in which no pick comes first (`KleenePattern.choice_first`)."""
        return self.extreme((*self.ones, *self.lists), last=False)

    def extreme(self, slots: Iterable[int], *, last: bool) -> IntArray:
        """int64[k]: the last, or first, event of some slots in each match; -1, or `NEVER`, where there is none."""
        found = np.full(len(self), -1 if last else NEVER, np.int64)
        pick = np.maximum if last else np.minimum
        for slot in slots:
            if slot in self.ones:
                found = pick(found, self.ones[slot])
                continue
            offsets, events = self.lists[slot]
            some = np.flatnonzero(offsets[1:] > offsets[:-1])
            found[some] = pick(found[some], events[offsets[some + 1] - 1 if last else offsets[some]])
        return found

    def events_of(self, slots: Iterable[int], rows: IntArray) -> tuple[IntArray, IntArray]:
        """(place in `rows`, event) of all events that some slots have in some matches, slot by slot."""
        places, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for slot in slots:
            if slot in self.ones:
                place, event = np.arange(len(rows), dtype=np.int64), self.ones[slot][rows]
            else:
                offsets, events = self.lists[slot]
                place, at = expanded(offsets[rows], offsets[rows + 1])
                event = events[at]
            places.append(place)
            found.append(event)
        return np.concatenate(places), np.concatenate(found)


def sliced(offsets: IntArray, events: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """The lists of some rows."""
    _, at = expanded(offsets[rows], offsets[rows + 1])
    counts = offsets[rows + 1] - offsets[rows]
    return np.append(np.zeros(1, np.int64), np.cumsum(counts)).astype(np.int64), events[at]


def collected(joiner: Joiner, table: Table, limits: Limits) -> Iterator[Collected]:
    """The matches of some rows of a whole linearization's table, some at a time.

    Parameters
    ----------
    joiner
        Of the linearization and the range of first events.
    table
        Rows with an event for every slot of kind ``one``; for a linearization without such, one row per part.
    limits
        How many matches of one row are wanted.

    Raises
    ------
    ArgumentError
        One row has more matches than can be followed.
    """
    layout, stream = joiner.layout, joiner.stream
    groups, picks = layout.of_kind("group"), layout.of_kind("pick")
    ending = [slot for slot in groups if layout.slots[slot].operand in layout.ending]
    searched = bool(groups) and (bool(layout.pairs) or (bool(ending) and not _settled(joiner, table)))
    if searched and table.whole and stream.windowed:
        table = _anchored(joiner, table)
    lists = {slot: joiner.candidates(table, slot) for slot in (*groups, *picks)}
    enough = np.ones(len(table), np.bool_)
    for slot in (*groups, *picks):
        enough &= np.diff(lists[slot][0]) >= layout.needed[slot]
    rows = np.flatnonzero(enough)
    table = table.take(rows)
    lists = {slot: sliced(*found, rows) for slot, found in lists.items()}
    if layout.of_kind("choice"):
        yield from _chosen(joiner, _Chosen(table, np.arange(len(table), dtype=np.int64), {}), lists, limits)
        return
    if not groups:
        yield Collected(table.part, table.columns, lists)
        return
    coupled = _coupled(joiner)
    if searched:
        conditions = [(part, _pair_truth(joiner, table, part, lists)) for part in layout.pairs]
        chained = {slot: _chain_truth(joiner, table, slot, lists[slot], layout.chains) for slot in groups}
        anchors = table.low if not table.columns and stream.windowed else None
        row_of, offsets, kept = cliques.collect(
            [(slot, layout.slots[slot].count, *lists[slot]) for slot in groups],
            [(*_two(part, groups), truth) for part, truth in conditions],
            chained,
            stream.reach,
            anchors,
            {slot: stream.ending_rows(layout.slots[slot].operand) for slot in ending},
            stream.source,
            bare=not table.columns,
            most=limits.ways,
        )
        if not limits.enough and len(row_of) and np.bincount(row_of).max() >= limits.ways:
            raise too_many_ways()
        yield _found(table, lists, groups, row_of, offsets, kept)
    elif _settled(joiner, table):
        ended: dict[int, IntArray] = {}
        for slot in ending:
            rows, own, before = _by_beginnings(stream, lists[slot], layout.slots[slot].operand)
            table = table.take(rows)
            lists = {other: sliced(*found, rows) for other, found in lists.items()} | {slot: own}
            ended = {other: found[rows] for other, found in ended.items()} | {slot: before}
        if layout.chains:
            given, chains = _candidates(joiner, table, lists, False), _chains(joiner, table, groups, lists)
            for number, slot in enumerate(groups):
                if any(part.chain == slot for part in layout.chains):
                    lists[slot] = runs.neighbours(given, chains, number)
        matches = Collected(table.part, table.columns, lists)
        if ended:
            # The event before the first one could be added where nothing behind it ends the collecting, up to the last.
            last = {slot: stream.source[lists[slot][1][lists[slot][0][1:] - 1]] for slot in ended}
            matches = matches.take(np.logical_and.reduce([before <= last[slot] for slot, before in ended.items()]))
        yield matches
    else:
        given, chains, row = _candidates(joiner, table, lists, coupled), _chains(joiner, table, groups, lists), 0
        bounds = limits.ways, limits.events, EVENTS_AT_ONCE
        ordered = False
        while row < len(table):
            if ordered:
                row_of, offsets, kept, row, cut = first_ways.collect(given, chains, stream.reach, row, *bounds)
            else:
                row_of, offsets, kept, row, cut = runs.collect(given, chains, stream.reach, row, *bounds, limits.first)
                # Where one row is cut, those behind it are likely to be.
                ordered = cut == runs.OPEN
            if cut == runs.FULL or (cut == runs.CUT and not limits.enough):
                raise too_many_ways()
            yield _found(table, lists, groups, row_of, offsets, kept)


def _by_beginnings(
    stream: Stream, given: tuple[IntArray, IntArray], operand: int
) -> tuple[IntArray, tuple[IntArray, IntArray], IntArray]:
    """What a group may collect under UNTIL, by the event that it begins with.

    Parameters
    ----------
    stream, operand
        The events, and the operand.
    given
        Offsets by row, and its events.

    Returns
    -------
    (int64[k], (int64[k + 1], int64[e]), int64[k])
        The row of each beginning; what there is from it on before the first event that ends it, as offsets and events;
        the first event (as a row of `Events`) that would end it if it began one event earlier, -1 where there is none
        earlier. Of beginnings that end alike only the first is given: to all others one could be added.
    """
    offsets, events = given
    row = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
    endings, size, place = stream.ending_rows(operand), len(stream.events), stream.source[events]
    end = np.append(endings, size)[np.searchsorted(endings, place, side="right")]
    stop = np.searchsorted(row * (size + 1) + place, row * (size + 1) + end)
    follows = np.append(np.zeros(1, np.bool_), row[1:] == row[:-1])[: len(row)]
    begins = np.flatnonzero(~follows | (np.append(np.int64(-1), stop[:-1])[: len(row)] < stop))
    _, at = expanded(begins, stop[begins])
    counts = stop[begins] - begins
    own = np.append(np.zeros(1, np.int64), np.cumsum(counts)).astype(np.int64), events[at]
    return row[begins], own, np.where(follows[begins], end[begins - 1], -1)


@dataclass(frozen=True)
class _Chosen:
    """Rows of a table with the sets that some choices take.

    Attributes
    ----------
    table
        One row for each.
    source
        int64[k]: the row of the given table.
    lists
        For each choice offsets by row, and events.
    """

    table: Table
    source: IntArray
    lists: Mapping[int, tuple[IntArray, IntArray]]


def _chosen(
    joiner: Joiner, chosen: _Chosen, given: Mapping[int, tuple[IntArray, IntArray]], limits: Limits
) -> Iterator[Collected]:
    """The matches of some rows under ``repetition => 'all'``: the sets of one choice after another.

    `given` has what picks take from, by row of the given table.
    """
    layout, stream, table = joiner.layout, joiner.stream, chosen.table
    left = [slot for slot in layout.of_kind("choice") if slot not in chosen.lists]
    if not left:
        lists = {slot: sliced(*found, chosen.source) for slot, found in given.items()}
        yield Collected(table.part, table.columns, {**lists, **chosen.lists})
        return
    slot = left[0]
    offsets, events = joiner.candidates(table, slot)
    row = np.repeat(np.arange(len(table), dtype=np.int64), np.diff(offsets))
    fits = np.ones(len(row), np.bool_)
    for other, (bounds, found) in chosen.lists.items():
        # Choices come one after another, and each has an event.
        fits &= events > found[bounds[1:] - 1][row]
        fits &= events < stream.reach[found[bounds[:-1]]][row]
        for condition in layout.pairs:
            if condition.slots <= {slot, other, *table.columns} and {slot, other} <= condition.slots:
                pair, at = expanded(bounds[row], bounds[row + 1])
                columns = {one: column[row[pair]] for one, column in table.columns.items()}
                holds = joiner.truth(condition, {**columns, slot: events[pair], other: found[at]}, len(pair))
                fits &= np.bincount(pair[~holds], minlength=len(row)) == 0
    row, events = row[fits], events[fits]
    offsets = np.searchsorted(row, np.arange(len(table) + 1)).astype(np.int64)
    own = layout.slots[slot]
    chains = _chains(joiner, table, (slot,), {slot: (offsets, events)})
    begins = (joiner.begin, joiner.end) if table.whole and stream.windowed and not chosen.lists else (0, len(stream))
    sizes = own.count, len(stream) + 1 if own.most is None else own.most
    last = not any((slot, other) in layout.before for other in range(len(layout.slots)))
    at_row = 0
    while at_row < len(table):
        most = limits.ways, limits.events, EVENTS_AT_ONCE
        rows, ends, kept, at_row, cut = choose(offsets, events, chains, stream.reach, sizes, begins, last, at_row, most)
        if cut == runs.FULL or (cut == runs.CUT and not limits.enough):
            raise too_many_ways()
        lists = {other: sliced(*found, rows) for other, found in chosen.lists.items()}
        more = _Chosen(table.take(rows), chosen.source[rows], {**lists, slot: (ends, kept)})
        yield from _chosen(joiner, more, given, limits)


def too_many_ways() -> ArgumentError:
    """The error for what must be listed whole and is too long for it."""
    return ArgumentError(
        "the repeated operands of the pattern can be filled in too many ways around one partial match to list them "
        f"(more than {MOST_WAYS:,}, or too many events); narrow the pattern with WITHIN, PARTITION BY or conditions"
    )


def _found(
    table: Table,
    lists: Mapping[int, tuple[IntArray, IntArray]],
    groups: tuple[int, ...],
    row_of: IntArray,
    offsets: IntArray,
    kept: IntArray,
) -> Collected:
    """Matches that a kernel found; the candidates of picks stay as they are."""
    found: dict[int, tuple[IntArray, IntArray]] = {
        slot: sliced(*lists[slot], row_of) for slot in lists if slot not in groups
    }
    width = len(groups)
    every = np.arange(len(row_of), dtype=np.int64)
    for number, slot in enumerate(groups):
        low, high = offsets[every * width + number], offsets[every * width + number + 1]
        _, at = expanded(low, high)
        found[slot] = (np.append(np.zeros(1, np.int64), np.cumsum(high - low)).astype(np.int64), kept[at])
    ones = {slot: events[row_of] for slot, events in table.columns.items()}
    return Collected(table.part[row_of], ones, found)


def _settled(joiner: Joiner, table: Table) -> bool:
    """Whether each row gives one match: no group depends on what another one collects."""
    return bool(table.columns) and not joiner.layout.pairs and not _coupled(joiner) and joiner.layout.apart


def _coupled(joiner: Joiner) -> bool:
    """Whether what the first group collects and what the last one does share a window."""
    return joiner.stream.windowed and _grows(joiner.layout, 0) and _grows(joiner.layout, -1)


def _grows(layout: Layout, stage: int) -> bool:
    return layout.slots[layout.stages[stage][0]].kind == "group"


def _anchored(joiner: Joiner, table: Table) -> Table:
    """For a linearization without plain operands: one row per event that a match may begin with."""
    groups = joiner.layout.of_kind("group")
    members = [joiner.stream.members[joiner.layout.slots[slot].operand] for slot in groups]
    events = np.unique(np.concatenate(members))
    events = events[(events >= joiner.begin) & (events < joiner.end)]
    return Table({}, joiner.stream.part[events], events, events, table.waiting)


def _two(condition: SlotCondition, groups: tuple[int, ...]) -> tuple[int, int]:
    first, second = sorted(slot for slot in condition.slots if slot in groups)
    return first, second


def _pair_truth(
    joiner: Joiner, table: Table, condition: SlotCondition, lists: Mapping[int, tuple[IntArray, IntArray]]
) -> tuple[IntArray, BoolArray]:
    """Whether a condition over two groups holds: offsets by row, then candidate by candidate of the first group."""
    first, second = _two(condition, joiner.layout.of_kind("group"))
    rows, one, other, offsets = _all_pairs(lists[first], lists[second])
    events = {first: lists[first][1][one], second: lists[second][1][other]}
    events |= {slot: column[rows] for slot, column in table.columns.items()}
    return offsets, joiner.truth(condition, events, len(rows))


def _all_pairs(
    first: tuple[IntArray, IntArray], second: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Row, and places in both lists, of all pairs of candidates of each row; offsets by row."""
    sizes = np.diff(first[0])
    row_of_first = np.repeat(np.arange(len(sizes)), sizes)
    low, high = second[0][row_of_first], second[0][row_of_first + 1]
    one, other = expanded(low, high)
    offsets = np.append(np.zeros(1, np.int64), np.cumsum(sizes * np.diff(second[0])))
    return row_of_first[one].astype(np.int64), one, other, offsets


def _chain_truth(
    joiner: Joiner,
    table: Table,
    slot: int,
    given: tuple[IntArray, IntArray],
    conditions: tuple[SlotCondition, ...],
) -> tuple[IntArray, BoolArray] | None:
    """Whether each candidate of a group may follow each other one: offsets by row; None without a condition."""
    own = [part for part in conditions if part.chain == slot]
    if not own:
        return None
    rows, earlier, later, offsets = _all_pairs(given, given)
    events = {other: column[rows] for other, column in table.columns.items()}
    holds = np.ones(len(rows), np.bool_)
    for condition in own:
        event_of: dict[Reference, IntArray] = {}
        for reference, other in condition.slot_of.items():
            if other != slot:
                event_of[reference] = events[other]
            else:
                event_of[reference] = given[1][earlier if reference.index == "i-1" else later]
        holds &= joiner.judged(condition.predicate, event_of, len(rows))
    return offsets, holds


def _candidates(
    joiner: Joiner, table: Table, lists: Mapping[int, tuple[IntArray, IntArray]], coupled: bool
) -> runs.Candidates:
    """The groups' candidates as the kernel takes them."""
    layout = joiner.layout
    groups = layout.of_kind("group")
    number = {slot: at for at, slot in enumerate(groups)}
    sizes = [len(lists[slot][1]) for slot in groups]
    bases = np.cumsum([0, *sizes[:-1]])
    cut: list[list[int]] = []
    follows = False
    for stage in layout.stages:
        if layout.slots[stage[0]].kind != "group":
            follows = False
        elif follows:
            cut[-1][1] = number[stage[0]] + 1
        else:
            cut.append([number[stage[0]], number[stage[0]] + 1])
            follows = True
    return runs.Candidates(
        offsets=np.stack([lists[slot][0] + base for slot, base in zip(groups, bases, strict=True)]).astype(np.int64),
        events=np.concatenate([lists[slot][1] for slot in groups]),
        least=np.array([layout.slots[slot].count for slot in groups], np.int64),
        runs=np.array(cut, np.int64),
        low=np.ascontiguousarray(table.low),
        high=np.ascontiguousarray(table.high),
        coupled=coupled,
        bare=not table.columns,
        open_end=_grows(layout, -1),
        begin=joiner.begin,
        end=joiner.end,
        operands=np.array([layout.slots[slot].operand for slot in groups], np.int64),
    )


def _chains(
    joiner: Joiner, table: Table, groups: tuple[int, ...], lists: Mapping[int, tuple[IntArray, IntArray]]
) -> runs.Chains:
    """Conditions between neighbours of some groups: comparisons of two values where they are such, all others pair by
    pair.
    """
    found: list[Comparison] = []
    counts = [0]
    judged: list[bool] = []
    pair_offsets = np.zeros((len(groups), len(table)), np.int64)
    pairs: list[BoolArray] = []
    size = 0
    for number, slot in enumerate(groups):
        rest: list[SlotCondition] = []
        for condition in joiner.layout.chains:
            if condition.chain != slot:
                continue
            made = chain_comparison(joiner, condition)
            if made is None:
                rest.append(condition)
            else:
                found.append(made)
        counts.append(len(found))
        judged.append(bool(rest))
        truth = _chain_truth(joiner, table, slot, lists[slot], tuple(rest))
        if truth is not None:
            pair_offsets[number] = truth[0][:-1] + size
            pairs.append(truth[1])
            size += len(truth[1])
    return runs.Chains(
        offsets=np.array(counts, np.int64),
        comparisons=comparisons_of(found, len(joiner.stream)),
        judged=np.array(judged, np.bool_),
        pair_offsets=pair_offsets,
        pairs=np.concatenate([np.zeros(0, np.bool_), *pairs]),
    )


def chain_comparison(joiner: Joiner, condition: SlotCondition) -> Comparison | None:
    """A condition between neighbours as a comparison of two values; None where all pairs of events must be judged."""
    if id(condition) not in joiner.compared:
        alone = condition.slots == {condition.chain}
        made = comparison(condition.predicate, _is_later, joiner.stream) if alone else None
        joiner.compared[id(condition)] = made
    return joiner.compared[id(condition)]


def _is_later(reference: Reference) -> bool:
    return reference.index != "i-1"

"""The values of measures' atoms, for each match or for each of its rows.

A navigation takes a value of any type from its row. Of aggregates, those that do not need Spark are computed here with
Spark's types and NULLs; a sum of integers beyond 64 bits is an error, as in ANSI mode. Of the others, `rows_aggregated`
tells the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.language.row_pattern.tree import OMIT_EMPTY, WITH_UNMATCHED, Clause
from patternlake.udfs.measures import decimals
from patternlake.udfs.measures.kernels.running import running_least, running_sums
from patternlake.udfs.measures.matched_rows import Matches
from patternlake.udfs.measures.seen import FIRST, Seen
from patternlake.udfs.measures.translation import (
    CLASSIFIER,
    MATCH_NUMBER,
    ROWS,
    AggregateAtom,
    Atom,
    ClassifierAtom,
    MatchNumberAtom,
    NavigationAtom,
)
from patternlake.udfs.own_names import OWN

LISTS, NUMBER = f"{OWN}lists", f"{OWN}number"
"""A column of answers: the rows of all aggregates that Spark folds; and in this the number of a row's aggregate."""
_LISTS = frozenset({"array_agg", "collect_list"})


@dataclass(frozen=True)
class RowsShown:
    """The rows of the answer.

    Attributes
    ----------
    matches
        int64[k]: the number among all matches; -1 for a row that is of none.
    taken
        int64[k]: how many rows of the match are up to the one shown, which are those that RUNNING looks at; 0 for an
        empty match.
    rows
        int64[k]: the input's row that is shown; of ONE ROW PER MATCH, and of an empty match, the one it begins with.
    """

    matches: IntArray
    taken: IntArray
    rows: IntArray


def rows_shown(matches: Matches, clause: Clause) -> RowsShown:
    """The rows that ONE ROW or ALL ROWS PER MATCH gives, match by match, then unmatched ones."""
    number = np.arange(len(matches.starts))
    if not clause.all_rows:
        return RowsShown(number, matches.lengths, matches.starts)
    of_row = np.repeat(number, matches.lengths)
    within = np.arange(len(matches.rows)) - matches.offsets[of_row] + 1
    shown = ~matches.excluded
    empty = np.flatnonzero(matches.lengths == 0) if clause.rows != OMIT_EMPTY else number[:0]
    unmatched = matches.unmatched if clause.rows == WITH_UNMATCHED else number[:0]
    match = np.concatenate([of_row[shown], empty])
    taken = np.concatenate([within[shown], np.zeros(len(empty), np.int64)])
    rows = np.concatenate([matches.rows[shown], matches.starts[empty]])
    order = np.argsort(match, kind="stable")
    nothing = np.zeros(len(unmatched), np.int64)
    return RowsShown(
        np.concatenate([match[order], nothing - 1]),
        np.concatenate([taken[order], nothing]),
        np.concatenate([rows[order], unmatched]),
    )


def is_computed_here(atom: Atom, type_: Any = None) -> bool:
    """Whether `AtomValues.of` knows an atom; `type_` is the Arrow type of an aggregate's column."""
    if not isinstance(atom, AggregateAtom):
        return True
    if atom.column is None or atom.column == ROWS:
        return atom.column == ROWS and atom.name == "count"
    if atom.column == CLASSIFIER:
        type_ = pa.string()
    nested = pa.types.is_nested(type_) or pa.types.is_null(type_) or pa.types.is_interval(type_)
    if atom.name in (*_LISTS, "count"):
        return not (nested and atom.distinct)
    if atom.name in ("min", "max"):
        return not nested
    if atom.name == "sum" and decimals.is_summed_here(type_):
        return True
    return atom.name in ("sum", "avg", "mean") and (pa.types.is_integer(type_) or pa.types.is_floating(type_))


class AtomValues:
    """Computes atoms of some matches.

    Parameters
    ----------
    clause
        The clause.
    matches
        Its matches, of `match_rows`.
    partitions
        int64[p + 1]: as `match_rows` had them.
    columns
        By the texts of `Measures.columns`, their values in each row as Arrow arrays.
    shown
        The rows of the answer; by default those of `rows_shown`.

    Examples
    --------
    >>> from patternlake.udfs.language.row_pattern.parser import parse_clause
    >>> from patternlake.udfs.rows.matches import match_rows
    >>> from patternlake.udfs.measures.translation import read_measures
    >>> from patternlake.udfs.rows.query import compile_pattern
    >>> clause = parse_clause("MEASURES sum(a.price) AS s, LAST(b.price) AS l PATTERN (a a b)")
    >>> measures, partitions = read_measures(clause, {"price": "int"}), np.array([0, 6])
    >>> matches = match_rows(compile_pattern(clause), np.full((2, 6), True), partitions)
    >>> values = AtomValues(clause, matches, partitions, {"price": pa.array([1, 2, 3, 4, None, 6])})
    >>> [values.of(atom).to_pylist() for atom in measures.atoms]
    [[3, 4], [3, 6]]
    """

    def __init__(
        self,
        clause: Clause,
        matches: Matches,
        partitions: IntArray,
        columns: Mapping[str, Any],
        shown: RowsShown | None = None,
    ) -> None:
        self.clause = clause
        self.matches = matches
        self.partitions = partitions
        self.columns = {
            name: column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            for name, column in columns.items()
        }
        self.shown = rows_shown(matches, clause) if shown is None else shown
        self.there = self.shown.matches >= 0
        self.match = np.where(self.there, self.shown.matches, 0)

    def of(self, atom: Atom) -> Any:
        """An atom's value in each row of the answer, as an Arrow array; NULL in rows of no match.

        Raises
        ------
        ArgumentError
            It is an aggregate that only Spark knows, see `is_computed_here`, or a sum beyond 64 bits.
        """
        match atom:
            case MatchNumberAtom():
                numbers = self.matches.numbers
                return pa.array(numbers[self.match] if len(numbers) else self.match, pa.int64(), mask=~self.there)
            case NavigationAtom():
                row, there = self.row(atom.seen, final=atom.final)
                return self.columns[atom.column].take(pa.array(row, pa.int64(), mask=~there))
            case ClassifierAtom():
                return self.classifier(atom)
            case AggregateAtom():
                return self.aggregate(atom)

    def bounds(self, *, final: bool) -> tuple[IntArray, IntArray]:
        """Where the rows that an atom looks at begin and end among those of all matches."""
        if not len(self.matches.starts):
            return self.match * 0, self.match * 0
        begin = self.matches.offsets[self.match]
        taken = self.matches.lengths[self.match] if final else self.shown.taken
        return begin, np.where(self.there, begin + taken, begin)

    def is_of(self, variables: tuple[str, ...]) -> BoolArray:
        """bool[r]: which rows of matches are of some variables."""
        if not variables:
            return np.full(len(self.matches.rows), True)
        known = np.array([name in variables for name in self.clause.variables], np.bool_)
        return known[self.matches.variables]

    def row(self, seen: Seen, *, final: bool) -> tuple[IntArray, BoolArray]:
        """The input's row that a navigation looks at, and whether there is one."""
        member = self.is_of(seen.variables)
        if not member.any():
            return self.match * 0, np.zeros(len(self.match), np.bool_)
        place, count = np.flatnonzero(member), _counts(member)
        begin, end = self.bounds(final=final)
        first, behind = count[begin], count[end]
        at = first + seen.offset if seen.kind == FIRST else behind - 1 - seen.offset
        there = (first <= at) & (at < behind)
        row = self.matches.rows[place[np.where(there, at, 0)]]
        partition = np.searchsorted(self.partitions, row, side="right") - 1
        shifted = row + seen.shift
        there &= (self.partitions[partition] <= shifted) & (shifted < self.partitions[partition + 1])
        return np.where(there, shifted, 0), there

    def classifier(self, atom: ClassifierAtom) -> Any:
        """The variable of a row; NULL of one that is not of the match.

        NEXT may lead behind the rows that RUNNING looks at: the match is known, and its rows' variables with it.
        """
        row, there = self.row(atom.seen, final=atom.final)
        if not there.any():
            return pa.nulls(len(row), pa.string())
        begin, end = self.bounds(final=True)
        at = begin + row - self.matches.starts[self.match]
        there = there & (begin <= at) & (at < end)
        return self.labels(self.matches.variables[np.where(there, at, 0)], there)

    def labels(self, variables: Any, there: BoolArray | None = None) -> Any:
        """Names of variables by their numbers."""
        numbers = pa.array(variables, pa.int32(), mask=None if there is None else ~there)
        return pa.array(self.clause.variables, pa.string()).take(numbers)

    def rows_aggregated(self, atom: AggregateAtom) -> tuple[IntArray, IntArray]:
        """The rows that Spark folds for an aggregate: it leaves out by itself what NULL or DISTINCT leave out.

        Returns
        -------
        (int64[k + 1], int64[.])
            Where those of each row of the answer begin, and their places among the rows of all matches
            (`Matches.rows`, `Matches.variables`).
        """
        return self.lists(self.find_counted(atom), final=atom.final)

    def count_folded(self, atom: AggregateAtom) -> int:
        """How many rows `lists_of` lists for an aggregate."""
        count = _counts(self.find_counted(atom))
        begin, end = self.bounds(final=atom.final)
        return int((count[end] - count[begin]).sum())

    def lists_of(self, aggregates: Sequence[AggregateAtom], columns: Mapping[str, Any]) -> Any:
        """For each row of the answer the rows of aggregates that Spark folds, one aggregate behind the other.

        Parameters
        ----------
        aggregates
            The aggregates, numbered from 0.
        columns
            By names, what their texts name of a row.
        """
        parts = [self.rows_aggregated(atom) for atom in aggregates]
        answer = np.concatenate([np.repeat(np.arange(len(begin) - 1), np.diff(begin)) for begin, _ in parts])
        number = np.repeat(np.arange(len(parts)), [len(place) for _, place in parts])
        place = np.concatenate([place for _, place in parts])
        order = np.argsort(answer, kind="stable")
        answer, number, place = answer[order], number[order], place[order]
        row = pa.array(self.matches.rows[place], pa.int64())
        fields = {NUMBER: pa.array(number, pa.int32())}
        for name, column in columns.items():
            taken = column.take(row)
            fields[name] = taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken
        fields[CLASSIFIER] = self.labels(self.matches.variables[place])
        fields[MATCH_NUMBER] = pa.array(self.matches.numbers[self.match_of(place)], pa.int64())
        structs = pa.StructArray.from_arrays(list(fields.values()), list(fields))
        offsets = np.searchsorted(answer, np.arange(len(self.shown.rows) + 1))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)

    def lists(self, member: BoolArray, *, final: bool) -> tuple[IntArray, IntArray]:
        """The members of each row of the answer, one list behind the other."""
        place, count = np.flatnonzero(member), _counts(member)
        begin, end = self.bounds(final=final)
        first, sizes = count[begin], count[end] - count[begin]
        offsets = np.cumsum(np.concatenate([[0], sizes])).astype(np.int64)
        at = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], sizes)
        return offsets, place[at]

    def find_counted(self, atom: AggregateAtom) -> BoolArray:
        """Which rows of matches are of an aggregate's variables and meet its condition."""
        member = self.is_of(atom.variables)
        if atom.condition is None:
            return member
        found = self.columns[atom.condition].take(pa.array(self.matches.rows, pa.int64()))
        holds = pc.fill_null(found.cast(pa.bool_()), False)  # NULL alone has a type of its own
        return member & holds.to_numpy(zero_copy_only=False)

    def members(self, atom: AggregateAtom) -> tuple[BoolArray, Any]:
        """Which rows of matches an aggregate counts, and its column's values in these rows."""
        member = self.find_counted(atom)
        if atom.column is None or atom.column == ROWS:
            return member, None
        labels, rows = atom.column == CLASSIFIER, pa.array(self.matches.rows, pa.int64())
        values = self.labels(self.matches.variables) if labels else self.columns[atom.column].take(rows)
        member = member & values.is_valid().to_numpy(zero_copy_only=False)
        if atom.distinct:
            # Of equal values in a match the first one counts; so it does for the rows up to any later one.
            # Both zeros are equal.
            keyed = pc.add(values, 0.0) if pa.types.is_floating(values.type) else values
            codes = pc.fill_null(keyed.dictionary_encode().indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
            place = np.flatnonzero(member)
            keys = self.match_of(place) * (codes.max(initial=0) + 1) + codes[place]
            member = np.zeros(len(member), np.bool_)
            member[place[np.unique(keys, return_index=True)[1]]] = True
        return member, values

    def match_of(self, place: IntArray) -> IntArray:
        """The match of some rows of matches."""
        return np.searchsorted(self.matches.offsets, place, side="right") - 1

    def aggregate(self, atom: AggregateAtom) -> Any:
        """An aggregate's value in each row of the answer."""
        type_ = self.columns[atom.column].type if atom.column in self.columns else None
        if not is_computed_here(atom, type_):
            raise ArgumentError(f"the aggregate {shorten(atom.sql)} of {type_} is to be computed by Spark")
        member, values = self.members(atom)
        if atom.name in _LISTS:
            offsets, at = self.lists(member, final=atom.final)
            made = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values.take(pa.array(at, pa.int64())))
            return made if self.there.all() else pc.if_else(pa.array(self.there), made, pa.scalar(None, made.type))
        place, count = np.flatnonzero(member), _counts(member)
        begin, end = self.bounds(final=atom.final)
        sizes, last = count[end] - count[begin], count[end] - 1
        if atom.name == "count":
            return pa.array(sizes, pa.int64(), mask=~self.there)
        some = sizes > 0
        last = np.where(some, last, 0)
        if not len(place):
            return pa.nulls(len(some), _type_of(atom, values.type))
        given = values.take(pa.array(place, pa.int64()))
        groups = self.match_of(place)
        if atom.name in ("min", "max"):
            best = running_least(_keys(given, falling=atom.name == "max"), groups)
            return given.take(pa.array(best[last], pa.int64(), mask=~some))
        if atom.name == "sum" and pa.types.is_integer(given.type):
            sums = _sum_between(given.cast(pa.int64()).to_numpy(zero_copy_only=False), count[begin], count[end])
            if sums is None:
                raise ArgumentError(
                    f"{shorten(atom.sql)} is beyond BIGINT; write try_sum, which is NULL then, or sum a DECIMAL(38,0)"
                )
            return pa.array(sums, pa.int64(), mask=~some)
        if atom.name == "sum" and decimals.is_summed_here(given.type):
            sums = decimals.sum_between(given, count[begin], count[end])
            return sums if some.all() else pc.if_else(pa.array(some), sums, pa.scalar(None, sums.type))
        totals = running_sums(given.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), groups)[last]
        if atom.name != "sum":
            totals = totals / np.maximum(sizes, 1)
        return pa.array(totals, pa.float64(), mask=~some, from_pandas=False)


def _sum_between(values: IntArray, begin: IntArray, end: IntArray) -> IntArray | None:
    """int64[k]: sums of runs of values; None where one is beyond 64 bits."""
    most = max(map(abs, (int(values.min(initial=0)), int(values.max(initial=0)))))
    if most * len(values) >= 1 << 63:
        high, low = (np.concatenate([[0], np.cumsum(half)]) for half in (values >> 32, values & 0xFFFFFFFF))
        upper = high[end] - high[begin] + ((low[end] - low[begin]) >> 32)
        if ((upper < -(1 << 31)) | (upper >= 1 << 31)).any():
            return None
    sums = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(sums[end] - sums[begin])


def _counts(member: BoolArray) -> IntArray:
    """int64[r + 1]: how many members there are before each row."""
    return np.concatenate([[0], np.cumsum(member)]).astype(np.int64)


def _type_of(atom: AggregateAtom, type_: Any) -> Any:
    """The type of a sum, an average, a least or greatest value."""
    if atom.name in ("min", "max"):
        return type_
    if atom.name == "sum" and decimals.is_summed_here(type_):
        return decimals.type_of_sum(type_)
    return pa.int64() if atom.name == "sum" and pa.types.is_integer(type_) else pa.float64()


def _keys(values: Any, *, falling: bool) -> IntArray:
    """Integers in the order of values, NaN above all others as in Spark."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    keys = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    return -keys if falling else keys

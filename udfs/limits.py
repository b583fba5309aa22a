"""Limits of what a user may write, of the rows of an answer, and of the events that one task holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from patternlake.udfs.digits import show_number
from patternlake.udfs.errors import ArgumentError

MAX_MATCHES = 1_000_000
"""Rows of a partition, or of an answer without partitions, if nothing else is asked for."""

WHOLE_EVENTS = 4_000_000
"""Greatest number of events that one task takes in where nothing divides them."""

MOST_NAMES = 1000
"""Different names in a pattern over a sketch, or over uncertain events: each of them is tested on each node or step."""

MOST_DIGITS = 100
"""Characters of a number in the configuration; Python takes minutes for the digits that YAML would let it read."""

MOST_LEVELS = 100
"""How deep lists and sections of the configuration may stand in each other; each level is one of recursion."""

MOST_REPEATED = 100_000
"""Values that a configuration's aliases may repeat in all: a few aliases of aliases stand for billions."""

Answer = TypeVar("Answer")


class TooManyMatchesError(ArgumentError):
    """A partition, or an answer without partitions, has more rows than asked for, or than can be held."""


def too_many(total: int, max_matches: int, *, complete: bool = True) -> TooManyMatchesError:
    """The error for more rows than allowed.

    Parameters
    ----------
    total
        Their number, or how many were counted so far.
    max_matches
        How many are allowed.
    complete
        Whether all were counted.
    """
    written = f"{total:,}" if total <= 1 << 62 else show_number(total)
    count = written if complete and total < 1 << 62 else f"at least {written}"
    return TooManyMatchesError(
        f"the pattern has {count} matches, more than max_matches = {max_matches:,}; "
        "raise max_matches, narrow the question, or ask with truncate => true for the first rows"
    )


def by_partition(
    first: int,
    last: int,
    run: Callable[[int, int], Answer],
    alone: Callable[[int], Iterator[Answer]] | None = None,
) -> Iterator[Answer]:
    """Answer partitions together where all of them have no more rows than one may have, else half by half.

    Parameters
    ----------
    first, last
        Numbers of the first partition, and of the one behind the last.
    run
        Answers partitions `first` to `last` (exclusive); raises `TooManyMatchesError`, of one partition too, unless
        it may be cut.
    alone
        Answers a partition that has more rows, in portions; None: that is an error.

    Yields
    ------
    What `run` and `alone` give, in the order of the partitions.
    """
    try:
        answer = run(first, last)
    except TooManyMatchesError:
        if last - first <= 1 and alone is None:
            raise
    else:
        yield answer
        return
    if last - first <= 1:
        assert alone is not None
        yield from alone(first)
        return
    middle = (first + last) // 2
    yield from by_partition(first, middle, run, alone)
    yield from by_partition(middle, last, run, alone)

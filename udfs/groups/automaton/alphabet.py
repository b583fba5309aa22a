"""What a pattern tells apart in an event: its symbols, and the classes of events that they make.

A **symbol** is what one or more operands ask of an event: a name or a DEFINE primitive, with the conjuncts of WHERE
over the operand. A **class** is a set of symbols that can hold of one event together: names exclude one another, while
predicates may hold or not. Class 0 holds of no symbol; it is the implicit "other" event as well. A **letter** is what a
place of the pattern takes: a symbol, what none of some symbols holds of (``!b``), or anything (``_``). The last two
take class 0 too, and with it what is missing from a step, and steps without events: they are **open**.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray, SmallArray
from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.predicates import Predicate
from patternlake.udfs.language.query.tree import Query

MAX_CLASSES = 4096
"""Classes of events that an alphabet may have; twelve predicates that may hold together make as many."""


@dataclass(frozen=True)
class Symbol:
    """What an operand asks of an event.

    Attributes
    ----------
    name
        Event name, or DEFINE primitive.
    define
        The predicate of the primitive, over bare columns; None: the event's name must equal `name`.
    filter
        The conjuncts of WHERE over one event; None where there are none.
    """

    name: str
    define: Predicate | None
    filter: Predicate | None

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """Its predicates, none for a bare name."""
        return tuple(part for part in (self.define, self.filter) if part is not None)


@dataclass(frozen=True)
class Letter:
    """What a place of the pattern takes.

    Attributes
    ----------
    shown
        As answers call it.
    symbols
        Numbers of symbols.
    open
        True: events of which none of the symbols holds; False: those of which the one symbol holds.
    """

    shown: str
    symbols: tuple[int, ...]
    open: bool = False


@dataclass(frozen=True)
class Alphabet:
    """Symbols, and the classes of events that they make.

    Attributes
    ----------
    symbols
        In the order of their first operands.
    letters
        In the order of their first places.
    names
        Event names that symbols ask for.
    member
        bool[classes, letters]: whether a letter takes the events of a class.
    offset
        int64[names + 1]: the first class of each name, any other name coming first.
    judged
        For any other name and for each of `names`: the symbols with predicates that may hold of it; the j-th of them
        adds 2^j to the class.
    """

    symbols: tuple[Symbol, ...]
    letters: tuple[Letter, ...]
    names: tuple[str, ...]
    member: BoolArray
    offset: IntArray
    judged: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, symbols: tuple[Symbol, ...], letters: tuple[Letter, ...], query: Query) -> Alphabet:
        """The alphabet of some symbols and letters.

        Raises
        ------
        UnsupportedOperatorError
            The predicates make more than `MAX_CLASSES` classes.
        """
        names = tuple(dict.fromkeys(symbol.name for symbol in symbols if symbol.define is None))
        certain: list[list[int]] = []
        judged: list[tuple[int, ...]] = []
        defined = [n for n, symbol in enumerate(symbols) if symbol.define is not None]
        of_name: dict[str, list[int]] = {name: [] for name in names}
        for n, each in enumerate(symbols):
            if each.define is None:
                of_name[each.name].append(n)
        for mine in ([], *of_name.values()):
            certain.append([n for n in mine if symbols[n].filter is None])
            judged.append(tuple(sorted(defined + [n for n in mine if symbols[n].filter is not None])))
        count = sum(2 ** len(part) for part in judged)
        if count > MAX_CLASSES:
            place = query.pattern.span
            raise UnsupportedOperatorError(
                f"the predicates of DEFINE and WHERE tell {count} classes of events apart, more than {MAX_CLASSES}; "
                "use fewer of them in one pattern",
                query.text,
                place.start,
                place.end,
            )
        offset = np.cumsum([0, *(2 ** len(part) for part in judged)])[:-1].astype(np.int64)
        holds = np.zeros((count, len(symbols)), np.bool_)
        for first, sure, maybe in zip(offset, certain, judged, strict=True):
            codes = np.arange(2 ** len(maybe))
            holds[first : first + len(codes), sure] = True
            for bit, symbol in enumerate(maybe):
                holds[first : first + len(codes), symbol] = codes >> bit & 1
        taken = [holds[:, list(letter.symbols)].any(axis=1) != letter.open for letter in letters]
        member = np.ascontiguousarray(np.stack(taken, axis=1))
        return cls(symbols, letters, names, member, offset, tuple(judged))

    @property
    def columns(self) -> frozenset[str]:
        """All columns of events that the symbols read."""
        read = {ref.column for symbol in self.symbols for part in symbol.predicates for ref in part.references}
        return frozenset(read | ({"name"} if self.names else set()))

    def classes(self, events: Events) -> SmallArray:
        """The class of each event: int32[n].

        Raises
        ------
        ArgumentError
            A column that a predicate reads is missing.
        """
        places = {name: place for place, name in enumerate(self.names, 1)}
        place = np.array([*(places.get(name, 0) for name in events.vocabulary), 0], np.int64)[events.names]
        found = self.offset[place]
        for number, symbol in enumerate(self.symbols):
            if not symbol.predicates:
                continue
            true = np.logical_and.reduce([events.truth(predicate) for predicate in symbol.predicates])
            weight = np.array([1 << part.index(number) if number in part else 0 for part in self.judged], np.int64)
            found = found + np.where(true, weight[place], 0)
        return found.astype(np.int32)

"""Conditions cut into two sides, so that equality can be looked up and order be compared without the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.language.predicate.coercion import OPEN
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Call, Cast, Expression, Field, Literal
from patternlake.udfs.language.predicate.inference import typed, typed_predicate
from patternlake.udfs.language.predicate.predicates import Predicate, value_of
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.sort_keys import order_keys
from patternlake.udfs.subkernels import inlined

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons, and what they are with their sides exchanged."""
OPERATORS = {"<": 0b001, "=": 0b010, "<=": 0b011, ">": 0b100, "<>": 0b101, ">=": 0b110}
"""Comparisons for kernels: a bit each, from the lowest on, for a left side that is less, equal and greater."""


@dataclass(frozen=True)
class Comparison:
    """``left(one event) operator right(another event)`` for every event of a stream.

    Attributes
    ----------
    operator
        ``= <> < <= > >=``.
    left, right
        int64[m]: keys of either side; their order and equality are those of the values.
    left_known, right_known
        bool[m]: False where the side is NULL, which nothing compares with.
    """

    operator: str
    left: IntArray
    right: IntArray
    left_known: BoolArray
    right_known: BoolArray


class Comparisons(NamedTuple):
    """Several comparisons, c of them, as kernels take them.

    Attributes
    ----------
    operator
        int64[c]: see `OPERATORS`.
    left, right
        int64[c, m].
    left_known, right_known
        bool[c, m].
    """

    operator: IntArray
    left: IntArray
    right: IntArray
    left_known: BoolArray
    right_known: BoolArray


def comparisons_of(made: Sequence[Comparison], size: int) -> Comparisons:
    """Comparisons of a stream of so many events for kernels."""
    keys, known = np.zeros((0, size), np.int64), np.zeros((0, size), np.bool_)
    return Comparisons(
        operator=np.array([OPERATORS[one.operator] for one in made], np.int64),
        left=np.stack([one.left for one in made]) if made else keys,
        right=np.stack([one.right for one in made]) if made else keys,
        left_known=np.stack([one.left_known for one in made]) if made else known,
        right_known=np.stack([one.right_known for one in made]) if made else known,
    )


@inlined
def holds(comparisons: Comparisons, number: int, left: int, right: int) -> bool:
    """Whether one of several comparisons holds for an event on its left and one on its right."""
    first, second = comparisons.left[number, left], comparisons.right[number, right]
    known = comparisons.left_known[number, left] and comparisons.right_known[number, right]
    return bool(known and comparisons.operator[number] >> (1 + (first > second) - (first < second)) & 1)


def sides(
    predicate: Predicate, is_left: Callable[[Reference], bool], stream: Stream
) -> tuple[str, Expression, Expression] | None:
    """A conjunct as a comparison with the references of `is_left` on the left and all others on the right.

    Returns
    -------
    (operator, left, right), both sides cast to one type; None where the conjunct has another form.
    """
    root = _without_gap(predicate.root)
    if not (isinstance(root, Call) and root.operator in FLIPPED):
        return None
    read = [{is_left(part.reference) for part in side.walk() if isinstance(part, Field)} for side in root.arguments]
    if read not in ([{True}, {False}], [{False}, {True}]):
        return None

    def type_of(reference: Reference) -> str:
        return stream.column(reference.column, np.zeros(0, np.int64)).type

    parts = typed_predicate(root, type_of).arguments
    made: list[Expression] = []
    for argument, part in zip(root.arguments, parts, strict=True):
        if part.operator == "literal":
            made.append(Literal(type=part.type, value=part.detail, span=argument.span))
        elif typed(argument, type_of).type in (part.type, OPEN):
            made.append(argument)
        else:
            made.append(Cast(argument=argument, to=part.type, span=argument.span))
    if read[0] == {True}:
        return root.operator, made[0], made[1]
    return FLIPPED[root.operator], made[1], made[0]


def _without_gap(root: Expression) -> Expression:
    """``t(a) - t(b) < 5 MIN`` as ``t(a) < t(b) + 5 MIN``, so that each side is about one event; others as they are."""
    if not (isinstance(root, Call) and root.operator in FLIPPED):
        return root
    match root.arguments:
        case (Call(operator="-", arguments=(Field() as later, Field() as earlier)), Literal(type="interval") as gap):
            operator = root.operator
        case (Literal(type="interval") as gap, Call(operator="-", arguments=(Field() as later, Field() as earlier))):
            operator = FLIPPED[root.operator]
        case _:
            return root
    if later.reference.column != "time" or earlier.reference.column != "time":
        return root
    return Call(operator=operator, arguments=(later, Call(operator="+", arguments=(earlier, gap))), span=root.span)


def comparison(predicate: Predicate, is_left: Callable[[Reference], bool], stream: Stream) -> Comparison | None:
    """The comparison that a conjunct is, computed for every event of a stream; None where it is none."""
    found = sides(predicate, is_left, stream)
    if found is None:
        return None
    operator, left, right = found
    every = np.arange(len(stream), dtype=np.int64)

    def column(side: Expression) -> Column:
        made = value_of(side, lambda reference: stream.column(reference.column, every))
        values = np.broadcast_to(made.values, every.shape)
        return Column(values, np.broadcast_to(made.known, every.shape), made.type)

    first, second = column(left), column(right)
    left_keys, right_keys = order_keys(first, second, ordered=operator not in ("=", "<>"))
    return Comparison(operator, left_keys, right_keys, np.array(first.known), np.array(second.known))

"""Vectorised evaluation of predicates over numpy, in SQL's three-valued logic, as Spark computes with ANSI mode off.

Operands broadcast as numpy does: columns of shape ``(n, 1)`` and ``(1, m)`` give truths of all n × m pairs. NULL is
False in `known`. NaN equals NaN and is greater than any other number; ``x / 0`` and ``x % 0`` are NULL, also for
doubles; ``LN`` and ``LOG`` of nothing positive are NULL; integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from patternlake.udfs.language.predicate.casting import cast
from patternlake.udfs.language.predicate.coercion import Typed
from patternlake.udfs.language.predicate.columns import Column, Truth
from patternlake.udfs.language.predicate.expressions import Expression
from patternlake.udfs.language.predicate.inference import typed, typed_predicate
from patternlake.udfs.language.predicate.kernels import KERNELS
from patternlake.udfs.language.predicate.references import Reference

Resolve = Callable[[Reference], Column]


def evaluate_predicate(expression: Expression, references: tuple[Reference, ...], resolve: Resolve) -> Truth:
    """Truth of an expression for all rows; shapes as numpy broadcasts those of the columns."""
    fetched = {reference: resolve(reference) for reference in references}
    types = tuple((reference, column.type) for reference, column in fetched.items())
    result = _value(_prepare(expression, types, True), fetched)
    values, known = np.broadcast_arrays(result.values, result.known)
    return Truth(values & known, np.asarray(known))


def evaluate_value(expression: Expression, references: tuple[Reference, ...], resolve: Resolve) -> Column:
    """Value of any expression for all rows, such as one side of a comparison."""
    fetched = {reference: resolve(reference) for reference in references}
    types = tuple((reference, column.type) for reference, column in fetched.items())
    return _value(_prepare(expression, types, False), fetched)


@lru_cache(maxsize=1024)
def _prepare(expression: Expression, types: tuple[tuple[Reference, str], ...], is_predicate: bool) -> Typed:
    lookup = dict(types)
    return (typed_predicate if is_predicate else typed)(expression, lookup.__getitem__)


def _value(part: Typed, fetched: Mapping[Reference, Column]) -> Column:
    with np.errstate(all="ignore"):
        return _compute(part, fetched)


def _compute(part: Typed, fetched: Mapping[Reference, Column]) -> Column:
    if part.operator == "literal":
        return _constant(part.type, part.detail)
    if part.operator == "field":
        return fetched[part.detail]
    arguments = [_compute(argument, fetched) for argument in part.arguments]
    if part.operator == "cast":
        return cast(arguments[0], part.detail)
    values, known = KERNELS[part.operator](part, arguments)
    return Column(values, known, part.type)


def _constant(type_: str, value: Any) -> Column:
    fillers: dict[str, Any] = {"string": "", "boolean": False, "null": False}
    filled = fillers.get(type_, 0) if value is None else value
    dtype = object if type_ == "string" else None
    return Column(np.array(filled, dtype=dtype), np.array(value is not None), type_)

"""How often conditions hold, from what is known of the attributes of each event name.

An attribute's values are told by quantiles, which stand for equally many events each. A condition over one event, or
over several that are taken to be independent, is judged on all combinations of such values. What has no quantiles is
told by how many distinct values there are. SPEC section 3 asks for observed selectivities; the paper ("Selectivity of
events") measures how much they matter, and gives no way to find them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Call, Field
from patternlake.udfs.language.predicate.predicates import Predicate, Reference, evaluate, names_admitted

MOST_COMBINATIONS = 200_000
"""Combinations of values that a condition is judged on, at most; with more events in it nothing is estimated."""


@dataclass(frozen=True)
class AttributeCounts:
    """What is known of an attribute of the events of one name.

    Attributes
    ----------
    events, known
        Events, and those among them whose value is not NULL.
    distinct
        About how many values there are.
    quantiles
        Values at equal steps from the least to the greatest; None where values are no numbers.
    """

    events: float
    known: float
    distinct: float
    quantiles: tuple[float, ...] | None


Known = Mapping[str, Mapping[str, AttributeCounts]]
"""By event name and attribute."""


def selectivities(pattern: KleenePattern, known: Known, types: Mapping[str, str]) -> dict[str, float]:
    """Estimate the conditions of a pattern.

    Parameters
    ----------
    pattern
        The compiled pattern.
    known
        Of the events of each name; the stream's key as the attribute ``key``.
    types
        Value type of each attribute (``bigint``, ``double``, …).

    Returns
    -------
    dict
        For `costs.Statistics`: share by the text of each condition that can be estimated.
    """
    names = {operand.name: _names(operand.takes, operand.define, known) for operand in pattern.operands}
    conditions: list[tuple[Predicate, Mapping[str, frozenset[str]]]] = []
    for operand in pattern.operands:
        if operand.filter is not None:
            conditions += [(part, {operand.name: names[operand.name]}) for part in operand.filter.conjuncts]
        if operand.define is not None:
            conditions.append((operand.define, {"": frozenset(known)}))
    conditions += [(condition.predicate, names) for condition in pattern.conditions]
    found = {predicate.sql(): _share(predicate, of, known, types) for predicate, of in conditions}
    everywhere = frozenset[str]().union(*names.values())
    found |= {f"[{name}]": _alike(_merge(everywhere, name, known)) for name in pattern.along}
    return {text: share for text, share in found.items() if share is not None}


def _names(takes: str, define: Predicate | None, known: Known) -> frozenset[str]:
    """Names of the events that an operand takes."""
    admitted = frozenset({takes}) if define is None else names_admitted(define)
    return frozenset(known) if admitted is None else admitted & frozenset(known)


def _merge(names: Iterable[str], attribute: str, known: Known) -> AttributeCounts | None:
    """An attribute of the events of several names."""
    parts = [known[name][attribute] for name in sorted(names) if attribute in known.get(name, {})]
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    quantiles = None
    if all(part.quantiles for part in parts):
        points = np.concatenate([part.quantiles for part in parts if part.quantiles])
        weights = np.concatenate([np.full(len(p.quantiles), p.known / len(p.quantiles)) for p in parts if p.quantiles])
        order = np.argsort(points)
        reached = np.cumsum(weights[order]) - weights[order] / 2
        steps = np.linspace(0, weights.sum(), len(parts[0].quantiles or ()))
        quantiles = tuple(float(value) for value in np.interp(steps, reached, points[order]))
    return AttributeCounts(
        events=sum(part.events for part in parts),
        known=sum(part.known for part in parts),
        distinct=max(part.distinct for part in parts),
        quantiles=quantiles,
    )


def _alike(counts: AttributeCounts | None) -> float | None:
    """How often two events agree in an attribute."""
    if counts is None or counts.events <= 0:
        return None
    return (counts.known / counts.events) ** 2 / max(counts.distinct, 1.0)


def _share(
    predicate: Predicate, names: Mapping[str, frozenset[str]], known: Known, types: Mapping[str, str]
) -> float | None:
    """How often a condition holds; None where nothing tells."""
    references = sorted(predicate.references, key=repr)
    counts: dict[Reference, AttributeCounts] = {}
    for reference in references:
        found = _merge(names.get(reference.operand or "", frozenset()), reference.column, known)
        if found is None or found.events <= 0:
            return None
        counts[reference] = found
    there = float(np.prod([one.known / one.events for one in counts.values()]))
    root = predicate.root
    if isinstance(root, Call) and root.operator in ("=", "<>") and any(isinstance(a, Field) for a in root.arguments):
        equal = 1.0 / max([1.0, *(one.distinct for one in counts.values())])
        return there * (equal if root.operator == "=" else 1.0 - equal)
    if not references or any(one.quantiles is None for one in counts.values()):
        return None
    values = [_middles(counts[reference].quantiles or ()) for reference in references]
    if np.prod([len(points) for points in values]) > MOST_COMBINATIONS:
        return None
    grids = dict(zip(references, np.meshgrid(*values, indexing="ij"), strict=True))

    def resolve(reference: Reference) -> Column:
        points = grids[reference]
        type_ = types.get(reference.column, "double")
        typed = np.round(points).astype(np.int64) if type_ in ("bigint", "timestamp", "date") else points
        return Column(typed, np.ones(points.shape, np.bool_), type_)

    shape = next(iter(grids.values())).shape
    return there * float(np.broadcast_to(evaluate(predicate, resolve).true, shape).mean())


def _middles(quantiles: tuple[float, ...]) -> np.ndarray:
    """Values that stand for equally many events each."""
    points = np.asarray(quantiles, np.float64)
    return points if len(points) < 2 else (points[1:] + points[:-1]) / 2

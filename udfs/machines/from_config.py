"""Subscriptions as a configuration holds them, compiled and put together with those that can share states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from patternlake.udfs.errors import ConfigurationError, PatternLakeError
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.graph.merged import graph_of
from patternlake.udfs.machines.kernels.tables import Compiled, compiled
from patternlake.udfs.machines.query import Subscription, compile_subscription


@dataclass(frozen=True)
class Group:
    """Subscriptions that can share states: of one partition, window and decay.

    Attributes
    ----------
    names
        Of the subscriptions, by their number in `compiled`.
    compiled
        All of them.
    decay
        Share of a count that is lost in a day.
    """

    names: tuple[str, ...]
    compiled: Compiled
    decay: float

    @property
    def partition(self) -> tuple[str, ...]:
        """Columns of PARTITION BY."""
        return self.compiled.subscriptions[0].partition


def subscription_of(entry: Mapping[str, Any], stream: Mapping[str, Any]) -> Subscription:
    """Compile one subscription.

    Parameters
    ----------
    entry
        ``query`` and ``params``.
    stream
        The stream's configuration, with ``attributes`` and ``key``.

    Raises
    ------
    PatternLakeError
        What is wrong with the query, with its place.
    """
    return compile_subscription(parse(entry["query"]), Scope.of_stream(stream, entry.get("params")))


def groups_of(
    entries: Mapping[str, Mapping[str, Any]], stream: Mapping[str, Any], *, apart: bool = False
) -> list[Group]:
    """Compile the subscriptions to a stream.

    Parameters
    ----------
    entries
        Name to ``query``, ``params`` and ``decay``.
    stream
        The stream's configuration.
    apart
        Share no states and keep all instances that differ, so that it can be told who descends from whom.

    Raises
    ------
    ConfigurationError
        What is wrong with a subscription, which it names.
    """
    together: dict[tuple[Any, ...], tuple[list[str], list[Subscription]]] = {}
    for name, entry in entries.items():
        try:
            made = subscription_of(entry, stream)
        except PatternLakeError as error:
            raise ConfigurationError(f"subscriptions.{name}.query: {error}") from error
        shared = made.partition, made.within and (made.within.amount, made.within.counted), float(entry["decay"])
        names, some = together.setdefault(shared, ([], []))
        names.append(name)
        some.append(made)
    return [
        Group(tuple(names), _together(names, some, shared, apart=apart), shared[2])
        for shared, (names, some) in together.items()
    ]


def columns_read(groups: Iterable[Group]) -> set[str]:
    """Names of all columns of events that the subscriptions of some groups read."""
    return {column for group in groups for one in group.compiled.subscriptions for column in one.columns}


def _together(names: Sequence[str], some: Sequence[Subscription], shared: tuple[Any, ...], *, apart: bool) -> Compiled:
    try:
        return compiled(some, root=_root(shared), merge=not apart, dominate=not apart)
    except PatternLakeError:
        for name, one in zip(names, some, strict=True):
            try:
                graph_of([one])
            except PatternLakeError as error:
                raise ConfigurationError(f"subscriptions.{name}.query: {error}") from error
        raise


def _root(shared: tuple[Any, ...]) -> str:
    """The id of the initial state of a group."""
    return blake2b(repr(shared).encode(), digest_size=12).hexdigest()

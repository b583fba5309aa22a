"""Subscriptions as the jobs that run machines take them: checked, grouped by partition, with the events they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.spark.measure_columns import check_measures
from patternlake.delta_tables.tables.publications import Publication
from patternlake.udfs.attributes import attribute_columns
from patternlake.udfs.errors import ConfigurationError, PredicateError
from patternlake.udfs.events import EVENT_COLUMNS
from patternlake.udfs.machines.from_config import Group, columns_read, groups_of, subscription_of

Entries = Mapping[str, Mapping[str, Any]]
"""By name: the meaning of a subscription, as it is configured."""


_MATCH_COLUMNS = ("key", "first_position", "last_position", "first_time", "last_time", "bindings")


def check(entries: Entries, stream: Publication) -> None:
    """Refuse subscriptions that do not compile, and a stream whose events never settle.

    Raises
    ------
    ConfigurationError
        Naming the subscription, or the stream.
    """
    groups_of(entries, stream.configuration)
    if entries and stream.source_to and stream.watermark is None:
        raise ConfigurationError(
            f"subscriptions.{next(iter(entries))}.stream: events of {stream.object!r} never settle, as its "
            "allowed_lateness is none; subscriptions take events below the watermark: give it a duration"
        )


def refuse_new_meanings(entries: Entries, stream: Publication, last: Publication) -> None:
    """Refuse subscriptions of which a name means an attribute now that the stream did not have before.

    Parameters
    ----------
    entries
        Those that go on from what is kept. They compiled without the attribute, so that the name was another one:
        the key's column, or a parameter.
    stream, last
        The publications of the stream now, and of the job that goes on.

    Raises
    ------
    ConfigurationError
        Naming the subscription and the attribute.
    """
    added = stream.configuration["attributes"].keys() - last.configuration["stream"]["attributes"].keys()
    if not added:
        return
    for name, entry in entries.items():
        one = subscription_of(entry, stream.configuration)
        for attribute in sorted(added & {*one.columns, *one.partition}):
            raise ConfigurationError(
                f"subscriptions.{name}.query: {attribute!r} is an attribute of the stream {stream.object!r} now, and "
                "was the key or a parameter when the subscription began; what is kept would not fit together with "
                "what comes: run `predict` with --rebuild"
            )


def check_measures_of(spark: SparkSession, entries: Entries, stream: Publication) -> None:
    """Refuse subscriptions with measures that `match_subscription` could not give.

    Raises
    ------
    ConfigurationError
        Naming the subscription.
    """
    for name, entry in entries.items():
        try:
            check_measures(spark, subscription_of(entry, stream.configuration).measures, _MATCH_COLUMNS)
        except PredicateError as error:
            raise ConfigurationError(f"subscriptions.{name}.query: {error}") from error


def events_of(
    where: Sequence[Condition], columns: tuple[str, ...], groups: Sequence[Group], types: Mapping[str, str]
) -> Gather:
    """Gather events by some columns of PARTITION BY, with the attributes that subscriptions read."""
    attributes = attribute_columns({*columns_read(groups), *columns}, types)
    return Gather("events", (*EVENT_COLUMNS, *attributes), tuple(where), columns)


def by_partition(groups: Sequence[Group]) -> dict[tuple[str, ...], list[Group]]:
    """Groups by their columns of PARTITION BY."""
    found: dict[tuple[str, ...], list[Group]] = {}
    for group in groups:
        found.setdefault(group.partition, []).append(group)
    return found


def order_groups(groups: Sequence[Group]) -> list[Group]:
    """Those with one partition side by side, as passes number them."""
    return [group for some in by_partition(groups).values() for group in some]

"""Compiles the queries of a configuration over the streams that they read, as the jobs do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patternlake.udfs.errors import ConfigurationError

if TYPE_CHECKING:
    from patternlake.jobs.configuration.streams import StreamConfiguration


def check_query(section: str, meaning: dict[str, Any], stream: StreamConfiguration) -> None:
    """Refuse a query that its job would refuse.

    Parameters
    ----------
    section
        Name of the section: ``trends``, ``groups``, ``patterns`` or ``subscriptions``.
    meaning
        What the object means.
    stream
        The stream that it reads.

    Raises
    ------
    PatternLakeError
        What is wrong with the query, with its place.
    """
    # Imported when a configuration is loaded: what compiles kernels takes a second.
    from patternlake.udfs.groups.from_config import query_of
    from patternlake.udfs.kleene.from_config import pattern_of, unfit
    from patternlake.udfs.machines.from_config import subscription_of
    from patternlake.udfs.trends.from_config import layout_of

    configuration = {**meaning, "stream": stream.meaning}
    if section == "trends":
        layout_of(configuration)
    elif section == "groups":
        query_of(configuration)
    elif section == "subscriptions":
        subscription_of(meaning, stream.meaning)
    else:
        wrong = unfit(pattern_of(configuration), meaning["after_match"])
        if wrong is not None:
            raise ConfigurationError(wrong)

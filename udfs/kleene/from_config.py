"""A kept pattern as a configuration holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patternlake.udfs.kleene.query import KleenePattern, compile_pattern
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.over_streams import parse_over
from patternlake.udfs.requests import compile_once


def pattern_of(configuration: Mapping[str, Any]) -> KleenePattern:
    """Compile the query of a configuration.

    Parameters
    ----------
    configuration
        ``query``, ``policy``, ``params``, and ``stream``: the stream's own configuration, with ``attributes`` and
        ``key``; ``repetition`` where it is not ``maximal``.

    Raises
    ------
    PatternLakeError
        What is wrong with the query, with its place.
    """
    parts = (configuration[name] for name in ("query", "stream", "params", "policy"))
    return compile_once(compile_text, *parts, repetition_of(configuration))


def repetition_of(configuration: Mapping[str, Any]) -> str:
    """What the repetitions of a configured pattern collect; one that was published before there was a choice, all that
    can be added.
    """
    return str(configuration.get("repetition", "maximal"))


def compile_text(
    text: str, stream: Mapping[str, Any], parameters: Mapping[str, Any], policy: str, repetition: str
) -> KleenePattern:
    """Compile a pattern over a stream of a configuration."""
    scope = Scope.of_stream(stream, parameters)
    return compile_pattern(parse_over(text, stream), scope, policy=policy, repetition=repetition)


def unfit(pattern: KleenePattern, after_match: str = "next") -> str | None:
    """What keeps a pattern from being kept; None: nothing does."""
    if pattern.within is not None:
        if pattern.within.counted and pattern.beyond_window:
            return (
                "a deadline in time stands beside WITHIN in events, so a quiet partition would keep matches that are "
                "due; write the window in time, too, such as WITHIN 1 HOUR, or the deadline as WITHIN"
            )
        if after_match != "next" and pattern.looked_at_first:
            return (
                f"what must not come first may lie in the match before, and {after_match} forgets that once it is "
                "written; keep the pattern with after_match: next, or ask match_pattern for the text itself"
            )
        return None
    return (
        "the pattern has no WITHIN, so every event could take part in a match for ever, and what is kept would grow "
        "with the stream; add one, such as WITHIN 1 HOUR or WITHIN 100 EVENTS, or ask match_pattern for the text itself"
    )


def arguments_of(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `match_pattern` that ask for the same, from the first event on."""
    return {
        "stream": configuration["stream_name"],
        "pattern": configuration["query"],
        "policy": configuration["policy"],
        "after_match": configuration["after_match"],
        "repetition": repetition_of(configuration),
        "params": dict(configuration["params"]),
    }

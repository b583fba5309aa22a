"""Checks that every SQL function makes of its arguments."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from patternlake.udfs.errors import ArgumentError, shortened


def given(arguments: Mapping[str, Any], name: str, default: Any) -> Any:
    """The value of an argument; NULL stands for its default."""
    value = arguments.get(name)
    return default if value is None else value


def check_bounds(arguments: Mapping[str, Any], *pairs: tuple[str, str]) -> None:
    """Refuse a lower bound above its upper bound.

    Raises
    ------
    ArgumentError
        Naming both, and their values.
    """
    for low, high in pairs:
        least, greatest = arguments.get(low), arguments.get(high)
        if least is not None and greatest is not None and least > greatest:
            values = f"{_shown(low, least)} > {_shown(high, greatest)}"
            raise ArgumentError(f"{low} is after {high} ({values}); swap them")


def check_given(arguments: Mapping[str, Any]) -> None:
    """Refuse a call without a stream or a pattern.

    Raises
    ------
    ArgumentError
        Naming what is NULL.
    """
    for name, what in (("stream", "the name of a stream"), ("pattern", "a pattern")):
        if arguments.get(name) is None:
            raise ArgumentError(f"{name} is NULL; give {what}")


def unknown(
    what: str, name: str, plural: str, known: Sequence[str], none: str, *, otherwise: str | None = None
) -> ArgumentError:
    """The error for an object that was never published.

    Parameters
    ----------
    what, plural
        The kind of object, of one and of several.
    name
        What was asked for.
    known
        Names of all objects of the kind.
    none
        What to do where there are none.
    otherwise
        What to do where no known name is close.
    """
    near = difflib.get_close_matches(name, known, 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    names = ", ".join(map(repr, known)) or f"none yet; {none}"
    advice = "" if near or otherwise is None else f"; {otherwise}"
    return ArgumentError(f"there is no {what} {shortened(name)}{hint}; {plural}: {names}{advice}")


def check_key(arguments: Mapping[str, Any], configuration: Mapping[str, Any], *, partitioned: bool) -> None:
    """Refuse a key of a stream that has none, unless the pattern says what partitions it.

    Raises
    ------
    ArgumentError
        Naming the key and the stream.
    """
    if arguments.get("key") is not None and not partitioned and configuration["key"] is None:
        stream = arguments["stream"]
        raise ArgumentError(
            f"key => {shortened(arguments['key'])}: the stream {shortened(stream)} has no key; configure `key` for it"
        )


def moment(micros: int) -> str:
    """A moment as messages show it."""
    return str(np.datetime64(micros, "us")).replace("T", " ") + " UTC"


def _shown(name: str, value: Any) -> str:
    return str(np.datetime64(value, "us")).replace("T", " ") if name.endswith("_time") else str(value)

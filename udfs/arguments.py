"""Checks that every SQL function makes of its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.language.predicate.scopes import BUILT_IN
from patternlake.udfs.language.query import extents
from patternlake.udfs.language.query.tree import Extent
from patternlake.udfs.nearest_names import did_you_mean

_WINDOW = re.compile(r"\s*([0-9]{1,19})\s*([A-Za-z]+)\s*")


def given_or(arguments: Mapping[str, Any], name: str, default: Any) -> Any:
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
            values = f"{_show(low, least)} > {_show(high, greatest)}"
            raise ArgumentError(f"{low} is after {high} ({values}); swap them")


def check_given(arguments: Mapping[str, Any], *, pattern: bool = True) -> None:
    """Refuse a call without a stream or, where the function takes one, a pattern.

    Raises
    ------
    ArgumentError
        Naming what is NULL.
    """
    for name, what in (("stream", "the name of a stream"), ("pattern", "a pattern")):
        if arguments.get(name) is None and (pattern or name != "pattern"):
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
    hint = did_you_mean(name, known)
    names = ", ".join(map(repr, known)) or f"none yet; {none}"
    advice = "" if hint or otherwise is None else f"; {otherwise}"
    return ArgumentError(f"there is no {what} {shorten(name)}{hint}; {plural}: {names}{advice}")


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
            f"key => {shorten(arguments['key'])}: the stream {shorten(stream)} has no key; configure `key` for it"
        )


def window(within: str) -> Extent:
    """Read a window that is given as an argument: ``5 MIN``, ``100 EVENTS``.

    Raises
    ------
    ArgumentError
        Naming the value and the units.
    """
    read = _WINDOW.fullmatch(within)
    size = None if read is None or int(read[1]) == 0 else extents.extent(int(read[1]), read[2])
    if size is None:
        raise ArgumentError(
            f"within => {shorten(within)} is no window; write a whole number greater than 0 and a unit, one of "
            f"{extents.EXPECTED_UNIT}"
        )
    return size


def group_column(by: str | None, stream: Mapping[str, Any]) -> str | None:
    """Return the column of events that a call groups by; the stream's key is called ``key``.

    Raises
    ------
    ArgumentError
        Naming the value and the attributes of the stream.
    """
    if by is None or by in stream["attributes"] or by in BUILT_IN:
        return by
    if by == stream["key"]:
        return "key"
    known = ", ".join([*stream["attributes"], *BUILT_IN])
    raise ArgumentError(f"by => {shorten(by)} is no attribute of the stream; there are {known}")


def moment(micros: int) -> str:
    """A moment as messages show it."""
    return str(np.datetime64(micros, "us")).replace("T", " ") + " UTC"


def _show(name: str, value: Any) -> str:
    return str(np.datetime64(value, "us")).replace("T", " ") if name.endswith("_time") else str(value)

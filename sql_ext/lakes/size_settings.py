"""Sizes and counts among a session's settings; sizes are written as Spark's own are: ``64m``, ``1g``, ``67108864``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from patternlake.udfs.errors import ArgumentError, shorten

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BYTES = {
    unit: 1 << shift
    for shift, units in ((0, ("", "b")), (10, ("k", "kb")), (20, ("m", "mb")), (30, ("g", "gb")), (40, ("t", "tb")))
    for unit in units
}
_SIZE = re.compile(r"([0-9]{1,18})([a-z]{0,2})")
_COUNT = re.compile(r"[0-9]{1,18}")


def read_size(spark: SparkSession, name: str, default: int) -> int:
    """Read a setting that is a number of bytes.

    Parameters
    ----------
    spark
        The session.
    name
        Of the setting.
    default
        Its value where it is not set.

    Raises
    ------
    ArgumentError
        The value is no size.

    Examples
    --------
    >>> spark.conf.set("spark.patternlake.driverBytes", "64m")
    >>> read_size(spark, "spark.patternlake.driverBytes", 0)
    67108864
    """
    text = str(spark.conf.get(name, str(default)))
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in _BYTES:
        raise ArgumentError(f"{name} must be a number of bytes, or a size such as 64m or 1g, not {shorten(text)}")
    return int(found[1]) * _BYTES[found[2]]


def read_count(spark: SparkSession, name: str, default: int) -> int:
    """Read a setting that is a whole number of 1 or more; parameters as of `read_size`.

    Raises
    ------
    ArgumentError
        The value is something else.
    """
    text = str(spark.conf.get(name, str(default))).strip()
    if not _COUNT.fullmatch(text) or int(text) < 1:
        raise ArgumentError(f"{name} must be a whole number of 1 or more, not {shorten(text)}")
    return int(text)

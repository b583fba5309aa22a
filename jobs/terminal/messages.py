"""What a failed command says: the message alone, without the machinery that it came through."""

from __future__ import annotations

import re

from patternlake.udfs.errors import PatternLakeError

# A SQL function of ours raises its messages through Spark's raise_error, which frames them like this.
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: P0001|\n\tat |\n\nJVM stacktrace|\Z)", re.S)
# What Spark puts after a message: the query's text, its plan, Java's stack.
_AFTERWARDS = re.compile(r"\n\n?(?:== |JVM stacktrace|\tat )|;\n")
_RAISED_IN_PYTHON = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b:? ?.*$", re.M)


def message(error: BaseException) -> str:
    """Write an error for people.

    An error of PatternLake gives its own message, which has several lines where it shows a place in a pattern or
    names several problems. So does one that a SQL function raised through Spark. Any other error gives one line.
    """
    if isinstance(error, PatternLakeError):
        return str(error)
    text = str(error).strip()
    raised = _RAISED.search(text)
    if raised:
        return raised[1].rstrip()
    if _is_of_spark(error):
        return _of_spark(text) or type(error).__name__
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _is_of_spark(error: BaseException) -> bool:
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException)


def _of_spark(text: str) -> str:
    if "Traceback (most recent call last)" in text:
        found = _RAISED_IN_PYTHON.findall(text)
        if found:
            return str(found[-1])
    return " ".join(_AFTERWARDS.split(text)[0].split())

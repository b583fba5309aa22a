"""What a suite asks, and whether an answer is the one that it tells."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any


class NotApplicableError(Exception):
    """A case asks for what the clause over Spark does not have; the message is the reason."""


@dataclass(frozen=True)
class View:
    """A table that cases read: a temporary view in Spark SQL, made or made again before the next case."""

    name: str
    sql: str


@dataclass(frozen=True)
class Rows:
    """The expected rows, in any order: Python values, or texts as the suite writes them.

    Attributes
    ----------
    values
        The rows.
    sql
        In the place of `values`, a query of Spark SQL that gives them.
    columns
        Names of the columns of the answer that are compared; none: all, by place.
    """

    values: Sequence[Sequence[Any]] = ()
    sql: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """The statement fails; the suite's own words for it are shown, not compared."""

    message: str


@dataclass(frozen=True)
class Runs:
    """The statement gives an answer, of which the suite says nothing more."""


@dataclass(frozen=True)
class Case:
    """One question of a suite.

    Attributes
    ----------
    label
        Where it stands in the suite.
    sql
        The statement in Spark SQL; empty where it is not applicable.
    expected
        What the suite tells.
    views
        What is to be made before.
    reason
        Why it is not applicable; None where it is.
    """

    label: str
    sql: str
    expected: Rows | Refusal | Runs
    views: tuple[View, ...] = ()
    reason: str | None = None


def same_rows(expected: Sequence[Sequence[Any]], answered: Sequence[Sequence[Any]]) -> bool:
    """Whether two lists of rows hold the same rows, in whatever order."""
    if len(expected) != len(answered):
        return False
    left = list(answered)
    for row in expected:
        at = next((at for at, other in enumerate(left) if _same_row(row, other)), None)
        if at is None:
            return False
        del left[at]
    return True


def _same_row(expected: Sequence[Any], answered: Sequence[Any]) -> bool:
    return len(expected) == len(answered) and all(map(same_value, expected, answered))


def same_value(expected: Any, answered: Any) -> bool:
    """Whether a value, or its text, is an answered value; the answered value's type says how the text is read."""
    if answered is None or expected is None:
        return answered is None and (expected is None or expected in ("NULL", "null"))
    if isinstance(answered, bool):
        return str(expected).lower() in (("true", "1", "t") if answered else ("false", "0", "f"))
    if isinstance(answered, (int, float, Decimal)):
        return _same_number(expected, answered)
    if isinstance(answered, datetime):
        return _same_time(str(expected), answered)
    if isinstance(answered, date):
        return str(expected)[:10] == answered.isoformat()
    if isinstance(answered, Mapping):
        return (
            isinstance(expected, Mapping)
            and {*expected} == {*answered}
            and all(same_value(expected[key], answered[key]) for key in expected)
        )
    if isinstance(answered, (list, tuple)):
        items = _items(expected) if isinstance(expected, str) else expected
        return items is not None and _same_row(items, answered)
    text = str(expected)
    return text == str(answered) or (text == "(empty)" and answered == "")


def _same_number(expected: Any, answered: float | Decimal) -> bool:
    try:
        wanted = Decimal(str(expected))
    except InvalidOperation:
        return False
    if wanted == Decimal(str(answered)):
        return True
    given = float(answered)
    # Answers of integer division and averages are written with fewer digits.
    return not isinstance(answered, int) and math.isclose(float(wanted), given, rel_tol=1e-6, abs_tol=1e-9)


def _same_time(expected: str, answered: datetime) -> bool:
    text = expected.replace("T", " ").removesuffix("Z")
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        text += " 00:00:00"
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None) == answered.replace(tzinfo=None)
    except ValueError:
        return False


def _items(text: str) -> list[str] | None:
    """The items of a list that is written ``[a, b]``."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    inner = text[1:-1].strip()
    return [item.strip().strip("'") for item in inner.split(",")] if inner else []

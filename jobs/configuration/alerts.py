"""The section `alerts` of the configuration: which rows are told, and where to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit

import sqlglot
from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from sqlglot import exp

from patternlake.jobs.configuration import values
from patternlake.jobs.configuration.sql import sql_expression
from patternlake.jobs.configuration.streams import ObjectName, Section, Text, _one_of, problem
from patternlake.udfs.errors import shorten
from patternlake.udfs.nearest_names import did_you_mean

SUBSCRIPTION, FORECAST, GROUP, PATTERN = "subscription", "forecast", "group", "pattern"
TABLE, WEBHOOK, KAFKA, COMMAND = "table", "webhook", "kafka", "command"

_MATCH = {
    "key": "string",
    "first_position": "bigint",
    "last_position": "bigint",
    "first_time": "timestamp",
    "last_time": "timestamp",
    "bindings": "map<string,array<bigint>>",
}
COLUMNS = {
    SUBSCRIPTION: _MATCH,
    FORECAST: {
        "key": "string",
        "state": "string",
        "bindings": "map<string,array<bigint>>",
        "alpha": "double",
        "probability": "double",
        "trained_on": "bigint",
        "is_best": "boolean",
    },
    GROUP: {"key": "string", "t_start": "bigint", "t_first": "bigint", "t_end": "bigint", "probability": "double"},
    PATTERN: _MATCH,
}
"""What `where` may name: the columns that match_subscription, predict_match, match_groups and match_pattern give of
what is told, and their types."""

_SECTIONS = {SUBSCRIPTION: "subscriptions", FORECAST: "subscriptions", GROUP: "groups", PATTERN: "patterns"}

_OPTIONS = {TABLE: (), WEBHOOK: ("url",), KAFKA: ("topic", "brokers"), COMMAND: ("command",)}
_SHORTEST, _LONGEST = timedelta(milliseconds=1), timedelta(days=1)
QUIET = "quiet"
"""Key of the meaning of an alert that says for how long it is quiet: microseconds, of groups steps."""
AT_ONCE = 4
"""So many requests of a webhook are under way at the same time where nothing else is said."""


def _pause(value: Any) -> timedelta:
    found = values.duration(value)
    if found < _SHORTEST:
        raise ValueError(f"{shorten(value)} is no time at all; at least 1 ms")
    return found


def _quiet(value: Any) -> timedelta | int:
    """A number of steps or a duration: which of them is right, what is told says."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise ValueError(f"{shorten(value)} is out of range; at least 1 step, or a duration like 1 hour")
        return value
    return _pause(value)


def _timeout(value: Any) -> timedelta:
    found = _pause(value)
    if found > _LONGEST:
        raise ValueError(f"{shorten(value)} is out of range; at most 1 day")
    return found


def _url(written: str) -> str:
    """The address that is written, perhaps with variables of the environment: errors do not show what those have."""
    value = values.with_environment(written)
    try:
        parts = urlsplit(value)
        name = parts.hostname or ""
        good = parts.scheme in ("http", "https") and bool(name) and parts.port != 0
        if not name.isascii():
            name.encode("idna")
    except ValueError:
        good = False
    if not good:
        wrong = "is not an address" if value == written else "stands for what is not an address"
        raise ValueError(f"{shorten(written)} {wrong}; write one like https://example.com/alerts")
    return value


class AlertConfiguration(Section):
    """One alert: rows of a subscription, its forecasts, a query for groups or a kept pattern, told once each."""

    of: Annotated[str, _one_of(*_SECTIONS)]
    name: ObjectName
    where: Annotated[Text, AfterValidator(sql_expression)] | None = None
    quiet: Annotated[timedelta | int, BeforeValidator(_quiet)] | None = None
    to: Annotated[str, _one_of(TABLE, WEBHOOK, KAFKA, COMMAND)] = TABLE
    url: Annotated[Text, AfterValidator(_url)] | None = None
    at_once: int = Field(default=AT_ONCE, ge=1, le=32)
    topic: Text | None = None
    brokers: Text | None = None
    command: Annotated[list[Text], Field(min_length=1)] | None = None
    timeout: Annotated[timedelta, BeforeValidator(_timeout)] = timedelta(seconds=10)
    retries: int = Field(default=2, ge=0, le=20)
    back_off: Annotated[timedelta, BeforeValidator(_pause)] = timedelta(seconds=1)
    dead_letter_after: int = Field(default=20, ge=1, le=1000)

    @model_validator(mode="after")
    def _where_names_columns(self) -> AlertConfiguration:
        if self.where is not None:
            wrong = _unfit(self.where, COLUMNS[self.of])
            if wrong is not None:
                raise problem(wrong, "where")
        return self

    @model_validator(mode="after")
    def _options_belong_to_the_target(self) -> AlertConfiguration:
        for target, options in _OPTIONS.items():
            for option in options:
                given = getattr(self, option) is not None
                if target == self.to and not given:
                    raise problem(f"missing; `to: {target}` needs it", option)
                if target != self.to and given:
                    raise self._misplaced(option, target)
        if self.to != WEBHOOK and "at_once" in self.model_fields_set:
            raise self._misplaced("at_once", WEBHOOK)
        return self

    @model_validator(mode="after")
    def _quiet_is_in_the_units_of_what_is_told(self) -> AlertConfiguration:
        if isinstance(self.quiet, timedelta) and self.of == GROUP:
            raise problem(f"{self.quiet} is a duration, and groups have steps; write how many steps, like 60", "quiet")
        if isinstance(self.quiet, int) and self.of != GROUP:
            raise problem(
                f"{self.quiet} is a number of steps, and a {self.of} has times; write a duration like 1 hour", "quiet"
            )
        return self

    def _misplaced(self, option: str, target: str) -> Exception:
        return problem(f"belongs to `to: {target}`, and this alert goes to {shorten(self.to)}", option)

    @property
    def meaning(self) -> dict[str, Any]:
        """What tells which rows are told; goes into publications."""
        meaning: dict[str, Any] = {"of": self.of, "name": self.name, "where": self.where}
        # Publications of alerts without it stay as they were before there was such a key.
        return meaning if self.quiet is None else {**meaning, QUIET: _span(self.quiet)}

    def reads(self, stream: str) -> tuple[str, str]:
        """Job and object whose published rows are told, given the stream that they go back to."""
        return ("predict", stream) if self.section == "subscriptions" else (self.section, self.name)

    @property
    def section(self) -> str:
        """The section of the configuration that has what it is about."""
        return _SECTIONS[self.of]

    @property
    def bound(self) -> float | None:
        """As `find_bound` has it."""
        return find_bound(self.where)


def find_bound(where: str | None) -> float | None:
    """Find a probability that every row which a predicate chooses exceeds; None: it does not say one.

    Only comparisons of `probability` with a number that stand alone, or are joined by AND, are read.
    """
    if where is None:
        return None
    found = [bound for part in _conjuncts(_parse(where)) if (bound := _find_bound(part)) is not None]
    return max(found, default=None)


def _span(quiet: timedelta | int) -> int:
    return quiet if isinstance(quiet, int) else quiet // timedelta(microseconds=1)


def _parse(text: str) -> exp.Expr:
    select = sqlglot.parse_one(f"SELECT {text}", dialect="spark")
    assert isinstance(select, exp.Select)
    found: exp.Expr = select.expressions[0]
    return found


def _unfit(text: str, columns: dict[str, str]) -> str | None:
    """What is wrong with a predicate over columns, as far as its text tells; None: nothing."""
    tree = _parse(text)
    for kind, called in ((exp.Query, "a subquery"), (exp.AggFunc, "an aggregate"), (exp.Window, "a window")):
        if tree.find(kind) is not None:
            return f"{shorten(text)} has {called}; write a predicate over the columns of one row"
    known = ", ".join(columns)
    for column in tree.find_all(exp.Column):
        # Of `bindings.A`, sqlglot takes the first part for a table.
        name = column.parts[0].name
        if name.lower() not in columns:
            return f"no column {shorten(name)}{did_you_mean(name, columns)}; columns: {known}"
    if tree.find(exp.Star) is not None:
        return f"{shorten(text)} is not a predicate; columns: {known}"
    return None


def _conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.left)
        yield from _conjuncts(tree.right)
    else:
        yield tree


def _find_bound(part: exp.Expr) -> float | None:
    """A number that `probability` exceeds where a comparison holds."""
    if isinstance(part, exp.Between) and _is_probability(part.this):
        return _below(_number(part.args["low"]))
    if not isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ):
        return None
    left, right = part.left.unnest(), part.right.unnest()
    greater = isinstance(part, exp.GT | exp.GTE | exp.EQ)
    if _is_probability(left) and greater:
        number = _number(right)
    elif _is_probability(right) and (isinstance(part, exp.EQ) or not greater):
        number = _number(left)
    else:
        return None
    return number if isinstance(part, exp.GT | exp.LT) else _below(number)


def _is_probability(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Column) and tree.parts[0].name.lower() == "probability"


def _number(tree: exp.Expr) -> float | None:
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return float(tree.this)
    return None


def _below(number: float | None) -> float | None:
    """The next smaller number: a row whose probability is `number` exceeds it."""
    return None if number is None else math.nextafter(number, -math.inf)

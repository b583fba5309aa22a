"""The sections `subscriptions` and `evaluate` of the configuration: composite subscriptions, and how to judge them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from patternlake.jobs.configuration.streams import ObjectName, Section, Text, _one_of, problem
from patternlake.jobs.configuration.values import parameters
from patternlake.udfs.errors import shorten
from patternlake.udfs.machines.forecasts.limits import MOST_LOOKAHEAD, MOST_SMOOTHING

KEEP, NONE = "keep", "none"


@dataclass(frozen=True)
class WantedPrecision:
    """Stands for the least threshold above which the evaluation shows that so large a share of forecasts comes true."""

    precision: float


def _or_precision(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """A number, or ``{precision: …}``."""
    if not isinstance(value, Mapping):
        return handler(value)
    if set(value) != {"precision"}:
        raise ValueError(f"{shorten(dict(value))} is no threshold; write a number from 0 to 1, or {{precision: 0.8}}")
    precision = value["precision"]
    number = isinstance(precision, int | float) and not isinstance(precision, bool) and math.isfinite(precision)
    if not number or not 0 < precision < 1:
        raise ValueError(
            f"a precision of {shorten(precision)} is out of range; greater than 0 and less than 1 would be right"
        )
    return WantedPrecision(float(precision))


if TYPE_CHECKING:
    Threshold = float | WantedPrecision
else:
    Threshold = Annotated[float, Field(ge=0, le=1), WrapValidator(_or_precision)]


class SubscriptionConfiguration(Section):
    """One composite subscription to a stream."""

    stream: ObjectName
    query: Text
    lookahead: int = Field(default=10, ge=1, le=MOST_LOOKAHEAD)
    threshold: Threshold = 0.0
    params: Annotated[dict[str, str], BeforeValidator(parameters)] = Field(default_factory=dict)
    smoothing: float = Field(default=0.0, ge=0, le=MOST_SMOOTHING)
    decay: float = Field(default=0.0, ge=0, lt=1)
    forecasts: Annotated[str, _one_of(KEEP, NONE)] = NONE
    emit: bool = False

    @property
    def wants_precision(self) -> bool:
        """Whether the threshold is one that the evaluation finds."""
        return isinstance(self.threshold, WantedPrecision)

    @property
    def least(self) -> float:
        """What forecasts exceed at least, whatever the evaluation finds."""
        return 0.0 if isinstance(self.threshold, WantedPrecision) else self.threshold

    @property
    def meaning(self) -> dict[str, Any]:
        """What goes into publications."""
        wanted = self.threshold
        return {
            "query": self.query,
            "lookahead": self.lookahead,
            "threshold": {"precision": wanted.precision} if isinstance(wanted, WantedPrecision) else wanted,
            "params": dict(sorted(self.params.items())),
            "smoothing": self.smoothing,
            "decay": self.decay,
        }


def _moment(value: Any) -> Any:
    """A day or a moment of YAML as a moment in UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(
                f"{shorten(value)} is not a day or a moment such as 2013-07-01 or 2013-07-01 12:00:00"
            ) from None
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    raise ValueError(f"{shorten(value)} is not a day or a moment such as 2013-07-01 or 2013-07-01 12:00:00")


Moment = Annotated[datetime, BeforeValidator(_moment)]
Range = Annotated[list[Moment], Field(min_length=2, max_length=2)]


class EvaluationConfiguration(Section):
    """Which events forecasts are trained on, and which they are judged by; the ends of ranges don't belong to them."""

    train: Range
    test: Range
    lookaheads: list[Annotated[int, Field(ge=1, le=MOST_LOOKAHEAD)]] = Field(default=[1, 5, 10], min_length=1)
    thresholds: list[Annotated[float, Field(ge=0, le=1)]] = Field(default=[0.1, 0.5, 0.9], min_length=1)

    @model_validator(mode="after")
    def _ranges_are_apart(self) -> EvaluationConfiguration:
        for name in ("train", "test"):
            begin, end = getattr(self, name)
            if begin >= end:
                raise problem(f"{begin} is not before {end}; give the begin of the range, then its end", name)
        if self.train[0] < self.test[1] and self.test[0] < self.train[1]:
            raise problem(
                f"the range from {self.test[0]} to {self.test[1]} overlaps the one of `train`; forecasts are judged "
                "by events that they were not trained on",
                "test",
            )
        return self

    @property
    def meaning(self) -> dict[str, Any]:
        """What goes into publications."""
        return {
            "train": [moment.isoformat() for moment in self.train],
            "test": [moment.isoformat() for moment in self.test],
            "lookaheads": sorted(set(self.lookaheads)),
            "thresholds": sorted(set(self.thresholds)),
        }

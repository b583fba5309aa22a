"""The `sketches` section of the configuration: size, shape and ageing of the sketch of a stream."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from patternlake.jobs.configuration import values
from patternlake.jobs.configuration.streams import Section, _one_of, problem

HIGHEST = 11


class AgeRule(Section):
    """From an age on, in time or in events, only nodes of `keep_level` and above are kept, or none."""

    after: Annotated[timedelta | int, BeforeValidator(values.age)]
    keep_level: int | None = Field(default=None, ge=1)
    drop: bool | None = None

    @model_validator(mode="after")
    def _one_deed(self) -> AgeRule:
        if self.drop is False:
            raise problem("False says nothing; write `drop: true` or leave it out", "drop")
        if (self.keep_level is None) == (self.drop is None):
            raise problem("a rule has one of keep_level and `drop: true`", "keep_level" if self.drop else "drop")
        return self

    @property
    def counted(self) -> bool:
        """Whether it goes by the number of events."""
        return isinstance(self.after, int)

    @property
    def shown(self) -> str:
        """The age as it may be written."""
        return f"{self.after:,} events" if isinstance(self.after, int) else str(self.after)

    def comes_after(self, other: AgeRule) -> bool:
        """Whether its age is the greater one, of two of one kind."""
        if isinstance(self.after, int) and isinstance(other.after, int):
            return self.after > other.after
        assert isinstance(self.after, timedelta)
        assert isinstance(other.after, timedelta)
        return self.after > other.after


class SketchConfiguration(Section):
    """One sketch, named after its stream. Memory is in bytes, a ceiling."""

    events_per_leaf: int = Field(default=100, ge=1, le=10_000_000)
    fpq: float = Field(default=0.01, ge=1e-12, lt=1)
    memory: Annotated[int, BeforeValidator(values.size)] = 64_000_000
    keyed: bool = False
    expected_events: int | None = Field(default=None, ge=1, le=10**15)
    structure: Annotated[str, _one_of("leveled", "uniform")] = "leveled"
    levels: int | None = Field(default=None, ge=1, le=24)
    fanout: int = Field(default=2, ge=2, le=10_000)
    query_length: int = Field(default=2, ge=1, le=1000)
    seed: int = Field(default=0, ge=0, lt=2**32)
    age: list[AgeRule] = Field(default_factory=list)

    @model_validator(mode="after")
    def _fits(self) -> SketchConfiguration:
        events = self.events_per_leaf * self.fanout ** ((self.levels or 1) - 1)
        if events > values.INT:
            raise problem(
                f"{self.events_per_leaf} with {self.levels} levels and a fanout of {self.fanout} make segments of "
                f"{events:,} events; at most {values.INT:,}",
                "events_per_leaf",
            )
        levels = self.levels or HIGHEST
        for index, rule in enumerate(self.age):
            place = ("age", str(index))
            if rule.keep_level is not None and rule.keep_level >= levels:
                raise problem(
                    f"{rule.keep_level} is above the top; with {levels} levels, at most {levels - 1}",
                    *place,
                    "keep_level",
                )
            if index == 0:
                continue
            before = self.age[index - 1]
            if before.drop:
                raise problem("stands after `drop: true`, when nothing is left; drop comes last", *place)
            same = [one for one in self.age[:index] if one.counted == rule.counted]
            if same and not rule.comes_after(same[-1]):
                raise problem(f"{rule.shown} is not later than the rule before it ({same[-1].shown})", *place, "after")
            if rule.keep_level is not None and rule.keep_level <= (before.keep_level or 0):
                raise problem(
                    f"{rule.keep_level} keeps no less than the rule before it ({before.keep_level}); levels rise",
                    *place,
                    "keep_level",
                )
        return self

    @property
    def meaning(self) -> dict[str, Any]:
        """All of it except ageing, which may change at any time; goes into publications."""
        return {name: value for name, value in self.model_dump().items() if name != "age"}

"""The `groups` section of the configuration: queries for groups in probabilistic streams."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from patternlake.jobs.configuration.streams import ObjectName, Section, Text, _one_of
from patternlake.jobs.configuration.values import parameters


class GroupConfiguration(Section):
    """One query for groups over a probabilistic stream."""

    stream: ObjectName
    pattern: Text
    overlap: Annotated[str, _one_of("single", "complete")] = "single"
    threshold: float = Field(default=0.0, ge=0, le=1)
    within: int | None = Field(default=None, ge=1, le=10**18)
    params: Annotated[dict[str, str], BeforeValidator(parameters)] = Field(default_factory=dict)

    @property
    def meaning(self) -> dict[str, Any]:
        """What must not change while groups of both meanings would stand together; goes into publications."""
        return {
            "stream_name": self.stream,
            "pattern": self.pattern,
            "overlap": self.overlap,
            "threshold": self.threshold,
            "within": self.within,
            "params": dict(sorted(self.params.items())),
        }

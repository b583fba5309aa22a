"""The `trends` section of the configuration: queries for complete event trends."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from patternlake.jobs.configuration.streams import ObjectName, Section, Text
from patternlake.jobs.configuration.values import parameters


class TrendConfiguration(Section):
    """One query for trends over a stream."""

    stream: ObjectName
    query: Text
    params: Annotated[dict[str, str], BeforeValidator(parameters)] = Field(default_factory=dict)

    @property
    def meaning(self) -> dict[str, Any]:
        """What must not change while vertices of both meanings would stand together; goes into publications."""
        return {"stream_name": self.stream, "query": self.query, "params": dict(sorted(self.params.items()))}

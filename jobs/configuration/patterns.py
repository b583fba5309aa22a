"""The `patterns` section of the configuration: exact patterns whose matches are kept."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from patternlake.jobs.configuration.streams import ObjectName, Section, Text, _one_of
from patternlake.jobs.configuration.values import parameters
from patternlake.udfs.policies import AFTER_MATCH, POLICIES, REPETITION


class PatternConfiguration(Section):
    """One exact pattern over a stream."""

    stream: ObjectName
    query: Text
    policy: Annotated[str, _one_of(*POLICIES)] = "skip_till_any"
    after_match: Annotated[str, _one_of(*AFTER_MATCH)] = "next"
    repetition: Annotated[str, _one_of(*REPETITION)] = "maximal"
    params: Annotated[dict[str, str], BeforeValidator(parameters)] = Field(default_factory=dict)

    @property
    def meaning(self) -> dict[str, Any]:
        """What must not change while matches of both meanings would stand together; goes into publications."""
        # What was published before there was a choice says nothing of it, and still means the same.
        chosen = {} if self.repetition == "maximal" else {"repetition": self.repetition}
        return {
            "stream_name": self.stream,
            "query": self.query,
            "policy": self.policy,
            "after_match": self.after_match,
            "params": dict(sorted(self.params.items())),
            **chosen,
        }

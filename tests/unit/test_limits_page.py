"""The page of limits says what the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

from patternlake.jobs.configuration import values
from patternlake.udfs import limits
from patternlake.udfs.funnels import query as funnels
from patternlake.udfs.groups import members
from patternlake.udfs.groups.automaton import positions
from patternlake.udfs.kleene import layout, linearizations
from patternlake.udfs.kleene import query as kleene
from patternlake.udfs.machines import query as machines
from patternlake.udfs.machines import time_conditions
from patternlake.udfs.machines.forecasts import limits as forecasts
from patternlake.udfs.machines.graph import links, liveness
from patternlake.udfs.paths import request as paths
from patternlake.udfs.sketch import query as sketch
from patternlake.udfs.sketch.kernels import exact
from patternlake.udfs.trends import query as trends
from patternlake.udfs.trends import text_request
from patternlake.udfs.trends.kernels import roles

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("row", "most"),
    [
        ("rows of an answer", limits.MAX_MATCHES),
        ("events that one task holds", limits.WHOLE_EVENTS),
        ("events of a trend query", text_request.MOST_EVENTS),
        ("events that a forecast", forecasts.MOST_LOOKAHEAD),
        ("matches that [group_members]", members.MOST_BEST),
        ("names on each side", paths.FARTHEST),
        ("`match_pattern`, kept patterns | operands", kleene.MOST_OPERANDS),
        ("orders of `&`", linearizations.MOST_LINEARIZATIONS),
        ("combinations of `?`", layout.MOST_LAYOUTS),
        ("events that conditions look at", layout.MOST_SLOTS),
        ("`match_seq`, `match_exists` | operands", sketch.MOST_SLOTS),
        ("names of one `&`", sketch.MOST_NAMES_OF_AND),
        ("ways through alternatives", exact.MOST_WAYS),
        ("`match_groups`, `group_members` | different names", limits.MOST_NAMES),
        ("states of the pattern's automaton", positions.MAX_STATES),
        ("`cet_trends`, `cet_count`, `cet_aggregate` | operands", roles.MOST_TERMS),
        ("windows that one event", trends.MOST_WINDOWS),
        ("subscriptions | operands", machines.MOST_OPERANDS),
        ("combinations that `OR`", time_conditions.MOST_CHOICES),
        ("states; ways in which", links.MOST_COMPOSITE_STATES),
        ("states; ways in which", liveness.MOST_COMPLETION_PATHS),
        ("funnels | steps", funnels.MOST_STEPS),
        ("characters of a name", values.NAME_LENGTH),
        ("characters of a number", limits.MOST_DIGITS),
        ("depth of sections", limits.MOST_LEVELS),
        ("values that aliases", limits.MOST_REPEATED),
    ],
)
def test_a_limit_of_the_page_is_the_one_of_the_code(row: str, most: int) -> None:
    (line,) = (line for line in PAGE.splitlines() if row in line)
    assert f"| {most:,} |" in line

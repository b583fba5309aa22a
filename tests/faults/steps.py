"""Runs of jobs on a growing lake, each with all its writes in their order: where a run can die."""

from __future__ import annotations

from dataclasses import dataclass

QUERY = "h ; a, b WITHIN 1 MIN"


@dataclass(frozen=True)
class Step:
    """One run of a job, from one state of the lake to the next.

    Parameters
    ----------
    before
        Name of the step that leads to the state this one starts from; None: the empty lake.
    job, rebuild
        What is run.
    files
        The source's files at that time.
    writes
        Every write of the run, in order.
    query
        The query of the subscription at that time.
    object
        Which of the job's objects; empty where it has one.
    """

    before: str | None
    job: str
    files: tuple[str, ...]
    writes: tuple[str, ...]
    rebuild: bool = False
    query: str = QUERY
    object: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Of the command that runs it."""
        return ("--object", self.object) if self.object else ()


_NUMBERED = ("append object_numbers",)
_INGEST = ("append intents", "append streams", "append events", "append event_statistics", "append quarantine")
_REFITTED = ("append sketch_nodes", "delete sketch_nodes", "append sketch_nodes (2)")
_REFITTED_TWICE = (*_REFITTED, "delete sketch_nodes (2)", "append sketch_nodes (3)")
_SKETCHED = ("update sketch_nodes", "append publications")
_SKETCHED_ANEW = ("append publications",)
_TRENDS = ("append intents", "append trend_vertices", "append trend_edges")
# The second file goes on with the pane that the first one ends in.
_PANE_REPLACED = ("update trend_vertices", "update trend_edges")

_GROUPS = ("append intents", "append group_matches", "append group_state")
_GROUPS_REPLACED = ("update_matching group_matches", "update_matching group_state")
_KEPT = ("append intents", "append pattern_matches", "append pattern_state")
_KEPT_REPLACED = ("update_matching pattern_state",)
_PREDICTED = (
    "append intents",
    "append subscription_matches",
    "append machine_instances",
    "append machine_transitions",
)
_CATALOGUE = ("append subscriptions", "append machine_states")
_LIVE_REPLACED = ("update_matching machine_instances", "update machine_transitions")
_SUBSCRIPTION_REPLACED = (
    "update machine_transitions",
    "update machine_instances",
    "update subscription_matches",
    "update machine_states",
    "update subscriptions",
)

_FORECAST = ("append forecasts",)
_TOLD = ("append intents", "append alerts", "append publications")
_NOTHING_TO_TELL = ("append intents", "append publications")

STEPS = {
    "ingest": Step(None, "ingest", ("a",), (*_NUMBERED, *_INGEST, "append publications")),
    "sketch": Step("ingest", "sketch", ("a",), ("append intents", *_REFITTED, *_SKETCHED_ANEW)),
    "trends": Step("sketch", "trends", ("a",), (*_NUMBERED, *_TRENDS, "append publications")),
    "groups": Step("trends", "groups", ("a",), (*_NUMBERED, *_GROUPS, "append publications")),
    "patterns": Step("groups", "patterns", ("a",), (*_NUMBERED, *_KEPT, "append publications")),
    "predict": Step("patterns", "predict", ("a",), (*_PREDICTED, *_CATALOGUE, *_FORECAST, "append publications")),
    "told": Step("predict", "alerts", ("a",), (*_NUMBERED, *_TOLD), object="told"),
    "soon": Step("told", "alerts", ("a",), (*_NUMBERED, *_NOTHING_TO_TELL), object="soon"),
    "closed": Step("soon", "alerts", ("a",), (*_NUMBERED, *_TOLD), object="closed"),
    "ended": Step("closed", "alerts", ("a",), (*_NUMBERED, *_TOLD), object="ended"),
    "ingest more": Step(
        "ended",
        "ingest",
        ("a", "b"),
        tuple(write for write in (*_INGEST, "append publications") if write != "append streams"),
    ),
    "sketch more": Step("ingest more", "sketch", ("a", "b"), ("append intents", *_REFITTED, *_SKETCHED)),
    "trends more": Step("ingest more", "trends", ("a", "b"), (*_TRENDS, *_PANE_REPLACED, "append publications")),
    "groups more": Step("ingest more", "groups", ("a", "b"), (*_GROUPS, *_GROUPS_REPLACED, "append publications")),
    # All that is kept is written anew beside many events, and closed beside a few.
    "patterns more": Step("ingest more", "patterns", ("a", "b"), (*_KEPT, "append publications")),
    "ingest few": Step(
        "patterns more",
        "ingest",
        ("a", "b", "c"),
        ("append intents", "append events", "append event_statistics", "append publications"),
    ),
    "patterns few": Step(
        "ingest few",
        "patterns",
        ("a", "b", "c"),
        ("append intents", "append pattern_state", *_KEPT_REPLACED, "append publications"),
    ),
    "patterns anew": Step("ingest more", "patterns", ("a", "b"), (*_KEPT, "append publications"), rebuild=True),
    "ended more": Step("patterns more", "alerts", ("a", "b"), _TOLD, object="ended"),
    "predict more": Step(
        "ingest more", "predict", ("a", "b"), (*_PREDICTED, *_LIVE_REPLACED, *_FORECAST, "append publications")
    ),
    "told more": Step("predict more", "alerts", ("a", "b"), _TOLD, object="told"),
    "soon more": Step("predict more", "alerts", ("a", "b"), _TOLD, object="soon"),
    "closed more": Step("groups more", "alerts", ("a", "b"), _NOTHING_TO_TELL, object="closed"),
    "told anew": Step("predict more", "alerts", ("a", "b"), _TOLD, rebuild=True, object="told"),
    "predict something else": Step(
        "ingest more",
        "predict",
        ("a", "b"),
        (*_PREDICTED, *_CATALOGUE, *_SUBSCRIPTION_REPLACED, *_FORECAST, "append publications"),
        query="g ; a",
    ),
    "told something else": Step("predict something else", "alerts", ("a", "b"), _TOLD, query="g ; a", object="told"),
    "trends anew": Step("ingest more", "trends", ("a", "b"), (*_TRENDS, "append publications"), rebuild=True),
    "ingest anew": Step("sketch more", "ingest", ("a", "b"), (*_INGEST, "append publications"), rebuild=True),
    "sketch what was ingested anew": Step(
        "ingest anew", "sketch", ("a", "b"), ("append intents", *_REFITTED_TWICE, *_SKETCHED_ANEW)
    ),
    "sketch anew": Step(
        "sketch more", "sketch", ("a", "b"), ("append intents", *_REFITTED_TWICE, *_SKETCHED_ANEW), rebuild=True
    ),
}

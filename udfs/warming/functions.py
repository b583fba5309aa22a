"""Asks the functions' questions of a few events, so that their kernels are compiled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.udfs.funnels import request as funnels
from patternlake.udfs.funnels.kernels.chains import MODES
from patternlake.udfs.funnels.task import rows_of_partitions
from patternlake.udfs.groups import request as groups
from patternlake.udfs.groups.members import members_in
from patternlake.udfs.groups.task import groups_of_partitions
from patternlake.udfs.kleene import request as patterns
from patternlake.udfs.kleene.task import match_partitions
from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.machines import request as machines
from patternlake.udfs.machines.forecasts.passage import Waited
from patternlake.udfs.machines.passing_time import STANDING
from patternlake.udfs.machines.result import INSTANCE_COLUMNS, live_rows
from patternlake.udfs.machines.state import BATCH_SCHEMA
from patternlake.udfs.paths import request as paths
from patternlake.udfs.paths.result import merge
from patternlake.udfs.paths.task import parts_of_partitions
from patternlake.udfs.policies import REPETITION
from patternlake.udfs.published import NameCount
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.rows.matches import match_rows
from patternlake.udfs.rows.query import compile_pattern
from patternlake.udfs.sketch.batch import TOP_BUCKET, SegmentPlan, segment_rows
from patternlake.udfs.sketch.descent import node_hits, top_hits
from patternlake.udfs.sketch.request import SketchRequest, SketchState, check_call
from patternlake.udfs.sketch.result import answer, candidates, exists
from patternlake.udfs.sketch.sizing import planning
from patternlake.udfs.sketch.task import match_exactly
from patternlake.udfs.trends.aggregates import aggregate_trends, attributes_of, parse_aggregates
from patternlake.udfs.trends.from_config import layout_of
from patternlake.udfs.trends.graph_rows import graph_batches
from patternlake.udfs.trends.kernels.counting import primes
from patternlake.udfs.trends.remainders import from_remainders
from patternlake.udfs.trends.request import TrendsRequest
from patternlake.udfs.trends.task import count_trends, list_trends, pick_trends, trends_of
from patternlake.udfs.trends.vertex_rows import VALUES, vertex_rows, vertices_from
from patternlake.udfs.trends.weights import weights_of
from patternlake.udfs.warming.events import EVENT_FIELDS, NAMES, PUBLISHED, STREAM, partitioned_events, some_events

_POLICIES = (
    ("strict", "past_last"),
    ("skip_till_next", "past_last"),
    ("skip_till_next", "next"),
    ("skip_till_any", "next"),
)
_EVERY_WINDOW = 2**60


def warm_sketch_questions() -> None:
    """`match_seq` and `match_exists`: of all events, of one key and of every key, from nodes and exactly."""
    planned = planning.plan("leveled", expected_events=100, memory=1 << 20, leaf_events=2, fpq=0.01, height=3)
    rows = [{**row, "position": at, "tokens": [row["name"]]} for at, row in enumerate(some_events(1), start=1)]
    events = pa.Table.from_pylist(rows, pa.schema([*EVENT_FIELDS, ("tokens", pa.list_(pa.string()))]))
    segments = SegmentPlan(planned, 0, True, expressions=1, number=0, stream_id=1, batch_id=0)
    nodes = pa.Table.from_batches(segment_rows(events, segments))
    configuration = {
        "stream": STREAM, "structure": "leveled", "fanout": 2, "events_per_leaf": 2, "keyed": True, "seed": 0
    }  # fmt: skip
    state = {"plans": [{"sizing": asdict(planned)}], "events": len(rows)}
    sketch = SketchState(json.dumps(configuration), json.dumps(state, default=str))
    asked: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("a ; b", {"verify": False}),
        ("a ; b, c", {"key": "k", "verify": False}),
        ("(a & b) ; !c ; a | b WITHIN 5 MIN", {"verify": False}),
        ("a ; b PARTITION BY key WITHIN 5 MIN", {"verify": False}),
        ("a ; !c ; b WHERE a.x <= b.x AND c.x < a.x WITHIN 9 MIN", {}),
        ("a ; b WHERE a.x = b.x PARTITION BY key", {}),
    )
    for policy, after_match in _POLICIES:
        for pattern, arguments in asked:
            given = {"stream": "s", "pattern": pattern, "policy": policy, "after_match": after_match, **arguments}
            _ask_sketch(check_call(given, sketch, ["s"]), nodes, events)


def _ask_sketch(question: SketchRequest, nodes: pa.Table, events: pa.Table) -> None:
    """One question: down the tree, from what is found there, and from the events."""
    tops = nodes.filter(pa.compute.equal(nodes["bucket"], TOP_BUCKET))
    hit = top_hits(question, _structs(tops))
    keys = dict(zip(tops["segment"].to_pylist(), hit.field("keys").to_pylist(), strict=True))
    segments = nodes["segment"].to_numpy()
    tested = pa.array([keys[segment] for segment in segments.tolist()], pa.list_(pa.string()))
    found = node_hits(question, segments, _structs(nodes), tested)
    hits = found.filter(found.is_valid())
    if not question.verify:
        answer(question, hits)
        exists(question, hits)
    candidates(question, hits)
    mine = events if not question.one_key else events.filter(pa.compute.equal(events["key"], question.key))
    list(match_exactly(question, columns_of(mine)))


def _structs(rows: pa.Table) -> pa.StructArray:
    return pa.StructArray.from_arrays([rows[name].combine_chunks() for name in rows.column_names], rows.column_names)


def warm_patterns() -> None:
    """`match_pattern`: all matches and scans, with groups, picks, choices, absence, conditions of every form."""
    events = columns_of(partitioned_events())
    counts = [NameCount(name, 2 * NAMES.count(name), 0, 10**9) for name in sorted(set(NAMES))]
    asked = (
        "a ; b ; c WHERE a.x < c.x AND ABS(a.x - b.x) <= 3 PARTITION BY key",
        "a+ ; b WHERE a[i].x > a[i-1].x PARTITION BY key WITHIN 5 MIN",
        "a+ ; b+ WHERE a.x < b.x PARTITION BY key WITHIN 6 EVENTS",
        "a+ ; b ; c+ WHERE a[i].x > a[i-1].x PARTITION BY key WITHIN 6 EVENTS",
        "a+ ; b+ ; c* PARTITION BY key WITHIN 8 EVENTS",
        "a ; b[2] ; c PARTITION BY key",
        "a AS p ; !b AS n ; c* ; (a AS q | b AS r) WHERE n.x > p.x AND [x] PARTITION BY key",
        "a , b? , c{1,2} PARTITION BY key WITHIN 9 EVENTS",
        "a+ AS p UNTIL c ; b ; !c AS n @(t(n) - t(b) < 3 MIN) PARTITION BY key WITHIN 9 MIN",
        "!c AS n ; a ; b{2,} ; !(a AS q ; b AS r) PARTITION BY key WITHIN 9 MIN",
        "2 OF (a, b+, c) PARTITION BY key WITHIN 6 EVENTS",
    )
    greedy = (
        "(a ; b+ | c)+ ; a AS d WHERE b[i].x > b[i-1].x AND d.x > a.x PARTITION BY key",
        "a & (b+ ; c) WHERE b[i].x + SUM(b.x) < 9 AND c.x < LAST(b.x) PARTITION BY key",
    )
    rounds = (
        "((a ; b+) | c)+ ; a AS d WHERE b[i].x > b[i-1].x AND d.x > a.x PARTITION BY key WITHIN 9 MIN",
        "(a , b?)+ UNTIL c PARTITION BY key",
        "(a ; b+)+ PARTITION BY key WITHIN 9 MIN",
    )
    for (policy, after_match), truncate, repetition in product(_POLICIES, (False, True), REPETITION):
        further = greedy if policy != "skip_till_any" else rounds if repetition == "all" else ()
        for pattern in (*asked, *further):
            given: dict[str, object] = {
                "stream": "s", "pattern": pattern, "policy": policy, "after_match": after_match,
                "repetition": repetition,
            }  # fmt: skip
            if truncate:
                given |= {"truncate": True, "max_matches": 1}
            reads = patterns.check_request(given, PUBLISHED, ["s"], counts)
            list(match_partitions(reads.request, 0, events))


def warm_trend_questions() -> None:
    """What the job and the functions ask: edges that are runs, that must be listed, events that fit several terms."""
    events = columns_of(pa.Table.from_pylist(some_events(1), pa.schema(EVENT_FIELDS)))
    for query in (
        "PATTERN a+ e[] WHERE e[i].x > e[i-1].x PARTITION BY key WITHIN 8 MIN SLIDE 4 MIN",
        "PATTERN a+ e[] ; b WHERE e[i].x >= e[i-1].x * 2 AND t(e[i]) - t(e[i-1]) < 5 MIN WITHIN 8 EVENTS",
        "PATTERN a+ e[] ; b WHERE e[i].x <> e[i-1].x AND ABS(e[i].x - e[i-1].x) < 4 WITHIN 8 EVENTS",
        "PATTERN a+ e[] ; a+ f[] WITHIN 6 MIN",
    ):
        layout = layout_of({"query": query, "params": {}, "stream": STREAM})
        batch = vertex_rows(layout, events)
        columns = {name: batch[name] for name in batch.schema.names}
        graph_batches(layout, *vertices_from(layout, columns))
        columns["block"] = pa.array(np.zeros(batch.num_rows, np.int64))
        question = TrendsRequest(layout, None, None, -_EVERY_WINDOW, _EVERY_WINDOW, 100, 10**6, False)
        total = sum(int(trends) for trends in count_trends(question, columns)["trends"].to_pylist())
        list(list_trends(question, columns, [(0, total)]))
        list(pick_trends(question, columns, [0][:total]))
        trends = trends_of(question, columns).trends
        for found in trends.extract(0, total):
            trends.assign(found)
        aggregates = parse_aggregates("SUM(x), MAX(x), COUNT(x)")
        valued = vertex_rows(layout, events, attributes_of(aggregates))
        aggregate_trends(question, aggregates, {**columns, VALUES: valued[VALUES]})
    # Numbers that need more than 64 bits.
    from_remainders(np.zeros((1, 2), np.uint64), primes(2), 2)
    weights_of(pa.array([0.5, 3.0])).remainders(primes(1))


def warm_group_questions() -> None:
    """`match_groups` and `group_members` from events: single and complete overlap."""
    events = columns_of(partitioned_events())
    for overlap in ("single", "complete"):
        given = {"pattern": "a, !b, b+ | c WITHIN 4 EVENTS", "overlap": overlap}
        request = groups.request_of(given, STREAM)
        groups_of_partitions(request, events)
        members_in(request, events)


def warm_live_questions() -> None:
    """`predict_match`: a row that stands for instances with different times left."""
    entry = {"query": "a ; b PARTITION BY key WITHIN 9 MIN", "decay": 0.0, "smoothing": 1.0, "lookahead": 4}
    told = machines.forecast(machines.question_of("s", entry, STREAM), [], Waited(), 2)
    rows = [
        {
            "part": ["k"], "state_id": told.states[0]["state_id"], "operands": [0], "positions": [left],
            "times": [left], "joins": [], "left": left * 10**8, "events": -1, "closed": 0, "quiet": 1, "pace": 1,
        }
        for left in (1, 2)
    ]  # fmt: skip
    fields = [BATCH_SCHEMA.field(name) for name in INSTANCE_COLUMNS]
    schema = pa.schema([*fields, *((name, pa.int64()) for name in STANDING)])
    live_rows(columns_of(pa.Table.from_pylist(rows, schema)), told, ["a", "b"], 0.0)


def warm_funnels() -> None:
    """`match_funnel` and `match_funnel_rows`: every mode, with and without a window."""
    events = columns_of(partitioned_events())
    for mode, within in product(MODES, (None, "5 MIN")):
        given = {"stream": "s", "pattern": "a ; b ; c", "mode": mode, "within": within}
        rows_of_partitions(funnels.check_request(given, PUBLISHED, ["s"], [], None).request, events)


def warm_paths() -> None:
    """`match_paths`: around a name, and of whole partitions."""
    events = columns_of(partitioned_events())
    for around, within in product(("a", None), (None, "5 MIN")):
        given = {"stream": "s", "around": around, "within": within}
        request = paths.check_request(given, PUBLISHED, ["s"], []).request
        merge(request, parts_of_partitions(request, events))


def warm_row_patterns() -> None:
    """MATCH_RECOGNIZE: one kernel for all patterns and conditions."""
    match_rows(compile_pattern(parse_clause("PATTERN (a)")), np.ones((1, 1), np.bool_), np.array([0, 1]))

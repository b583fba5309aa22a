"""Random questions of every job and function, asked as Spark's tasks ask them, of kernels that warming has compiled.

Run as a program, it prints each signature of a kernel that the questions call and warming did not.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from naive import groups as naive_groups
from naive.funnel_cases import asked as asked_funnel
from naive.funnel_cases import random_funnel, random_partitions
from naive.funnel_cases import rows_of as funnel_rows
from naive.funnels import MODES as FUNNEL_MODES
from naive.group_cases import random_query as random_group_query
from naive.group_cases import random_stream
from naive.kleene_random import FORMS, Language
from naive.kleene_random import random_events as random_kleene_events
from naive.machine_random import random_events as random_machine_events
from naive.machine_random import random_subscription
from naive.path_cases import asked_paths
from naive.path_cases import random_question as random_path_question
from naive.row_pattern_random import found_by_kernel, random_case
from naive.sketch_cases import POLICIES, random_conditions, random_pattern
from naive.sketch_cases import random_events as random_sketch_events
from naive.trend_cases import ATTRIBUTES as TREND_TYPES
from naive.trend_cases import compiled as compiled_trends
from naive.trend_cases import random_events as random_trend_events
from naive.trend_cases import random_query as random_trend_query
from unit.groups.test_group_batch import engine as group_engine
from unit.groups.test_group_batch import table as group_table
from unit.kleene.test_kleene_task import columns as kleene_columns
from unit.kleene.test_kleene_task import counts, publication
from unit.machines.running_cases import TYPES as MACHINE_TYPES
from unit.machines.test_machine_batch import STREAM as MACHINE_STREAM
from unit.machines.test_machine_batch import table as machine_table
from unit.trends.test_trend_task import dealt
from unit.trends.test_trend_vertex_rows import columns as vertex_columns
from unit.trends.test_trend_vertex_rows import table_rows

from patternlake.udfs import warming
from patternlake.udfs.errors import PatternError, PatternLakeError
from patternlake.udfs.funnels.result import merge as merge_funnels
from patternlake.udfs.funnels.task import parts_of_partitions, rows_of_partitions
from patternlake.udfs.groups import request as groups
from patternlake.udfs.groups.batch import REMEMBERED
from patternlake.udfs.groups.members import members_in
from patternlake.udfs.groups.task import groups_of_partitions
from patternlake.udfs.kleene import request as patterns
from patternlake.udfs.kleene.task import match_partitions
from patternlake.udfs.machines import request as machines
from patternlake.udfs.machines.batch import Batches
from patternlake.udfs.machines.forecasts.passage import Waited
from patternlake.udfs.machines.forecasts.trials import Trials, told_by, trained_of
from patternlake.udfs.machines.from_config import groups_of
from patternlake.udfs.machines.result import INSTANCE_COLUMNS, live_rows
from patternlake.udfs.machines.state import BATCH_SCHEMA, INSTANCE
from patternlake.udfs.paths.result import merge as merge_paths
from patternlake.udfs.paths.task import parts_of_partitions as path_parts
from patternlake.udfs.published import NameCount
from patternlake.udfs.sequences.lent_patterns import compile_asked
from patternlake.udfs.sketch.batch import TOP_BUCKET, SegmentPlan, segment_rows
from patternlake.udfs.sketch.descent import node_hits, top_hits
from patternlake.udfs.sketch.request import SketchRequest, SketchState, check_call
from patternlake.udfs.sketch.result import answer, candidates, exists
from patternlake.udfs.sketch.sizing import planning
from patternlake.udfs.sketch.task import match_exactly
from patternlake.udfs.trends.aggregates import aggregate_trends, attributes_of, parse_aggregates
from patternlake.udfs.trends.graph_rows import graph_batches
from patternlake.udfs.trends.request import TrendsRequest
from patternlake.udfs.trends.task import count_trends, list_trends, pick_trends
from patternlake.udfs.trends.vertex_rows import Layout, vertex_rows, vertices_from

UNORDERED = {"steering", "after_match"}
"""Forms that `skip_till_any` does not take."""


def ask_pattern(rng: random.Random) -> None:
    """`match_pattern`, in blocks now and then."""
    policy = rng.choice(["skip_till_any", "skip_till_any", "skip_till_next", "strict"])
    drawn = Language(rng, policy=policy, forms=FORMS.keys() - (UNORDERED if policy == "skip_till_any" else set()))
    head, within, extent = drawn.text.partition(" WITHIN ")
    column = rng.choice([None, "s"])
    text = head + (f" PARTITION BY {column}" if column else "") + within + extent
    events = random_kleene_events(rng, rng.randint(0, 14))
    given = {
        "stream": "s", "pattern": text, "policy": policy, "after_match": drawn.after_match,
        "repetition": drawn.repetition,
    }  # fmt: skip
    try:
        asked = patterns.check_request(given, publication(rng.choice([None, 8000])), ["s"], counts(events) or [NOTHING])
    except PatternError:
        # What is drawn at random may be what no policy takes.
        return ask_pattern(rng)
    rows = kleene_columns(list(enumerate(sorted(events, key=lambda event: (event.time, event.position)))))
    if column:
        parts = [[event.values[column]] for event in sorted(events, key=lambda event: (event.time, event.position))]
        rows["part"] = pa.array(parts, pa.list_(pa.string()))
    dealt = asked.request.portions
    if not dealt.ranked:
        del rows["rank"]
    for portion in range(dealt.low, dealt.high + 1):
        list(match_partitions(asked.request, portion, rows))


NOTHING = NameCount("A", 0, 0, 0)


def ask_sketch(rng: random.Random) -> None:
    """The job `sketch`, `match_seq` and `match_exists`."""
    events = random_sketch_events(rng, rng.randint(1, 24), ordered=rng.random() < 0.5)
    keys = rng.choice([["k"], [None], ["k", "l", None]])
    rows = [
        {
            "position": event.lo, "time": event.time_lo, "key": rng.choice(keys), "name": min(event.names),
            "step": None, "probability": None, "tokens": sorted(event.names),
            "x:double": rng.choice([None, event.x]),
        }
        for event in events
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, SKETCHED)
    structure = rng.choice(["leveled", "uniform"])
    keyed = rng.random() < 0.7
    planned = planning.plan(structure, expected_events=24, memory=1 << 16, leaf_events=1, fpq=0.05, height=3)
    nodes = pa.Table.from_batches(segment_rows(table, SegmentPlan(planned, 0, keyed, 1, 0, 1, 0)))
    configuration = {"stream": SKETCH_STREAM, "structure": structure, "fanout": 2, "events_per_leaf": 1}
    dropped = [{"level": None, "before_segment": 1, "until": None}] if rng.random() < 0.2 else []
    state = {"plans": [{"sizing": asdict(planned)}], "events": len(rows)}
    configuration = {**configuration, "keyed": keyed, "seed": 0}
    sketch = SketchState(json.dumps(configuration), json.dumps(state, default=str), dropped)
    verify = rng.random() < 0.5
    pattern = random_pattern(rng)
    if verify and rng.random() < 0.6:
        pattern = random_conditions(rng, pattern)
    given: dict[str, Any] = {"stream": "s", "verify": verify, "truncate": True}
    given["policy"], given["after_match"] = rng.choice(POLICIES)
    if keyed and rng.random() < 0.3:
        given["key"] = "k"
    elif keyed and rng.random() < 0.4:
        pattern = replace(pattern, partition="key")
    if rng.random() < 0.3:
        given["from_position"], given["to_time"] = 2, events[-1].time_hi
    text = rng.choice(BEYOND_A_SKETCH) if verify and rng.random() < 0.3 else pattern.text()
    _ask_sketch(rng, {**given, "pattern": text}, sketch, nodes, table)


BEYOND_A_SKETCH = (
    "A ; B+ ; C",
    "A , B? , C WHERE A.x < C.x WITHIN 4 EVENTS",
    "A ; B{1,2} ; !D WITHIN 5 MILLISECOND",
    "2 OF (A, B+, C) PARTITION BY key",
)
"""Patterns that the kleene engine matches, under every policy."""


SKETCH_STREAM = {"attributes": {"x": {"type": "double"}}, "key": "key", "tokens": None}
SKETCHED = pa.schema(
    [
        ("position", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("name", pa.string()),
        ("step", pa.int64()),
        ("probability", pa.float64()),
        ("tokens", pa.list_(pa.string())),
        ("x:double", pa.float64()),
    ]
)


def _ask_sketch(
    rng: random.Random, given: dict[str, Any], sketch: SketchState, nodes: pa.Table, events: pa.Table
) -> None:
    question = check_call(given, sketch, ["s"], compile_asked)
    # Where filters hold no keys, none says which keys to look for: an answer by key is read from all events.
    if question.keyed or not question.every_key:
        _walk_sketch(rng, question, nodes)
    if question.verify:
        mine = events.filter(pc.equal(events["key"], question.key)) if question.one_key else events
        list(match_exactly(question, whole(mine)))


def _walk_sketch(rng: random.Random, question: SketchRequest, nodes: pa.Table) -> None:
    tops = nodes.filter(pc.equal(nodes["bucket"], TOP_BUCKET))
    hit = top_hits(question, structs(tops))
    keys = dict(zip(tops["segment"].to_pylist(), hit.field("keys").to_pylist(), strict=True))
    if rng.random() < 0.5:
        nodes = nodes.take(pa.array(rng.sample(range(nodes.num_rows), nodes.num_rows)))
    segments = whole(nodes)["segment"].to_numpy()
    tested = pa.array([keys[segment] for segment in segments.tolist()], pa.list_(pa.string()))
    found = node_hits(question, segments, structs(nodes), tested)
    hits = found.filter(found.is_valid())
    if question.verify:
        candidates(question, hits)
    else:
        answer(question, hits)
        exists(question, hits)


def ask_trends(rng: random.Random) -> None:
    """The job `trends`, `cet_count`, `cet_trends` and `cet_aggregate`."""
    query, events = random_trend_query(rng), random_trend_events(rng, rng.randint(1, 14))
    question = compiled_trends(query.text())
    layout = Layout(question, TREND_TYPES)
    batch = vertex_rows(layout, table_rows(events))
    rows = vertex_columns([batch])
    graph_batches(layout, *vertices_from(layout, rows))
    asked = TrendsRequest(layout, None, None, -(2**60), 2**60, rng.randint(1, 4), 10**6, False)
    for part in dealt(layout, rows, asked.block, rng.randint(1, 3), rng):
        total = sum(int(trends) for trends in count_trends(asked, part)["trends"].to_pylist())
        list(list_trends(asked, part, [(0, total)]))
        list(pick_trends(asked, part, [rng.randrange(total)] if total else []))
    aggregates = parse_aggregates("SUM(x), MIN(n), COUNT(s)")
    valued = vertex_rows(layout, table_rows(events), attributes_of(aggregates))
    columns = {name: valued[name] for name in valued.schema.names}
    for part in dealt(layout, columns, asked.block, 1, rng):
        aggregate_trends(asked, aggregates, part)


def ask_groups(rng: random.Random) -> None:
    """`match_groups` and `group_members` from events."""
    query = random_group_query(rng)
    rows = group_rows([("k", random_stream(rng)), (None, random_stream(rng))][: rng.randint(0, 2)])
    given = {
        "pattern": query.text, "overlap": query.overlap, "threshold": query.threshold, "within": query.within,
        "from_step": rng.choice([None, 2]),
    }  # fmt: skip
    configuration = {"attributes": {"v": {"type": "bigint"}}, "key": "key"}
    request = groups.request_of(given, configuration)
    groups_of_partitions(request, whole(rows))
    members_in(request, whole(rows))


def group_rows(streams: Sequence[tuple[str | None, naive_groups.Stream]]) -> pa.Table:
    rows = [
        {
            "part": [key], "position": number, "time": step, "step": step, "key": key, "name": row.name,
            "probability": row.probability, "v:bigint": row.value,
        }
        for key, stream in streams
        for step, happened in stream.items()
        for number, row in enumerate(happened)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, group_table([], {}).schema.remove(1).append(pa.field("v:bigint", pa.int64())))


def run_groups(rng: random.Random) -> None:
    """The job `groups`, two batches."""
    asked = group_engine(rng.choice(["a, b+ | c WITHIN 4 EVENTS", "a, (b | c) WITHIN 3 EVENTS"]),
                         rng.choice(["single", "complete"]))  # fmt: skip
    states: dict[str | None, bytes] = {}
    for first in (0, 8):
        events = [
            (part, first + step, name, rng.choice([0.2, 0.5, 1.0]))
            for part in (None, "k")
            for step in range(rng.randint(1, 8))
            for name in rng.sample("abc", rng.randint(0, 1))
        ]
        found = [row for batch in asked.rows(group_table(events, states).to_batches()) for row in batch.to_pylist()]
        states |= {row["part"][0]: row["state"] for row in found if row["kind"] == REMEMBERED}


def run_machines(rng: random.Random) -> None:
    """The jobs `predict` and `evaluate`, and `predict_match`."""
    partition = rng.choice(["", "PARTITION BY key"])
    texts = [text for _ in range(6) if (partition in (text := random_subscription(rng).text)) == ("PARTITION" in text)]
    entries = {
        f"s{number}": {"query": text, "decay": 0.0, "smoothing": 1.0, "lookahead": 4}
        for number, text in enumerate(texts[:3])
    }
    events = sorted(random_machine_events(rng, 20), key=lambda event: (event.time, event.position))
    middle = rng.randint(0, len(events))
    instances: list[dict[str, Any]] = []
    for news in (events[:middle], events[middle:]):
        given = machine_table(news, partition, instances).to_batches()
        batches = Batches(groups_of(entries, MACHINE_STREAM), MACHINE_TYPES, 0).rows(given)
        instances = [row for batch in batches for row in batch.to_pylist() if row["kind"] == INSTANCE]
    apart = groups_of(entries, MACHINE_STREAM, apart=True)
    given = machine_table(events, partition, []).to_batches()
    trained = [row for batch in Trials(apart, MACHINE_TYPES, 0).rows(given) for row in batch.to_pylist()]
    told = [
        told_by(group, trained_of(row), 0, 3, [1.0] * len(group.names))
        for group, row in zip(apart, trained, strict=True)
    ]
    list(Trials(apart, MACHINE_TYPES, 0, (1, 3), (0.5,), told).rows(given))
    shown = pa.Table.from_pylist(instances, pa.schema([BATCH_SCHEMA.field(name) for name in INSTANCE_COLUMNS]))
    for name, entry in entries.items():
        told_ = machines.forecast(machines.question_of(name, entry, MACHINE_STREAM), [], Waited())
        live_rows(whole(shown), told_, [f"o{number}" for number in range(1, 7)], 0.0)


def ask_funnels(rng: random.Random) -> None:
    """`match_funnel` and `match_funnel_rows`."""
    partitions = random_partitions(rng, "abc")
    request = asked_funnel(random_funnel(rng, "abc").text, partitions, mode=rng.choice(FUNNEL_MODES), by="via").request
    rows = whole(funnel_rows(partitions, rng))
    rows_of_partitions(request, rows)
    merge_funnels(request, parts_of_partitions(request, rows))


def ask_paths(rng: random.Random) -> None:
    """`match_paths`."""
    partitions = random_partitions(rng, "abc")
    request = asked_paths(partitions, **random_path_question(rng, "abc")[0]).request
    merge_paths(request, path_parts(request, whole(funnel_rows(partitions, rng))))


def ask_row_pattern(rng: random.Random) -> None:
    """A clause of MATCH_RECOGNIZE, with conditions of either kind."""
    if (case := random_case(rng, looks_back=rng.random() < 0.5)) is not None:
        found_by_kernel(case)


def structs(rows: pa.Table) -> pa.StructArray:
    columns = whole(rows)
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def whole(table: pa.Table) -> dict[str, pa.Array]:
    """Columns as a task gets them: over buffers that nobody may write to."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    read = pa.ipc.open_stream(sink.getvalue()).read_all()
    return {name: read[name].combine_chunks() for name in read.column_names}


ASKED: dict[str, Callable[[random.Random], None]] = {
    "sketch": ask_sketch,
    "patterns": ask_pattern,
    "trends": ask_trends,
    "groups": ask_groups,
    "groups job": run_groups,
    "machines": run_machines,
    "funnels": ask_funnels,
    "paths": ask_paths,
    "row patterns": ask_row_pattern,
}


def signatures() -> set[tuple[str, Any]]:
    """Every kernel of the package with the types that it is compiled for so far."""
    return {
        (f"{value.__module__}.{value.__name__}", signature)
        for name, module in list(sys.modules.items())
        if name.startswith("patternlake.udfs.")
        for value in vars(module).values()
        if hasattr(value, "nopython_signatures")
        for signature in value.nopython_signatures
    }


def main(often: int) -> None:
    for _ in warming.warm():
        pass
    compiled = signatures()
    for name, ask in ASKED.items():
        answered = 0
        for seed in range(often):
            try:
                ask(random.Random(seed))
            except PatternLakeError:
                continue
            answered += 1
        assert 2 * answered > often, f"{name}: of {often} questions only {answered} can be asked"
        for kernel, signature in sorted(signatures() - compiled, key=str):
            sys.stdout.write(f"{name}: {kernel}{signature.args}\n")
        compiled = signatures()


if __name__ == "__main__":
    main(int(sys.argv[1]))

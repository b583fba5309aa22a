"""The configuration file: what it takes, what it refuses, and that every refusal names its key."""
# ruff: noqa: E501  (one refusal per line reads better than a wrapped one)

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml

from patternlake.jobs.configuration import values
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.configuration.streams import meaning_as_now
from patternlake.udfs.errors import ConfigurationError

EXAMPLE = Path(__file__).parents[2] / "conf" / "full_example.yaml"
FULL = """
database: patternlake
location: ./lake
streams:
  flights:
    source: {format: csv, path: data/flights, options: {header: true, nullValue: NA}}
    time: make_timestamp(year, month, day, hour, minute, 0)
    name: CASE WHEN arr_delay > 15 THEN 'late' ELSE 'fine' END
    key: tailnum
    attributes: {dep_delay: double, dest: string, gap: {type: double, expr: arr_delay - dep_delay}}
    timezone: America/New_York
    tokens: [name, "name || ':' || dest"]
    allowed_lateness: 1 hour
sketches:
  flights: {events_per_leaf: 100, fpq: 0.01, memory: 64MB, keyed: true, expected_events: 1000000, structure: leveled, levels: 10, fanout: 2, query_length: 2, seed: 0, age: [{after: 30 days, keep_level: 3}, {after: 2 years, drop: true}]}
"""
SMALL = "streams: {s: {source: {format: json, path: a}, time: t, name: n}}"


def refused(old: str, new: str, text: str = FULL) -> str:
    assert old in text
    with pytest.raises(ConfigurationError) as raised:
        Configuration.from_text(text.replace(old, new, 1))
    return str(raised.value)


def stream(**keys: str) -> str:
    return "streams: {s: {source: {format: json, path: a}, time: t, name: n, " + ", ".join(
        f"{key}: {value}" for key, value in keys.items()
    ) + "}}"  # fmt: skip


def test_the_full_example_has_every_key() -> None:
    tree = yaml.safe_load(EXAMPLE.read_text())
    configuration = Configuration.load(EXAMPLE)

    def keys(model: object) -> set[str]:
        return {field.alias or name for name, field in type(model).model_fields.items()}

    streams = tree["streams"].values()
    assert set(tree) == keys(configuration)
    assert {key for stream in streams for key in stream} == keys(configuration.streams["flights"])
    assert {key for stream in streams for key in stream["source"]} == keys(configuration.streams["flights"].source)
    assert set(tree["sketches"]["flights"]) == keys(configuration.sketches["flights"])
    assert set(tree["trends"]["growing_delays"]) == keys(configuration.trends["growing_delays"])
    assert set(tree["groups"]["fronts"]) == keys(configuration.groups["fronts"])
    assert set(tree["patterns"]["three_late"]) == keys(configuration.patterns["three_late"])
    assert set(tree["subscriptions"]["third_strike"]) == keys(configuration.subscriptions["third_strike"])
    assert {key for alert in tree["alerts"].values() for key in alert} == keys(configuration.alerts["soon"])


def test_the_full_example_is_read_as_it_is_written() -> None:
    loaded = Configuration.from_text(FULL, folder="/base")
    flights, sketch = loaded.streams["flights"], loaded.sketches["flights"]
    assert (loaded.database, loaded.location) == ("patternlake", "/base/lake")
    assert flights.source.path == "/base/data/flights"
    assert flights.source.options == {"header": "true", "nullValue": "NA"}
    assert flights.types == {"dep_delay": "double", "dest": "string", "gap": "double"}
    assert [flights.expression(name) for name in flights.types] == ["`dep_delay`", "`dest`", "arr_delay - dep_delay"]
    assert flights.allowed_lateness == timedelta(hours=1)
    assert (sketch.memory, sketch.levels, sketch.seed) == (64_000_000, 10, 0)
    assert [(rule.after, rule.keep_level, rule.drop) for rule in sketch.age] == [
        (timedelta(days=30), 3, None),
        (timedelta(days=730), None, True),
    ]


def test_numbers_that_stand_for_what_is_missing_are_texts_as_they_are_written() -> None:
    text = FULL.replace("nullValue: NA", "nullValue: -999.00, emptyValue: +9999, maxFilesPerTrigger: 1_000")
    options = Configuration.from_text(text).streams["flights"].source.options
    assert options == {"header": "true", "nullValue": "-999.00", "emptyValue": "+9999", "maxFilesPerTrigger": "1000"}
    with pytest.raises(ConfigurationError, match="nullValue is false in YAML, whichever word stands there; quote it"):
        Configuration.from_text(FULL.replace("nullValue: NA", "nullValue: NO"))
    found = Configuration.from_text(
        "streams: {s: {source: {table: raw.s}, time: at, name: what}}\n"
        "subscriptions: {m: {stream: s, query: 'a ; b DEFINE a AS name IN (code, version, x, n, t)', "
        "params: {code: 1_0, version: 1.10, x: 1.5, n: 3, t: true}}}\n"
    )
    assert found.subscriptions["m"].params == {"code": "10", "version": "1.1", "x": "1.5", "n": "3", "t": "true"}


def test_sketches_age_by_time_by_events_or_by_both() -> None:
    text = FULL.replace("2 years, drop: true", "1000000 events, drop: true")
    (by_time, by_events) = Configuration.from_text(text).sketches["flights"].age
    assert (by_time.after, by_events.after) == (timedelta(days=30), 1_000_000)
    assert (by_time.counted, by_events.counted) == (False, True)


def test_what_yaml_takes_for_something_else_is_what_is_written() -> None:
    assert Configuration.from_text(stream(timezone="+10:00")).streams["s"].timezone == "+10:00"
    assert values.parameters({"since": date(2024, 1, 1), "n": 5}) == {"since": "2024-01-01", "n": "5"}


@pytest.mark.parametrize(
    "path", ["s3a://raw/logs", "s3://raw/*.xes", "abfss://c@acc.dfs.core.windows.net/logs", "gs://raw"]
)
def test_xes_files_in_an_object_store_are_refused(path: str) -> None:
    text = f"streams:\n  s: {{source: {{format: xes, path: '{path}'}}, time: at, name: what}}\n"
    with pytest.raises(ConfigurationError) as raised:
        Configuration.from_text(text)
    assert f"streams.s.source.path: '{path}': XES files are not read from an object store" in str(raised.value)
    assert Configuration.from_text(text.replace("xes,", "json,")).streams["s"].source.path == path


def test_what_is_left_out_has_its_default() -> None:
    loaded = Configuration.from_text(SMALL + "\nsketches: {s: {}}")
    made, sketch = loaded.streams["s"], loaded.sketches["s"]
    assert (loaded.database, loaded.location) == ("patternlake", None)
    assert (made.key, made.tokens, made.timezone, made.on_change) == (None, None, "UTC", "fail")
    assert made.allowed_lateness == timedelta(0)
    assert (sketch.events_per_leaf, sketch.fpq, sketch.structure, sketch.levels) == (100, 0.01, "leveled", None)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("format: csv", "format: cvs", "streams.flights.source.format: 'cvs' is not one of csv, json, parquet, xes, delta (did you mean 'csv'?)"),
        ("key: tailnum", "kei: tailnum", "streams.flights.kei: unknown key (did you mean 'key'?); known: source, time, name, key, "),
        ("fpq: 0.01", "fqp: 0.1", "sketches.flights.fqp: unknown key (did you mean 'fpq'?)"),
        ("database: patternlake", "subscription: {}", "subscription: unknown key (did you mean 'subscriptions'?)"),
        ("database: patternlake", "database: a b", "database: 'a b' is not a database's name"),
        ("fpq: 0.01", "fpq: 2", "sketches.flights.fpq: 2 is out of range; less than 1"),
        ("events_per_leaf: 100", "events_per_leaf: 0", "sketches.flights.events_per_leaf: 0 is out of range; at least 1"),
        ("events_per_leaf: 100", "events_per_leaf: 1.5", "sketches.flights.events_per_leaf: 1.5 is not a whole number"),
        ("seed: 0", "seed: '0'", "sketches.flights.seed: '0' is not a whole number"),
        ("keyed: true", "keyed: 1", "sketches.flights.keyed: 1 is not true or false"),
        ("64MB", "64XB", "sketches.flights.memory: '64XB' is not a size; write a size like 64MB, 64MiB, 1GB or a number of bytes"),
        ("structure: leveled", "structure: flat", "sketches.flights.structure: 'flat' is not one of leveled, uniform"),
        ("key: tailnum", "key: 5", "streams.flights.key: 5 is not text"),
        ("key: tailnum", "key: ' '", "streams.flights.key: is empty"),
        ("tokens: [name", "tokens: [5", "streams.flights.tokens.0: 5 is not text"),
        ("attributes: {", "attributes: {step: int, ", "streams.flights.attributes.step: 'step' is a reserved name"),
        ("attributes: {", "attributes: {Time: int, ", "streams.flights.attributes.Time: 'Time' is a reserved name"),
        ("attributes: {", "attributes: {__PatternLake_x: int, ", "streams.flights.attributes.__PatternLake_x: '__PatternLake_x': names that begin with '__patternlake_' are kept for PatternLake; choose another and give its expr"),
        ("dest: string", "dest: strin", "streams.flights.attributes.dest.type: 'strin' is not a type of an attribute (did you mean 'string'?)"),
        ("dest: string", "dest: decimal(10,4)", "streams.flights.attributes.dest.type: 'decimal(10': a comma ends a value in { }; quote the type, such as 'decimal(10,2)'"),
        ("gap: {type: double", "gap: {typ: double", "streams.flights.attributes.gap.type: missing\nstreams.flights.attributes.gap.typ: unknown key"),
        ("1 hour", "1 fortnight", "streams.flights.allowed_lateness: '1 fortnight': unknown unit 'fortnight'; units are milliseconds,"),
        ("allowed_lateness: 1 hour", "allowed_lateness:", "streams.flights.allowed_lateness: is empty; write a duration"),
        ("America/New_York", "Mars", "streams.flights.timezone: 'Mars' is not a time zone"),
        ("key: tailnum", "on_change: maybe", "streams.flights.on_change: 'maybe' is not one of fail, rebuild"),
        ("key: tailnum", "probability_tolerance: 0.1", "streams.flights.probability_tolerance: only of use beside step and probability"),
        ("key: tailnum", "step: x\n    probability: y\n    probability_tolerance: 1", "streams.flights.probability_tolerance: 1 is out of range; less than 1"),
        ("key: tailnum", "step: x\n    probability: y\n    probability_tolerance: .nan", "streams.flights.probability_tolerance: nan is not a finite number"),
        ("key: tailnum", "event_id: ''", "streams.flights.event_id: is empty"),
        ("key: tailnum", "order: ''", "streams.flights.order.0: is empty"),
        ("key: tailnum", "order: []", "streams.flights.order"),
        ("key: tailnum", "quarantine_warning: 10%", "streams.flights.quarantine_warning: '10%' is not a number"),
        ("database: patternlake", "quarantine_warning: 2", "quarantine_warning: 2 is out of range; at most 1"),
        ("format: csv", "format: csv, on_bad_file: skip", "streams.flights.source.on_bad_file: 'skip' is not one of fail, quarantine"),
        ("key: tailnum", "step: x", "streams.flights.probability: missing beside step"),
        ("key: tailnum", "probability: x", "streams.flights.step: missing beside probability"),
        ("header: true", "header: false", "streams.flights.source.options.header: missing; a csv source without schema needs"),
        ("header: true", "header: true, inferSchema: true", "streams.flights.source.options.inferSchema: cannot be set"),
        ("header: true", "header: true, nullvlaue: NA", "streams.flights.source.options.nullvlaue: is no option of a csv source (did you mean 'nullValue'?); known: basePath,"),
        ("header: true", "header: true, mergeSchema: true", "streams.flights.source.options.mergeSchema: is no option of a csv source; known:"),
        ("header: true", "header: true, fileNameOnly: true", "streams.flights.source.options.fileNameOnly: cannot be set: a file is known by its whole address"),
        ("{format: csv, path: data/flights, options: {header: true, nullValue: NA}}", "{table: t, options: {failOnDataLoss: false}}", "streams.flights.source.options.failOnDataLoss: cannot be set: rows that are gone before they were read are always an error"),
        ("path: data/flights", "path: data, table: t", "streams.flights.source.path: "),
        ("format: csv, path: data/flights", "format: csv", "streams.flights.source.path: missing"),
        ("sketches:\n  flights", "sketches:\n  flihgts", "sketches.flihgts: no stream 'flihgts' (did you mean 'flights'?)"),
        ("levels: 10", "levels: 2", "sketches.flights.age.0.keep_level: 3 is above the top; with 2 levels, at most 1"),
        ("2 years, drop: true", "2 days, drop: true", "sketches.flights.age.1.after: 2 days, 0:00:00 is not later than the rule before it"),
        ("30 days, keep_level: 3}, {after: 2 years", "2000 events, keep_level: 3}, {after: 1000 events", "sketches.flights.age.1.after: 1,000 events is not later than the rule before it (2,000 events)"),
        ("after: 30 days", "after: 5", "sketches.flights.age.0.after: 5 is not a duration; write a duration like 1 hour, 30 days or 2 years, or a number of events like 1000000 events"),
        ("2 years, drop: true", "2 years, keep_level: 2", "sketches.flights.age.1.keep_level: 2 keeps no less than the rule before it"),
        ("30 days, keep_level: 3", "30 days, drop: true", "sketches.flights.age.1: stands after `drop: true`"),
        ("30 days, keep_level: 3", "30 days", "sketches.flights.age.0.drop: a rule has one of keep_level and `drop: true`"),
        ("flights:", f"{'f' * 256}:", f"streams.{'f' * 79}…: a name has 1 to 255 characters, this one 256"),
        ("streams:", "streams: []\nother:", "streams: [] is not a section of keys and values"),
    ],
)  # fmt: skip
def test_a_problem_is_one_line_that_begins_with_the_keys_path(old: str, new: str, line: str) -> None:
    assert line in refused(old, new)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("events_per_leaf: 100", "events_per_leaf: 10000001", "events_per_leaf: 10000001 is out of range; at most 10000000"),
        ("events_per_leaf: 100", "events_per_leaf: 5000000", "events_per_leaf: 5000000 with 10 levels and a fanout of 2 make segments of 2,560,000,000 events; at most 2,147,483,647"),
        ("fpq: 0.01", "fpq: 0", "fpq: 0 is out of range; at least 1e-12"),
        ("fpq: 0.01", "fpq: 5.0e-324", "fpq: 5e-324 is out of range; at least 1e-12"),
        ("fpq: 0.01", "fpq: .nan", "fpq: nan is not a finite number"),
        ("memory: 64MB", "memory: 10000000TB", "memory: '10000000TB' is out of range; at most 9223372036854775807 bytes"),
        ("expected_events: 1000000", "expected_events: 1000000000000001", "expected_events: 1000000000000001 is out of range; at most 1000000000000000"),
        ("levels: 10", "levels: 25", "levels: 25 is out of range; at most 24"),
        ("fanout: 2", "fanout: 10001", "fanout: 10001 is out of range; at most 10000"),
        ("query_length: 2", "query_length: 1001", "query_length: 1001 is out of range; at most 1000"),
        ("seed: 0", "seed: 4294967296", "seed: 4294967296 is out of range; less than 4294967296"),
        ("seed: 0", "seed: -1", "seed: -1 is out of range; at least 0"),
        ("after: 2 years", "after: 1001 years", "age.1.after: '1001 years' is out of range; at most 1000 years"),
    ],
)  # fmt: skip
def test_numbers_of_a_sketch_that_would_fail_in_the_run_are_refused(old: str, new: str, line: str) -> None:
    assert f"sketches.flights.{line}" in refused(old, new)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("key: tailnum", "key: tailnum ||", "streams.flights.key: 'tailnum ||' is not SQL: Required keyword: 'expression' missing for DPipe, line 1, column 10"),
        ("time: make_timestamp(year, month", "time: make_timestamp(year month", "streams.flights.time: 'make_timestamp(year month, day, hour, minute, 0)' is not SQL: Expecting ), line 1, column 25"),
        ("name: CASE WHEN arr_delay > 15 THEN 'late' ELSE 'fine' END", "name: CASE WHEN arr_delay > 15 THEN 'late' ELSE 'fine'", "streams.flights.name: \"CASE WHEN arr_delay > 15 THEN 'late' ELSE 'fine'\" is not SQL: Expected END after CASE, line 1, column 48"),
        ("expr: arr_delay - dep_delay", "expr: (arr_delay - dep_delay", "streams.flights.attributes.gap.expr: '(arr_delay - dep_delay' is not SQL: Expecting ), line 1, column 22"),
        ("tokens: [name", "tokens: ['a, b'", "streams.flights.tokens.0: 'a, b' is not one SQL expression; write one that gives the value of a row"),
        ("tokens: [name", "tokens: [\"'open\"", "streams.flights.tokens.0: \"'open\" is not SQL: a quotation or a comment never ends"),
        ("key: tailnum", "key: tailnum FROM flights", "streams.flights.key: 'tailnum FROM flights' is not one SQL expression"),
    ],
)  # fmt: skip
def test_sql_that_does_not_parse_is_refused_with_its_place(old: str, new: str, line: str) -> None:
    assert line in refused(old, new)


@pytest.mark.parametrize(
    "expression",
    [
        "timestampadd(MINUTE, coalesce(int(dep_delay), 0), make_timestamp(year, month, day, hour, minute, 0))",
        "user.id",
        "x::int",
        "`odd name`",
        "m['k'][0]",
        "transform(xs, x -> x + 1)[0]",
        "a <=> b",
        "TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '1' DAY",
        "r'a' RLIKE '(?i)A'",
        "1L + 1.5D",
        "try_cast(x AS timestamp_ntz)",
        "time -- when",
    ],
)
def test_sql_of_spark_s_own_is_taken(expression: str) -> None:
    assert Configuration.from_text(SMALL.replace("time: t", f'time: "{expression}"')).streams["s"].time == expression


def test_a_lateness_beyond_all_times_is_refused() -> None:
    line = "streams.flights.allowed_lateness: '1001 years' is out of range; at most 1000 years"
    assert line in refused("1 hour", "1001 years")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("0", "'0' is not a whole number from 1 to 2147483647"),
        ("many", "'many' is not a whole number from 1 to 2147483647"),
        ("2147483648", "'2147483648' is not a whole number from 1 to 2147483647"),
    ],
)
def test_a_number_of_files_that_is_none_is_refused(value: str, line: str) -> None:
    found = refused("nullValue: NA", f"maxFilesPerTrigger: {value}")
    assert found == f"streams.flights.source.options.maxFilesPerTrigger: {line}"


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("within: 0", "groups.g.within: 0 is out of range; at least 1"),
        ("within: 1000000000000000001", "groups.g.within: 1000000000000000001 is out of range; at most 1000000000000000000"),
        ("threshold: .nan", "groups.g.threshold: nan is not a finite number"),
        ("threshold: -0.1", "groups.g.threshold: -0.1 is out of range; at least 0"),
        ("params: {p: .inf}", "groups.g.params: p: inf is not a finite number"),
    ],
)  # fmt: skip
def test_numbers_of_a_query_for_groups_are_checked(keys: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Configuration.from_text(f"{SMALL}\ngroups: {{g: {{stream: s, pattern: a, {keys}}}}}")
    assert str(raised.value).startswith(line)


def test_several_problems_are_all_told() -> None:
    message = refused("key: tailnum", "kei: tailnum", FULL.replace("fpq: 0.01", "fpq: 2"))
    assert [line.partition(":")[0] for line in message.splitlines()] == ["streams.flights.kei", "sketches.flights.fpq"]


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("64MB", 64_000_000), ("64 MiB", 67_108_864), ("1GB", 10**9), ("1.5kb", 1500), ("500", 500), ("12 b", 12)],
)
def test_sizes(text: str, bytes_: int) -> None:
    assert Configuration.from_text(f"{SMALL}\nsketches: {{s: {{memory: {text}}}}}").sketches["s"].memory == bytes_


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30 days", timedelta(days=30)),
        ("1 hour", timedelta(hours=1)),
        ("90s", timedelta(seconds=90)),
        ("2 years", timedelta(days=730)),
        ("0.5 min", timedelta(seconds=30)),
        ("250 ms", timedelta(milliseconds=250)),
        ("0", timedelta(0)),
        ("none", None),
    ],
)
def test_durations(text: str, span: timedelta | None) -> None:
    assert Configuration.from_text(stream(allowed_lateness=text)).streams["s"].allowed_lateness == span


@pytest.mark.parametrize(
    ("given", "name"), [("INTEGER", "int"), ("long", "bigint"), ("Decimal(12, 2)", "decimal(12,2)")]
)
def test_types_have_one_spelling(given: str, name: str) -> None:
    text = SMALL.replace("name: n", f"name: n, attributes: {{x: '{given}'}}")
    assert Configuration.from_text(text).streams["s"].types == {"x": name}


@pytest.mark.parametrize("path", ["s3a://bucket/a", "/absolute/a", "file:/a"])
def test_paths_that_are_not_relative_stay(path: str) -> None:
    loaded = Configuration.from_text(SMALL.replace("path: a", f"path: '{path}'"), folder="/base")
    assert loaded.streams["s"].source.path == path


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("{format: json, path: .}", "such as /base/*.json"),
        ("{format: json, path: '*'}", "that leaves them out"),
        (
            "{format: parquet, path: ., options: {recursiveFileLookup: true, pathGlobFilter: '*.parquet'}}",
            "that leaves them out",
        ),
    ],
)
def test_a_source_that_would_read_the_files_of_the_lake_is_refused(source: str, advice: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Configuration.from_text(beside_the_lake(source), folder="/base")
    told = str(raised.value)
    assert told.startswith("streams.s.source.path: '/base")
    assert told.endswith(
        f"means files of the lake, '/base/lake', too: write a pattern {advice}, or put one of the two elsewhere"
    )


@pytest.mark.parametrize(
    "source",
    [
        "{format: json, path: '*.json'}",
        "{format: json, path: raw}",
        "{format: csv, path: ., options: {header: true, recursiveFileLookup: true, pathGlobFilter: '*.csv'}}",
        "{format: delta, path: .}",
        "{table: raw.clicks}",
    ],
)
def test_a_source_may_lie_beside_the_lake(source: str) -> None:
    assert Configuration.from_text(beside_the_lake(source), folder="/base").location == "/base/lake"


def beside_the_lake(source: str) -> str:
    return f"location: lake\nstreams: {{s: {{source: {source}, time: t, name: n}}}}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: there is no such configuration file"):
        Configuration.load(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("streams: {s: [}", "line 1, column 15: not YAML"),
        ("streams:\n  s: 1\n  s: 2\n", "line 3, column 3: not YAML: the key 's' stands twice"),
        ("streams:\n  on: 1\n", "line 2, column 3: not YAML: the key True is not text; quote it"),
        ("- 1", "has no sections"),
        ("", "has no sections"),
    ],
)
def test_a_file_that_is_not_a_configuration_is_named_with_its_line(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        Configuration.load(file)
    assert str(raised.value).startswith(str(file))
    assert place in str(raised.value)


def test_relative_paths_start_at_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(SMALL)
    assert Configuration.load(tmp_path / "c.yaml").streams["s"].source.path == str(tmp_path / "a")


@pytest.mark.parametrize(
    ("changed", "means"),
    [
        (stream(allowed_lateness="1 day"), False),
        (stream(on_change="rebuild"), False),
        (SMALL.replace("path: a", "path: b, options: {maxFilesPerTrigger: 5}"), False),
        (stream(tokens="[name]"), False),
        (SMALL.replace("path: a", "path: a, options: {dateFormat: x}"), True),
        (SMALL.replace("time: t", "time: u"), True),
        (stream(timezone="Asia/Tokyo"), True),
        (stream(tokens="[name, other]"), True),
        (stream(order="x"), True),
        (stream(order="[x]"), True),
    ],
)
def test_the_meaning_of_a_stream_is_what_its_rows_depend_on(changed: str, means: bool) -> None:
    before, after = (Configuration.from_text(text).streams["s"].meaning for text in (SMALL, changed))
    assert (before != after) is means


def test_a_quote_in_csv_is_escaped_by_another_unless_the_options_say_otherwise() -> None:
    def options(more: str) -> dict[str, str]:
        text = (
            f"streams: {{s: {{source: {{format: csv, path: a, options: {{header: true{more}}}}}, time: t, name: n}}}}"
        )
        source = Configuration.from_text(text).streams["s"].source
        assert source.meaning["options"] == source.read_options
        return {name: value for name, value in source.read_options.items() if name != "header"}

    assert options("") == {"escape": '"'}
    assert options(', quote: "|"') == {"escape": "|", "quote": "|"}
    assert options(', escape: "\\\\"') == {"escape": "\\"}
    assert options(", quote: ''") == {"quote": ""}


def test_a_csv_stream_of_an_older_version_escaped_with_a_backslash() -> None:
    published = {"source": {"format": "csv", "options": {"header": "true"}}, "time": "t"}
    assert meaning_as_now(published)["source"]["options"] == {"escape": "\\", "header": "true"}
    for same in (
        {"source": {"format": "csv", "options": {"escape": '"'}}},
        {"source": {"format": "json", "options": {}}},
    ):
        assert meaning_as_now(same) == same


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("lookahead: 1001", "lookahead: 1001 is out of range; at most 1000"),
        ("lookahead: 99999999999", "lookahead: 99999999999 is out of range; at most 1000"),
        ("smoothing: .inf", "smoothing: inf is not a finite number"),
        ("smoothing: .nan", "smoothing: nan"),
        ("decay: 1", "decay: 1 is out of range; less than 1"),
    ],
)
def test_what_a_forecast_cannot_be_made_with_is_refused(setting: str, told: str) -> None:
    text = SMALL + f"\nsubscriptions: {{ab: {{stream: s, query: 'a ; b', {setting}}}}}"
    with pytest.raises(ConfigurationError) as caught:
        Configuration.from_text(text)
    assert f"subscriptions.ab.{told}" in str(caught.value)


def test_names_of_streams_differ_in_more_than_case() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Configuration.from_text(SMALL[:-1] + ", S: {source: {format: parquet, path: d}, time: at, name: n}}")
    assert "streams.S: stream 's' differs in case alone, and Spark takes both for one; give another name" in str(
        caught.value
    )


def test_problems_of_names_and_queries_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Configuration.from_text(
            """
            streams:
              s: {source: {format: parquet, path: d}, time: at, name: n, attributes: {temperature: double}}
            sketches: {t: {}}
            patterns:
              endless: {stream: s, query: "A ; B"}
              hot: {stream: s, query: "A ; B WHERE B.temprature > 3 WITHIN 1 HOUR"}
              lost: {stream: q, query: "A ; B WITHIN 1 HOUR"}
            alerts:
              told: {of: pattern, name: hut, to: table}
            """
        )
    begins = [line.partition(": ")[0] for line in str(caught.value).splitlines() if not line.startswith(" ")]
    assert begins == [
        "sketches.t",
        "patterns.endless.query",
        "patterns.hot.query",
        "patterns.lost.stream",
        "alerts.told.name",
    ]
    assert "did you mean temperature?" in str(caught.value)

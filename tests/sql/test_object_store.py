"""A lake in a store that is made like S3: the same answers as on a disk, and commits that cannot be lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.table_logs import Seen, UnreadableError, one_look
from tests.object_store import BUCKET, ObjectStore, packages

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(1200)]

DRIVER = """
import json, sys
import patternlake
given = json.loads(sys.argv[1])
spark = patternlake.session(None, "local[2]", database=None, settings=given["settings"])
spark.sparkContext.setLogLevel("ERROR")
if given["by_tasks"]:
    from patternlake.jobs.batches import few
    from patternlake.jobs.sources import text_files
    few.FEW_EVENTS = few.FEW_BYTES = text_files.FEW_BYTES = -1
told = {"batches": sum(each.batches for each in patternlake.run(spark, given["conf"], given["jobs"]))}
patternlake.enable(spark, given["conf"])
for name, value, statement in given["asked"]:
    if value:
        spark.conf.set(name, value)
    rows = [[str(cell) for cell in row] for row in spark.sql(statement).collect()]
    told.setdefault("rows", []).append(sorted(rows))
print(json.dumps(told))
"""
FAILING = """
import json, sys, time
from pathlib import Path
import patternlake
given = json.loads(sys.argv[1])
spark = patternlake.session(None, "local[2]", database=None, settings=given["settings"])
spark.sparkContext.setLogLevel("OFF")
told = {}

def fail(name, behaviour, work):
    Path(given["behaviour"]).write_text(json.dumps(behaviour))
    began = time.monotonic()
    try:
        work()
    except Exception as error:
        told[name] = [str(error), time.monotonic() - began]
    Path(given["behaviour"]).write_text("{}")

for name, behaviour, conf in given["confs"]:
    fail(name, behaviour, lambda: patternlake.run(spark, conf))
patternlake.run(spark, given["good"], ["ingest", "sketch"])
patternlake.enable(spark, given["good"])
asked = lambda: spark.sql("SELECT * FROM match_seq('letters', 'A ; B')").collect()
for status in (503, 403):
    fail(f"asked, {status}", {"refuse": status}, asked)
fail("asked, well", {}, asked)
print(json.dumps(told))
"""
COUNTING = """
import json, sys
from pathlib import Path
import patternlake
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.configuration.file import Configuration
given = json.loads(sys.argv[1])
spark = patternlake.session(None, "local[2]", database=None, settings=given["settings"])
spark.sparkContext.setLogLevel("ERROR")
conf, log, told = Configuration.load(given["conf"]), Path(given["requests"]), {}
statements = {
    "match_seq": "SELECT first_position FROM match_seq('letters', 'A ; !B ; C')",
    "match_pattern": "SELECT first_position FROM match_pattern('letters', 'A ; B+ ; C WITHIN 6 MINUTES')",
}
works = {
    "open": lambda: open_database(spark, conf.database, conf.location, conf.storage_options),
    "ingest": lambda: patternlake.run(spark, conf, ["ingest"]),
    "sketch": lambda: patternlake.run(spark, conf, ["sketch"]),
    "run": lambda: patternlake.run(spark, conf, ["ingest", "sketch"]),
    "maintain": lambda: patternlake.run(spark, conf, ["maintain"]),
    "all": lambda: patternlake.run(spark, conf),
    "enable": lambda: patternlake.enable(spark, conf),
    **{name: lambda text=text: spark.sql(text).collect() for name, text in statements.items()},
}
for name in given["works"]:
    before = len(log.read_text().splitlines())
    works[name]()
    told[name if name not in told else f"{name} again"] = len(log.read_text().splitlines()) - before
print(json.dumps(told))
"""
MERGING = """
import json, sys
from functools import partial
import patternlake
from patternlake.delta_tables.committing import store_objects
from patternlake.delta_tables.writing import direct_rewriting, direct_writer
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.configuration.file import Configuration
given = json.loads(sys.argv[1])
spark = patternlake.session(None, "local[2]", database=None, settings=given["settings"])
spark.sparkContext.setLogLevel("ERROR")
conf, told, put = Configuration.load(given["conf"]), {}, store_objects.put_object
patternlake.run(spark, conf, ["ingest"])
db = open_database(spark, conf.database, conf.location, conf.storage_options)
log = db.log("intents")
commits = db.commits(TABLES["intents"])
work = partial(
    direct_rewriting.merge, partitions=[{}], layout=TABLES["intents"].layout, largest=1 << 20, most_bytes=1 << 20
)

def write():
    spark.sql(f"INSERT INTO {log} SELECT * FROM {log} LIMIT 1")

def merge(name, put_so, error=None):
    write()
    write()
    store_objects.put_object = put_so
    try:
        commits.commit(work)
        commits.put_checkpoint()
        assert error is None
    except OSError as raised:
        assert str(raised) == error
    tell(name)

def add(name, put_so):
    store_objects.put_object = put_so
    try:
        made = commits.commit(partial(direct_writer.append, rows=one, application="one more", version=1))
    except OSError as raised:
        made = str(raised)
    tell(name, made)

def tell(name, made=None):
    store_objects.put_object = put
    new = DirectReader(db.direct.place[0], TableCache(1 << 20), db.direct.place[1])
    told[name] = {
        "rows": new.rows("intents", ["batch_id"]).num_rows, "of Spark": spark.table(log).count(),
        "files": new.files("intents").num_rows, "commits": new.commits_behind("intents"), "made": made,
    }

def die(at):
    left = [at]
    def put_some(*given):
        left[0] -= 1
        if left[0] < 0:
            raise OSError("died")
        put(*given)
    return put_some

def meet_rival(*given):
    store_objects.put_object = put
    write()
    put(*given)

for puts in range(3):
    merge(f"died after {puts}", die(puts), "died")
merge("rival", meet_rival)
merge("well", put)
one = db.direct.rows("intents", TABLES["intents"].column_names).slice(0, 1)
add("append died", die(0))
add("append behind a rival", meet_rival)
add("append again", put)
print(json.dumps(told))
"""
WRITTEN = 1_750_000_000
LETTERS = "ABCBAACBADCBABCB"
READER = "spark.patternlake.reader"
QUESTIONS = [
    "SELECT positions FROM (SELECT first_position, last_position, to_json(bindings) AS positions "
    "FROM match_pattern('letters', 'A ; B+ ; C WITHIN 6 MINUTES'))",
    "SELECT first_position, last_position FROM match_seq('letters', 'A ; !B ; C')",
    "SELECT position, name, x FROM letters",
]
ASKED = [
    *((READER, reader, question) for reader in ("direct", "spark") for question in QUESTIONS),
    # Nothing fits into the driver: tasks read the store.
    *(("spark.patternlake.driverBytes", "0", question) for question in [QUESTIONS[0]]),
]
OBJECTS: dict[str, Any] = {
    "trends": {
        "t": {"stream": "letters", "query": "PATTERN A+ s[] WHERE s[i].x > s[i-1].x WITHIN 1 HOUR SLIDE 30 MINUTES"}
    },
    "patterns": {"p": {"stream": "letters", "query": "A ; B+ WITHIN 10 MIN"}},
    "subscriptions": {"m": {"stream": "letters", "query": "A ; B, C WITHIN 10 MIN"}},
    "alerts": {"told": {"of": "subscription", "name": "m"}},
}
KEPT = [
    (READER, "auto", question)
    for question in (
        *QUESTIONS,
        "SELECT first_position, last_position FROM pattern_matches",
        "SELECT first_position, last_position FROM match_subscription('m')",
        "SELECT * FROM cet_count('t')",
        "SELECT alert, key, last_time FROM alerts",
    )
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    server = ObjectStore(tmp_path_factory.mktemp("store"))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _behaves(store: ObjectStore) -> Iterator[None]:
    yield
    store.behave()


def configured(folder: Path, location: str, streams: tuple[str, ...] = ("letters",), **more: Any) -> Path:
    """A configuration of streams of letters, each of its own folder of files, four letters a file."""
    folder.mkdir(exist_ok=True)
    for name in streams:
        source = folder / name
        source.mkdir(parents=True, exist_ok=True)
        for number in range(0, len(LETTERS), 4):
            lines = [f"2025-01-01 00:{n:02}:00,{LETTERS[n]},{n + 1}" for n in range(number, number + 4)]
            file = source / f"{number:02}.csv"
            file.write_text("\n".join(["at,letter,x", *lines, ""]))
            # Spark takes the oldest file first.
            os.utime(file, (WRITTEN + number, WRITTEN + number))
    stream = {"time": "CAST(at AS TIMESTAMP)", "name": "letter", "attributes": {"x": "INT"}}
    tree = {
        "location": location,
        "streams": {
            name: {
                "source": {
                    "format": "csv", "path": str(folder / name),
                    "options": {"header": True, "maxFilesPerTrigger": 1},
                },
                **stream,
            }
            for name in streams
        },
        "sketches": {name: {"expected_events": 1000} for name in streams},
        **more,
    }  # fmt: skip
    conf = folder / "patternlake.yaml"
    conf.write_text(yaml.safe_dump(tree))
    return conf


class Driver:
    """A process with a Spark of its own that runs jobs, and then asks."""

    def __init__(
        self,
        conf: Path,
        settings: dict[str, str],
        jobs: tuple[str, ...] = ("ingest",),
        asked: Any = (),
        by_tasks: bool = False,
        **environment: str,
    ) -> None:
        warehouse = {"spark.sql.warehouse.dir": str(conf.with_name("warehouse")), "spark.driver.memory": "1g"}
        given = {
            "conf": str(conf), "settings": {**packages(), **warehouse, **settings}, "jobs": jobs, "asked": asked,
            "by_tasks": by_tasks,
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, json.dumps(given)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment, cwd=conf.parent,
        )  # fmt: skip

    def told(self) -> dict[str, Any]:
        said, wrong = self._process.communicate()
        assert self._process.returncode == 0, wrong[-3000:]
        found: dict[str, Any] = json.loads(said)
        return found

    def refused(self) -> str:
        _, wrong = self._process.communicate()
        assert self._process.returncode != 0
        return wrong


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("disk")
    conf = configured(folder, str(folder / "lake"))
    rows: list[Any] = Driver(conf, {}, ("ingest", "sketch"), ASKED).told()["rows"]
    return rows


def test_what_spark_knows_of_the_store_is_enough(store: ObjectStore, tmp_path: Path, on_disk: list[Any]) -> None:
    conf = configured(tmp_path, f"s3a://{BUCKET}/one")
    assert Driver(conf, store.settings(), ("ingest", "sketch"), ASKED).told()["rows"] == on_disk


def test_what_the_configuration_says_of_the_store_is_enough(
    store: ObjectStore, tmp_path: Path, on_disk: list[Any]
) -> None:
    options = store.options() | {"AWS_SECRET_ACCESS_KEY": "${STORE_SECRET}"}
    conf = configured(tmp_path, f"s3a://{BUCKET}/two", storage_options=options)
    assert Driver(conf, {}, ("ingest", "sketch"), ASKED, STORE_SECRET="secret").told()["rows"] == on_disk


def test_what_the_environment_says_of_the_store_is_enough(
    store: ObjectStore, tmp_path: Path, on_disk: list[Any]
) -> None:
    conf = configured(tmp_path, f"s3a://{BUCKET}/three")
    assert Driver(conf, {}, ("ingest", "sketch"), ASKED, **store.options()).told()["rows"] == on_disk


def test_tasks_write_into_the_store_what_the_driver_writes_on_a_disk(store: ObjectStore, tmp_path: Path) -> None:
    conf = configured(tmp_path / "disk", str(tmp_path / "disk" / "lake"), **OBJECTS)
    here = Driver(conf, {}, ("all",), KEPT).told()["rows"]
    conf = configured(tmp_path / "store", f"s3a://{BUCKET}/by-tasks", **OBJECTS)
    assert Driver(conf, store.settings(), ("all",), KEPT, by_tasks=True).told()["rows"] == here
    assert all(rows for rows in here)


def test_two_drivers_lose_no_commit(store: ObjectStore, tmp_path: Path) -> None:
    """All streams share their tables: each batch of one meets those of the other."""
    names = ("one", "other")
    confs = [configured(tmp_path / name, f"s3a://{BUCKET}/race", (name,)) for name in names]
    Driver(configured(tmp_path / "first", f"s3a://{BUCKET}/race", ()), store.settings()).told()
    store.behave(delay=1.0)
    drivers = [Driver(conf, store.settings()) for conf in confs]
    assert [driver.told()["batches"] for driver in drivers] == [4, 4]
    store.behave()
    counted = ("", "", "SELECT stream, count(*), count(DISTINCT position) FROM events GROUP BY stream")
    batches = ("", "", "SELECT stream, count(*) FROM publications WHERE job = 'ingest' GROUP BY stream")
    found = Driver(confs[0], store.settings(), asked=[counted, batches]).told()["rows"]
    assert found[0] == [[name, "16", "16"] for name in names]
    assert [count for _, count in found[1]] == ["4", "4"]


@pytest.mark.parametrize(
    ("behaviour", "settings"),
    [
        pytest.param({"deaf": True}, {}, id="the store takes no conditions"),
        pytest.param({}, {"spark.hadoop.fs.s3a.create.conditional.enabled": "false"}, id="Spark sets none"),
    ],
)
def test_where_commits_may_be_lost_a_second_writer_is_refused(
    store: ObjectStore, tmp_path: Path, behaviour: dict[str, bool], settings: dict[str, str]
) -> None:
    place = f"lease-{len(settings)}"
    conf = configured(tmp_path, f"s3a://{BUCKET}/{place}")
    store.behave(**behaviour)
    lease = {"holder": "another", "process": 4711, "host": "elsewhere", "until": time.time() + 600}
    store.put(f"{place}/_locks/one-writer.json", json.dumps(lease).encode())
    wrong = Driver(conf, store.settings() | settings).refused()
    assert f"process 4711 on elsewhere writes to s3a://{BUCKET}/{place}" in wrong
    assert "fs.s3a.create.conditional.enabled" in wrong
    store.put(f"{place}/_locks/one-writer.json", json.dumps(lease | {"until": 0}).encode())
    assert Driver(conf, store.settings() | settings).told()["batches"] == 4


def test_to_ask_writes_nothing(store: ObjectStore, tmp_path: Path) -> None:
    conf = configured(tmp_path, f"s3a://{BUCKET}/asked")
    Driver(conf, store.settings(), ("ingest", "sketch")).told()
    before = len(store.requests())
    script = DRIVER.replace('patternlake.run(spark, given["conf"], given["jobs"])', "[]")
    given = {
        "conf": str(conf),
        "settings": {**packages(), **store.settings()},
        "jobs": [],
        "asked": ASKED,
        "by_tasks": False,
    }
    run = subprocess.run(
        [sys.executable, "-c", script, json.dumps(given)], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    written = [line for line in store.requests()[before:] if line.split()[0] not in ("GET", "HEAD")]
    assert written == []


def test_what_is_wrong_with_a_store_is_told_at_once(store: ObjectStore, tmp_path: Path) -> None:
    keys = store.options()
    elsewhere = keys | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    cases = {
        "down": ("down/lake", elsewhere, {}),
        "busy": (f"{BUCKET}/busy", keys, {"refuse": 503}),
        "refused": (f"{BUCKET}/refused", keys, {"refuse": 403}),
        "no bucket": ("nobody-made-it/lake", keys, {}),
        "no keys": ("keyless/lake", {name: keys[name] for name in keys if "KEY" not in name}, {}),
    }
    confs = [
        (name, behaviour, str(configured(tmp_path / name, f"s3a://{place}", storage_options=options)))
        for name, (place, options, behaviour) in cases.items()
    ]
    given = {
        "settings": {**packages(), "spark.sql.warehouse.dir": str(tmp_path / "warehouse"), "spark.driver.memory": "1g"},
        "confs": confs, "behaviour": str(store.behaviour),
        "good": str(configured(tmp_path / "good", f"s3a://{BUCKET}/good", storage_options=keys)),
    }  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    run = subprocess.run(
        [sys.executable, "-c", FAILING, json.dumps(given)],
        capture_output=True, text=True, cwd=tmp_path, env=environment | {"AWS_EC2_METADATA_DISABLED": "true"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout.splitlines()[-1])
    at = store.endpoint
    beginnings = {
        "down": "the store of s3a://down/lake at http://127.0.0.1:1 does not answer (Connection refused): see whether "
        "it runs, and whether `location`, and AWS_ENDPOINT_URL",
        "busy": f"the store of s3a://{BUCKET}/busy at {at} does not answer (Status Code: 503)",
        "refused": f"the store of s3a://{BUCKET}/refused at {at} refuses access (AccessDeniedException, Status Code: "
        "403): see whether the keys may list, read and write there, and are right: AWS_ACCESS_KEY_ID",
        "no bucket": f"the store of s3a://nobody-made-it/lake at {at} has no bucket 'nobody-made-it'",
        "no keys": f"there are no keys for the store of s3a://keyless/lake at {at}",
        "asked, 503": f"the store of s3a://{BUCKET}/good at {at} does not answer (Status Code: 503)",
        "asked, 403": f"the store of s3a://{BUCKET}/good at {at} refuses access (AccessDeniedException",
    }
    assert told.keys() == beginnings.keys()
    wrong = {name: told[name][0] for name, text in beginnings.items() if text not in told[name][0]}
    assert wrong == {}
    # Spark and Hadoop alone take more than a minute; this machine may be slow.
    assert {name: seconds for name, (_, seconds) in told.items() if seconds > 30} == {}


def test_a_small_file_is_one_request(store: ObjectStore) -> None:
    location, options = f"s3://{BUCKET}/small", store.options()
    rows = pa.table({"number": list(range(10_000)), "text": [str(number) * 7 for number in range(10_000)]})
    for part in (rows.slice(0, 100), rows.slice(100)):
        write_deltalake(f"{location}/letters_log", part, mode="append", storage_options=options)
    reader = DirectReader(location, TableCache(1 << 20), options)
    sizes = reader.files("letters")["size_bytes"].to_pylist()
    assert min(sizes) < 16 << 10 < max(sizes)
    before = len(store.requests())
    assert reader.rows("letters", ["text", "number"]).sort_by("number") == rows.select(["text", "number"])
    read = [line for line in store.requests()[before:] if "_delta_log" not in line]
    assert sorted(line.split()[0] for line in read) == ["GET", "GET"]


def test_a_file_is_read_once_whatever_is_asked_of_it(store: ObjectStore) -> None:
    """What columns take, then those of a condition, then others, each of which reads a part of the file."""
    location, options = f"s3://{BUCKET}/parts", store.options()
    numbers = list(range(50_000))
    rows = pa.table({"number": numbers, "name": [str(n % 7) for n in numbers], "text": [str(n) for n in numbers]})
    write_deltalake(f"{location}/letters_log", rows, mode="append", storage_options=options)
    reader = DirectReader(location, TableCache(1 << 26), options)
    (whole,) = reader.files("letters")["size_bytes"].to_pylist()
    assert 16 << 10 < whole < 1 << 20
    before = len(store.requests())
    assert 0 < reader.size("letters", columns=["name"]) < whole
    named = reader.rows("letters", ["number"], [Condition("name", "=", "3")])
    assert named["number"].to_pylist() == numbers[3::7]
    assert reader.rows("letters", ["text"])["text"].to_pylist() == rows["text"].to_pylist()
    read = [line for line in store.requests()[before:] if "_delta_log" not in line]
    assert [line.split()[0] for line in read] == ["GET"]


def test_a_call_looks_once_at_a_table(store: ObjectStore) -> None:
    location, options = f"s3://{BUCKET}/looks", store.options()

    def write(table: str, number: int) -> None:
        row = pa.table({"number": [number]})
        write_deltalake(f"{location}/{table}_log", row, mode="append", storage_options=options)

    for table in ("publications", "letters"):
        write(table, 1)
    reader = DirectReader(location, TableCache(1 << 20), options)

    def numbers(table: str) -> list[int]:
        return sorted(reader.rows(table, ["number"])["number"].to_pylist())

    seen = Seen()
    with one_look(seen):
        assert numbers("letters") == [1]
        write("letters", 2)
        assert numbers("letters") == [1]
        before = len(store.requests())
        assert numbers("letters") == [1]
        assert len(store.requests()) == before
        assert numbers("publications") == [1]
        assert numbers("letters") == [1, 2], "of what is published nothing may be missing"
    write("letters", 3)
    assert numbers("letters") == [1, 2, 3]


def test_tables_are_looked_at_together(store: ObjectStore) -> None:
    location, options = f"s3://{BUCKET}/together", store.options()
    tables = ["letters", "publications", "intents"]

    def write(table: str, number: int) -> None:
        row = pa.table({"number": [number]})
        write_deltalake(f"{location}/{table}_log", row, mode="append", storage_options=options)

    for table in tables:
        write(table, 1)
    reader = DirectReader(location, TableCache(1 << 20), options)
    with one_look(Seen()):
        assert reader.version("letters") == 0
        for table in tables:
            write(table, 2)
        reader.look_at(tables)
        before = len(store.requests())
        assert [reader.version(table) for table in tables] == [1, 1, 1], "what is published is there"
        reader.look_at(tables)
        assert len(store.requests()) == before
        write("letters", 3)
        reader.look_at(tables)
        assert reader.version("letters") == 1
    assert reader.version("letters") == 2


def test_a_log_is_read_once(store: ObjectStore) -> None:
    """Whatever comes, what is read is the same as delta-rs reads, whose requests are more."""
    table, options = f"s3://{BUCKET}/logs/letters_log", store.options()
    reader = DirectReader(f"s3://{BUCKET}/logs", TableCache(1 << 20), options)

    def write(*numbers: int, mode: Any = "append") -> None:
        for number in numbers:
            write_deltalake(table, pa.table({"number": [number]}), mode=mode, storage_options=options)

    def check(reader: DirectReader, *names: str) -> None:
        before = len(store.requests())
        with one_look(Seen()):
            version, files = reader.version("letters"), reader.files("letters")
        asked = [line.rpartition("/")[2] for line in store.requests()[before:]]
        assert sorted(asked) == sorted(f"{int(name):020}.json" if name.isdigit() else name for name in names)
        opened = DeltaTable(table, storage_options=options)
        assert version == opened.version()
        assert sorted(files["path"].to_pylist()) == sorted(pa.table(opened.get_add_actions())["path"].to_pylist())

    write(0, 1, 2)
    last = "_last_checkpoint"
    check(reader, last, "0", "1", "2", "3", "4", "5", "6")
    check(reader, "2", "3")
    write(3)
    check(reader, "2", "3", "4", "5")
    DeltaTable(table, storage_options=options).create_checkpoint()
    write(4, 5, mode="overwrite")
    check(reader, "3", "4", "5", "6")
    another = DirectReader(f"s3://{BUCKET}/logs", TableCache(1 << 20), options)
    checkpoint = f"{3:020}.checkpoint.parquet"
    check(another, last, checkpoint, "4", "5", "6")
    check(another, "5", "6")
    DeltaTable(table, storage_options=options).create_checkpoint()
    check(another, "5", "6")
    third = DirectReader(f"s3://{BUCKET}/logs", TableCache(1 << 20), options)
    check(third, last, f"{5:020}.checkpoint.parquet", "6")
    check(third, last, "6")
    # Another table in its place, with fewer commits.
    store.delete("logs/letters_log")
    write(6)
    check(reader, "5", "6", last, "0", "1", "2")
    check(another, "5", "6", last, "0", "1", "2")
    check(third, last, "6", last, "0", "1", "2")
    store.delete("logs/letters_log")
    write(7)
    check(reader, "0", "1", last, "0", "1", "2")


def test_a_copy_of_a_log_that_failed_is_made_anew(store: ObjectStore) -> None:
    location, options = f"s3://{BUCKET}/failing", store.options()
    reader = DirectReader(location, TableCache(1 << 20), options)

    def write(number: int) -> None:
        row = pa.table({"number": [number]})
        write_deltalake(f"{location}/letters_log", row, mode="append", storage_options=options)

    with pytest.raises(UnreadableError):
        reader.version("letters")
    write(0)
    assert reader.version("letters") == 0
    write(1)
    store.behave(refuse=403)
    with pytest.raises(OSError, match="403"):
        reader.version("letters")
    store.behave()
    assert reader.version("letters") == 1


def test_files_are_merged_and_rows_appended_and_none_is_lost(store: ObjectStore, tmp_path: Path) -> None:
    """Whether who commits dies after any of its puts, or another commits just before it does."""
    conf = configured(tmp_path, f"s3a://{BUCKET}/merged")
    warehouse = {"spark.sql.warehouse.dir": str(tmp_path / "warehouse"), "spark.driver.memory": "1g"}
    given = {"conf": str(conf), "settings": {**packages(), **warehouse, **store.settings()}}
    run = subprocess.run(
        [sys.executable, "-c", MERGING, json.dumps(given)], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout.splitlines()[-1])
    # Four intents; two rows more before each merge, and one of the rival's. Then one that is appended once.
    assert [each["rows"] for each in told.values()] == [6, 8, 10, 13, 15, 15, 17, 17]
    assert [each["of Spark"] for each in told.values()] == [6, 8, 10, 13, 15, 15, 17, 17]
    assert [each["made"] for each in told.values()][-3:] == ["died", True, False]
    # The run has merged its four. The file is put before the commit, and the checkpoint behind it. Behind a rival's
    # commit the merge is made anew.
    assert [each["files"] for each in told.values()] == [3, 1, 1, 1, 1, 1, 3, 3]
    assert told["well"]["commits"] == 0


def count_requests(store: ObjectStore, conf: Path, *works: str) -> dict[str, int]:
    """What each of some works of a process takes."""
    warehouse = {"spark.sql.warehouse.dir": str(conf.with_name("warehouse")), "spark.driver.memory": "1g"}
    given = {
        "conf": str(conf), "settings": {**packages(), **warehouse, **store.settings()},
        "requests": str(store.requests_file), "works": works,
    }  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", COUNTING, json.dumps(given)], capture_output=True, text=True, cwd=conf.parent
    )
    assert run.returncode == 0, run.stderr[-3000:]
    counts: dict[str, int] = json.loads(run.stdout.splitlines()[-1])
    return counts


def test_requests_are_few(store: ObjectStore, tmp_path: Path) -> None:
    """Of a lake of 16 events in four batches, whose files maintenance has merged before others ask."""
    conf = configured(tmp_path, f"s3a://{BUCKET}/counted")
    first = count_requests(store, conf, "open", "ingest", "sketch", "run", "run", "maintain")
    asked = ("match_seq", "match_seq", "match_pattern", "match_pattern")
    second = count_requests(store, conf, "enable", *asked, "run")
    third = count_requests(store, conf, "all", "all")
    most = {"open": 40, "ingest": 500, "sketch": 75, "run": 26, "run again": 18, "maintain": 210}
    assert {name: count for name, count in first.items() if count > most[name]} == {}, first
    most = {
        "enable": 10, "match_seq": 10, "match_seq again": 2, "match_pattern": 10, "match_pattern again": 2, "run": 30,
    }  # fmt: skip
    assert {name: count for name, count in second.items() if count > most[name]} == {}, second
    most = {"all": 130, "all again": 66}
    assert {name: count for name, count in third.items() if count > most[name]} == {}, third

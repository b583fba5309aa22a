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

import pytest
import yaml

from tests.object_store import BUCKET, ObjectStore, packages

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(1200)]

DRIVER = """
import json, sys
import patternlake
given = json.loads(sys.argv[1])
spark = patternlake.session(None, "local[2]", database=None, settings=given["settings"])
spark.sparkContext.setLogLevel("ERROR")
told = {"batches": sum(each.batches for each in patternlake.run(spark, given["conf"], given["jobs"]))}
patternlake.enable(spark, given["conf"])
for name, value, statement in given["asked"]:
    if value:
        spark.conf.set(name, value)
    rows = [[str(cell) for cell in row] for row in spark.sql(statement).collect()]
    told.setdefault("rows", []).append(sorted(rows))
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
        **environment: str,
    ) -> None:
        warehouse = {"spark.sql.warehouse.dir": str(conf.with_name("warehouse")), "spark.driver.memory": "1g"}
        given = {"conf": str(conf), "settings": {**packages(), **warehouse, **settings}, "jobs": jobs, "asked": asked}
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
    given = {"conf": str(conf), "settings": {**packages(), **store.settings()}, "jobs": [], "asked": ASKED}
    subprocess.run([sys.executable, "-c", script, json.dumps(given)], check=True, cwd=tmp_path, capture_output=True)
    written = [line for line in store.requests()[before:] if line.split()[0] not in ("GET", "HEAD")]
    assert written == []

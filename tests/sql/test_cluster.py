"""A driver beside workers of their own: jobs write and functions answer what they do in one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from sql.served import serving
from sql.small_world import STREAM

import patternlake
from patternlake.sql_ext.spark_start.settings import SESSION_SETTINGS
from tests.cluster import Cluster
from tests.object_store import BUCKET, ObjectStore, packages

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(1800)]

TESTS = Path(__file__).resolve().parents[1]
DRIVER = """
import json, sys
from pathlib import Path
import pytest
given = json.loads(sys.argv[1])
sys.path.insert(0, given["tests"])
import patternlake
from sql.small_world import World
from sql.test_ways import WAYS, take_way

spark = patternlake.session(None, given["master"], database=None, settings=given["settings"])
spark.sparkContext.setLogLevel("ERROR")
with pytest.MonkeyPatch.context() as patched:
    take_way("tasks", patched)
    told = World(spark, Path(given["folder"]), given["place"]).seen("cluster", WAYS["tasks"], maintained=True)
each = spark.sparkContext._jsc.sc().statusStore().executorList(True)
tasks = {each.apply(n).id(): each.apply(n).totalTasks() for n in range(each.size())}
print(json.dumps({"seen": told, "tasks": tasks}))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


SUBMITTED = """
import json, sys
from pathlib import Path
import pytest
from pyspark.sql import SparkSession
given = json.loads(sys.argv[1])
sys.path.insert(0, given["tests"])
import patternlake
from sql.small_world import OBJECTS, STREAM, World, shown
from sql.test_ways import WAYS, take_way

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
world = World(spark, Path(given["folder"]))
tree = {**world.configuration("shipped", s=STREAM), "sketches": OBJECTS["sketches"]}
with pytest.MonkeyPatch.context() as patched:
    take_way("tasks", patched)
    patternlake.run(spark, world.load(tree), ["ingest", "sketch"])
    patternlake.enable(spark, world.load(tree))
    for name, value in WAYS["tasks"].items():
        spark.conf.set(name, value)
    told = {question: shown(spark.sql(question)) for question in given["asked"]}
numbers = spark.sparkContext.parallelize(range(4), 4)
places = numbers.map(lambda _: __import__("patternlake").__file__).distinct().collect()
print(json.dumps({"seen": told, "places": places}))
"""
ASKING = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
print(json.dumps({text: sorted(map(repr, spark.sql(text).collect())) for text in json.loads(sys.argv[2])}))
"""
FINDING = """
import json, sys
import patternlake
given = json.loads(sys.argv[1])
spark = patternlake.session(None, "local[2]", database=None, settings=given["settings"])
spark.sparkContext.setLogLevel("ERROR")
patternlake.enable(spark, "small_cluster")
told = {"views": sorted(row.viewName for row in spark.sql("SHOW VIEWS IN small_cluster").collect())}
for question in given["asked"]:
    told[question] = sorted(map(repr, spark.sql(question).collect()))
print(json.dumps(told))
"""


def begun(folder: Path, master: str, settings: dict[str, str], place: str | None = None) -> subprocess.Popen[str]:
    """A driver that runs all jobs and asks all questions; nothing fits into its process, so that tasks do it.

    The lake is in the folder, or at a place in an object store.
    """
    folder.mkdir()
    warehouse = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.shuffle.partitions": "2"}
    given = {
        "master": master, "settings": settings | warehouse, "folder": str(folder), "place": place, "tests": str(TESTS),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, json.dumps(given)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip


def told(driver: subprocess.Popen[str]) -> dict[str, Any]:
    said, wrong = driver.communicate()
    assert driver.returncode == 0, wrong[-3000:]
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process does and sees."""
    folder = tmp_path_factory.mktemp("here") / "work"
    seen: dict[str, Any] = told(begun(folder, "local[2]", {"spark.driver.memory": "1g"}))["seen"]
    assert [question for question, (_, rows) in seen.items() if not rows] == []
    return seen


@pytest.fixture(scope="module")
def there(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """What a driver of the cluster does and sees, and its folder."""
    folder = tmp_path_factory.mktemp("there") / "work"
    return folder, told(begun(folder, cluster.address, cluster.settings()))


def test_jobs_and_functions_are_the_same_on_a_cluster(here: dict[str, Any], there: tuple[Path, dict[str, Any]]) -> None:
    _, found = there
    assert [question for question in here if found["seen"][question] != here[question]] == []
    workers = {name: count for name, count in found["tasks"].items() if name != "driver"}
    assert len(workers) == 2
    assert min(workers.values()) > 0


def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(
    cluster: Cluster, here: dict[str, Any], tmp_path: Path
) -> None:
    driver = begun(tmp_path / "work", cluster.address, cluster.settings())
    events = tmp_path / "work" / "small_cluster"
    while not list(events.glob("intents_log/_delta_log/*2.json")) and driver.poll() is None:
        time.sleep(0.1)
    cluster.executors()[0].kill()
    there = told(driver)
    assert [question for question in here if there["seen"][question] != here[question]] == []
    # Those that are alive at the end, numbered as they came.
    assert set(there["tasks"]) in ({"driver", "0", "2"}, {"driver", "1", "2"})


def test_a_lake_in_a_store_is_the_same_on_a_cluster(cluster: Cluster, here: dict[str, Any], tmp_path: Path) -> None:
    store = ObjectStore(tmp_path)
    try:
        settings = cluster.settings() | packages() | store.settings()
        there = told(begun(tmp_path / "work", cluster.address, settings, f"s3a://{BUCKET}"))
    finally:
        store.stop()
    assert [question for question in here if there["seen"][question] != here[question]] == []
    workers = {name: count for name, count in there["tasks"].items() if name != "driver"}
    assert len(workers) == 2
    assert min(workers.values()) > 0


def test_clients_of_a_server_on_a_cluster_are_answered(
    cluster: Cluster, here: dict[str, Any], there: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    """By Spark Connect, from the lake that another driver has made."""
    folder, _ = there
    conf = tmp_path / "patternlake.yaml"
    tree = {
        "database": "small_cluster", "location": str(folder / "small_cluster"),
        "streams": {"s": {"source": {"format": "csv", "path": "data", "options": {"header": True}}, **STREAM}},
    }  # fmt: skip
    conf.write_text(yaml.safe_dump(tree))
    asked = [question for question in here if "match_seq" in question or "match_pattern('s'" in question]
    settings = [text for name, value in cluster.settings().items() for text in ("--set", f"{name}={value}")]
    with serving(conf, "--insecure", *settings, folder=tmp_path, master=cluster.address) as served:
        client = subprocess.run(
            [sys.executable, "-c", ASKING, f"sc://127.0.0.1:{served.connect_port}", json.dumps(asked)],
            capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
        workers = len(cluster.executors())
    assert client.returncode == 0, client.stderr[-3000:]
    answers = json.loads(client.stdout.splitlines()[-1])
    assert [question for question in asked if answers[question] != here[question][1]] == []
    assert workers == 2


def test_a_metastore_keeps_the_lake_for_later_sessions(here: dict[str, Any], tmp_path: Path) -> None:
    """One of Hive's, in a folder of its own (Derby), which one process at a time may open."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
    }
    there = told(begun(tmp_path / "work", "local[2]", settings))
    assert [question for question in here if there["seen"][question] != here[question]] == []
    asked = ["SELECT * FROM match_seq('s', 'a ; b', after_match => 'next')", "SELECT * FROM events"]
    given = {"settings": settings | {"spark.sql.warehouse.dir": str(tmp_path / "work" / "warehouse")}, "asked": asked}
    command = [sys.executable, "-c", FINDING, json.dumps(given)]
    later = told(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path))
    assert {"events", "publications", "s"} <= {*later["views"]}
    assert [question for question in asked if later[question] != here[question][1]] == []


def test_an_archive_that_is_submitted_is_enough_for_workers(
    cluster: Cluster, here: dict[str, Any], tmp_path: Path
) -> None:
    """They have the packages that PatternLake needs, and import PatternLake from the archive."""
    package, shipped = Path(patternlake.__file__).parent, tmp_path / "patternlake.zip"
    with zipfile.ZipFile(shipped, "w") as archive:
        for folder, _, files in os.walk(package, followlinks=True):
            for file in (Path(folder, name) for name in files if not name.endswith((".pyc", ".nbi", ".nbc"))):
                archive.write(file, Path("patternlake", file.relative_to(package)))
    delta = f"io.delta:delta-spark_4.2_2.13:{version('delta-spark')}"
    settings = cluster.settings() | SESSION_SETTINGS | {
        "spark.executorEnv.PYTHONPATH": "shipped", "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }  # fmt: skip
    program = tmp_path / "program.py"
    program.write_text(SUBMITTED)
    asked = ["SELECT * FROM match_seq('s', 'a ; b PARTITION BY key', verify => true)", "SELECT * FROM events"]
    (tmp_path / "work").mkdir()
    given = {"folder": str(tmp_path / "work"), "tests": str(TESTS), "asked": asked}
    submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
    confs = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    there = told(
        subprocess.Popen(
            [submit, "--master", cluster.address, "--packages", delta, "--archives", f"{shipped}#shipped", *confs,
             program, json.dumps(given)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        )
    )  # fmt: skip
    assert [question for question in asked if there["seen"][question] != here[question]] == []
    assert [place for place in there["places"] if "/shipped/patternlake/" not in place] == []

"""Alerts reach a Kafka topic by the command, with the package that `spark-defaults.conf` names; a broker of its own.

The broker is Kafka's own, one node without ZooKeeper. Its jars come as Delta's do: spark-submit fetches them by their
coordinates, and starts it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

BROKER = "org.apache.kafka:kafka_2.13:3.9.1"
SINK = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
TOPIC = "matches"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
READ = """
import json, sys
from patternlake.sql_ext.session import session
location, brokers, topic = sys.argv[1:]
spark = session(location, "local[1]", database="to_kafka")
records = spark.read.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
texts = records.load().selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()
told = spark.sql("SELECT alert_id, attempts, delivered_at IS NOT NULL AS delivered FROM alerts").collect()
print(json.dumps({"records": [list(row) for row in texts], "told": [list(row) for row in told]}))
"""


class Broker:
    """A node of Kafka in a folder, on ports of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, controller = _free_port(), _free_port()
        self.properties = folder / "server.properties"
        self.properties.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}\n"
            "controller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\n"
            f"log.dirs={folder / 'logs'}\nnum.partitions=2\n"
            "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\n"
        )
        self.said = folder / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        formatting = ("format", "--config", str(self.properties), "--cluster-id", CLUSTER)
        with self.said.open("wb") as said:
            subprocess.run(self._command("kafka.tools.StorageTool", *formatting), stdout=said, stderr=said, check=True)
            self.process = subprocess.Popen(
                self._command("kafka.Kafka", str(self.properties)), stdout=said, stderr=said
            )
        until = time.monotonic() + 200
        while not _answers(self.port):
            assert self.process.poll() is None, self.said.read_text()[-2000:]
            assert time.monotonic() < until, self.said.read_text()[-2000:]
            time.sleep(0.2)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)

    def _command(self, program: str, *arguments: str) -> list[str]:
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        return [str(submit), "--packages", BROKER, "--class", program, "spark-internal", *arguments]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    folder = tmp_path / "broker"
    folder.mkdir()
    made = Broker(folder)
    yield made
    made.stop()


class Lake:
    """A stream with a subscription whose matches go to the topic; jobs are run by the command."""

    def __init__(self, folder: Path, brokers: str) -> None:
        self.folder, self.brokers = folder, brokers
        (folder / "data").mkdir()
        (folder / "spark").mkdir()
        (folder / "spark" / "spark-defaults.conf").write_text(f"spark.jars.packages {SINK}\n")
        told = {"of": "subscription", "name": "ab", "to": "kafka", "topic": TOPIC, "brokers": brokers}
        tree = {
            "database": "to_kafka",
            "location": str(folder / "lake"),
            "streams": {
                "s": {
                    "source": {"format": "csv", "path": str(folder / "data"), "options": {"header": True}},
                    "time": "timestamp_seconds(CAST(at AS BIGINT))",
                    "name": "what",
                }
            },
            "subscriptions": {"ab": {"stream": "s", "query": "a ; b"}},
            "alerts": {"sent": {**told, "timeout": "20 seconds", "retries": 0, "back_off": "1 ms"}},
        }
        self.conf = folder / "conf.yaml"
        self.conf.write_text(yaml.safe_dump(tree))

    def take(self, text: str, begin: int) -> None:
        rows = [f"{begin + number},{name}" for number, name in enumerate(text)]
        (self.folder / "data" / f"{begin}.csv").write_text("\n".join(["at,what", *rows]) + "\n")

    def run(self, job: str) -> str:
        return self._python("-m", "patternlake.jobs.command_line", "run", job, "--conf", str(self.conf))

    def read(self) -> dict[str, Any]:
        """The topic's records, and what the table tells of deliveries."""
        said = self._python("-c", READ, str(self.folder / "lake"), self.brokers, TOPIC)
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found

    def _python(self, *arguments: str) -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYSPARK_SUBMIT_ARGS"},
            "SPARK_CONF_DIR": str(self.folder / "spark"),
            "PATTERNLAKE_MASTER": "local[1]",
            "PATTERNLAKE_DRIVER_MEMORY": "1g",
        }
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


def test_alerts_reach_the_topic_once_the_broker_is_there(tmp_path: Path, broker: Broker) -> None:
    lake = Lake(tmp_path, broker.address)
    lake.take("abb", begin=0)
    said = lake.run("all")
    assert f"the Kafka topic 'matches' at {broker.address} did not take 2 alerts (" in said, "nobody listens yet"
    assert "not present in metadata" in said, "Kafka's own words"
    broker.start()
    lake.run("alerts")
    lake.take("b", begin=10)
    lake.run("all")
    lake.run("alerts")
    found = lake.read()
    records = {key: json.loads(value) for key, value in found["records"]}
    assert len(found["records"]) == len(records) == 3, "each is delivered once"
    assert sorted(body["bindings"]["b"] for body in records.values()) == [[2], [3], [4]]
    assert all(body["alert_id"] == key and body["kind"] == "subscription" for key, body in records.items())
    told = {alert_id: (attempts, delivered) for alert_id, attempts, delivered in found["told"]}
    assert told.keys() == records.keys()
    assert sorted(told.values()) == [(1, True), (2, True), (2, True)]

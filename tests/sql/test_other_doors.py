"""The functions through JDBC and Spark Connect: sessions that others make in an application where they are enabled."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from sql.sketch_lake import SketchLake, shared, worked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ROWS = "SELECT first_position, last_position FROM match_seq('worked', 'A ; B', to_position => 16) ORDER BY 1"
EXPECTED = [(1, 2), (5, 8), (9, 12), (13, 14)]
WRONG = {
    "SELECT * FROM match_seq('nowhere', 'A ; B') WHERE exact": "there is no sketch of a stream 'nowhere'",
    "SELECT match_exists('worked', 'A ; ; B')": "expected a name or '(' after ';', found ';'\n  A ; ; B\n      ^",
    "SELECT * FROM match_pattern('worked', 'A ; B WITHIN')": "a whole number greater than 0 after WITHIN",
}
CLIENT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
print([tuple(row) for row in spark.sql(sys.argv[2]).collect()])
for text in sys.argv[3:]:
    try:
        spark.sql(text).collect()
    except Exception as error:
        print(repr(str(error)))
"""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    found = shared(spark, tmp_path_factory)
    worked(found)
    return found


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def jdbc(lake: SketchLake) -> Iterator[Any]:
    """A connection to a Thrift server in the application's own JVM."""
    jvm: Any = lake.spark._jvm
    port = free_port()
    jvm.java.lang.System.setProperty("hive.server2.thrift.port", str(port))
    jvm.java.lang.System.setProperty("hive.server2.thrift.bind.host", "127.0.0.1")
    # Delta's classes are known to this session's loader only, where they came through Ivy.
    settings = lake.spark._jsparkSession.sessionState().conf()
    settings.setConfString("spark.sql.hive.thriftServer.singleSession", "true")
    server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    started = server.startWithContext(lake.spark._jsparkSession.sqlContext())
    connection = jvm.java.sql.DriverManager.getConnection(f"jdbc:hive2://127.0.0.1:{port}/default", "analyst", "")
    yield connection
    connection.close()
    started.stop()
    settings.unsetConf("spark.sql.hive.thriftServer.singleSession")


def asked(connection: Any, text: str) -> list[tuple[int, int]]:
    rows = connection.createStatement().executeQuery(text)
    found = []
    while rows.next():
        found.append((rows.getLong(1), rows.getLong(2)))
    return found


def test_a_jdbc_client_gets_rows(jdbc: Any) -> None:
    assert asked(jdbc, ROWS) == EXPECTED


def test_a_jdbc_client_is_told_what_is_wrong(jdbc: Any) -> None:
    for text, said in WRONG.items():
        # Java's stack is the Thrift server's, which shows it with each error of Spark's; Python has no part in it.
        with pytest.raises(Py4JJavaError) as caught:
            asked(jdbc, text)
        told = caught.value.java_exception.getMessage()
        assert said in told
        assert "Traceback" not in told
        assert "py4j.protocol" not in told


def test_a_connect_client_gets_rows_and_is_told_what_is_wrong(lake: SketchLake) -> None:
    jvm: Any = lake.spark._jvm
    port = free_port()
    service = getattr(getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
    jvm.org.apache.spark.SparkEnv.get().conf().set("spark.connect.grpc.binding.port", str(port))
    service.start(lake.spark.sparkContext._jsc.sc())
    try:
        command = [sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{port}", ROWS, *WRONG]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    finally:
        service.stop(jvm.scala.Option.empty(), jvm.scala.Option.empty())
    rows, *errors = map(ast.literal_eval, ran.stdout.splitlines())
    assert rows == EXPECTED, ran.stderr
    for said, error in zip(WRONG.values(), errors, strict=True):
        assert said in error
        assert "Traceback" not in error
        assert "py4j.protocol" not in error

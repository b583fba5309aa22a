"""A server that is asked by those who should not be let in, and by those who would do more than read."""

from __future__ import annotations

import ast
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
from pyhive import hive
from sql.served import Served, serving
from sql.sketch_lake import DATABASE, SketchLake, shared, worked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PASSWORD = "to:tell"
# openssl passwd -6 -salt saltsalt to:tell
HASH = "$6$saltsalt$wGUCZcJTX0OBEESVzywArKtC7O/yT1NZuW/N9KieuJeqTgn0AKewL.XiD2k1GnygAIK9aA9oTvBHnaf4Yscil0"
ROWS = "SELECT first_position, last_position FROM match_seq('worked', 'A ; B', to_position => 16) ORDER BY 1"
EXPECTED = [(1, 2), (5, 8), (9, 12), (13, 14)]
LONG = "SELECT count(*) FROM range(1000000000000) WHERE hash(id) = 1"
ONLY_READ = "is refused: this server answers questions about what is there, and changes nothing"
CLIENT = """
import logging, sys
from pyspark.sql import SparkSession, functions as F
logging.disable(logging.CRITICAL)
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
for text in sys.argv[2:]:
    try:
        print(repr(eval(text)), flush=True)
    except Exception as error:
        print(repr(str(error)), flush=True)
"""
CODE = {
    "spark.read.text('/etc/passwd').collect()": "Spark Connect's data_source",
    "spark.read.jdbc('jdbc:derby:memory:x;create=true', 't').collect()": "Spark Connect's data_source",
    "spark.range(1).write.parquet('/tmp/x')": "Spark Connect's write_operation",
    "spark.range(1).write.saveAsTable('x')": "Spark Connect's write_operation",
    "spark.range(1).writeTo('x').using('delta').create()": "Spark Connect's write_operation_v2",
    "spark.readStream.table('sketch_lake_internal.events_log')"
    ".writeStream.option('checkpointLocation', '/tmp/c').start('/tmp/x')": (
        "Spark Connect's write_stream_operation_start"
    ),
    "spark.range(1).select(F.udf(lambda x: x, 'long')('id')).collect()": (
        "Spark Connect's common_inline_user_defined_function"
    ),
    "spark.range(1).mapInArrow(lambda batches: batches, 'id long').collect()": "Spark Connect's map_partitions",
    "spark.udf.register('f', lambda x: x, 'long')": "Spark Connect's register_function",
    "spark.addArtifacts(__import__('json').__file__, file=True)": "the artifact files/__init__.py",
    "spark.range(1).createGlobalTempView('v')": "a view that other sessions see",
    "spark.catalog.createTable('x', '/etc', 'text')": "Spark Connect's create_table",
    "spark.conf.set('spark.sql.runSQLOnFiles', 'true')": "the setting spark.sql.runSQLOnFiles",
    "spark.conf.unset('spark.sql.runSQLOnFiles')": "the setting spark.sql.runSQLOnFiles",
    "spark.range(1).select(F.expr('''reflect('java.lang.System', 'gc')''')).collect()": "a call of Java by reflection",
    "spark.sql('DROP TABLE sketch_lake_internal.events_log')": "DROP TABLE",
    """spark.sql("SELECT * FROM table_changes_by_path('/tmp/x', 1)").collect()""": "table_changes_by_path",
}
QUESTIONS = {
    f"[tuple(row) for row in spark.sql({ROWS!r}).collect()]": EXPECTED,
    "spark.table('sketch_lake_internal.events_log').where('1 = 0').count()": 0,
    "spark.createDataFrame([(1, 'a')], ['x', 'y']).join(spark.range(3), F.col('x') == F.col('id')).count()": 1,
    "spark.createDataFrame([(n, str(n) * 50) for n in range(90_000)], ['x', 'y']).count()": 90_000,
    "(spark.range(3).createOrReplaceTempView('v'), spark.sql('SELECT * FROM v').count())": (None, 3),
    "spark.conf.set('spark.sql.session.timeZone', 'Asia/Tokyo')": None,
    "spark.conf.get('spark.sql.session.timeZone')": "Asia/Tokyo",
    "spark.catalog.currentDatabase()": DATABASE,
    "spark.catalog.tableExists('events')": True,
    "len(spark.table('events').limit(0).toPandas())": 0,
    "spark.table('events').schema.names[0]": "stream",
}


@pytest.fixture(scope="module")
def passwords(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("passwords") / "passwords"
    file.write_text("".join(f"{user}:{HASH}\n" for user in ("ann", "ben", "cleo")))
    return file


@pytest.fixture(scope="module")
def served(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, passwords: Path) -> Iterator[Served]:
    lake: SketchLake = shared(spark, tmp_path_factory)
    worked(lake)
    folder = tmp_path_factory.mktemp("strangers")
    conf = folder / "conf.yaml"
    conf.write_text(f"database: {DATABASE}\nlocation: {lake.location}\n")
    with serving(conf, "--password-file", str(passwords), folder=folder) as found:
        yield found


def connected(served: Served, user: str = "ann", password: str = PASSWORD, **configuration: str) -> Any:
    where = {"username": user, "auth": "CUSTOM", "database": DATABASE}
    return hive.connect("127.0.0.1", served.port, password=password, configuration=configuration, **where)


def asked(connection: Any, text: str) -> list[tuple[Any, ...]]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(text)
        return [tuple(row) for row in cursor.fetchall()]


def through_connect(served: Served, *expressions: str) -> list[Any]:
    address = f"sc://localhost:{served.connect_port}/;token=ann:{PASSWORD}"
    command = [sys.executable, "-W", "ignore", "-c", CLIENT, address, *expressions]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert ran.stdout, ran.stderr
    return [ast.literal_eval(line) for line in ran.stdout.splitlines()]


@pytest.fixture
def silent(served: Served) -> Iterator[list[socket.socket]]:
    """600 connections that have not said anything."""
    with ExitStack() as opened:
        yield [
            opened.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=60)) for _ in range(600)
        ]


def begin(connection: socket.socket, announced: int) -> None:
    """Begin to say who one is, in a message of so many bytes."""
    connection.sendall(b"\x01" + struct.pack(">I", 5) + b"PLAIN" + b"\x02" + struct.pack(">I", announced))


@pytest.mark.parametrize("half_said", [False, True])
def test_connections_that_do_not_say_who_they_are_shut_nobody_out(
    served: Served, silent: list[socket.socket], half_said: bool
) -> None:
    if half_said:
        for connection in silent[-90:]:
            begin(connection, 200)
    with closing(connected(served)) as connection:
        assert asked(connection, "SELECT 1") == [(1,)]


def test_connections_that_do_not_say_who_they_are_are_closed(served: Served) -> None:
    """A byte now and then does not help."""
    with ExitStack() as opened:
        silent = [opened.enter_context(socket.create_connection(("127.0.0.1", served.port))) for _ in range(3)]
        known = opened.enter_context(closing(connected(served)))
        begin(silent[0], 200)
        for _ in range(60):
            sleep(0.5)
            try:
                silent[0].sendall(b"x")
            except ConnectionError:
                break
        else:
            pytest.fail("it is heard for half a minute")
        assert [each.recv(100) for each in silent[1:]] == [b"", b""]
        assert asked(known, "SELECT 1") == [(1,)], "who has said so stays"


def test_who_is_not_let_in_yet_cannot_have_memory_taken(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        begin(connection, 90_000_000)
        assert b"Invalid payload header length: 90000000" in connection.recv(100)


@pytest.mark.parametrize("length", [1_025, 15_000, 1_000_000])
def test_a_password_that_is_too_long_opens_no_door(served: Served, length: int) -> None:
    with pytest.raises(Exception, match=r"Error validating the login|payload header length|Broken pipe|reset"):
        connected(served, password="x" * length)


def test_a_user_who_is_taken_out_of_the_file_is_out(served: Served, passwords: Path) -> None:
    goes = connected(served, "ben")
    with closing(connected(served, "ann")) as stays:
        running = goes.cursor()
        running.execute(LONG, async_=True)
        passwords.write_text("".join(f"{user}:{HASH}\n" for user in ("ann", "cleo")))
        line = served.line(lambda line: "user=ben" in line and "1000000000000" in line)
        assert "state=closed" in line or "state=failed" in line or "state=cancelled" in line
        with pytest.raises(Exception, match=r"Invalid SessionHandle|Invalid OperationHandle|was shut down"):
            asked(goes, "SELECT 1")
        with pytest.raises(Exception, match="Error validating the login"):
            connected(served, "ben")
        assert asked(stays, "SELECT 1") == [(1,)]


def test_a_jdbc_session_reads_and_does_nothing_else(served: Served) -> None:
    with closing(connected(served)) as connection:
        asked(connection, f"CREATE TEMPORARY VIEW found AS {ROWS}")
        for refused in (
            "DROP TABLE sketch_lake_internal.events_log",
            "SELECT reflect('java.lang.System', 'gc')",
            "EXECUTE IMMEDIATE 'DROP TABLE sketch_lake_internal.events_log'",
            "BEGIN DROP TABLE sketch_lake_internal.events_log; END",
            "SELECT match_exists('worked', 'A ; B', key => reflect('java.lang.System', 'lineSeparator'))",
            "SET spark.sql.runSQLOnFiles=true",
            "SET spark.patternlake.driverBytes = 100t",
            "SET spark.patternlake.rowPatternSteps = 1000000000000",
            "RESET spark.patternlake.partitionBytes",
        ):
            with pytest.raises(Exception, match=ONLY_READ):
                asked(connection, refused)
        for path in ("text.`/etc/passwd`", "delta.`/tmp/x`", "IDENTIFIER('text.`/etc/passwd`')"):
            with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
                asked(connection, f"SELECT * FROM {path}")
        assert asked(connection, "SELECT * FROM found") == EXPECTED
        assert asked(connection, "EXECUTE IMMEDIATE 'SELECT 1'") == [(1,)]


def test_what_functions_read_before_they_are_planned_runs_no_code(served: Served) -> None:
    made = "reflect('java.io.File', 'createTempFile', 'patternlake-refused', '.tmp')"
    table = f"TABLE(SELECT {made} AS made, TIMESTAMP '2024-01-01' AS at)"
    with closing(connected(served)) as connection, pytest.raises(Exception, match=ONLY_READ):
        asked(connection, f"SELECT * FROM match_paths({table} PARTITION BY (made) ORDER BY (at), name => 'made')")
    assert not list(Path(tempfile.gettempdir()).glob("patternlake-refused*"))


def test_a_jdbc_session_may_not_bring_settings_that_undo_this(served: Served) -> None:
    with pytest.raises(Exception, match="Failed to open"):
        connected(served, **{"set:hiveconf:spark.sql.runSQLOnFiles": "true"})
    with pytest.raises(Exception, match="Failed to open"):
        connected(served, **{"set:hiveconf:spark.patternlake.cacheBytes": "100g"})
    with pytest.raises(Exception, match="Failed to open"):
        connected(served, **{"set:hivevar:fs.s3a.endpoint": "https://example.com"})
    given = {"set:hiveconf:spark.sql.shuffle.partitions": "3", "set:hivevar:day": "monday"}
    with closing(connected(served, **given)) as connection:
        assert asked(connection, "SET spark.sql.shuffle.partitions") == [("spark.sql.shuffle.partitions", "3")]


def test_a_connect_session_reads_and_does_nothing_else(served: Served) -> None:
    said = dict(zip([*CODE, *QUESTIONS], through_connect(served, *CODE, *QUESTIONS), strict=True))
    for text, what in CODE.items():
        assert f"{what} {ONLY_READ}" in str(said[text]), text
    assert {text: said[text] for text in QUESTIONS} == QUESTIONS


def test_a_path_is_no_table_for_connect(served: Served) -> None:
    (said,) = through_connect(served, "spark.table('text.`/etc/passwd`').collect()")
    assert "TABLE_OR_VIEW_NOT_FOUND" in said

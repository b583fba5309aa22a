"""`patternlake serve`, asked as its users ask: beeline, a Python DB-API client, Spark Connect."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import timezone
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import psutil
import pyspark
import pytest
from pyhive import hive
from pyhive.exc import OperationalError
from sql.served import Served, serving
from sql.sketch_lake import DATABASE, SketchLake, Stream, letters, shared, value_text, worked
from TCLIService.ttypes import TOperationState
from thrift.transport.TTransport import TTransportException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

AT_WORK = (TOperationState.INITIALIZED_STATE, TOperationState.PENDING_STATE, TOperationState.RUNNING_STATE)
PASSWORD = "to:tell"
# openssl passwd -6 -salt saltsalt to:tell
HASH = "$6$saltsalt$wGUCZcJTX0OBEESVzywArKtC7O/yT1NZuW/N9KieuJeqTgn0AKewL.XiD2k1GnygAIK9aA9oTvBHnaf4Yscil0"
ROWS = "SELECT first_position, last_position FROM match_seq('worked', 'A ; B', to_position => 16) ORDER BY 1"
EXPECTED = [(1, 2), (5, 8), (9, 12), (13, 14)]
WRONG = "SELECT match_exists('worked', 'A ; ; B')"
CLIENT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
for text in sys.argv[2:]:
    try:
        args = {"a": "A", "b": "B"} if ":a" in text else ["A", "B"][: text.count("?")] or None
        print([tuple(row) for row in spark.sql(text, args).collect()])
    except Exception as error:
        print(repr(str(error)))
"""
WAITING = """
import sys
from pyhive import hive
host, port, user, password, database, text = sys.argv[1:]
connection = hive.connect(host, int(port), username=user, password=password, auth="CUSTOM", database=database)
cursor = connection.cursor()
cursor.execute(text, async_=True)
print("asked", flush=True)
sys.stdin.read()
"""


def sleeping(milliseconds: int) -> str:
    """A query that takes a while, without work for others to wait for."""
    return f"SELECT reflect('java.lang.Thread', 'sleep', {milliseconds}L) AS slept"


@pytest.fixture(scope="module")
def growing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A stream of two batches; the lake has that of the worked answers, too."""
    lake: SketchLake = shared(spark, tmp_path_factory)
    worked(lake)
    return lake.stream("growing", letters("AB"), letters("AB", begin=10))


@pytest.fixture(scope="module")
def served(growing: Stream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    conf, passwords = folder / "conf.yaml", folder / "passwords"
    conf.write_text(f"database: {DATABASE}\nlocation: {growing.lake.location}\n")
    passwords.write_text("".join(f"{user}:{HASH}\n" for user in ("ann", "ben", "cleo")))
    given = ("--password-file", str(passwords), "--allow-writes", "--drain", "60")
    with serving(conf, *given, folder=folder) as found:
        yield found


def connected(served: Served, user: str = "ann", password: str = PASSWORD, database: str = DATABASE) -> Any:
    """A connection of a Python DB-API client."""
    return hive.connect("127.0.0.1", served.port, username=user, password=password, auth="CUSTOM", database=database)


def asked(connection: Any, text: str) -> list[tuple[Any, ...]]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(text)
        return [tuple(row) for row in cursor.fetchall()]


def beeline(served: Served, *statements: str, user: str = "ann", password: str = PASSWORD) -> Any:
    """What beeline says, which comes with pyspark."""
    home = Path(pyspark.__file__).parent
    url = f"jdbc:hive2://127.0.0.1:{served.port}/{DATABASE}"
    command = [
        str(home / "bin" / "beeline"),
        "-u",
        url,
        "-n",
        user,
        "-p",
        password,
        "--outputformat=csv2",
        "--silent=true",
    ]
    for statement in statements:
        command += ["-e", statement]
    return subprocess.run(
        command,
        env={**os.environ, "SPARK_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def through_connect(served: Served, token: str | None, texts: Sequence[str], **parameters: str) -> list[Any]:
    """Rows of each text, or the error's message, by a client of Spark Connect in a process of its own."""
    given = {**({} if token is None else {"token": token}), **parameters}
    address = f"sc://localhost:{served.connect_port}/" + "".join(f";{name}={value}" for name, value in given.items())
    command = [sys.executable, "-c", CLIENT, address, *texts]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert ran.stdout, ran.stderr
    return [ast.literal_eval(line) for line in ran.stdout.splitlines()]


def test_both_doors_are_this_machines_alone(served: Served) -> None:
    processes = psutil.Process(served.process.pid).children(recursive=True)
    listening = {
        connection.laddr
        for process in processes
        for connection in process.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port in (served.port, served.connect_port)
    }
    assert {(address.ip.removeprefix("::ffff:"), address.port) for address in listening} == {
        ("127.0.0.1", served.port),
        ("127.0.0.1", served.connect_port),
    }


def test_beeline_gets_rows_and_is_told_what_is_wrong(served: Served) -> None:
    done = beeline(served, ROWS)
    # It shows its prompt, and the statement, before the first line.
    shown = [line.rpartition("> ")[2] for line in done.stdout.splitlines()]
    assert shown == ["first_position,last_position", "1,2", "5,8", "9,12", "13,14"], done.stderr
    done = beeline(served, WRONG)
    assert done.returncode != 0
    # The message, a line of the pattern, what points at the place, and nothing of Java's.
    told = re.search(r"^Error: (.*?)\s*\(state=P0001,code=0\)$", done.stderr, re.M | re.S)
    assert told, done.stderr
    assert "expected a name or '(' after ';', found ';'" in told[1]
    assert not re.search(r"Exception|^\s+at |Traceback", done.stderr, re.M)
    for wrong, error in {
        "SELECT nowhere FROM events": "UNRESOLVED_COLUMN",
        "SELECT count(*) FROM events events events": "PARSE_SYNTAX_ERROR",
    }.items():
        done = beeline(served, wrong)
        assert f"Error: [{error}" in done.stderr
        assert not re.search(r"Exception|^\s+at ", done.stderr, re.M)


def test_a_db_api_client_gets_rows_in_a_session_that_has_all(served: Served) -> None:
    with closing(connected(served)) as connection:
        assert asked(connection, ROWS) == EXPECTED
        assert asked(connection, "SELECT current_database()") == [(DATABASE,)]
        assert asked(connection, "SELECT count(*) FROM events WHERE stream = 'growing'") == [(4,)]
        assert asked(connection, "SELECT match_exists('growing', 'A ; B ; A ; B')") == [(True,)]
        assert ("match_pattern",) in asked(connection, "SHOW FUNCTIONS LIKE 'match_*'") or (
            "system.session.match_pattern",
        ) in asked(connection, "SHOW FUNCTIONS LIKE 'match_*'")


def test_both_doors_take_match_recognize(served: Served) -> None:
    text = (
        "SELECT n FROM (SELECT key, position, name FROM events WHERE stream = 'growing') MATCH_RECOGNIZE (ORDER BY "
        "position MEASURES count(*) AS n AFTER MATCH SKIP TO NEXT ROW PATTERN (a b+) DEFINE a AS name = 'A', {b})"
    )
    right, wrong = text.format(b="b AS name <> PREV(name)"), text.format(b="b AS nome = 'B'")
    said = "'nome' is no column of the input (did you mean 'name'?)"
    with closing(connected(served)) as connection:
        assert sorted(asked(connection, right)) == [(2,), (4,)]
        with pytest.raises(OperationalError) as caught:
            asked(connection, wrong)
        assert said in str(caught.value)
    rows, bound, error = through_connect(served, f"ann:{PASSWORD}", [right, right.replace("'A'", ":a"), wrong])
    assert "stacktrace" not in error
    assert sorted(rows) == sorted(bound) == [(2,), (4,)]
    assert said in error


def test_both_doors_say_which_function_is_meant(served: Served) -> None:
    text = "SELECT * FROM match_sec('growing', 'A ; B')"
    said = "Cannot resolve routine `match_sec` (did you mean `match_seq`?)"
    with closing(connected(served)) as connection, pytest.raises(OperationalError) as caught:
        asked(connection, text)
    assert f"[UNRESOLVED_ROUTINE] {said}" in str(caught.value)
    assert "at org.apache" not in str(caught.value)
    (error,) = through_connect(served, f"ann:{PASSWORD}", [text])
    assert f"[UNRESOLVED_ROUTINE] {said}" in error
    assert f"== SQL ==\n{text}\n--------------^^^" in error


def test_a_client_that_names_another_database_qualifies_names(served: Served) -> None:
    with closing(connected(served, database="default")) as connection:
        assert asked(connection, ROWS) == EXPECTED
        assert asked(connection, f"SELECT count(*) FROM {DATABASE}.events WHERE stream = 'growing'") == [(4,)]


def test_sessions_have_settings_and_temporary_views_of_their_own(served: Served) -> None:
    with closing(connected(served)) as one, closing(connected(served, "ben")) as other:
        asked(one, "CREATE TEMPORARY VIEW mine AS SELECT 1 AS x")
        asked(one, "SET spark.sql.session.timeZone=America/New_York")
        assert asked(one, "SELECT * FROM mine") == [(1,)]
        assert asked(other, "SHOW VIEWS LIKE 'mine'") == []
        assert asked(other, "SELECT current_timezone()") == [("UTC",)]


@pytest.mark.xfail(
    pyspark.__version__ < "4.2",
    raises=OperationalError,
    strict=True,
    reason="Spark 4.1 takes the functions for temporary ones, to which no view that lasts may refer",
)
def test_a_view_over_a_function_lasts_for_other_sessions(served: Served) -> None:
    with closing(connected(served)) as connection:
        asked(connection, f"CREATE OR REPLACE VIEW default.pairs AS {ROWS}")
    with closing(connected(served, "ben", database="default")) as connection:
        assert asked(connection, "SELECT * FROM pairs ORDER BY 1") == EXPECTED
        asked(connection, "DROP VIEW pairs")


def test_time_travel_by_as_of_and_by_versions_of_a_table(served: Served, growing: Stream) -> None:
    first = growing.moments[0].astimezone(timezone.utc)
    then = f"SELECT count(*) FROM match_pattern('growing', 'A ; B', as_of => {value_text(first)})"
    with closing(connected(served)) as connection:
        assert asked(connection, "SELECT count(*) FROM match_pattern('growing', 'A ; B')") == [(3,)]
        assert asked(connection, then) == [(1,)]
        asked(connection, "CREATE TABLE default.versions (x INT) USING delta")
        asked(connection, "INSERT INTO default.versions VALUES (1)")
        asked(connection, "INSERT INTO default.versions VALUES (2)")
        assert asked(connection, "SELECT * FROM default.versions VERSION AS OF 1") == [(1,)]
        assert asked(connection, "SELECT count(*) FROM default.versions") == [(2,)]
        asked(connection, "DROP TABLE default.versions")
        first_version = min(row[0] for row in asked(connection, f"DESCRIBE HISTORY {DATABASE}_internal.events_log"))
        assert asked(
            connection, f"SELECT count(*) FROM {DATABASE}_internal.events_log VERSION AS OF {first_version}"
        ) == [(0,)]


@pytest.mark.parametrize(("user", "password"), [("ann", "tell"), ("ann", ""), ("dora", PASSWORD)])
def test_a_wrong_password_opens_neither_door(served: Served, user: str, password: str) -> None:
    with pytest.raises(Exception, match=r"Error validating the login|no such name"):
        connected(served, user, password or " ")
    (said,) = through_connect(served, f"{user}:{password}", ["SELECT 1"])
    assert "a token NAME:PASSWORD of the password file is needed" in said
    for door in ("jdbc", "connect"):
        told = f"warning: login refused door={door} user={user}"
        assert served.line(told.__eq__, 60) == told


def test_spark_connect_opens_to_no_one_without_a_token(served: Served) -> None:
    (said,) = through_connect(served, None, ["SELECT 1"])
    assert "a token NAME:PASSWORD of the password file is needed" in said


def test_a_connect_client_gets_rows_in_the_name_of_its_password(served: Served) -> None:
    texts = [
        ROWS,
        "SELECT current_database()",
        WRONG,
        "SELECT 'by connect', count(*) FROM events",
        "SELECT current_user(), session_user()",
    ]
    rows, database, wrong, counted, user = through_connect(served, f"cleo:{PASSWORD}", texts, user_id="ann")
    assert user == [("cleo", "cleo")]
    assert rows == EXPECTED
    assert database == [(DATABASE,)]
    assert "expected a name or '(' after ';', found ';'" in wrong
    assert "Traceback" not in wrong
    assert counted[0][0] == "by connect"
    line = served.line(lambda line: "by connect" in line and "rows=1" in line)
    assert "door=connect user=cleo " in line


def test_parameters_of_a_connect_client_are_bound(served: Served) -> None:
    texts = [
        "SELECT :a",
        "SELECT ?, concat(?, 'C')",
        ROWS.replace("'A ; B'", "concat(:a, ' ; ', :b)"),
        ROWS.replace("'A ; B'", "concat(?, ' ; ', ?)"),
        "WITH one AS (SELECT :a AS a) SELECT match_exists('worked', concat(a, ' ; Z')), :b IN (SELECT a FROM one) "
        "FROM one",
        "SELECT count(*) FROM events MATCH_RECOGNIZE (ORDER BY position PATTERN (a b) "
        "DEFINE a AS name = ?, b AS name = ?)",
        "SELECT :a, :gone",
    ]
    plain, several, named, positional, nested, rows, unbound = through_connect(served, f"ann:{PASSWORD}", texts)
    assert (plain, several, nested) == ([("A",)], [("A", "BC")], [(False, False)])
    assert named == positional == EXPECTED
    assert rows[0][0] > 0
    assert "UNBOUND_SQL_PARAMETER" in unbound


def test_the_log_has_a_line_for_each_query(served: Served) -> None:
    with closing(connected(served, "ben")) as connection:
        asked(connection, f"SELECT /* logged */ * FROM ({ROWS})")
        with pytest.raises(Exception, match=r"(?i)nowhere"):
            asked(connection, "SELECT /* refused */ * FROM nowhere")
    line = served.line(lambda line: "logged" in line)
    assert line.startswith("info: query door=jdbc user=ben seconds=")
    assert " rows=4 state=finished: SELECT /* logged */ * FROM (SELECT" in line
    assert " rows=- state=failed: " in served.line(lambda line: "/* refused */" in line)


def test_eight_clients_at_once_one_of_them_killed(served: Served) -> None:
    given = ["127.0.0.1", str(served.port), "ann", PASSWORD, DATABASE]
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", WAITING, *given, text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for text in [sleeping(600_000), *[f"SELECT {number} AS client, * FROM ({ROWS})" for number in range(7)]]
    ]
    try:
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "asked\n", client.communicate()[1]
        clients[0].send_signal(signal.SIGKILL)
        for number in range(7):
            served.line(lambda line, number=number: f"SELECT {number} AS client" in line and "rows=4" in line)  # type: ignore[misc]
        cut = served.line(lambda line: "600000L" in line)
        assert "state=closed" in cut or "state=failed" in cut or "state=cancelled" in cut
    finally:
        for client in clients:
            client.kill()
            client.communicate()
    with closing(connected(served)) as connection:
        assert asked(connection, ROWS) == EXPECTED, "the server goes on"


def test_sigterm_finishes_what_runs_and_takes_no_more(served: Served) -> None:
    """The last test of this file: it ends the server."""
    connection = connected(served)
    cursor = connection.cursor()
    cursor.execute(sleeping(8_000), async_=True)
    served.process.send_signal(signal.SIGTERM)
    served.line(lambda line: "no more connections; what runs may go on for 60 s" in line)
    with pytest.raises(Exception, match=r"Could not connect|refused"):
        connected(served)
    while cursor.poll().operationState in AT_WORK:
        sleep(0.2)
    assert cursor.fetchall() == [("null",)]
    # Its rows are fetched, so the server ends, perhaps before it has answered that.
    with suppress(TTransportException):
        cursor.close()
        connection.close()
    assert served.process.wait(timeout=900) == 0
    assert " rows=1 state=finished: SELECT reflect" in served.line(lambda line: "8000L" in line)

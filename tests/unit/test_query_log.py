"""What the log says of the queries that a server answers, and how it waits for them. Nothing here starts Spark."""

from __future__ import annotations

import json
import logging
from threading import Event, Timer
from typing import Any

import pytest

from patternlake.sql_ext.serving.query_log import QueryLog, shown_plan, shown_statement


def tell(log: QueryLog, what: str, query: str = "q1", at: int = 0, door: str = "jdbc", **more: Any) -> None:
    log.accept(json.dumps({"door": door, "what": what, "query": query, "at": at, **more}))


def started(log: QueryLog, query: str = "q1", at: int = 0, **more: Any) -> None:
    tell(log, "started", query, at, **{"user": "ann", "statement": "SELECT 1", **more})


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="patternlake.sql_ext.serving.query_log")
    return caplog


def test_an_answered_query_is_one_line_with_user_seconds_and_rows(lines: pytest.LogCaptureFixture) -> None:
    log = QueryLog()
    started(log, at=1000, statement="SELECT *\n  FROM events")
    tell(log, "finished", at=2250, rows=4)
    tell(log, "closed", at=9000)
    assert lines.messages == ["query door=jdbc user=ann seconds=1.250 rows=4 state=finished: SELECT * FROM events"]


def test_a_client_can_neither_add_a_line_nor_a_field_nor_command_a_terminal(lines: pytest.LogCaptureFixture) -> None:
    log = QueryLog()
    started(log, user="ann rows=9\ninfo: query", statement="SELECT '\x1b[2J\x9b\u202e\x00'\n, 'ü'\x85info: query")
    tell(log, "finished", rows=1)
    assert lines.messages == [
        r"query door=jdbc user=ann\x20rows=9\ninfo:\x20query seconds=0.000 rows=1 state=finished: "
        r"SELECT '\x1b[2J\x9b\u202e\x00' , 'ü' info: query"
    ]


def test_rows_that_are_not_known_are_a_dash(lines: pytest.LogCaptureFixture) -> None:
    log = QueryLog()
    started(log, door="connect")
    tell(log, "finished", door="connect", rows=None)
    assert lines.messages == ["query door=connect user=ann seconds=0.000 rows=- state=finished: SELECT 1"]


@pytest.mark.parametrize("what", ["failed", "cancelled", "timed out", "closed"])
def test_a_query_that_was_not_answered_is_one_line_too(what: str, lines: pytest.LogCaptureFixture) -> None:
    log = QueryLog()
    started(log)
    tell(log, what, at=500)
    tell(log, "closed", at=600)
    assert lines.messages == [f"query door=jdbc user=ann seconds=0.500 rows=- state={what}: SELECT 1"]


def test_what_becomes_of_an_unknown_query_is_not_told(lines: pytest.LogCaptureFixture) -> None:
    tell(QueryLog(), "finished", rows=1)
    assert lines.messages == []


def test_doors_number_their_queries_apart(lines: pytest.LogCaptureFixture) -> None:
    log = QueryLog()
    started(log)
    started(log, door="connect", user="ben")
    tell(log, "finished", door="connect", rows=2)
    assert [line.split()[2] for line in lines.messages] == ["user=ben"]
    assert log.wait(0) == 1


def test_a_wait_ends_when_the_last_query_is_closed() -> None:
    log = QueryLog()
    started(log)
    tell(log, "finished", rows=1)
    Timer(0.05, tell, (log, "closed")).start()
    assert log.wait(60) == 0


def test_a_wait_that_is_too_short_tells_how_many_are_at_work() -> None:
    log = QueryLog()
    started(log, "q1")
    started(log, "q2")
    started(log, "q3")
    tell(log, "finished", "q3", rows=1)
    assert log.wait(0.01) == 2


def test_a_wait_can_be_cut() -> None:
    log, cut = QueryLog(), Event()
    started(log)
    cut.set()
    assert log.wait(3600, cut) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT 1", "SELECT 1"),
        ("  SELECT\n\t1  ", "SELECT 1"),
        ("SELECT 'query: \"x\"'", "SELECT 'query: \"x\"'"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_a_statement_is_shown_on_one_line(text: str, shown: str) -> None:
    assert shown_statement(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('common {\n  plan_id: 3\n}\nsql {\n  query: "SELECT \\"a\\",\\n\\\'b\\\'"\n}\n', "SELECT \"a\", 'b'"),
        ('sql_command {\n  sql: "SELECT \\303\\244"\n}\n', "SELECT ä"),
        (r'sql_command { sql: "SELECT \'C:\\2024\\x\'" }', r"SELECT 'C:\2024\x'"),
        (r'sql_command { sql: "SELECT 1 -- \\377 \377" }', r"SELECT 1 -- \377 �"),
        ("range {\n  end: 3\n}\n", "range { end: 3 }"),
    ],
)
def test_a_plan_of_spark_connect_is_shown_by_its_sql(text: str, shown: str) -> None:
    assert shown_plan(text) == shown

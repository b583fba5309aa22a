"""Which statements a server refuses that is only read: told from the analysed plan. No server is started here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sql.empty_database import common

from patternlake.sql_ext.serving import java_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSED = {
    "SELECT TRANSFORM(x) USING 'cat' AS (y STRING) FROM VALUES (1) AS t(x)": "TRANSFORM",
    "ADD JAR '/tmp/x.jar'": "ADD JARS",
    "ADD FILE '/etc/passwd'": "ADD FILES",
    "ADD ARCHIVE '/tmp/x.zip'": "ADD ARCHIVES",
    "CREATE FUNCTION f AS 'org.example.F' USING JAR '/tmp/x.jar'": "CREATE FUNCTION",
    "CREATE TEMPORARY FUNCTION f AS 'org.example.F'": "CREATE FUNCTION",
    "SELECT reflect('java.lang.System', 'gc')": "a call of Java by reflection",
    "SELECT java_method('java.lang.System', 'gc')": "a call of Java by reflection",
    "SELECT try_reflect('java.lang.System', 'gc')": "a call of Java by reflection",
    "SELECT system.builtin.reflect('java.lang.System', 'gc')": "a call of Java by reflection",
    "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'gc')": "a call of Java by reflection",
    "SELECT 1 WHERE upper(reflect('java.lang.System', 'gc')) = 'x'": "a call of Java by reflection",
    "SELECT (SELECT reflect('java.lang.System', 'gc'))": "a call of Java by reflection",
    "CREATE TEMPORARY VIEW v AS SELECT reflect('java.lang.System', 'gc') AS x": "a call of Java by reflection",
    "CACHE TABLE c AS SELECT reflect('java.lang.System', 'gc') AS x": "a call of Java by reflection",
    "CREATE TEMPORARY VIEW v USING csv OPTIONS (path '/etc/passwd')": "CREATE TEMP VIEW USING",
    "CREATE VIEW v AS SELECT 1 AS x": "a view that other sessions see",
    "CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1 AS x": "a view that other sessions see",
    "CREATE TABLE t (x INT) USING delta LOCATION '/tmp/t'": "CREATE TABLE",
    "CREATE TABLE t USING csv AS SELECT 1 AS x": "CREATE TABLE AS SELECT",
    "CREATE DATABASE d": "CREATE DATABASE",
    "DROP DATABASE common CASCADE": "DROP DATABASE",
    "DROP TABLE common_internal.events_log": "DROP TABLE",
    "DROP VIEW common.events": "DROP VIEW",
    "ALTER TABLE common_internal.events_log SET TBLPROPERTIES ('a' = 'b')": "SET TABLE PROPERTIES",
    "INSERT INTO common_internal.events_log SELECT * FROM common_internal.events_log": "INSERT",
    "DELETE FROM common_internal.events_log": "DELETE",
    "TRUNCATE TABLE common_internal.events_log": "TRUNCATE TABLE",
    "UPDATE common_internal.events_log SET position = 1": "UPDATE",
    "OPTIMIZE common_internal.events_log": "OPTIMIZE TABLE",
    "VACUUM common_internal.events_log": "VACUUM TABLE",
    "CREATE TABLE t SHALLOW CLONE common_internal.events_log": "CREATE TABLE",
    "CONVERT TO DELTA parquet.`/tmp/x`": "CONVERT TO DELTA",
    "ANALYZE TABLE common_internal.events_log COMPUTE STATISTICS": "ANALYZE TABLE",
    "INSERT OVERWRITE DIRECTORY '/tmp/d' USING csv SELECT 1": "INSERT INTO DIR",
    "LOAD DATA INPATH '/etc/passwd' INTO TABLE common_internal.events_log": "LOAD DATA",
    "DESCRIBE HISTORY '{path}'": "a path in the place of a table",
    "DESCRIBE DETAIL '{path}'": "a path in the place of a table",
    "DESCRIBE HISTORY delta.`{path}`": "a path in the place of a table",
    "DESCRIBE DETAIL '/etc'": "a path in the place of a table",
    "SET spark.sql.runSQLOnFiles=true": "the setting spark.sql.runSQLOnFiles",
    "RESET spark.sql.runSQLOnFiles": "the setting spark.sql.runSQLOnFiles",
    "SET spark.sql.catalog.x=org.example.Catalog": "the setting spark.sql.catalog.x",
    "SET fs.s3a.endpoint=https://example.com": "the setting fs.s3a.endpoint",
}
TAKEN = (
    "SELECT * FROM common.events",
    "SELECT * FROM common_internal.events_log VERSION AS OF 0",
    "WITH t AS (SELECT 1 AS x) SELECT max(x) OVER () FROM t",
    "SHOW DATABASES",
    "SHOW TABLES IN common",
    "SHOW VIEWS IN common",
    "SHOW COLUMNS IN common.events",
    "SHOW CREATE TABLE common.events",
    "SHOW TBLPROPERTIES common_internal.events_log",
    "SHOW FUNCTIONS",
    "SHOW CATALOGS",
    "DESCRIBE common.events",
    "DESCRIBE EXTENDED common_internal.events_log",
    "DESCRIBE DATABASE common",
    "DESCRIBE FUNCTION upper",
    "DESCRIBE QUERY SELECT 1",
    "DESCRIBE HISTORY common_internal.events_log",
    "DESCRIBE DETAIL common_internal.events_log",
    "EXPLAIN SELECT 1",
    "USE common",
    "SET CATALOG spark_catalog",
    "SET",
    "SET -v",
    "SET spark.sql.runSQLOnFiles",
    "SET spark.sql.session.timeZone=America/New_York",
    "SET TIME ZONE 'UTC'",
    "SET spark.patternlake.reader=spark",
    "SET hivevar:day=monday",
    "SET day=monday",
    "RESET",
    "RESET spark.sql.session.timeZone",
    "CREATE TEMPORARY VIEW v AS SELECT 1 AS x",
    "CACHE TABLE common.events",
    "UNCACHE TABLE common.events",
    "REFRESH TABLE common.events",
    "DECLARE VARIABLE n INT DEFAULT 3",
)


class Reader:
    """Asks what a server would say."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._jvm: Any = spark._jvm
        self._state: Any = spark._jsparkSession.sessionState()
        self._path = path

    def refusal(self, text: str, *, ours: bool = False) -> str | None:
        plan = self._state.sqlParser().parsePlan(text.replace("{path}", self._path))
        mode = self._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        found: str | None = self._jvm.patternlake.Reading.refused(self._state.executePlan(plan, mode).analyzed(), ours)
        return found


@pytest.fixture(scope="module")
def reader(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    db = common(spark, tmp_path_factory)
    java_classes.define(spark._jvm, spark.sparkContext._gateway)
    return Reader(spark, f"{db.location}/events_log")


@pytest.mark.parametrize("text", REFUSED)
def test_what_writes_reads_files_or_runs_code_is_refused(reader: Reader, text: str) -> None:
    assert reader.refusal(text) == (
        f"{REFUSED[text]} is refused: this server answers questions about what is there, and changes nothing; "
        "patternlake serve --allow-writes lets sessions do all that Spark may"
    )


@pytest.mark.parametrize("text", TAKEN)
def test_what_only_looks_or_changes_the_session_alone_is_taken(reader: Reader, text: str) -> None:
    assert reader.refusal(text) is None


@pytest.mark.parametrize("text", [text for text, what in REFUSED.items() if what.startswith(("TRANSFORM", "a call"))])
def test_functions_run_no_code_that_a_client_gives_them(reader: Reader, text: str) -> None:
    assert reader.refusal(text, ours=True) == reader.refusal(text)


@pytest.mark.parametrize(
    "text", ["DESCRIBE DETAIL '{path}'", "CREATE DATABASE d", "OPTIMIZE common_internal.events_log"]
)
def test_functions_look_at_files_and_write(reader: Reader, text: str) -> None:
    assert reader.refusal(text, ours=True) is None


def test_a_path_by_which_delta_tells_changes_is_refused(spark: SparkSession, reader: Reader) -> None:
    refused: Any = spark._jvm.patternlake.RefusedFunction("table_changes_by_path")  # type: ignore[union-attr]
    with pytest.raises(Exception, match="table_changes_by_path is refused"):
        refused.apply(None)


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.sources.default",
        "spark.hadoop.fs.defaultFS",
        "javax.jdo.option.ConnectionURL",
        "hiveconf:fs.x",
        "spark.sql.adaptive.customCostEvaluatorClass",
    ],
)
def test_settings_that_name_classes_or_places_are_refused(spark: SparkSession, reader: Reader, name: str) -> None:
    jvm: Any = spark._jvm
    assert not jvm.patternlake.Settings.harmless(name)


@pytest.mark.parametrize("name", ["spark.sql.shuffle.partitions", "spark.sql.ansi.enabled", "hive.exec.x", "day"])
def test_settings_of_how_a_question_is_computed_are_taken(spark: SparkSession, reader: Reader, name: str) -> None:
    jvm: Any = spark._jvm
    assert jvm.patternlake.Settings.harmless(name)

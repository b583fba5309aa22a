"""Makes functions known to Spark: a builder that the analyser calls, and that plans in Python.

Spark's hook for table functions takes a builder from expressions to a logical plan. Ours reads the arguments, asks the
function for its rows, and hands their plan back. It stands in the session at hand, and by the extensions' hook in every
session that is made afterwards: newSession, JDBC, Connect.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from py4j.protocol import Py4JJavaError
from pyspark import java_gateway
from pyspark.sql import SparkSession

from patternlake.sql_ext.arguments import SqlArguments, bound, plain_values
from patternlake.sql_ext.enabled import lake_of
from patternlake.sql_ext.table_function import TableFunction
from patternlake.udfs.errors import PatternLakeError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_RAISED = "USER_RAISED_EXCEPTION"
_INJECTED: set[str] = set()
"""Applications whose later sessions have the functions."""


def call(function: TableFunction, spark: SparkSession, given: dict[str, Any]) -> DataFrame:
    """Plan a call from Python.

    Parameters
    ----------
    function
        The function.
    spark
        The session.
    given
        All arguments by name.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    arguments = bound(function.name, function.parameters, (), given)
    return function.plan(lake_of(spark), plain_values(spark, function.name, function.parameters, arguments))


def register(spark: SparkSession, functions: Iterable[TableFunction]) -> None:
    """Let a session, and all that are made after it in its application, call the functions in SQL; idempotent."""
    gateway: Any = spark.sparkContext._gateway
    start: Any = java_gateway.ensure_callback_server_started
    start(gateway)
    # An exception of the JVM that a builder raises reaches Spark as it is, without Python's traceback.
    gateway.python_parameters.propagate_java_exceptions = True
    logging.getLogger("py4j.clientserver").addFilter(_ours)
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    inject = spark.sparkContext.applicationId not in _INJECTED
    for function in functions:
        builder = _Builder(spark, function)
        info = _info(jvm, function)
        # Where Spark looks for its own functions of this name.
        place = identifier(function.name, jvm.scala.Some("session"), jvm.scala.Some("system"))
        session.sessionState().tableFunctionRegistry().registerFunction(place, info, builder)
        if inject:
            session.extensions().injectTableFunction(jvm.scala.Tuple3(identifier(function.name), info, builder))
    _INJECTED.add(spark.sparkContext.applicationId)


def _info(jvm: Any, function: TableFunction) -> JavaObject:
    info = jvm.org.apache.spark.sql.catalyst.expressions.ExpressionInfo
    return info(
        "patternlake", None, function.name, f"{function.usage} - {function.comment}.", "", "", "", "", "", "", ""
    )


class _PlanningError(Py4JJavaError):  # type: ignore[misc]
    """Carries an exception of the JVM out of a builder."""


def _ours(record: logging.LogRecord) -> bool:
    """Whether py4j's log should say that a callback failed: not where the analyst is told so."""
    return not (record.exc_info and isinstance(record.exc_info[1], _PlanningError))


class _Builder:
    """Plans the calls of one function; Spark's analyser calls it, perhaps more than once for a query."""

    def __init__(self, spark: SparkSession, function: TableFunction) -> None:
        self._context = spark.sparkContext
        self._jvm: Any = spark._jvm
        self._function = function

    def apply(self, expressions: JavaObject) -> JavaObject:
        function = self._function
        try:
            spark = SparkSession(self._context, self._jvm.org.apache.spark.sql.classic.SparkSession.active())
            arguments = SqlArguments(spark).values(function.name, function.parameters, expressions)
            frame: Any = function.plan(lake_of(spark), arguments)
            return frame._jdf.queryExecution().analyzed()
        except PatternLakeError as error:
            raise self._as_sparks(str(error)) from None
        except Exception as error:
            logger.exception("planning %s failed", function.name)
            raise self._as_sparks(f"{function.name} failed: {type(error).__name__}: {error}") from None

    def _as_sparks(self, message: str) -> _PlanningError:
        jvm = self._jvm
        parameters = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({"errorMessage": message})
        nowhere = self._context._gateway.new_array(jvm.org.apache.spark.QueryContext, 0)  # type: ignore[union-attr]
        return _PlanningError(
            message, jvm.org.apache.spark.SparkRuntimeException(_RAISED, parameters, None, nowhere, "")
        )

    class Java:
        """What py4j reads."""

        implements: ClassVar[list[str]] = ["scala.Function1"]

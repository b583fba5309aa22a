"""Makes functions known to Spark: a builder that the analyser calls, and that plans in Python.

Spark's hook for table functions takes a builder from expressions to a logical plan. Ours reads the arguments, asks the
function for its rows, and hands their plan back. By the extensions' hook it stands among Spark's own functions in every
session that is made afterwards (newSession, JDBC, Connect), and in the session at hand as if it had been made so.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import java_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column

from patternlake.sql_ext.calls.answer_cache import answer_call, finish, work_out
from patternlake.sql_ext.declarations.arguments import STREAM, SqlArguments, bind, plain_values, split
from patternlake.sql_ext.declarations.declaration import RowsFunction, ScalarFunction, TableFunction
from patternlake.sql_ext.declarations.over_tables import lake_over
from patternlake.sql_ext.declarations.table_arguments import OrderedRows, is_table, plan_over, read_terms, rows_apart
from patternlake.sql_ext.lakes.enabled import lake_of_object
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.row_patterns.parsing import put_parser
from patternlake.udfs.errors import ArgumentError, PatternLakeError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

logger = logging.getLogger(__name__)

_Function = TypeVar("_Function", TableFunction, ScalarFunction, RowsFunction)

_RAISED = "USER_RAISED_EXCEPTION"
_OBJECTS = ("stream", "query")
"""Parameters that may name an object of another database; else it is the first one."""
_WORDS = ("policy", "after_match", "repetition", "mode", "overlap")
"""Parameters that take one of a few words."""
_COLUMN: Any = Column  # its stubs take it for a method
_INJECTED: set[tuple[str, int]] = set()
"""Applications, and in them what their sessions have in common, whose later sessions have the functions."""


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
    stream = given.get(STREAM)
    if isinstance(stream, DataFrame):
        rows = OrderedRows(
            stream, read_terms(stream, given.get("key"), "key"), read_terms(stream, given.get("time"), "time")
        )
        own = {name: None for name in (STREAM, "key", "time") if name in given}
        values = _plain(spark, function, {**given, **own})
        return _over(function, values, rows, lambda: rows)
    return answer_call(function, *_place(spark, function, _plain(spark, function, given)))


def call_for_value(function: ScalarFunction, spark: SparkSession, given: dict[str, Any]) -> Any:
    """The value of a call from Python; parameters and errors as of `call`."""
    lake, arguments = _place(spark, function, _plain(spark, function, given))
    return work_out(lambda: function.value(lake, arguments))


def _over(
    function: TableFunction, arguments: dict[str, Any], rows: OrderedRows, apart: Callable[[], OrderedRows]
) -> DataFrame:
    """The answer over a table in the place of a stream."""
    if not any(parameter.name == "time" for parameter in function.parameters):
        raise ArgumentError(f"{function.name} asks a stream, not a table; `patternlake init --table` makes one of it")
    lake, values = lake_over(rows, {name: _lower_word(name, value) for name, value in arguments.items()}, apart)
    answer = finish(lake, function, work_out(lambda: function.plan(lake, values)))
    if "final" not in answer.columns or values.get("to_time") is not None:
        return answer
    # No row comes behind those of a table, whose watermark tells only what windows in time have passed.
    return answer.withColumn("final", F.lit(True))


def _plain(spark: SparkSession, function: TableFunction | ScalarFunction, given: dict[str, Any]) -> dict[str, Any]:
    arguments = bind(function.name, function.parameters, (), given)
    return plain_values(spark, function.name, function.parameters, arguments)


def _place(
    spark: SparkSession, function: TableFunction | ScalarFunction, arguments: dict[str, Any]
) -> tuple[Lake, dict[str, Any]]:
    """The lake that a call asks, and its arguments there: its stream or query is perhaps of another database."""
    arguments = {name: _lower_word(name, value) for name, value in arguments.items()}
    for column in ("time", "name"):
        if arguments.get(column) is not None:
            raise ArgumentError(f"{column} says which column of TABLE(…) it is; a stream knows its own: leave it out")
    of = next((name for name in _OBJECTS if arguments.get(name) is not None), function.parameters[0].name)
    lake, name = lake_of_object(spark, arguments.get(of))
    return lake, {**arguments, of: name} if of in arguments else arguments


def _lower_word(name: str, value: Any) -> Any:
    """A value; one of a few words whatever its case, but for the operand of ``first b``."""
    if name not in _WORDS or not isinstance(value, str):
        return value
    word, blank, operand = value.partition(" ")
    return word.lower() + blank + operand


def register(spark: SparkSession, functions: Sequence[TableFunction | ScalarFunction | RowsFunction]) -> None:
    """Let a session, and all that are made after it in its application, call the functions in SQL; idempotent.

    They read statements with MATCH_RECOGNIZE then, too.
    """
    gateway: Any = spark.sparkContext._gateway
    start: Any = java_gateway.ensure_callback_server_started
    start(gateway)
    # An exception of the JVM that a builder raises reaches Spark as it is, without Python's traceback.
    gateway.python_parameters.propagate_java_exceptions = True
    logging.getLogger("py4j.clientserver").addFilter(_ours)
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    state, extensions = session.sessionState(), session.extensions()
    common = (str(spark.sparkContext.applicationId), int(jvm.java.lang.System.identityHashCode(extensions)))
    if common not in _INJECTED:
        for function in functions:
            place = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(function.name)
            builder = _builder(spark, function)
            entry = jvm.scala.Tuple3(place, _info(jvm, function), builder)
            if isinstance(builder, _ScalarBuilder):
                extensions.injectFunction(entry)
            else:
                extensions.injectTableFunction(entry)
    # Spark calls these for each session that it makes. A function that a session gets otherwise is a temporary one,
    # which no view that stays may use.
    extensions.registerTableFunctions(state.tableFunctionRegistry())
    extensions.registerFunctions(state.functionRegistry())
    put_parser(spark, common not in _INJECTED, partial(_as_sparks, spark), [function.name for function in functions])
    _INJECTED.add(common)


def _info(jvm: Any, function: TableFunction | ScalarFunction | RowsFunction) -> JavaObject:
    info = jvm.org.apache.spark.sql.catalyst.expressions.ExpressionInfo
    usage = f"{function.usage} - {function.comment}."
    return info("patternlake", None, function.name, usage, function.help, "", "", "", "", "", "")


def _builder(spark: SparkSession, function: TableFunction | ScalarFunction | RowsFunction) -> _Builder[Any]:
    match function:
        case TableFunction():
            return _TableBuilder(spark, function)
        case ScalarFunction():
            return _ScalarBuilder(spark, function)
        case RowsFunction():
            return _RowsBuilder(spark, function)


def _as_sparks(spark: SparkSession, message: str) -> _PlanningError:
    """An error that Spark takes for one of its own."""
    jvm: Any = spark._jvm
    # Spark goes on with SQLSTATE on the same line, which may be one that points at a place.
    text = f"{message}\n" if "\n" in message else message
    parameters = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({"errorMessage": text})
    gateway: Any = spark.sparkContext._gateway
    nowhere = gateway.new_array(jvm.org.apache.spark.QueryContext, 0)
    error = jvm.org.apache.spark.SparkRuntimeException(_RAISED, parameters, None, nowhere, "")
    return _PlanningError(message, error)


class _PlanningError(Py4JJavaError):  # type: ignore[misc]
    """Carries an exception of the JVM out of a builder."""


def _ours(record: logging.LogRecord) -> bool:
    """Whether py4j's log should say that a callback failed: not where the analyst is told so."""
    return not (record.exc_info and isinstance(record.exc_info[1], _PlanningError))


class _Builder(ABC, Generic[_Function]):
    """Plans the calls of one function; Spark's analyser calls it, perhaps more than once for a query."""

    def __init__(self, spark: SparkSession, function: _Function) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._function: _Function = function

    def apply(self, expressions: JavaObject) -> JavaObject:
        try:
            session = self._jvm.org.apache.spark.sql.classic.SparkSession.active()
            return self.planned(SparkSession(self._spark.sparkContext, session), expressions)
        except PatternLakeError as error:
            raise _as_sparks(self._spark, str(error)) from None
        except Exception as error:
            name = self._function.name
            logger.exception("planning %s failed", name)
            raise _as_sparks(self._spark, f"{name} failed: {type(error).__name__}: {error}") from None

    @abstractmethod
    def planned(self, spark: SparkSession, expressions: JavaObject) -> JavaObject:
        """What stands in the place of a call."""

    class Java:
        """What py4j reads."""

        implements: ClassVar[list[str]] = ["scala.Function1"]


class _TableBuilder(_Builder[TableFunction]):
    """A call becomes the plan of its rows."""

    def planned(self, spark: SparkSession, expressions: JavaObject) -> JavaObject:
        function = self._function
        arguments = SqlArguments(spark).values(function.name, function.parameters, expressions)
        table = arguments.get(STREAM)
        if table is not None and not isinstance(table, str):
            return plan_over(
                spark, table, lambda rows: _over(function, arguments, rows, partial(rows_apart, spark, table))
            )
        frame: Any = answer_call(function, *_place(spark, function, arguments))
        return frame._jdf.queryExecution().analyzed()


class _RowsBuilder(_Builder[RowsFunction]):
    """A call over rows of a table becomes the plan of its answer, above that of the table."""

    def planned(self, spark: SparkSession, expressions: JavaObject) -> JavaObject:
        function = self._function
        table, *others = function.parameters
        given = bind(function.name, function.parameters, *split(function.name, expressions))
        rows = given.pop(table.name)
        if not is_table(rows):
            raise ArgumentError(
                f"{function.name}: {table.name} must be a table: TABLE(name) or TABLE(SELECT …), and behind it perhaps "
                f"PARTITION BY … ORDER BY …, not {rows.sql()}"
            )
        reader = SqlArguments(spark)
        values = {one.name: reader.value(function.name, one, given[one.name]) for one in others}
        return plan_over(spark, rows, lambda ordered: function.plan(ordered, values))


class _ScalarBuilder(_Builder[ScalarFunction]):
    """A call becomes its value, or, where arguments are columns, a Python function of them."""

    def planned(self, spark: SparkSession, expressions: JavaObject) -> JavaObject:
        function, jvm = self._function, self._jvm
        values, columns = SqlArguments(spark).values_or_columns(function.name, function.parameters, expressions)
        lake, values = _place(spark, function, values)
        if columns:
            utilities = jvm.org.apache.spark.sql.classic.ExpressionUtils
            given = F.struct(*(_COLUMN(utilities.column(one)).alias(name) for name, one in columns.items()))
            answer = _row_function(function.per_row(lake, values), function.type)(given)
            refused = F.raise_error(answer["error"]).cast(function.type)
            said = F.when(answer["error"].isNotNull(), refused).otherwise(answer["found"])
        else:
            said = F.lit(work_out(lambda: function.value(lake, values))).cast(function.type)
        # Spark would name the column of a query by what stands in the call's place.
        shown = ", ".join(expressions.apply(number).sql() for number in range(expressions.size()))
        named: Any = said.alias(f"{function.name}({shown})")
        converter = getattr(jvm.org.apache.spark.sql.classic, "ColumnNodeToExpressionConverter$")
        return getattr(converter, "MODULE$").apply(named._jc.node())


def _row_function(answers: Callable[[pa.StructArray], pa.Array], type_: str) -> Any:
    def function(rows: pa.Array) -> pa.Array:
        return answers(rows)

    arrow_udf: Any = F.arrow_udf  # type: ignore[attr-defined]  # its stubs want the kind spelt out
    # Spark tells the kind of function from its annotations.
    function.__annotations__ = {"rows": pa.Array, "return": pa.Array}
    return arrow_udf(function, f"found {type_}, error STRING")

"""From the arguments of a call to values: Catalyst's expressions in SQL, plain values in Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from patternlake.delta_tables.schema.timestamps import find_zone, to_micros
from patternlake.sql_ext.declarations.declaration import REQUIRED, Parameter, explicit
from patternlake.sql_ext.declarations.table_arguments import is_table
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.nearest_names import nearest_name

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

STREAM = "stream"
"""The parameter in whose place a table may stand."""
_NAMED = "NamedArgumentExpression"
_WHOLE = ("BIGINT", "INT")
_NUMBER = re.compile(r"-?\d+")
_LITERALS: dict[str, tuple[re.Pattern[str], Callable[[str], str | int | bool]]] = {
    "STRING": (re.compile(r"'[^'\\]*'", re.S), lambda text: text[1:-1]),
    "BIGINT": (_NUMBER, int),
    "INT": (_NUMBER, int),
    "BOOLEAN": (re.compile("true|false"), lambda text: text == "true"),
}
"""What Spark writes for literals of a type, and how it is read: texts without a character that it escapes, numbers of
32 bits, truth values."""
_MARKED_NUMBER = re.compile(r"^(-?\d[\d.]*(?:E[-+]?\d+)?)(?:BD|[DLSY])$")
_TIME_ZONE = "spark.sql.session.timeZone"


def bind(
    function: str, parameters: Sequence[Parameter], positional: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by the name of their parameter; defaults where nothing is given.

    Raises
    ------
    ArgumentError
        Too many arguments, a name that no parameter has, a parameter given twice, or a required one that is missing.
    """
    names = [parameter.name for parameter in parameters]
    if len(positional) > len(names):
        raise ArgumentError(
            f"{function} takes {len(names)} arguments at most, not {len(positional)}: {', '.join(names)}"
        )
    values = dict(zip(names, positional, strict=False))
    lowered = {name.lower(): name for name in names}
    for given, value in named.items():
        name = lowered.get(given.lower())
        if name is None:
            near = nearest_name(given, names)
            hint = "." if near is None else f"; did you mean {near}?"
            if given.lower() == "within" and "pattern" in lowered:
                hint = "; it stands in the pattern: 'A ; B WITHIN 1 HOUR'."
            raise ArgumentError(f"{function} has no parameter {given}{hint} Its parameters: {', '.join(names)}")
        if name in values:
            raise ArgumentError(f"{function}: {name} is given twice")
        values[name] = value
    missing = [
        parameter.name for parameter in parameters if parameter.default is REQUIRED and parameter.name not in values
    ]
    if missing:
        raise ArgumentError(f"{function}: {missing[0]} is missing; it takes {', '.join(names)}")
    return {parameter.name: values.get(parameter.name, parameter.default) for parameter in parameters}


class SqlArguments:
    """Reads Catalyst's expressions in the session that analyses a query."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm  # py4j's view of the JVM has no types
        self._zone = str(spark.conf.get(_TIME_ZONE))
        self._types: dict[str, JavaObject] = {}

    def values(self, function: str, parameters: Sequence[Parameter], expressions: JavaObject) -> dict[str, Any]:
        """The values of a call's arguments, by the name of their parameter.

        Raises
        ------
        ArgumentError
            An argument is not constant, or not of the parameter's type; or as of `bind`.
        """
        return {
            parameter.name: self.value(function, parameter, value) if given else value
            for parameter, value, given in _arguments(function, parameters, expressions)
        }

    def values_or_columns(
        self, function: str, parameters: Sequence[Parameter], expressions: JavaObject
    ) -> tuple[dict[str, Any], dict[str, JavaObject]]:
        """The values of arguments that are constants, and the expressions, of the right type, of those that are not.

        Raises
        ------
        ArgumentError
            As of `values`, but for arguments that are not constants.
        """
        values, columns = {}, {}
        for parameter, value, given in _arguments(function, parameters, expressions):
            if not given:
                values[parameter.name] = value
            elif self._constant(value):
                values[parameter.name] = self.value(function, parameter, value)
            else:
                columns[parameter.name] = self._cast(value, parameter.type)
        return values, columns

    def value(self, function: str, parameter: Parameter, expression: JavaObject) -> Any:
        """The value of one expression; of ``TABLE(…)`` in the place of a stream, the expression."""
        if is_table(expression):
            if parameter.name == STREAM:
                return expression
            raise ArgumentError(f"{function}: {parameter.name} takes no TABLE(…), which may stand for a stream")
        if parameter.type in _LITERALS:
            # Most arguments are literals; to cast one takes twenty calls of the JVM.
            literal = _read_literal(expression.sql(), parameter.type)
            if literal is not None:
                return literal
        if not self._constant(expression):
            raise ArgumentError(
                f"{function}: {parameter.name} must be a constant, not {expression.sql()}, which may differ from row "
                "to row; put one value into a variable first (DECLARE VARIABLE v STRING; SET VARIABLE v = (SELECT …)), "
                f"or collect the values, and call patternlake.{function}(spark, …) from Python for each"
            )
        cast = self._cast(expression, parameter.type)
        if cast.checkInputDataTypes().isFailure():
            raise _wrong_type(function, parameter, expression)
        try:
            value = self._value_of(expression, cast)
            if value is not None and parameter.type in _WHOLE and self._cuts(expression, value):
                raise _wrong_type(function, parameter, expression)
            if value is None or not parameter.type.startswith("MAP"):
                return value if value is None or isinstance(value, bool | int | float) else str(value)
            scala = self._jvm.org.apache.spark.sql.catalyst.CatalystTypeConverters.convertToScala(
                value, cast.dataType()
            )
            # By place: to look at the exception that a Java iterator ends with takes as long as the rest of a call.
            keys = scala.keys().toSeq()
            return {key: scala.apply(key) for key in (keys.apply(number) for number in range(keys.size()))}
        except (Py4JJavaError, PySparkException) as error:
            raise _wrong_type(function, parameter, expression) from error

    def _value_of(self, expression: JavaObject, cast: JavaObject) -> Any:
        return cast.eval(None) if expression.foldable() else self._evaluate(cast)

    def _cuts(self, expression: JavaObject, value: int) -> bool:
        """Whether a number lost its fraction where it was cast to a whole one, which Spark does without a word."""
        if not expression.dataType().typeName().startswith(("decimal", "double", "float")):
            return False
        return bool(self._value_of(expression, self._cast(expression, "DOUBLE")) != float(value))

    def _constant(self, expression: JavaObject) -> bool:
        if expression.foldable():
            return True
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        elsewhere = expressions.SubqueryExpression.hasSubquery(expression) or expressions.SubExprUtils.containsOuter(
            expression
        )
        return bool(expression.deterministic() and not elsewhere and expression.references().isEmpty())

    def _evaluate(self, expression: JavaObject) -> Any:
        """The value of an expression that Spark rewrites before it evaluates it, such as a moment and an interval."""
        column = self._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression)
        columns = self._jvm.PythonUtils.toSeq([column])
        plan: Any = self._spark.range(1)._jdf.select(columns).queryExecution().optimizedPlan()
        return plan.expressions().apply(0).eval(None)

    def _cast(self, expression: JavaObject, type_: str) -> JavaObject:
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        zone = self._jvm.scala.Some(self._zone)
        return expressions.Cast(expression, self._type(type_), zone, expressions.EvalMode.ANSI())

    def _type(self, type_: str) -> JavaObject:
        if type_ not in self._types:
            self._types[type_] = self._jvm.org.apache.spark.sql.types.DataType.fromDDL(explicit(type_))
        return self._types[type_]


def _read_literal(text: str, type_: str) -> str | int | bool | None:
    """The value of an expression whose SQL is a literal of the type; None where it takes more to tell."""
    form, read = _LITERALS[type_]
    return read(text) if form.fullmatch(text) else None


def _arguments(
    function: str, parameters: Sequence[Parameter], expressions: JavaObject
) -> Iterator[tuple[Parameter, Any, bool]]:
    """Each parameter with the expression that the call gives, or with its default; and whether it is given."""
    positional, named = split(function, expressions)
    found = bind(function, parameters, positional, named)
    given = {id(expression) for expression in [*positional, *named.values()]}
    for parameter in parameters:
        yield parameter, found[parameter.name], id(found[parameter.name]) in given


def split(function: str, expressions: JavaObject) -> tuple[list[JavaObject], dict[str, JavaObject]]:
    """A call's expressions: those without a name, and those with one."""
    positional: list[JavaObject] = []
    named: dict[str, JavaObject] = {}
    for number in range(expressions.size()):
        expression = expressions.apply(number)
        if expression.getClass().getSimpleName() == _NAMED:
            if expression.key() in named:
                raise ArgumentError(f"{function}: {expression.key()} is given twice")
            named[expression.key()] = expression.value()
        elif named:
            raise ArgumentError(f"{function}: an argument without a name stands after one with a name; put it first")
        else:
            positional.append(expression)
    return positional, named


def _wrong_type(function: str, parameter: Parameter, expression: JavaObject) -> ArgumentError:
    # Spark marks numbers by their types.
    shown = _MARKED_NUMBER.sub(r"\1", expression.sql())
    return ArgumentError(f"{function}: {parameter.name} => {shown} is no {parameter.type}")


def plain_values(
    spark: SparkSession, function: str, parameters: Sequence[Parameter], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of a call from Python, as `SqlArguments.values` gives them.

    Moments are datetimes, dates or ISO texts; those without a time zone are in the session's.

    Raises
    ------
    ArgumentError
        A value is not of its parameter's type.
    """

    def zone() -> ZoneInfo | timezone:
        return find_zone(str(spark.conf.get(_TIME_ZONE)))

    values = {}
    for parameter in parameters:
        value = given[parameter.name]
        if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:  # as a column of pandas gives it
            value = value.item()
        if value is not None and parameter.type == "TIMESTAMP":
            value = _moment(function, parameter, value, zone)
        elif value is not None:
            value = _plain(function, parameter, value)
        values[parameter.name] = value
    return values


_PLAIN: dict[str, tuple[type, ...]] = {
    "STRING": (str,),
    "BIGINT": (int,),
    "INT": (int,),
    "DOUBLE": (float, int),
    "BOOLEAN": (bool,),
}
_WIDTHS = {"BIGINT": 63, "INT": 31}


def _plain(function: str, parameter: Parameter, value: Any) -> Any:
    if parameter.type.startswith("MAP"):
        if not isinstance(value, Mapping):
            raise _unfit(function, parameter, value)
        return {str(name): None if one is None else str(one) for name, one in value.items()}
    kinds = _PLAIN[parameter.type]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _unfit(function, parameter, value)
    width = _WIDTHS.get(parameter.type)
    if width is not None and isinstance(value, int) and not -(1 << width) <= value < 1 << width:
        raise _unfit(function, parameter, value)
    return float(value) if isinstance(value, int) and parameter.type == "DOUBLE" else value


def _moment(function: str, parameter: Parameter, value: Any, zone: Callable[[], ZoneInfo | timezone]) -> int:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            raise _unfit(function, parameter, value) from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise _unfit(function, parameter, value)
    return to_micros(value if value.tzinfo is not None else value.replace(tzinfo=zone()))


def _unfit(function: str, parameter: Parameter, value: Any) -> ArgumentError:
    if hasattr(value, "iloc"):  # pandas is not imported for this
        return ArgumentError(
            f"{function}: {parameter.name} is a frame of pandas; give spark.createDataFrame(frame), a frame of Spark"
        )
    return ArgumentError(f"{function}: {parameter.name} = {value!r} is no {parameter.type}")

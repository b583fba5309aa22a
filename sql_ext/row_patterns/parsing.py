"""Lets Spark read statements with MATCH_RECOGNIZE: a parser of ours stands in front of each session's own.

It says, too, which function of ours is meant where one is called that no session has.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.spark.java_classes import define
from patternlake.sql_ext.declarations.table_arguments import list_items
from patternlake.udfs.errors import ArgumentError, PatternLakeError
from patternlake.udfs.language.row_pattern.statements import Values, rewrite_statement
from patternlake.udfs.nearest_names import nearest_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

CLASSES = ("Rewritten", "Misspelt", "RowParser", "RowParsers", "StandIn")

_MOST_POSITIONAL = 4
_MIXING = re.compile(r"4\.1\.|4\.2\.0")
"""Versions of Spark that hand on more positional parameters in a wrong order (SPARK-58341)."""


_CLOSE = 0.75
"""So much alike a name is to the one that is meant, from 0 to 1 as `difflib` has it."""


def put_parser(
    spark: SparkSession, later: bool, as_sparks: Callable[[str], Exception], functions: Sequence[str]
) -> None:
    """Put the parser in front of a session's, and of those of all sessions that are made later.

    Parameters
    ----------
    spark
        The session; its callback server runs.
    later
        Whether later sessions do not have it yet.
    as_sparks
        From a message to an error that reaches Spark as its own.
    functions
        Names of all functions of ours.
    """
    session: Any = spark._jsparkSession
    jvm: Any = spark._jvm
    define(jvm, spark.sparkContext._gateway, Path(__file__).with_name("java"), CLASSES)
    known = jvm.java.util.ArrayList()
    for name in functions:
        known.add(name)
    misspelt = jvm.patternlake.Misspelt(known, _Suggest(functions))
    parsers = jvm.patternlake.RowParsers(_Rewrite(as_sparks, spark.version), misspelt)
    if later:
        parsers.later(session.extensions())
    parsers.now(session)


class _Suggest:
    """From the name of a function that Spark does not know to the one of ours that is meant, or None."""

    def __init__(self, functions: Sequence[str]) -> None:
        self._functions = functions

    def apply(self, name: str) -> str | None:
        return nearest_name(name, self._functions, _CLOSE)

    class Java:
        """What py4j reads."""

        implements: ClassVar[list[str]] = ["java.util.function.UnaryOperator"]


class _Rewrite:
    """From a statement that holds the word to the one that Spark reads, and where its pieces stand in the former."""

    def __init__(self, as_sparks: Callable[[str], Exception], version: str) -> None:
        self._as_sparks = as_sparks
        self._version = version

    def apply(self, text: str, parameters: Any) -> str:
        try:
            if parameters is not None and _MIXING.match(self._version):
                _refuse_mixed(parameters, self._version)
            made = rewrite_statement(text, literal, None if parameters is None else _values(parameters))
            return json.dumps({"text": made.text, "pieces": made.pieces})
        except PatternLakeError as error:
            raise self._as_sparks(str(error)) from None

    class Java:
        """What py4j reads."""

        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


def _refuse_mixed(parameters: Any, version: str) -> None:
    if _kind(parameters) == "PositionalParameterContext" and (count := parameters.params().size()) > _MOST_POSITIONAL:
        raise ArgumentError(
            f"Spark {version} mixes up more than {_MOST_POSITIONAL} positional parameters (SPARK-58341), and {count} "
            "are given; name them: spark.sql('SELECT :first, …', args={'first': …})"
        )


def _kind(parameters: Any) -> str:
    return str(parameters.getClass().getSimpleName())


def _values(parameters: Any) -> Values:
    """The parameters that Spark hands its parser, each as the expression that it is of."""
    kind = _kind(parameters)
    if kind == "PositionalParameterContext":
        return Values(positional=_sql(parameters.params()))
    if kind == "NamedParameterContext":
        names = parameters.params().keys().toSeq()
        return Values(dict(zip(list_items(names), _sql(parameters.params().values().toSeq()), strict=True)))
    # EXECUTE IMMEDIATE … USING: names are empty where there are none.
    values = _sql(parameters.args())
    return Values(dict(zip(list_items(parameters.paramNames()), values, strict=True)), values)


def _sql(values: Any) -> list[str]:
    return [value.sql() for value in list_items(values)]

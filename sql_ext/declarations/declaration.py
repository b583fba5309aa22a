"""What a function is: its parameters, its columns, and Python that plans an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.sql_ext.declarations.table_arguments import OrderedRows
    from patternlake.sql_ext.lakes.lake import Lake

REQUIRED = object()
"""Stands for the default of a parameter that has none."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function.

    Attributes
    ----------
    name
        Its name.
    type
        Spark type as DDL: STRING, BIGINT, INT, DOUBLE, BOOLEAN, TIMESTAMP or MAP<STRING, STRING>.
    default
        As a Python value; `REQUIRED` where the argument must be given.
    """

    name: str
    type: str
    default: Any = REQUIRED


@dataclass(frozen=True)
class Answer:
    """What a call gives.

    Attributes
    ----------
    rows
        Rows that are here already, or a plan of Spark's; in the order of the function's columns, or of `schema`.
    lasting
        Whether the same call gives the same until something is published. False where that is not so, and where the
        analyst was told something beside the rows, and is to be told again.
    schema
        Columns of the rows, as DDL, where they are others than the function's.
    finish
        What Spark makes of the rows; None: they are the answer.
    """

    rows: DataFrame | pa.Table
    lasting: bool = True
    schema: str | None = None
    finish: Callable[[DataFrame], DataFrame] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of rows that are here."""
        rows: Any = self.rows
        return int(rows.nbytes)


@dataclass(frozen=True)
class TableFunction:
    """A function that gives rows.

    Attributes
    ----------
    name
        Its name in SQL and in Python.
    parameters
        In order.
    columns
        Of its rows: name to Spark type, as DDL.
    comment
        One line for DESCRIBE FUNCTION.
    plan
        From a lake and all arguments by name to the answer. TIMESTAMPs are microseconds since the epoch, a MAP is a
        dict, NULL is None. Raises `PatternLakeError` for what is wrong with the call.
    help
        What DESCRIBE FUNCTION EXTENDED says beside it: arguments and an example.
    """

    name: str
    parameters: tuple[Parameter, ...]
    columns: Mapping[str, str]
    comment: str
    plan: Callable[[Lake, dict[str, Any]], Answer]
    help: str = ""

    @property
    def schema(self) -> str:
        """The columns as DDL, whatever a session takes TIMESTAMP for."""
        return schema_of(self.columns)

    @property
    def usage(self) -> str:
        """The signature on one line."""
        return f"{self.name}({', '.join(map(_show, self.parameters))})"


@dataclass(frozen=True)
class RowsFunction:
    """A function over rows of a table, whose columns follow from its arguments.

    Attributes
    ----------
    name, comment, help
        As of `TableFunction`.
    parameters
        In order; the first one is ``TABLE(…) PARTITION BY … ORDER BY …``.
    plan
        From the rows and the other arguments by name to the answer.
    """

    name: str
    parameters: tuple[Parameter, ...]
    comment: str
    plan: Callable[[OrderedRows, dict[str, Any]], DataFrame]
    help: str = ""

    @property
    def usage(self) -> str:
        """The signature on one line."""
        others = map(_show, self.parameters[1:])
        return f"{self.name}({', '.join(['TABLE(…) PARTITION BY … ORDER BY …', *others])})"


@dataclass(frozen=True)
class ScalarFunction:
    """A function that gives one value, for a query or for each row of a table.

    Attributes
    ----------
    name, parameters, comment, help
        As of `TableFunction`.
    type
        Spark type of the value, as DDL.
    value
        From a lake and all arguments by name to the value.
    per_row
        From a lake and the arguments that are constants to what answers rows of a table: given a struct array of the
        other arguments, it gives a struct array of ``found`` and ``error``. It is pickled.
    """

    name: str
    parameters: tuple[Parameter, ...]
    type: str
    comment: str
    value: Callable[[Lake, dict[str, Any]], Any]
    per_row: Callable[[Lake, Mapping[str, Any]], Callable[[pa.StructArray], pa.Array]]
    help: str = ""

    @property
    def usage(self) -> str:
        """The signature on one line."""
        return f"{self.name}({', '.join(map(_show, self.parameters))})"


def _show(parameter: Parameter) -> str:
    if parameter.default is REQUIRED:
        return f"{parameter.name} {parameter.type}"
    return f"{parameter.name} {parameter.type} DEFAULT {sql_text(parameter.default)}"


def parse_columns(ddl: str) -> dict[str, str]:
    """Read columns, name to type, from DDL whose types are in capitals: ``key STRING, positions ARRAY<BIGINT>``."""
    return dict(column.split(" ", 1) for column in re.split(r", (?=\w+ [A-Z])", ddl))


def schema_of(columns: Mapping[str, str]) -> str:
    """Columns, name to type, as DDL that is the same in every session."""
    return explicit(", ".join(f"{name} {kind}" for name, kind in columns.items()))


def explicit(ddl: str) -> str:
    """DDL whose moments have a zone in every session: TIMESTAMP is what a setting says."""
    return ddl.replace("TIMESTAMP", "TIMESTAMP_LTZ")


def sql_text(value: Any) -> str:
    """A default as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return f"'{value}'" if isinstance(value, str) else str(value)

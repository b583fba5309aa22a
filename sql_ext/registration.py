"""How a SQL function is made: a parameter list, a result, a body over the state tables."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a SQL function; `default` is SQL text, None where the argument is required."""

    name: str
    type: str
    default: str | None = None


@dataclass(frozen=True)
class SqlFunction:
    """A SQL function.

    Attributes
    ----------
    name
        Its name; parameters are seen in the body as ``name.parameter``.
    parameters
        In order.
    returns
        Columns (name → type) of a table function, or the type of a scalar one.
    body
        SQL text of the query (a table function) or expression (a scalar one).
    comment
        One line for DESCRIBE FUNCTION.
    """

    name: str
    parameters: tuple[Parameter, ...]
    returns: Mapping[str, str] | str
    body: str
    comment: str

    def statement(self) -> str:
        """The statement that creates the function in a session."""
        parameters = ",\n  ".join(
            f"{parameter.name} {parameter.type}"
            + ("" if parameter.default is None else f" DEFAULT {parameter.default}")
            for parameter in self.parameters
        )
        if isinstance(self.returns, str):
            returns = self.returns
        else:
            returns = "TABLE (" + ", ".join(f"{name} {kind}" for name, kind in self.returns.items()) + ")"
        return (
            f"CREATE OR REPLACE TEMPORARY FUNCTION {self.name} (\n  {parameters}\n)\nRETURNS {returns}\n"
            f"COMMENT '{self.comment}'\nRETURN\n{self.body}"
        )

    def create(self, spark: SparkSession) -> None:
        """Create the function in a session, or replace it."""
        statement = self.statement()
        logger.debug("%s", statement)
        spark.sql(statement)

"""Queries of a database whose tables are small: these are read without Spark, and the views' texts are asked of that.

Delta has Spark plan and run a few jobs for each table that a view joins, a second and a half for some rows of `alerts`.
That Spark reads the views as users do, test_state_readers.py and test_docs.py show.
"""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing.arrow_rows import frame_of

MOST_BYTES = 2 << 20


def asked(database: Database, sql: str) -> DataFrame:
    """The answer of a query, which names views and tables with their database."""
    reader, frames = database.direct, dict[str, DataFrame]()
    own = rf"`?\b{database.name}(?:_internal)?\b`?\.`?(\w+)`?"
    found = re.findall(own, sql) if sql.startswith("SELECT") else []
    if reader is None or not found or not all(name.removesuffix("_log") in TABLES for name in found):
        return database.spark.sql(sql)

    def log(table: str) -> str:
        if table not in frames:
            frames[table] = frame_of(database.spark, reader.rows(table, reader.schema(table).names))
        return f"{{{table}}}"

    def text(name: str) -> str:
        view = TABLES[name.removesuffix("_log")].view
        return log(name.removesuffix("_log")) if name not in TABLES or view is None else f"({view(log)})"

    if sum(reader.size(table) for table in tables_of(found)) > MOST_BYTES:
        return database.spark.sql(sql)
    plain = sql.replace("{", "{{").replace("}", "}}")
    return database.spark.sql(re.sub(own, lambda each: text(each[1]), plain), **frames)


def tables_of(names: list[str]) -> set[str]:
    """The tables that views and tables of these names are made of."""
    of: set[str] = set()
    for name in names:
        view = TABLES[name.removesuffix("_log")].view
        if name in TABLES and view is not None:
            view(lambda table: of.add(table) or table)  # type: ignore[func-returns-value]
        else:
            of.add(name.removesuffix("_log"))
    return of

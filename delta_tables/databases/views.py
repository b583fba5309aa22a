"""Views as the session's catalog has them: their queries, and the columns that Spark finds when it looks into these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patternlake.delta_tables.schema.quoting import identifier, literal
from patternlake.delta_tables.tables.catalogue import TABLES

if TYPE_CHECKING:
    from patternlake.delta_tables.schema.table import Column, Table


@dataclass(frozen=True)
class View:
    """A view of the catalog.

    Attributes
    ----------
    database, name
        Where it is, and what it is called there.
    comment
        What a row is.
    mark
        A property, and its value.
    text
        Its query.
    columns
        What Spark finds to be the columns of that, as SQL defines them.
    """

    database: str
    name: str
    comment: str
    mark: tuple[str, str]
    text: str
    columns: tuple[tuple[str, str], ...]

    @property
    def quoted(self) -> str:
        """Its name for SQL text."""
        return identifier(self.database, self.name)

    @property
    def columns_text(self) -> str:
        """The columns as SQL defines them."""
        return ", ".join(f"{identifier(name)} {defined}" for name, defined in self.columns)

    @property
    def create_text(self) -> str:
        """The statement that creates it, or puts it into the place of one of its name."""
        property, value = map(literal, self.mark)
        return (
            f"CREATE OR REPLACE VIEW {self.quoted} COMMENT {literal(self.comment)} "
            f"TBLPROPERTIES ({property} = {value}) AS {self.text}"
        )


def columns_of_view(table: Table) -> tuple[tuple[str, str], ...]:
    """Name each column of a table's view, and define it as SQL does: type, and comment."""
    return tuple(_define_columns(table))


def define(column: Column) -> str:
    """Define a column as SQL does, without its name."""
    return f"{column.type} COMMENT {literal(column.comment)}"


def _define_columns(table: Table) -> Iterator[tuple[str, str]]:
    for told in table.seen.split():
        name, computed, type_ = told.partition(":")
        if computed:
            yield name, f"{type_.removesuffix('!')}{' NOT NULL' if type_.endswith('!') else ''}"
            continue
        name, renamed, original = told.partition("=")
        of, _, column = original.partition(".")
        sources = [TABLES[of]] if renamed else [table, TABLES["publications"]]
        known = {each.name: each for source in reversed(sources) for each in source.columns}
        yield name, define(known[column or name])

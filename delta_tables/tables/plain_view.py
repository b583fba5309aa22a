"""The view of a table that shows its visible rows one by one, with columns of its own and of their publication."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.quoting import identifier, shown_text
from patternlake.delta_tables.schema.table import LogName, Table
from patternlake.delta_tables.tables.publications import current


def plain_view(table: Table, log: LogName) -> str:
    """Write the query of the view that has the columns that `Table.seen` names.

    Parameters
    ----------
    table
        The table. What partitions its events, it has in ``part``, and shows as ``partition``.
    log
        Maps a table's plain name to the quoted name of its Delta table.
    """
    columns = ",\n  ".join(_column(table, column) for column in table.seen.split())
    return f"""SELECT {columns}
FROM {log(table.name)} r JOIN ({current(log, table.job)}) p ON {visible_text(table, "r", "p")}"""


def _column(table: Table, seen: str) -> str:
    name, renamed, original = seen.partition("=")
    if renamed:
        return f"{original.replace('publications', 'p')} AS {name}"
    if seen == "partition:STRING":
        return f"{shown_text('r.part')} AS partition"
    return f"{'r' if name in table.column_names else 'p'}.{identifier(name)}"

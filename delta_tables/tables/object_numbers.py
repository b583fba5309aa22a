"""Table `object_numbers`: the number of every stream and query, given out once and never taken back.

A number stands for a name in partitions, and is written into intents and publications, where readers find it. It is the
first of the name's candidates that no other name of its kind holds, so names whose CRC-32 agree stay apart.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from delta.exceptions import ConcurrentTransactionException

from patternlake.delta_tables.reading.state_reader import Condition, among
from patternlake.delta_tables.schema import documents
from patternlake.delta_tables.schema.stream_names import CANDIDATES, candidates
from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.writing import writes
from patternlake.delta_tables.writing.literal_row import literal_row
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database

logger = logging.getLogger(__name__)

STREAM = "stream"
"""The kind of streams, and of all that is named after one; queries are of the kind of their job."""

TABLE = Table(
    name="object_numbers",
    comment="One row per stream and query: the number that stands for it.",
    columns=(
        Column(
            "kind", "STRING", "stream, or the job of a query, a pattern or an alert: trends, groups, patterns, alerts"
        ),
        Column("number", "INT", "its number: 31 bits of its name's CRC-32, or the next that is free"),
        Column("name", "STRING", "its name; NULL: nobody's, because two names once shared it"),
    ),
    keys=("kind", "number"),
    view=None,
    direct=True,
)


class ObjectNumbers:
    """Gives numbers out."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def give(self, kind: str, name: str) -> int:
        """Return the number of a name, giving one out where it has none.

        Raises
        ------
        StateError
            All numbers that the name may have are other names'.
        """
        # A number is claimed once: a claim that fails was a rival's success, or that of a row that has been taken out.
        tried: set[int] = set()
        while True:
            holders = self._holders(kind, name)
            own = [number for number, holder in holders.items() if holder == name]
            if own:
                return own[0]
            free = [number for number in candidates(name) if number not in holders and number not in tried]
            if not free:
                break
            tried.add(free[0])
            if self._claim(kind, name, free[0]):
                return free[0]
        others = ", ".join(repr(holder) for holder in holders.values() if holder)
        raise StateError(
            f"the {kind} name {name!r} can have none of its {CANDIDATES} numbers: they are those of {others}; "
            "give it another name"
        )

    def _holders(self, kind: str, name: str) -> dict[int, str | None]:
        """The names that hold the numbers which a name may have, the most wanted first."""
        wanted = candidates(name)
        reader = self._database.state
        rows = reader.rows(TABLE.name, ("number", "name"), [Condition("kind", "=", kind), among("number", wanted)])
        found = dict(zip(rows["number"].to_pylist(), rows["name"].to_pylist(), strict=True))
        return {number: found[number] for number in wanted if number in found}

    def _claim(self, kind: str, name: str, number: int) -> bool:
        """Write that a name has a number; False where a rival may have been first: who it is, the table says."""
        if number != candidates(name)[0]:
            logger.info("the %s name %r shares its CRC-32 with another and has the number %d", kind, name, number)
        rows = literal_row(self._database, TABLE, {"kind": kind, "number": number, "name": name})
        application = documents.to_array([TABLE.name, kind, str(number)])
        try:
            commits = self._database.commits(TABLE)
            table = self._database.log(TABLE.name)
            return bool(writes.append(table, rows, application=application, version=1, commits=commits))
        except ConcurrentTransactionException:
            logger.info("another run claimed the %s number %d at the same moment", kind, number)
            return False

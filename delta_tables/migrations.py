"""Schema versions of a database: what to do to bring an older one up to this code's.

The version stands as a property of the publications table. A migration works on the tables that exist, may be run
again after a crash, and never changes what an answer says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from patternlake.delta_tables.event_statistics import ATTRIBUTES
from patternlake.delta_tables.quoting import literal
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from patternlake.delta_tables.database import Database

logger = logging.getLogger(__name__)

PROPERTY = "patternlake.schema_version"
CARRIER = "publications"
SCHEMA_VERSION = 3


def _smaller_blocks(database: Database) -> None:
    """Version 2: a block of `events` is 2^17 positions; it was 2^20."""
    block = "CAST(shiftright(position - 1, 17) AS INT)"
    database.spark.sql(f"UPDATE {database.log('events')} SET block = {block} WHERE block <> {block}")


def _described_attributes(database: Database) -> None:
    """Version 3: `event_statistics` tells how the values of attributes lie."""
    table = database.log("event_statistics")
    if "attributes" not in database.table("event_statistics").columns:
        database.spark.sql(f"ALTER TABLE {table} ADD COLUMNS (attributes {ATTRIBUTES})")


MIGRATIONS: dict[int, Callable[[Database], None]] = {2: _smaller_blocks, 3: _described_attributes}
"""By the version that each leads to; every version from 2 to `SCHEMA_VERSION` has one."""


def version_of(database: Database) -> int:
    """Read the schema version of a database whose publications table is registered.

    Raises
    ------
    StateError
        The table does not carry a version: it is not PatternLake's.
    """
    rows = database.spark.sql(f"SHOW TBLPROPERTIES {database.log(CARRIER)}").collect()
    for row in rows:
        if row.key == PROPERTY:
            return int(row.value)
    raise StateError(
        f"the table {database.log(CARRIER)} at {database.location} carries no {PROPERTY}: it was not made by "
        "PatternLake; give another database or location"
    )


def migrate(database: Database, version: int) -> None:
    """Bring a database from an older version to this code's, one numbered migration after another.

    Raises
    ------
    StateError
        The database is newer than the code.
    """
    if version > SCHEMA_VERSION:
        raise StateError(
            f"the database '{database.name}' at {database.location} has schema version {version}, but this "
            f"PatternLake knows versions up to {SCHEMA_VERSION}; update PatternLake"
        )
    for target in range(version + 1, SCHEMA_VERSION + 1):
        logger.info("migrating database %s to schema version %d", database.name, target)
        MIGRATIONS[target](database)
        database.spark.sql(
            f"ALTER TABLE {database.log(CARRIER)} SET TBLPROPERTIES ({literal(PROPERTY)} = {literal(str(target))})"
        )

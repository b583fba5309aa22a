"""A view of each stream, called as the stream is: its events, with attributes as columns of their own types."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from patternlake.delta_tables.databases.views import View, columns_of_view, define
from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.quoting import identifier, literal
from patternlake.delta_tables.schema.table import LogName
from patternlake.delta_tables.tables import events
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import current
from patternlake.udfs.attributes import column_of, stored_type, types_of_attributes

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database

logger = logging.getLogger(__name__)

_PROPERTY = "patternlake.stream"
_NAME = re.compile(r"\w+", re.ASCII)
"""What Spark's catalog takes for the name of a view."""


def view_streams(database: Database, only: str | None = None) -> None:
    """Create the views of all streams that have been published, or of one, and that of the events of all.

    The catalog keeps those that it has as they are. A stream gets none whose name the catalog cannot take, or has given
    to something else; the log says so.

    Parameters
    ----------
    database
        Where they belong.
    only
        The stream that may be new or have changed; None: all are looked at.
    """
    for view in list_stream_views(database, only):
        _view(database, view, replaced=view.name == events.TABLE.name)


def list_stream_views(database: Database, only: str | None = None) -> list[View]:
    """List the views that `view_streams` has be there."""
    streams = _read_streams(database)
    some = [_list_view(database, name, streams[name]) for name in (streams if only is None else [only])]
    known = _list_attributes(streams)
    if known:
        table = events.TABLE
        text = events.view_text(database.log, known)
        some.append(_marked(database.name, table.name, table.comment, text, columns_of_view(table)))
    return [view for view in some if view is not None]


def _read_streams(database: Database) -> dict[str, Any]:
    """The configuration of each published stream."""
    return {
        name: json.loads(published.newest.configuration)
        for name, published in Snapshot(database.state, None).of_job("ingest").items()
        if published.newest is not None
    }


def _list_attributes(streams: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Name and type of each attribute that a stream has."""
    return {attribute for stream in streams.values() for attribute in types_of_attributes(stream).items()}


def _list_view(database: Database, name: str, stream: Mapping[str, Any]) -> View | None:
    taken = {spelling.lower() for table in TABLES.values() for spelling in (table.name, table.log)}
    if not _NAME.fullmatch(name) or name.lower() in taken:
        logger.info("stream %r has no view of its own: the catalog cannot take its name, or a table has it", name)
        return None
    comment = f"The events of the stream {name}, by position."
    attributes = [(attribute, kind) for attribute, kind in sorted(types_of_attributes(stream).items())]
    of_events = {column.name: define(column) for column in events.TABLE.columns}
    columns = (*((column, of_events[column]) for column in _event_columns(stream)), *attributes)
    return _marked(database.name, name, comment, view_text(database.log, name, stream), columns)


def _marked(database: str, name: str, comment: str, text: str, columns: tuple[tuple[str, str], ...]) -> View:
    mark = hashlib.sha256(text.encode()).hexdigest()
    return View(database, name, comment, (_PROPERTY, mark), text, columns)


def _view(database: Database, view: View, *, replaced: bool) -> None:
    """Create a view, unless the catalog has it as it is; `replaced`: whatever is there, it is PatternLake's."""
    if database.spark.catalog.tableExists(view.quoted):
        rows = database.spark.sql(f"SHOW TBLPROPERTIES {view.quoted}").collect()
        found = {row.key: row.value for row in rows}.get(_PROPERTY)
        if found is None and not replaced:
            logger.info("stream %r has no view of its own: %s is there, and not PatternLake's", view.name, view.quoted)
            return
        if found == view.mark[1]:
            return
    try:
        # A view's text means what the settings say under which it is created.
        with database.apart() as own:
            own.spark.sql(view.create_text)
    except PySparkException:
        # Another session may have created it in the meantime.
        if not database.spark.catalog.tableExists(view.quoted):
            raise


def view_text(log: LogName, name: str, stream: Mapping[str, Any]) -> str:
    """Write the query of the view.

    Parameters
    ----------
    log
        Maps a table's plain name to the quoted name of its Delta table.
    name, stream
        The stream, and its configuration as it is published.
    """
    columns = [f"e.{column}" for column in _event_columns(stream)]
    # By name, as a publication keeps them: whoever opens the lake writes the same text.
    for attribute, kind in sorted(types_of_attributes(stream).items()):
        stored = f"e.{identifier(column_of(attribute, kind))}"
        value = stored if stored_type(kind) == kind else f"CAST({stored} AS {kind})"
        columns.append(f"{value} AS {identifier(attribute)}")
    shown = visible_text(TABLES["events"], "e", "p")
    return f"""SELECT {", ".join(columns)}
FROM {log("events")} e JOIN ({current(log, "ingest")}) p ON p.object = {literal(name)} AND {shown}"""


def _event_columns(stream: Mapping[str, Any]) -> list[str]:
    """The columns of `events` that the view of a stream has besides attributes."""
    configured = [column for column in ("step", "probability") if stream.get(column) is not None]
    return ["position", "time", "key", "name", *configured]

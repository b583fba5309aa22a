"""Views as the session's catalog has them: their queries, and the columns that Spark finds when it looks into these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patternlake.delta_tables.schema.quoting import identifier, literal
from patternlake.delta_tables.tables.catalogue import TABLES

if TYPE_CHECKING:
    from patternlake.delta_tables.schema.table import Column, Table

_COLUMNS = {
    "streams": "stream stream_id timezone types configuration batch_id",
    "events": "stream position time step key name probability attributes:MAP<STRING,STRING> tokens batch_id event_id",
    "quarantine": "stream reason detail row origin batch_id",
    "event_statistics": "stream name events:BIGINT first_time:TIMESTAMP last_time:TIMESTAMP "
    "attributes:ARRAY<STRUCT<attribute:STRING,events:BIGINT,known:BIGINT,distinct:BIGINT,quantiles:ARRAY<DOUBLE>>>",
    "observed_selectivities": "stream predicate given share:DOUBLE judged:DOUBLE observed_at:TIMESTAMP",
    "sketch_nodes": "stream segment level node:INT pos_lo:BIGINT pos_hi:BIGINT min_time:TIMESTAMP max_time:TIMESTAMP "
    "density:DOUBLE m k bits:BINARY finished from_batch",
    "trend_vertices": "stream trend=publications.object kind pane partition:STRING key position time last_time "
    "greatest_time term left right along carried step number low high holds_low holds_high from_batch",
    "trend_edges": "stream trend=publications.object kind pane partition:STRING step first last position term "
    "from_batch",
    "group_state": "stream query=publications.object partition:STRING last_step live_starts open_groups state "
    "from_batch",
    "group_matches": "stream query=publications.object partition:STRING t_start t_first t_end probability final "
    "from_batch",
    "pattern_state": "stream pattern=publications.object partition:STRING position time name from_batch",
    "pattern_matches": "stream pattern=publications.object partition:STRING first_position last_position first_time "
    "last_time bindings batch_id",
    "subscriptions": "stream subscription query params lookahead threshold smoothing decay operands partitioned_by "
    "from_batch",
    "machine_states": "stream subscription state state_id waits completes operands from_batch",
    "machine_transitions": "stream subscription state=machine_transitions.left_state age "
    "next_state=machine_transitions.following_state next_age=machine_transitions.following_age moves "
    "probability:DOUBLE from_batch",
    "machine_instances": "stream subscription=machine_states.subscription partition:STRING state=machine_states.state "
    "operands:ARRAY<STRING> positions times joins age from_batch",
    "subscription_matches": "stream subscription partition:STRING first_position last_position first_time last_time "
    "bindings from_batch",
    "forecasts": "stream subscription batch_id forecast_at:TIMESTAMP watermark:TIMESTAMP key:STRING joins state "
    "bindings lookahead alpha probability trained_on is_best",
    "forecast_evaluation": "stream subscription lookahead kind low high forecasts hits mean_probability "
    "precision:DOUBLE recall:DOUBLE brier from_batch",
    "held_alerts": "alert_id held_by alert stream kind object key probability state bindings first_time last_time "
    "t_start t_first t_end found_in watermark first_seen_at batch_id",
    "alerts": "alert_id alert stream kind object key probability state bindings first_time last_time t_start t_first "
    "t_end found_in watermark held_back:BIGINT! first_seen_at batch_id attempts:INT! delivered_at:TIMESTAMP "
    "dead_letter:BOOLEAN!",
    "alert_deliveries": "alert=publications.object alert_id attempt tried_at delivered dead_letter error",
    "publications": "stream job object stream_id object_id batch_id base_batch published_at run_id source_from "
    "source_to rows_in rows_out rows_quarantined watermark seconds source configuration_hash configuration state "
    "versions horizon:TIMESTAMP superseded_at:TIMESTAMP",
}
"""The columns of the tables' views. A name alone: the table's own column, or that of publications; with `=`, a column
of a table under another name; with `:`, one that is computed, and its type, with `!` if it is never NULL."""


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
    for told in _COLUMNS[table.name].split():
        name, computed, type_ = told.partition(":")
        if computed:
            yield name, f"{type_.removesuffix('!')}{' NOT NULL' if type_.endswith('!') else ''}"
            continue
        name, renamed, original = told.partition("=")
        of, _, column = original.partition(".")
        sources = [TABLES[of]] if renamed else [table, TABLES["publications"]]
        known = {each.name: each for source in reversed(sources) for each in source.columns}
        yield name, define(known[column or name])

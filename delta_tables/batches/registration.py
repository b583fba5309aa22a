"""Registers a stream as part of an ingest batch: a row of the table `streams` where it is new or has changed."""

from __future__ import annotations

from collections.abc import Mapping

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.schema import documents
from patternlake.delta_tables.tables.events import add_attributes
from patternlake.delta_tables.tables.streams import TABLE
from patternlake.delta_tables.writing.literal_row import literal_row


def register(batch: Batch, *, types: Mapping[str, str], timezone: str) -> None:
    """Write the stream of a batch, with the batch's configuration, where it is new or differs.

    Parameters
    ----------
    batch
        The ingest batch.
    types
        Attribute to Spark type.
    timezone
        Zone in which the source's times are read.
    """
    if _is_registered(batch):
        return
    values = {
        "stream_id": batch.stream_id,
        "batch_id": batch.batch_id,
        "base_batch": batch.base_batch,
        "name": batch.stream,
        "timezone": timezone,
        "types": dict(types),
        "configuration": documents.to_text(batch.configuration),
    }
    add_attributes(batch.database, types)
    batch.append(TABLE.name, literal_row(batch.database, TABLE, values).rows)


def add_columns(batch: Batch, types: Mapping[str, str]) -> None:
    """Add the columns that events of a batch need, as `register` does, before anything is written."""
    if not _is_registered(batch):
        add_attributes(batch.database, types)


def _is_registered(batch: Batch) -> bool:
    """Whether the stream is known as the batch has it."""
    before = batch.previous
    rebuilt = batch.base_batch == batch.batch_id
    return before is not None and not rebuilt and before.configuration_hash == batch.intent.configuration_hash

"""How a batch begins: as a new one, as one that a dead run left open, or not at all."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.batches.object_state import ObjectState
from patternlake.delta_tables.reading.spark_reader import all_of
from patternlake.delta_tables.reading.visibility import of_object
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.intents import Intent
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Start:
    """What a batch starts from."""

    intent: Intent
    """The intent that holds: the wanted one, or that of the run which began the batch."""
    previous: Publication | None
    published: Publication | None
    adopted: bool
    passed: tuple[Intent, ...] = ()
    """Batches that were begun before this one and given up, as they had written nothing."""


def resolve(database: Database, intent: Intent, object_state: ObjectState, *, passing: bool = False) -> Start:
    """Compare a wanted batch with where its object stands; writes nothing.

    Parameters
    ----------
    database
        Where.
    intent
        The wanted batch.
    object_state
        Where its object stands.
    passing
        Whether the batch may pass over those that were begun and have written nothing.

    Raises
    ------
    StateError
        Another batch must come first, or the open intent was made under another configuration.
    """
    what = f"{intent.job} of '{intent.object}'"
    batch_id = intent.batch_id
    previous = object_state.latest
    if previous is not None and batch_id <= previous.batch_id:
        found: Publication | None = previous
        if batch_id < previous.batch_id:
            found = PublicationsReader(database).of_batch(intent.job, intent.object, batch_id)
        if found is None:
            raise StateError(
                f"batch {batch_id} of {what} lies behind batch {previous.batch_id}, which is published; "
                f"the next one is {previous.batch_id + 1}"
            )
        same = {field: getattr(found, field) for field in ("base_batch", "source_from", "source_to", "source")}
        return Start(dataclasses.replace(intent, **same), previous, found, False)
    before = tuple(other for other in object_state.pending if other.batch_id < batch_id)
    same_batch = [other for other in object_state.pending if other.batch_id == batch_id]
    if same_batch:
        _check_same(same_batch[0], intent)
        logger.info("batch %d of %s was begun by run %s and is taken over", batch_id, what, same_batch[0].run_id)
        passed = () if same_batch[0].rebuild else before
        return Start(same_batch[0], previous, None, True, passed)
    for other in object_state.pending:
        passable = other.batch_id < batch_id and (intent.rebuild or (passing and wrote_nothing(database, other)))
        if not passable:
            raise StateError(
                f"batch {other.batch_id} of {what} was begun and not published, so batch {batch_id} cannot come "
                f"now; run batch {other.batch_id} again, or rebuild"
            )
    return Start(intent, previous, None, False, () if intent.rebuild else before)


def wrote_nothing(database: Database, intent: Intent) -> bool:
    """Whether no table has rows that a batch wrote or ended."""
    for table in TABLES.values():
        if table.job != intent.job:
            continue
        touched = F.col("from_batch" if table.changing else "batch_id") == intent.batch_id
        if table.changing:
            touched = touched | F.coalesce(F.col("to_batch") == intent.batch_id, F.lit(False))
        rows = database.table(table.name).where(
            all_of(of_object(table, intent.stream_id, intent.object_id), ()) & touched
        )
        if not rows.isEmpty():
            return False
    return True


def _check_same(open_intent: Intent, intent: Intent) -> None:
    """Refuse to go on with a batch that was begun in another meaning."""
    what = f"batch {intent.batch_id} of {intent.job} of '{intent.object}'"
    if open_intent.configuration_hash != intent.configuration_hash:
        raise StateError(
            f"{what} was begun under another configuration and not published; run it again with the former "
            "configuration, or rebuild"
        )
    if intent.rebuild and not open_intent.rebuild:
        raise StateError(f"{what} was begun as an ordinary batch; a rebuild takes the next number")

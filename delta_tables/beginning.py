"""How a batch begins: as a new one, as one that a dead run left open, or not at all."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patternlake.delta_tables.intents import Intent
from patternlake.delta_tables.publications import Publication, PublicationsReader
from patternlake.delta_tables.standing import Standing
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from patternlake.delta_tables.database import Database

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Start:
    """What a batch starts from."""

    intent: Intent
    """The intent that holds: the wanted one, or that of the run which began the batch."""
    previous: Publication | None
    published: Publication | None
    adopted: bool


def resolve(database: Database, intent: Intent, standing: Standing) -> Start:
    """Compare a wanted batch with where its object stands; writes nothing.

    Raises
    ------
    StateError
        Another batch must come first, or the open intent was made under another configuration.
    """
    what = f"{intent.job} of '{intent.object}'"
    batch_id = intent.batch_id
    previous = standing.latest
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
    for other in standing.pending:
        if other.batch_id == batch_id:
            _check_same(other, intent)
            logger.info("batch %d of %s was begun by run %s and is taken over", batch_id, what, other.run_id)
            return Start(other, previous, None, True)
        if other.batch_id > batch_id or not intent.rebuild:
            raise StateError(
                f"batch {other.batch_id} of {what} was begun and not published, so batch {batch_id} cannot come "
                f"now; run batch {other.batch_id} again, or rebuild"
            )
    return Start(intent, previous, None, False)


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

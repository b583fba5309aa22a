"""The state of an object: what is published of it, and what was begun and not published, in one read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patternlake.delta_tables.reading.table_logs import same_look
from patternlake.delta_tables.tables.intents import TABLE as INTENTS
from patternlake.delta_tables.tables.intents import Intent, IntentsReader
from patternlake.delta_tables.tables.publications import TABLE as PUBLICATIONS
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database


@dataclass(frozen=True)
class ObjectState:
    """What a run finds when it starts."""

    latest: Publication | None
    """The object's current publication."""
    pending: tuple[Intent, ...]
    """The batches beyond it that were begun, in order."""
    beside: Mapping[str, Publication | None]
    """By job: the current publication of what else was asked for."""

    def after(self, publication: Publication) -> ObjectState:
        """Where the object stands once this publication of the same run is there."""
        pending = tuple(intent for intent in self.pending if intent.batch_id > publication.batch_id)
        return replace(self, latest=publication, pending=pending)

    @property
    def newest(self) -> Publication | Intent | None:
        """The newest batch, which knows the object's numbers; None before the first."""
        return self.pending[-1] if self.pending else self.latest

    @property
    def next_batch(self) -> int:
        """Number that the object's next batch must have: that of a batch left open, else the next free one."""
        if self.pending:
            return self.pending[-1].batch_id
        return 1 if self.latest is None else self.latest.batch_id + 1

    @property
    def free_batch(self) -> int:
        """Number that a rebuild takes: what an open batch wrote stays below its base, where nobody sees it."""
        return self.next_batch + (1 if self.pending else 0)


def load_object_state(
    database: Database, job: str, object: str, stream: str, *, beside: Sequence[str] = ()
) -> ObjectState:
    """Load the state of an object.

    Parameters
    ----------
    database
        Where.
    job, object, stream
        Which object, and the stream that it reads.
    beside
        Other jobs whose current publication for the stream is wanted from the same version of the table.
    """
    wanted = [(job, object), *((other, stream) for other in beside)]
    publications, begun = PublicationsReader(database), IntentsReader(database)
    if database.direct is not None:
        with same_look():
            database.direct.look_at([PUBLICATIONS.name, INTENTS.name])
            found = publications.latest_of(wanted)
            latest = found[job, object]
            last = -1 if latest is None else latest.batch_id
            intents = begun.after(job, object, last)
    else:
        # Each mostly waits for Delta to look at its log.
        with ThreadPoolExecutor(2) as pool:
            published = pool.submit(publications.latest_of, wanted)
            pending = pool.submit(begun.after, job, object, -1)
        found, intents = published.result(), pending.result()
        latest = found[job, object]
        last = -1 if latest is None else latest.batch_id
    return ObjectState(
        latest,
        tuple(intent for intent in intents if intent.batch_id > last),
        {other: found[other, stream] for other in beside},
    )

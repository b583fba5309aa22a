"""How the job `alerts` begins a batch: from its own publication and from that of the job whose rows it tells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.batches.resume import wrote_nothing
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.jobs.batches.following import Work, differs, refuse_changes
from patternlake.jobs.configuration.alerts import QUIET
from patternlake.udfs.errors import StateError

logger = logging.getLogger(__name__)

JOB = "alerts"
READ_BATCH = "read_batch"
"""Key of a batch's source: the last batch of `predict`, `groups` or `patterns` that it reads."""


def next_batch(
    db: Database,
    name: str,
    stream_name: str,
    read_from: tuple[str, str],
    meaning: Mapping[str, Any],
    *,
    rebuild: bool,
    check: Callable[[Publication], None],
) -> Work | None:
    """Begin the next batch of an alert; None where it has told all that is published.

    A batch reads the batches of another job's object that were published since the last one. What that job builds anew
    is read as new, and told where it was not told before: a rebuild there is none here. As in `following.next_batch`, a
    batch that an earlier run began is taken over, unless it wrote nothing and the configuration is another now.

    Parameters
    ----------
    db
        The open database.
    name, stream_name
        The alert, and the stream whose events it goes back to.
    read_from
        Job and object whose rows are told.
    meaning
        What the alert's configuration means. For how long it is quiet may change from batch to batch; a batch that an
        earlier run began is done as that run meant it.
    rebuild
        Tell all again that is published, with the configuration as it is now.
    check
        Called with the publication that is read, before anything is written.

    Returns
    -------
    Work or None
        Its `stream` is the publication of `read_from`.

    Raises
    ------
    StateError
        There is nothing published to read, or the configuration has changed in a way that needs a rebuild.
    """
    phases.at("looking for news", unit=None)
    object_state = load_object_state(db, JOB, name, stream_name, beside=("ingest",))
    last = object_state.latest
    read = PublicationsReader(db).latest(*read_from)
    if read is None:
        _refuse_unread(name, stream_name, read_from[0], object_state.beside["ingest"])
        return None
    begun = object_state.pending[-1] if object_state.pending else None
    adopted = None if begun is None or rebuild or begun.stream != stream_name else begun
    given_up = adopted is not None and differs(adopted.configuration, meaning) and wrote_nothing(db, adopted)
    if adopted is not None and given_up:
        told = "%s %r: batch %d was begun under another configuration, wrote nothing, and is given up"
        logger.warning(told, JOB, name, adopted.batch_id)
        adopted = None
    # What was read of another stream says nothing of this one's batches.
    fresh = last is None or rebuild or (adopted is not None and adopted.rebuild)
    fresh = fresh or any(each is not None and each.stream != stream_name for each in (last, begun))
    whole = {key: value for key, value in meaning.items() if key != QUIET}
    quiet = meaning if adopted is None else adopted.configuration
    if QUIET in quiet:
        whole[QUIET] = quiet[QUIET]
    if last is not None and not fresh:
        refuse_changes(JOB, name, last.configuration, whole, (QUIET,))
        if adopted is None and last.source[READ_BATCH] == read.batch_id:
            return None
    if adopted is None:
        check(read)
    batch_id = object_state.free_batch if adopted is None else adopted.batch_id
    batch = Batch.begin(
        db,
        job=JOB,
        object=name,
        stream=stream_name,
        batch_id=batch_id,
        base_batch=batch_id if fresh or last is None else last.base_batch,
        source={**{key: read.source[key] for key in ("ingest_batch", "ingest_base")}, READ_BATCH: read.batch_id},
        source_from=0 if fresh or last is None else last.source_to,
        source_to=read.source_to,
        configuration=whole,
        object_state=object_state,
        passing=given_up,
        beside=True,
    )
    # An intent that a run left behind may name an older batch.
    found: Publication | None = read
    if read.batch_id != batch.source[READ_BATCH]:
        found = PublicationsReader(db).of_batch(*read_from, int(batch.source[READ_BATCH]))
    if found is None:
        raise StateError(f"{JOB} {name!r}: batch {batch.source[READ_BATCH]} of {read_from[0]} is not published")
    return Work(batch, found, None if batch.base_batch == batch.batch_id else batch.previous)


def _refuse_unread(name: str, stream_name: str, job: str, stream: Publication | None) -> None:
    """Refuse to tell what a job has not published although it has events to read.

    Raises
    ------
    StateError
        It has.
    """
    if stream is None:
        raise StateError(f"{JOB} {name!r}: the stream {stream_name!r} has no published events; run `ingest` first")
    if stream.source_to:
        raise StateError(f"{JOB} {name!r}: `{job}` has published nothing of it; run `{job}` first")

"""Whether a folder has files that no batch has read, found without reading them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from patternlake.jobs.sources.errors import ChangedSourceError

if TYPE_CHECKING:
    from patternlake.jobs.ingest.checkpoints import Checkpoint
    from patternlake.jobs.sources.source import Source


def may_have_unread(name: str, source: Source, checkpoint: Checkpoint, last: Mapping[str, Any]) -> bool:
    """Whether there may be files that were not read.

    Parameters
    ----------
    name
        Of the stream.
    source, checkpoint
        Its source, and what Spark remembers of it.
    last
        What the last batch that was begun says of its source.

    Raises
    ------
    ChangedSourceError
        A file was changed after it was read.
    """
    until = last.get("offset", {}).get("logOffset")
    if until is None:
        return True
    read, there = checkpoint.files(int(until)), source.modified()
    if read is None or there is None:
        return True
    # Spark writes one file's address with one slash or with three.
    path = F.regexp_replace("path", "^file:/+", "file:/").alias("path")
    was = read.select(path, F.col("modified").alias("was"))
    known = there.select(path, "modified").join(was, "path", "left")
    differing = known.where(F.col("was").isNull() | (F.col("was") != F.col("modified")))
    # Those that were changed come first.
    found = differing.orderBy(F.col("was").isNull(), "path").select("path", "was").limit(4).collect()
    names = [row["path"] for row in found if row["was"] is not None]
    if names:
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        raise ChangedSourceError(
            f"stream {name!r}: changed after it was read: {shown}; put new rows into new files, "
            "or run with --rebuild, which reads all files anew"
        )
    return bool(found)

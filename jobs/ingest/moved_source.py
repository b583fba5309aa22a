"""A source whose folder is another one than before: the project was copied, or is reached by a link.

Spark's checkpoint knows files by their addresses, and would read each of them once more. A file of the same name below
the source's folder, last modified at the same moment, is the file that was read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from patternlake.jobs.configuration.file_patterns import folder_of, name_below
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from patternlake.jobs.ingest.checkpoints import Checkpoint
    from patternlake.jobs.sources.source import Source

logger = logging.getLogger(__name__)

_ALL = 2**62
_SHOWN = 3


def follow(name: str, source: Source, checkpoint: Checkpoint, last: Mapping[str, Any]) -> str | None:
    """Let the checkpoint know the files by where they are now.

    Parameters
    ----------
    name
        Of the stream.
    source, checkpoint
        Its source, and what Spark remembers of it, which was checked.
    last
        What the last batch that was begun says of its source.

    Returns
    -------
    str or None
        The source's path where the checkpoint knows the files, None where no batch says it. If it is not the path as it
        is now, the files there are others than those that were read.

    Raises
    ------
    StateError
        Files there have the names of files that were read, and other times of their last change.
    """
    epoch = int(last["epoch"])
    # Files are followed whether or not a batch comes of the run, so the batch may say where they were before.
    before: str | None = checkpoint.origin(epoch) or last.get("origin")
    if source.kind == "delta" or before is None or before == source.shown:
        return before
    former, now = folder_of(before), folder_of(source.shown)
    if not _are_moved(name, source, checkpoint, before):
        return before
    checkpoint.move(former, now)
    checkpoint.write_origin(source.shown, epoch)
    logger.info("stream %r: the source moved from %s to %s, its files are known", name, before, source.shown)
    return source.shown


def _are_moved(name: str, source: Source, checkpoint: Checkpoint, before: str) -> bool:
    """Whether files that were read at a former path are those at the source's."""
    former, now = folder_of(before), folder_of(source.shown)
    if name_below(former, f"{now}/x") is not None or name_below(now, f"{former}/x") is not None:
        return False
    files, there = checkpoint.files(_ALL), source.modified()
    if files is None or there is None:
        return False
    entries = files.collect()
    read = {below: time for path, time in entries if (below := name_below(former, path)) is not None}
    if not read:  # all were followed by a run that did not come to write it down
        return any(name_below(now, path) is not None for path, _ in entries)
    found = {name_below(now, path): time for path, time in there.collect()}
    again = sorted(read.keys() & found.keys() - {None})
    if not again:
        return False
    if not any(read[file] == found[file] for file in again):
        shown = ", ".join(again[:_SHOWN]) + (", …" if len(again) > _SHOWN else "")
        raise StateError(
            f"stream {name!r}: the source moved from {before} to {source.shown}, where {len(again):,} files have names "
            f"of files that were read ({shown}) but were modified at other times; if they are copies, copy them with "
            "their times (cp -p, rsync -t), if they hold other rows, give them other names, or run with --rebuild, "
            "which reads all that is there"
        )
    return True

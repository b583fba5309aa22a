"""Whether a folder has files that no batch has read, found without reading them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from patternlake.jobs.sources.errors import ChangedSourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.jobs.ingest.checkpoints import Checkpoint
    from patternlake.jobs.sources.source import Source

_ALL = (1 << 63) - 1
_SLASHES = "^file:/+"
_PATH = f"regexp_replace(path, '{_SLASHES}', 'file:/') AS path"
"""Spark writes one file's address with one slash or with three."""


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
    if read.few is not None and there.few is not None:
        names, new = _compare_few(read.few, there.few)
    else:
        names, new = _compare(read.frame(), there.frame())
    if names:
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        raise ChangedSourceError(
            f"stream {name!r}: changed after it was read: {shown}; put new rows into new files, "
            "or run with --rebuild, which reads all files anew"
        )
    return new


def renew_planned(source: Source, checkpoint: Checkpoint, last: Mapping[str, Any]) -> None:
    """Know files of a batch that was planned, and of which nothing was written, by their times as these are now.

    Such a batch may have failed at a file that has been put right since. Spark reads the file as it is now, but under
    the time that it wrote down, by which the next run would take it for one that changed after it was read.

    Parameters
    ----------
    source, checkpoint
        Of the stream.
    last
        What the last published batch says of its source; empty before the first.
    """
    after = int(last.get("offset", {}).get("logOffset", -1))
    planned, there = checkpoint.files(_ALL, after=after), source.modified()
    if planned is None or there is None:
        return
    if planned.few is not None and there.few is not None:
        now = {_spell(path): time for path, time in there.few}
        times = {path: now[_spell(path)] for path, time in planned.few if now.get(_spell(path), time) != time}
    else:
        written = planned.frame().selectExpr(_PATH, "path AS written", "modified AS was")
        changed = there.frame().selectExpr(_PATH, "modified").join(written, "path").where("was != modified")
        times = {row["written"]: int(row["modified"]) for row in changed.select("written", "modified").collect()}
    if times:
        checkpoint.renew(times, after=after)


def _spell(path: str) -> str:
    return re.sub(_SLASHES, "file:/", path)


def _compare_few(read: Sequence[tuple[str, int]], there: Sequence[tuple[str, int]]) -> tuple[list[str], bool]:
    """The files that were changed after they were read, and whether there are any that were not read."""
    was: dict[str, set[int]] = {}
    for path, time in read:
        was.setdefault(_spell(path), set()).add(time)
    known = {path: time for path, time in ((_spell(path), time) for path, time in there) if path in was}
    return sorted(path for path, time in known.items() if was[path] != {time}), len(known) < len(there)


def _compare(read: DataFrame, there: DataFrame) -> tuple[list[str], bool]:
    """The same, of some of the files."""
    known = there.selectExpr(_PATH, "modified").join(read.selectExpr(_PATH, "modified AS was"), "path", "left")
    differing = known.where(F.col("was").isNull() | (F.col("was") != F.col("modified")))
    # Those that were changed come first.
    found = differing.orderBy(F.col("was").isNull(), "path").select("path", "was").limit(4).collect()
    names = [row["path"] for row in found if row["was"] is not None]
    return names, len(names) < len(found)

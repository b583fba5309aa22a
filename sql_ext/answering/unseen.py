"""Tells whoever asks that a name of the pattern, or a key, never occurred: most of them are typed wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.layout import KEY
from patternlake.sql_ext.answering.event_conditions import event_conditions
from patternlake.sql_ext.answering.user_warnings import warn_user
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.published import NameCount
from patternlake.udfs.unseen_names import MOST_NAMES, unseen_names, unseen_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.sql_ext.lakes.lake import Lake
    from patternlake.udfs.requests import BatchRange


def tell_unseen(
    lake: Lake, names: Iterable[str], counts: Sequence[NameCount], *, names_are_tokens: bool = True
) -> bool:
    """Warn, in the log and in Python's warnings; or refuse, where the session's setting `UNSEEN` says so.

    Parameters
    ----------
    lake
        Where it is asked.
    names
        Names that a pattern asks for.
    counts
        As `Snapshot.name_counts` gives them.
    names_are_tokens
        As of `unseen_names`.

    Returns
    -------
    bool
        Whether there was anything to tell.

    Raises
    ------
    ArgumentError
        There was, and the setting refuses it; or it has another value than ``warn`` and ``error``.
    """
    unseen = unseen_names(names, [row.name for row in counts], names_are_tokens=names_are_tokens)
    if unseen:
        _tell(lake, [unseen_text(name, nearest) for name, nearest in unseen])
    return bool(unseen)


def tell_unseen_key(
    lake: Lake, key: str | None, events: BatchRange, rows: DataFrame | pa.Table, partition: Sequence[str] = ()
) -> bool:
    """Warn or refuse, as `tell_unseen`, where an answer about one key is empty as the stream never had the key.

    Only where the driver may read the keys of the stream: to look for a key elsewhere costs as much as an answer.

    Parameters
    ----------
    lake
        Where it is asked.
    key
        The key that is asked for; None: all.
    events
        All events of the stream.
    rows
        The answer; one that Spark's tasks work out is not known to be empty.
    partition
        Columns of PARTITION BY: of others than the stream's key, `key` is none of the stream's.

    Returns
    -------
    bool
        Whether there was anything to tell.
    """
    if key is None or tuple(partition) not in ((), (KEY,)) or not isinstance(rows, pa.Table) or rows.num_rows:
        return False
    where = event_conditions(events)
    one = [*where, Condition(KEY, "=", key)]
    if not lake.small("events", where, (KEY,)) or lake.reader.rows("events", (KEY,), one).num_rows:
        return False
    known = pc.unique(lake.reader.rows("events", (KEY,), where)[KEY]).drop_null().to_pylist()
    if not known:
        return False
    nearest = unseen_names([key], known)[0][1] if len(known) < MOST_NAMES else None
    _tell(lake, [f"the key {unseen_text(key, nearest)}"])
    return True


def _tell(lake: Lake, texts: Sequence[str]) -> None:
    if lake.refuses_unseen:
        raise ArgumentError("; ".join(texts))
    for text in texts:
        warn_user(text)

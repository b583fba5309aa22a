"""What a run of a job reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patternlake.delta_tables.tables.publications import Publication


@dataclass(frozen=True)
class Summary:
    """One line about one object's run.

    Attributes
    ----------
    job, object
        What ran on what.
    batch_id
        The last batch that was published, None if there was nothing to do.
    batches
        Batches published.
    rows_in, rows_out, rows_quarantined
        Rows read, written and refused.
    seconds
        Wall-clock time.
    rows_repeated
        Of the refused rows, those that repeat an event.
    warnings
        What the run went on in spite of, for people.
    """

    job: str
    object: str
    batch_id: int | None
    batches: int
    rows_in: int
    rows_out: int
    rows_quarantined: int
    seconds: float
    rows_repeated: int = 0
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, job: str, name: str, done: Sequence[Publication], seconds: float) -> Summary:
        """Sum up the batches that a run has published; none of them refuses rows."""
        last = done[-1].batch_id if done else None
        rows_in, rows_out = sum(each.rows_in for each in done), sum(each.rows_out for each in done)
        return cls(job, name, last, len(done), rows_in, rows_out, 0, seconds)

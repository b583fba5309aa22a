"""What a run of a job reports."""

from __future__ import annotations

from dataclasses import dataclass


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

"""The text of progress, from what was seen of a phase's stages, one look after another."""

from __future__ import annotations

from dataclasses import dataclass

from patternlake.delta_tables.batches.phases import ROWS
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.progress.stages import Pass

_SILENCE = 10.0
"""Seconds without a change that say nothing, however short the stage has been at work."""

_SHORTEST = 1.0
"""Seconds that a rate is measured over, at least."""


@dataclass
class _Count:
    """A number that grows, and when it was last seen to."""

    value: int = 0
    at: float = 0.0

    def see(self, value: int, now: float) -> None:
        if value != self.value:
            self.value, self.at = value, now

    def per_second(self, begun: float, now: float) -> float | None:
        """From the beginning to the last growth; None where that was too short, or is too long ago."""
        took = self.at - begun
        if not self.value or took < _SHORTEST or now - self.at > took + _SILENCE:
            return None
        return self.value / took


class Phase:
    """What the work on an object is at, as far as it was seen.

    Parameters
    ----------
    text
        For people; empty: nothing was told.
    unit
        What Spark counts as one record in it.
    """

    def __init__(self, text: str = "", unit: str = ROWS) -> None:
        self.text = text
        self.unit = unit
        self._seen: Pass | None = None
        self._now = 0.0
        self._rows = _Count()
        self._tasks = _Count()

    def see(self, seen: Pass | None, now: float) -> None:
        """Take in what a look gave.

        Parameters
        ----------
        seen
            The pass at work; None where there is none.
        now
            Of the look, in seconds since 1970; looks come in the order of time.
        """
        if seen is not None:
            if self._seen is None or self._seen.stage.number != seen.stage.number:
                self._rows, self._tasks = _Count(), _Count()
            self._rows.see(seen.stage.rows, now)
            self._tasks.see(seen.stage.done, now)
        self._seen, self._now = seen, now

    def parts(self) -> list[str]:
        """The phase, and what is known of it: rows and, where their number is unknown, tasks, rate, and time left."""
        told = [self.text] if self.text else []
        if self._seen is None:
            return told
        stage, wanted = self._seen.stage, self._seen.wanted
        if stage.rows:
            of = "" if wanted is None else f" of {wanted:,}"
            told.append(f"{stage.rows:,}{of} {self.unit}")
        if stage.active and wanted is None:
            told.append(f"{stage.done:,} of {stage.tasks:,} tasks")
        if stage.active and stage.begun is not None:
            rate = self._rows.per_second(stage.begun, self._now)
            if rate is not None:
                told.append(f"{_round_rate(rate)} {self.unit}/s")
            left = self._left(stage.begun, self._tasks if wanted is None else self._rows, wanted or stage.tasks)
            if left is not None:
                told.append(f"{clock(left)} left")
        return told

    def _left(self, begun: float, count: _Count, wanted: int) -> float | None:
        """Seconds until a count is what it has to be; None where that is not known."""
        rate = count.per_second(begun, self._now)
        if rate is None:
            return None
        left = (wanted - count.value) / rate - (self._now - count.at)
        return left if left > 0 else None


def line(label: str, seconds: float, phase: Phase) -> str:
    """Write what an object's work is at as one line.

    Parameters
    ----------
    label
        Job and object.
    seconds
        Since its work began.
    phase
        What it is at.
    """
    parts = phase.parts()
    return f"{label} {clock(seconds)}" + (": " if parts else "") + ", ".join(parts)


def clock(seconds: float) -> str:
    """Write a duration as ``m:ss``, or ``h:mm:ss``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def write_summary(summary: Summary) -> str:
    """Write a summary as one line for people."""
    head = f"{summary.job} {summary.object}"
    if not summary.batches and not summary.rows_out:
        return f"{head}: nothing new ({summary.seconds:.1f} s)"
    return (
        f"{head}: {summary.rows_in:,} rows in, {summary.rows_out:,} out, {summary.rows_quarantined:,} quarantined "
        f"({summary.seconds:.1f} s)"
    )


def _round_rate(rate: float) -> str:
    """Write a rate to the three digits that it is good for."""
    return f"{float(f'{rate:.3g}'):,.0f}" if rate >= 10 else f"{rate:.2g}"

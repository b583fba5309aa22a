"""Delivers alerts outside: what waits is tried, tried again after pauses that double, and at last given up.

An attempt is written down once it has been made, so an alert that was taken just before its run died is delivered
again, under the same id.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.alert_deliveries import AlertDeliveries, Attempt
from patternlake.delta_tables.tables.alerts import told_by
from patternlake.delta_tables.tables.publications import Publication
from patternlake.delta_tables.writing.frames import frame_where
from patternlake.jobs.alerts.targets import Letter, Target, target_of
from patternlake.jobs.batches import few
from patternlake.jobs.configuration.alerts import AlertConfiguration
from patternlake.udfs.shown_text import plural

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database

GIVEN_UP_AFTER = 5
"""So many failures in a row end a round: the target is taken to be down, and others need not find it out."""
_NO_LIMIT = 1_000_000
LONGEST_BACK_OFF = timedelta(hours=1)
LONGEST_WAIT = timedelta(minutes=1)
"""What has to wait longer for its next attempt waits for a later run."""

_BODY = (
    "alert_id", "alert", "kind", "stream", "object", "key", "probability", "state", "bindings", "first_time",
    "last_time", "t_start", "t_first", "t_end", "found_in", "held_back", "first_seen_at",
)  # fmt: skip


@dataclass(frozen=True)
class Waiting:
    """An alert that waits for delivery, with the attempts so far; moments are in UTC."""

    letter: Letter
    attempts: int = 0
    tried_at: datetime | None = None


@dataclass
class Round:
    """What a round has come to.

    Attributes
    ----------
    delivered, failed, dead
        How many alerts were taken, failed and will be tried again, failed for the last time.
    error
        What the last failure was.
    next_due
        When the first of those that failed, or that were not due yet, may be tried again.
    """

    delivered: int = 0
    failed: int = 0
    dead: int = 0
    error: str | None = None
    next_due: datetime | None = None


@dataclass(frozen=True)
class Delivery:
    """Delivers what waits for one alert.

    Attributes
    ----------
    target
        Where to.
    back_off
        Pause after the first failure of an alert; it doubles with each further one, up to `LONGEST_BACK_OFF`.
    dead_letter_after
        Attempts after which an alert is given up.
    waiting
        What waits, in order, as it is known by now.
    record
        Writes attempts down.
    now, sleep
        The clock, and what waits for a span of seconds.
    """

    target: Target
    back_off: timedelta
    dead_letter_after: int
    waiting: Callable[[], Iterable[Waiting]]
    record: Callable[[list[Attempt]], None]
    now: Callable[[], datetime] = timestamps.now
    sleep: Callable[[float], None] = time.sleep
    failing: set[str] = field(default_factory=set)
    """Alerts that failed since it was made, and were neither delivered nor given up since."""

    def run(self, retries: int) -> Round:
        """Do a round, and so many more while something is soon due again; what all of them came to."""
        total = Round()
        for number in range(retries + 1):
            done = self.round()
            total = Round(
                total.delivered + done.delivered,
                len(self.failing),
                total.dead + done.dead,
                done.error or total.error,
                done.next_due,
            )
            if done.next_due is None or number == retries:
                break
            pause = done.next_due - self.now()
            if pause > LONGEST_WAIT:
                break
            self.sleep(max(0.0, pause.total_seconds()))
        return total

    def round(self) -> Round:
        """Try everything that is due, once; end early where the target seems to be down."""
        done = Round()
        in_a_row = 0
        down = False

        def room() -> int:
            # While nothing says that the target is up, no more are under way than would show that it is down.
            return 0 if down else _NO_LIMIT if done.delivered and not in_a_row else GIVEN_UP_AFTER - in_a_row

        due = (each for each in self.waiting() if self._is_due(each, done))
        while not down and (some := list(islice(due, self.target.portion))):
            attempts = []
            for each, error in zip(some, self.target.deliver([one.letter for one in some], room), strict=False):
                attempts.append(self._attempt(each, error, done))
                in_a_row = 0 if error is None else in_a_row + 1
                down = down or in_a_row >= GIVEN_UP_AFTER
            self.record(attempts)
        return done

    def due_at(self, tried_at: datetime, attempts: int) -> datetime:
        """When an alert may be tried again after so many failures."""
        longest = LONGEST_BACK_OFF
        # Beyond this many doublings every pause is the longest, and the product would overflow.
        doubled = self.back_off * 2 ** min(attempts - 1, 40) if self.back_off < longest else longest
        return tried_at + min(doubled, longest)

    def _is_due(self, each: Waiting, done: Round) -> bool:
        if each.tried_at is None:
            return True
        due = self.due_at(each.tried_at, each.attempts)
        if due <= self.now():
            return True
        done.next_due = due if done.next_due is None else min(done.next_due, due)
        return False

    def _attempt(self, each: Waiting, error: str | None, done: Round) -> Attempt:
        number, now = each.attempts + 1, self.now()
        dead = error is not None and number >= self.dead_letter_after
        (self.failing.discard if error is None or dead else self.failing.add)(each.letter.alert_id)
        if error is None:
            done.delivered += 1
        else:
            done.error = error
            done.dead += dead
            done.failed += not dead
            if not dead:
                due = self.due_at(now, number)
                done.next_due = due if done.next_due is None else min(done.next_due, due)
        return Attempt(each.letter.alert_id, number, now, error is None, dead, error)


def deliver(db: Database, latest: Publication, configuration: AlertConfiguration) -> list[str]:
    """Deliver what waits of an alert; what went wrong, for people.

    Parameters
    ----------
    db
        The open database.
    latest
        The alert's publication.
    configuration
        Its section under `alerts`.
    """
    phases.at("delivering alerts")
    target = target_of(configuration, db.spark)
    kept = AlertDeliveries(db, latest.object, latest.object_id)
    most = configuration.dead_letter_after
    delivery = Delivery(target, configuration.back_off, most, lambda: _waiting(db, latest, kept, most), kept.record)
    done = delivery.run(configuration.retries)
    told = []
    if done.failed:
        told.append(
            f"alert {latest.object!r}: {target.shown} did not take {plural(done.failed, 'alert')} ({done.error}); a "
            "later run tries again"
        )
    if done.dead:
        told.append(
            f"alert {latest.object!r}: {plural(done.dead, 'alert')} became dead letters after {most} attempts to "
            f"deliver to {target.shown} ({done.error}); see alert_deliveries"
        )
    return told


def _waiting(db: Database, latest: Publication, kept: AlertDeliveries, most: int) -> Iterator[Waiting]:
    """The alerts that were neither delivered nor given up, those that were found first first."""
    known = told_by(latest)
    rows = frame_where(db, "alerts", known, most_bytes=few.FEW_BYTES)
    rows = rows.withColumns({"stream": F.lit(latest.stream), "held_back": F.coalesce("held_back", F.lit(0))})
    standing = kept.standing(most_bytes=few.FEW_BYTES)
    # What has reached a limit that was greater then is tried once more, which makes a dead letter of it.
    rests = F.coalesce(F.col("dead_letter") & (F.col("attempts") >= most), F.lit(False))
    open_ones = rows.join(standing, "alert_id", "left").where(F.col("delivered_at").isNull() & ~rests)
    body = F.to_json(F.struct(*_BODY), timestamps.JSON)
    ordered = open_ones.orderBy("batch_id", "found_in", "last_time", "t_end", "alert_id")
    # Spark hands moments on in the process's own zone, without it.
    chosen = ordered.select(
        "alert_id", body.alias("body"), F.coalesce("attempts", F.lit(0)).alias("attempts"),
        F.unix_micros("tried_at").alias("tried_at"),
    )  # fmt: skip
    # Few are collected at once, as each part of an iterator takes a job.
    for row in chosen.collect() if few.few_bytes(db, "alerts", known) else chosen.toLocalIterator():
        yield Waiting(Letter(row.alert_id, row.body), row.attempts, timestamps.from_micros(row.tried_at))

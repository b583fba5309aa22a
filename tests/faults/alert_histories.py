"""Histories of alerts: a stream that grows by random batches, and runs that die before a random one of their writes."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timezone
from functools import partial
from typing import Any

import yaml
from naive.alerts import Found, quieted, told_of_forecasts, told_once
from sql.alert_lake import forecast_of
from sql.published_events import NAME, TIME, E, publish
from sql.small_tables import asked
from webhook_receiver import Post, Receiver

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.schema.timestamps import to_micros
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs import running
from patternlake.udfs.errors import StateError
from tests.faults.interrupted import KilledError, Writes
from tests.faults.told_things import (
    GROUPS,
    PATTERN,
    PREDICATES,
    SUBSCRIPTIONS,
    Predicate,
    closed_groups,
    final_matches,
    matches,
    thing_of,
)

KEYS = ("k", "k", "l", None)
QUIET = 100
"""Seconds before the last event: by then all matches of the kept pattern are final."""
RECORD = "append alert_deliveries"


@dataclass
class Alert:
    """An alert of a history.

    Attributes
    ----------
    of, name
        What it tells, and of which object.
    where
        Its predicate now.
    outside
        Whether a webhook hears of it.
    quiet
        For how many seconds or steps it is quiet; 0: not at all.
    former
        The predicates that it had before.
    """

    of: str
    name: str
    where: Predicate
    outside: bool
    quiet: int
    former: list[Predicate] = field(default_factory=list)


class History:
    """A stream of a database with alerts, which the real jobs tell; `live` makes it, `check` compares it.

    Parameters
    ----------
    database
        Where.
    receiver
        Hears of what goes outside, and does not take all of it at once.
    seed
        Of all that is random.

    Attributes
    ----------
    deaths
        How often a run died, by the write before which it did.
    held
        How many rows were held back.
    """

    def __init__(self, database: Database, receiver: Receiver, seed: int) -> None:
        self.database, self.receiver = database, receiver
        self.rng = random.Random(seed)
        self.stream = f"told {seed}"
        self.events: list[E] = []
        self.deaths: Counter[str] = Counter()
        self.held = 0
        self._steps: Counter[str | None] = Counter()
        self._rebuilt: set[str] = set()
        self._kind = self.rng.choice(sorted(SUBSCRIPTIONS))
        self._subscription, self._groups, self._pattern = f"{self._kind} {seed}", f"groups {seed}", f"pattern {seed}"
        names = {"group": self._groups, "pattern": self._pattern}
        self.alerts = {
            f"{kind} {seed}": Alert(
                kind,
                names.get(kind, self._subscription),
                self.rng.choice(PREDICATES[kind]),
                kind == "subscription" or self.rng.random() < 0.4,
                self.rng.choice([0, 0, 2, 5, 20]),
            )
            for kind in ("subscription", "forecast", self.rng.choice(["group", "pattern"]))
        }
        self.jobs = {"predict": self.stream} | {
            job: name
            for job, name in (("groups", self._groups), ("patterns", self._pattern))
            if any(alert.name == name for alert in self.alerts.values())
        }

    def live(self) -> None:
        """Take batches in and tell of them, with deaths on the way, until all is told and delivered."""
        last = self.rng.randint(2, 4)
        for number in range(last):
            self._take(self._grown(self.rng.randint(4, 9)))
            self._follow(dying=number > 0)
            if self.rng.random() < 0.7:
                self._tell()
            if self.rng.random() < 0.2:
                self._change()
        self._take([E(self._now() + QUIET * 1000, "x", "k", {"t": self._step("k"), "p": 1.0})])
        self._follow(dying=False)
        self._tell()
        for name in self.alerts:
            self._until_told(name)
        while self._undelivered():
            self._run("alerts")

    def check(self) -> None:
        """Compare what is told, and what was delivered, with what should be."""
        prefixes = {job: self._prefixes(job) for job in self.jobs}
        taken = [post for post in self.receiver.taken if json.loads(post.body)["stream"] == self.stream]
        often = Counter(post.alert_id for post in taken)
        for name, alert in self.alerts.items():
            told, held = self._rows("alerts", name), self._rows("held_alerts", name)
            rows = [*told, *held]
            assert len({row["alert_id"] for row in rows}) == len(rows), name
            self._check_quiet(name, alert, told, held)
            ids = [row["alert_id"] for row in told]
            if alert.of == "forecast":
                found = Counter((forecast_of(row), row["found_in"]) for row in rows)
                assert found == self._expected_forecasts(alert, prefixes["predict"]), name
            else:
                self._check_things(name, alert, rows, prefixes)
            own = {post.alert_id: post for post in taken if json.loads(post.body)["alert"] == name}
            if alert.outside:
                assert all(row["delivered_at"] is not None and not row["dead_letter"] for row in told), name
                assert set(ids) <= own.keys(), name
                # What an earlier predicate chose may have gone outside before the alert was another one.
                for alert_id in own.keys() - set(ids):
                    body = json.loads(own[alert_id].body)
                    assert any(means(thing_of(body)) for _, means in alert.former), (name, body)
            else:
                assert not own, name
        # What was taken is sent again only where the run died before it was written down.
        assert max(often.values(), default=1) <= 1 + sum(
            count for write, count in self.deaths.items() if write.startswith(RECORD)
        )

    def _check_quiet(self, name: str, alert: Alert, told: Sequence[Any], held: Sequence[Any]) -> None:
        rows = {row["alert_id"]: row for row in (*told, *held)}
        span = alert.quiet if alert.of == "group" else alert.quiet * 1_000_000

        def found(row: Any) -> Found:
            moment = row["last_time"] or row["watermark"]
            at = row["t_end"] if moment is None else to_micros(moment.astimezone(timezone.utc))
            return Found(row["alert_id"], row["key"], at)

        def order(alert_id: str) -> tuple[Any, ...]:
            row, one = rows[alert_id], found(rows[alert_id])
            batch = row["found_in"] if alert.of in ("forecast", "pattern") else 0
            if alert.of == "forecast":
                return batch, -row["probability"], alert_id
            return batch, one.time, row["t_first"] or thing_of(row).last_position, alert_id

        expected = quieted([found(rows[alert_id]) for alert_id in sorted(rows, key=order)], span)
        mine = {row["alert_id"]: row["held_back"] for row in told}, {row["alert_id"]: row["held_by"] for row in held}
        if alert.of == "pattern" and "patterns" in self._rebuilt:
            # Its matches are published in another order than when some of them were told.
            assert set(mine[0]) | set(mine[1]) == set(rows)
            assert sum(mine[0].values()) <= len(mine[1])
            assert quieted([found(row) for row in told], span)[1] == {}, name
        else:
            assert mine == expected, name
        self.held += len(held)

    def _check_things(self, name: str, alert: Alert, rows: Sequence[Any], prefixes: dict[str, list[Any]]) -> None:
        of_subscription = partial(matches, self._kind)
        things = {"subscription": of_subscription, "group": closed_groups, "pattern": final_matches}[alert.of]
        job = {"subscription": "predict", "group": "groups", "pattern": "patterns"}[alert.of]
        published = [things(self.events[:end]) for _, end in prefixes[job]]
        told = told_once(published, alert.where[1])
        found = [thing_of(row) for row in rows]
        assert len(found) == len(set(found)), name
        assert set(found) == set(told), name
        if job not in self._rebuilt:
            batches = [batch for batch, _ in prefixes[job]]
            first = {thing: batches[number] for thing, number in told.items()}
            found_in = {thing: row["found_in"] for thing, row in zip(found, rows, strict=True)}
            # The row of a group that is final is written once more when the next events of its key close it.
            later = {thing for thing in told if alert.of == "group" and found_in[thing] > first[thing]}
            assert found_in == first | {thing: found_in[thing] for thing in later}, name

    # What happens.

    def _now(self) -> int:
        return self.events[-1].time if self.events else 0

    def _step(self, key: str | None) -> int:
        self._steps[key] += 1
        return self._steps[key]

    def _grown(self, count: int) -> list[E]:
        """New events, a second apart; the steps of each key follow each other."""
        rng, grown = self.rng, []
        for number in range(1, count + 1):
            key = rng.choice(KEYS)
            values = {"t": self._step(key), "p": rng.choice([1.0, 1.0, 0.9, 0.6, 0.3])}
            grown.append(E(self._now() + number * 1000, rng.choice("aabbbc"), key, values))
        return grown

    def _take(self, events: list[E]) -> None:
        publish(self.database, self.stream, self._configuration().streams[self.stream], events)
        self.events += events

    def _follow(self, *, dying: bool) -> None:
        """Run the jobs whose rows are told; where one dies, the next one of its runs may come a batch later."""
        for job, name in self.jobs.items():
            if dying and self.rng.random() < 0.2:
                self._run(job, name, stop=self.rng.randrange(9))
                if self.rng.random() < 0.5:
                    continue
            rebuild = dying and self.rng.random() < 0.1
            if rebuild:
                self._rebuilt.add(job)
            self._run(job, name, rebuild=rebuild)

    def _tell(self) -> None:
        """Run `alerts` for one alert or all; it dies some times, and what it tells of grows meanwhile."""
        object = self.rng.choice([None, None, *self.alerts])
        while self.rng.random() < 0.6:
            self._run("alerts", object, stop=self.rng.randrange(12))
            if self.rng.random() < 0.15:
                self._take(self._grown(2))
                self._follow(dying=True)
        if self.rng.random() < 0.8:
            self._run("alerts", object)

    def _change(self) -> None:
        """Give an alert another predicate, which needs a rebuild where something is published."""
        name = self.rng.choice([name for name, alert in self.alerts.items() if alert.of != "forecast"])
        alert = self.alerts[name]
        alert.former.append(alert.where)
        alert.where = self.rng.choice(PREDICATES[alert.of])
        if self.rng.random() < 0.5:
            self._until_told(name, stop=self.rng.randrange(4))

    def _until_told(self, name: str, stop: int | None = None) -> None:
        """Run `alerts` for one alert, with a rebuild where it is refused otherwise."""
        if not self._run("alerts", name, stop=stop):
            self._run("alerts", name, rebuild=True, stop=stop)

    def _run(self, job: str, object: str | None = None, *, rebuild: bool = False, stop: int | None = None) -> bool:
        """Run a job; whether it is not refused as one that means something else now."""
        configuration = self._configuration()
        with Writes(stop).watched() as writes, contextlib.suppress(KilledError):
            try:
                running.run(self.database.spark, configuration, job, object=object, rebuild=rebuild, side_by_side=1)
            except StateError as error:
                if "the configuration has changed" not in str(error):
                    raise
                return False
        if writes.stopped:
            self.deaths[writes.stopped_at] += 1
        return True

    def _configuration(self) -> Configuration:
        stream = {"stream": self.stream}
        tree: dict[str, Any] = {
            "database": self.database.name,
            "location": self.database.location,
            "streams": {
                self.stream: {
                    "source": {"format": "csv", "path": "nowhere", "options": {"header": True}},
                    "time": TIME,
                    "name": NAME,
                    "key": "who",
                    "attributes": {"t": "int", "p": "double"},
                    "step": "CAST(t AS INT)",
                    "probability": "CAST(p AS DOUBLE)",
                }
            },
            "subscriptions": {
                self._subscription: {
                    **stream, "query": SUBSCRIPTIONS[self._kind].text, "lookahead": 2, "smoothing": 0.2,
                }
            },
            "groups": {self._groups: {**stream, "pattern": GROUPS.pattern, "within": GROUPS.within}},
            "patterns": {self._pattern: {**stream, "query": PATTERN}},
            "alerts": {name: self._section(alert) for name, alert in self.alerts.items()},
        }  # fmt: skip
        return Configuration.from_text(yaml.safe_dump(tree))

    def _section(self, alert: Alert) -> dict[str, Any]:
        section: dict[str, Any] = {"of": alert.of, "name": alert.name}
        if alert.where[0] is not None:
            section["where"] = alert.where[0]
        if alert.quiet:
            section["quiet"] = alert.quiet if alert.of == "group" else f"{alert.quiet} seconds"
        if alert.outside:
            pace = {"at_once": self.rng.choice([1, 2, 4]), "back_off": "1 ms", "retries": self.rng.randint(0, 2)}
            section |= {"to": "webhook", "url": self.receiver.url, **pace}
        return section

    # What there is.

    def _rows(self, table: str, name: str) -> list[Any]:
        sql = f"SELECT * FROM {self.database.view(table)} WHERE alert = {literal(name)}"
        return list(asked(self.database, sql).collect())

    def _undelivered(self) -> bool:
        return any(
            row["delivered_at"] is None
            for name, alert in self.alerts.items()
            if alert.outside
            for row in self._rows("alerts", name)
        )

    def _prefixes(self, job: str) -> list[tuple[int, int]]:
        """The published batches of a job, with how many events each had read."""
        mine = [Condition("job", "=", job), Condition("object", "=", self.jobs[job])]
        rows = self.database.state.rows("publications", ("batch_id", "source_to"), mine).to_pylist()
        return sorted({(row["batch_id"], row["source_to"]) for row in rows})

    # What should be.

    def _expected_forecasts(self, alert: Alert, prefixes: Sequence[tuple[int, int]]) -> Counter[Any]:
        sql = f"SELECT * FROM {self.database.name}.forecasts WHERE subscription = {literal(alert.name)}"
        numbers = {batch: number for number, (batch, _) in enumerate(prefixes)}
        batches: list[dict[Any, float]] = [{} for _ in prefixes]
        for row in asked(self.database, sql).collect():
            batches[numbers[row["batch_id"]]][forecast_of(row), tuple(row["joins"])] = row["probability"]
        told = told_of_forecasts(batches, alert.where[1])
        return Counter((thing[0], prefixes[number][0]) for thing, number in told)


def patience() -> Callable[[Post], int]:
    """Answers of a receiver that takes most alerts at their first attempt, the others at their second or third."""
    attempts: Counter[str | None] = Counter()

    def answer(post: Post) -> int:
        attempts[post.alert_id] += 1
        return 200 if attempts[post.alert_id] > int(str(post.alert_id)[:4], 16) % 6 - 3 else 503

    return answer

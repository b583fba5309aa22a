"""Where alerts are delivered: a webhook, a Kafka topic, a command. A target tells of each whether it was taken."""

from __future__ import annotations

import subprocess
import tempfile
import urllib.request
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from itertools import islice
from threading import Thread
from typing import IO, TYPE_CHECKING, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.alerts.attempts import Attempt, FollowedHttp, FollowedHttps
from patternlake.jobs.configuration.alerts import KAFKA, WEBHOOK, AlertConfiguration
from patternlake.jobs.sources.errors import innermost
from patternlake.udfs.errors import ConfigurationError
from patternlake.udfs.shown_text import one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LONGEST = 300
"""Characters that are kept of what a receiver says."""
_LAST_WORDS = 8192
"""Bytes that are kept of what a command says on standard error."""
_LINGERING = 0.5
"""Seconds for which the last words of a command that has failed are waited for, if a child of it goes on."""
_NO_SOURCE = ("DATA_SOURCE_NOT_FOUND", "MISSING_DATA_SOURCE")
_NO_KAFKA = "Failed to find data source: kafka"


@dataclass(frozen=True)
class Letter:
    """What is delivered: an alert as JSON, under its id."""

    alert_id: str
    body: str


class Target(Protocol):
    """Takes letters."""

    portion: int
    """So many letters are handed over together; then it is written down what became of them."""

    @property
    def shown(self) -> str:
        """The target for messages, without what may be secret."""

    def deliver(self, letters: Sequence[Letter], room: Callable[[], int]) -> Iterator[str | None]:
        """Deliver letters in their order; of each, what went wrong, None where it was taken.

        Parameters
        ----------
        letters
            What is delivered.
        room
            How many letters may be under way, begun and not told of yet; asked before one begins. Where it stays 0,
            the others are not sent, and not told of. A target that takes all letters together does not ask.
        """


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET, which delivers nothing."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def _with_credentials_apart(url: str) -> tuple[str, dict[str, str]]:
    """An address without user and password, in ASCII, and the header that says them."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    host = parts.netloc.rpartition("@")[2] if name.isascii() else name.encode("idna").decode()
    if not name.isascii() and parts.port is not None:
        host += f":{parts.port}"
    path, query = (quote(part, safe="/%:@!$&'()*+,;=~?") for part in (parts.path, parts.query))
    address = urlunsplit((parts.scheme, host, path, query, ""))
    if parts.username is None:
        return address, {}
    told = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return address, {"Authorization": f"Basic {b64encode(told.encode()).decode()}"}


class Webhook:
    """Sends each alert by a POST of its own, several at the same time.

    Parameters
    ----------
    url
        Where to.
    timeout
        Seconds for one of them, from its beginning until it is known whether it was taken.
    at_once
        How many are under way at the most.
    """

    def __init__(self, url: str, timeout: float, at_once: int) -> None:
        self._url, self._timeout, self._at_once = url, timeout, at_once
        self._address, self._signed = _with_credentials_apart(url)
        # At its end a portion waits for its last letters: it is long enough that this does not count.
        self.portion = max(50, 8 * at_once)
        self._opener = urllib.request.build_opener(_NoRedirect, FollowedHttp, FollowedHttps)

    @property
    def shown(self) -> str:
        """Scheme and host; paths and queries of webhooks often are their passwords."""
        parts = urlsplit(self._url)
        port = "" if parts.port is None else f":{parts.port}"
        return f"{parts.scheme}://{parts.hostname}{port}"

    def deliver(self, letters: Sequence[Letter], room: Callable[[], int]) -> Iterator[str | None]:
        """Send letters; whatever is not 2xx is a failure.

        They begin in their order, each once that one has been told of which is `at_once` places before it.
        """
        waiting = iter(letters)
        under_way: deque[Future[str | None]] = deque()
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="patternlake-webhook") as pool:
            while True:
                free = max(0, min(self._at_once, room()) - len(under_way))
                under_way.extend(pool.submit(self._attempt, letter) for letter in islice(waiting, free))
                if not under_way:
                    return
                yield under_way.popleft().result()

    def _attempt(self, letter: Letter) -> str | None:
        return Attempt(lambda: self._post(letter)).outcome(self._timeout)

    def _post(self, letter: Letter) -> str | None:
        headers = {"Content-Type": "application/json", "Idempotency-Key": letter.alert_id, **self._signed}
        try:
            request = urllib.request.Request(self._address, letter.body.encode(), headers, method="POST")
            # The time that one step may take only lets a thread end that was given up; it is not to come first. What
            # follows the status says nothing, however long it goes on.
            with self._opener.open(request, timeout=2 * self._timeout):
                return None
        except HTTPError as error:
            with error:
                return _text(f"HTTP {error.code} {error.reason}")
        except URLError as error:
            return _text(error.reason)
        except (OSError, HTTPException) as error:
            return _text(error)
        except ValueError as error:
            return f"{type(error).__name__}: the address cannot be asked"  # what it says may show the address


class _LastWords(Thread):
    """Reads what a command says on standard error to its end, and keeps the last of it."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(name="patternlake-command-stderr", daemon=True)
        self._pipe = pipe
        self._kept = b""

    def run(self) -> None:
        """Read; a child that the command leaves behind may go on to write, for as long as it likes."""
        with self._pipe:
            while said := self._pipe.read1(_LAST_WORDS):  # type: ignore[attr-defined]
                self._kept = (self._kept + said)[-_LAST_WORDS:]

    @property
    def line(self) -> str:
        """The last line of what was said so far."""
        return (self._kept.decode(errors="replace").strip().splitlines() or [""])[-1]


class Command:
    """Hands alerts to a command's standard input as JSON lines; exit code 0 means that it has taken them all."""

    portion = 500

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self._command, self._timeout = list(command), timeout

    @property
    def shown(self) -> str:
        """The program; its arguments may be secret."""
        return self._command[0]

    def deliver(self, letters: Sequence[Letter], room: Callable[[], int]) -> Iterator[str | None]:
        """Run the command once for all letters."""
        failure = self._run("".join(f"{letter.body}\n" for letter in letters))
        yield from (failure for _ in letters)

    def _run(self, lines: str) -> str | None:
        # Files and pipes may be held by children that the command leaves behind: it alone is waited for.
        with tempfile.TemporaryFile() as given:
            given.write(lines.encode())
            given.seek(0)
            try:
                # Standard output has the job's summaries.
                process = subprocess.Popen(
                    self._command, stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                )
            except (OSError, ValueError) as error:  # a NUL in an argument is the latter
                return _text(error)
        assert process.stderr is not None
        last_words = _LastWords(process.stderr)
        last_words.start()
        try:
            code = process.wait(self._timeout)
        except BaseException as error:
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return f"the command did not end within {self._timeout:g} s"
            raise
        if not code:
            return None
        last_words.join(_LINGERING)
        return _text(f"exit code {code}{': ' * bool(last_words.line)}{last_words.line}")


class Kafka:
    """Writes alerts to a topic through Spark's sink for Kafka, with the id as key; all are taken, or none is."""

    portion = 10_000

    def __init__(self, spark: SparkSession, brokers: str, topic: str, timeout: float) -> None:
        self._spark, self._brokers, self._topic, self._timeout = spark, brokers, topic, timeout

    @property
    def shown(self) -> str:
        """The topic and its brokers."""
        return f"the Kafka topic {self._topic!r} at {self._brokers}"

    def deliver(self, letters: Sequence[Letter], room: Callable[[], int]) -> Iterator[str | None]:
        """Write all letters by one Spark job.

        Raises
        ------
        ConfigurationError
            The session has no sink for Kafka.
        """
        pairs = [(each.alert_id, each.body) for each in letters]
        rows = frame_of_tuples(self._spark, pairs, "key string, value string")
        wait = str(int(self._timeout * 1000))
        sink = rows.write.format("kafka").option("kafka.bootstrap.servers", self._brokers).option("topic", self._topic)
        sink = sink.option("kafka.max.block.ms", wait).option("kafka.request.timeout.ms", wait)
        failure = None
        try:
            sink.option("kafka.delivery.timeout.ms", wait).option("kafka.linger.ms", "0").save()
        except (PySparkException, Py4JJavaError) as error:
            condition = error.getCondition() if isinstance(error, PySparkException) else None
            if condition in _NO_SOURCE or _NO_KAFKA in str(error):
                raise ConfigurationError(
                    "`to: kafka` needs Spark's sink for Kafka, which this session does not have; start it with the "
                    f"package org.apache.spark:spark-sql-kafka-0-10_2.13:{self._spark.version} in spark.jars.packages"
                ) from None
            # What is wrong with brokers or the topic is an error of Kafka's own, which pyspark does not translate.
            failure = _text(innermost(error))
        yield from (failure for _ in letters)


def target_of(configuration: AlertConfiguration, spark: SparkSession) -> Target:
    """The target that an alert is delivered to outside."""
    timeout = configuration.timeout.total_seconds()
    if configuration.to == WEBHOOK:
        assert configuration.url is not None
        return Webhook(configuration.url, timeout, configuration.at_once)
    if configuration.to == KAFKA:
        assert configuration.brokers is not None
        assert configuration.topic is not None
        return Kafka(spark, configuration.brokers, configuration.topic, timeout)
    assert configuration.command is not None
    return Command(configuration.command, timeout)


def _text(error: object) -> str:
    """What an error says, on one line; what cannot be printed is an escape."""
    return one_line(str(error), _LONGEST) or type(error).__name__

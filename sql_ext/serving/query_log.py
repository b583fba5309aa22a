"""A line in the log for each query that a server answers, and which of them are still at work."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Condition, Event
from time import monotonic
from typing import Any, ClassVar

from patternlake.udfs.shown_text import one_line, printable

logger = logging.getLogger(__name__)

_SHOWN = 300
"""Characters of a statement that are shown."""
_LINGERING = 5.0
"""Seconds for which the rows of an answer that is there are waited for to be fetched."""
_LOOK = 0.5
"""Seconds between looks at whether the wait was cut."""
_CONNECT = "connect"
_SQL = re.compile(r'\b(?:query|sql): "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"((?:\\[0-3][0-7]{2})+)|\\(.)", re.S)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass
class _Query:
    """A query that a client has not closed yet.

    Attributes
    ----------
    user, statement
        Who asked what.
    at
        When it was begun, in milliseconds.
    ended
        When its answer was there, on this process' clock; None: it is at work.
    """

    user: str
    statement: str
    at: int
    ended: float | None = None


class QueryLog:
    """Hears from the JVM what becomes of queries; thread-safe."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Query] = {}
        self._changed = Condition()

    def accept(self, told: str) -> None:
        """Hear of one thing that happened to one query, or of a login that was refused.

        Parameters
        ----------
        told
            JSON: ``door`` (jdbc, connect), ``query`` (its id), ``at`` (milliseconds since the epoch), ``what``
            (started, finished, failed, cancelled, timed out, closed); with ``started`` ``user`` and ``statement``, with
            ``finished`` ``rows``, or null. Of a login that was refused ``door``, ``what`` (refused) and ``user``.
        """
        event = json.loads(told)
        if event["what"] == "refused":
            logger.warning("login refused door=%s user=%s", event["door"], shown_user(event["user"] or ""))
            return
        with self._changed:
            self._note((event["door"], event["query"]), event)
            self._changed.notify_all()

    def _note(self, key: tuple[str, str], event: Mapping[str, Any]) -> None:
        what = event["what"]
        if what == "started":
            shown = shown_plan(event["statement"]) if key[0] == _CONNECT else shown_statement(event["statement"])
            self._open[key] = _Query(shown_user(event["user"] or ""), shown, event["at"])
            return
        query = self._open.get(key)
        if query is None:
            return
        if query.ended is None:
            query.ended = monotonic()
            rows = event.get("rows")
            logger.info(
                "query door=%s user=%s seconds=%.3f rows=%s state=%s: %s",
                key[0],
                query.user,
                (event["at"] - query.at) / 1000,
                "-" if rows is None else rows,
                what,
                query.statement,
            )
        if what == "closed":
            del self._open[key]

    def wait(self, seconds: float, cut: Event | None = None) -> int:
        """Wait until all queries are answered, and their rows fetched.

        Parameters
        ----------
        seconds
            For so long at the most. Rows that nobody fetches are waited for a few seconds only.
        cut
            Ends the wait when it is set.

        Returns
        -------
        int
            How many are still at work.
        """
        until = monotonic() + seconds
        with self._changed:
            while (left := until - monotonic()) > 0 and (pauses := self._pauses()) and not (cut and cut.is_set()):
                self._changed.wait(min(left, _LOOK, *pauses))
            return sum(query.ended is None for query in self._open.values())

    def _pauses(self) -> list[float]:
        """For how long each open query is waited for before it is looked at again."""
        now = monotonic()
        waits = [_LOOK if query.ended is None else query.ended + _LINGERING - now for query in self._open.values()]
        return [wait for wait in waits if wait > 0]

    class Java:
        """What py4j reads."""

        implements: ClassVar[list[str]] = ["java.util.function.Consumer"]


def shown_statement(text: str) -> str:
    """A statement on one line, as far as it is shown."""
    return one_line(text, _SHOWN)


def shown_user(name: str) -> str:
    """A name as one word: where nobody is asked for a password, it is what a client says."""
    return printable(name[:_SHOWN]).replace(" ", r"\x20")


def shown_plan(text: str) -> str:
    """A plan of Spark Connect, which tells it as protobuf's text: its SQL where it has any, on one line."""
    found = _SQL.search(text)
    return shown_statement(_unescape(found[1]) if found else text)


def _unescape(text: str) -> str:
    def meant(found: re.Match[str]) -> str:
        if found[1] is None:
            return _LETTERS.get(found[2], found[2])
        return bytes(int(part, 8) for part in found[1].split("\\")[1:]).decode(errors="replace")

    return _ESCAPED.sub(meant, text)

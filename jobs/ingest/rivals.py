"""Two runs of ingest of one stream at once: how Spark and Delta say so, and how we do."""

from __future__ import annotations

from delta.exceptions import ConcurrentTransactionException
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from patternlake.udfs.errors import ConcurrentRunError


def rivalry(error: BaseException, name: str) -> ConcurrentRunError | None:
    """Spark's and Delta's ways to say that another run of the stream is at work."""
    text = str(error)
    met = isinstance(error, ConcurrentTransactionException) or any(
        sign in text
        for sign in (
            "Multiple streaming jobs detected",
            "Multiple streaming queries are concurrently using",
            "CONCURRENT_STREAM_LOG_UPDATE",
            "is already active",
            "CONCURRENT_QUERY",
        )
    )
    if not met or not isinstance(error, PySparkException | Py4JJavaError | ConcurrentTransactionException):
        return None
    return rival(name)


def rival(name: str) -> ConcurrentRunError:
    """The error of a run that met another one."""
    return ConcurrentRunError(f"another run of ingest of stream {name!r} is at work; this one stopped without harm")

"""Warnings for whoever asks: once for each statement, at the line that asked."""

from __future__ import annotations

import logging
import sys
import threading
import warnings

logger = logging.getLogger(__name__)

_BETWEEN = ("patternlake", "pyspark", "py4j", "threading")
"""Packages between a warning and the line that asked."""


def warn_user(text: str) -> None:
    """Tell Python's warnings and the log, but a console only once.

    Without any handler, `logging` would write to the console by itself, beside Python's warning; a handler that writes
    there has said it already. A statement that is asked again warns again: filters of `warnings` for it still hold.

    Parameters
    ----------
    text
        What is wrong, and what would be right.
    """
    if logger.hasHandlers():
        logger.warning("%s", text)
    if _logs_to_console():
        return
    path, line, module = _asking_line()
    # Without a registry: it would keep a text that was shown at a line from being shown there again.
    warnings.warn_explicit(text, UserWarning, path, line, module)


def _logs_to_console() -> bool:
    at: logging.Logger | None = logger
    while at is not None:
        for handler in at.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stderr, sys.stdout):
                return handler.level <= logging.WARNING and logger.isEnabledFor(logging.WARNING)
        at = at.parent if at.propagate else None
    return False


def _asking_line() -> tuple[str, int, str]:
    """File, line and module of the innermost code that called one of the packages between."""
    here = sys._getframe(1)
    # Spark calls back in a thread of its own, while the thread that asks waits: mostly the main one.
    for innermost in (here, sys._current_frames().get(threading.main_thread().ident or 0)):
        frame, inside = innermost, False
        while frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            if module.partition(".")[0] in _BETWEEN:
                inside = True
            elif inside:
                return frame.f_code.co_filename, frame.f_lineno, module
            frame = frame.f_back
    return here.f_code.co_filename, here.f_lineno, __name__

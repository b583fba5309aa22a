"""A notebook shows the rows of a DataFrame that is a cell's last line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EAGER = "spark.sql.repl.eagerEval.enabled"
"""Spark's setting for it."""


def notebook_settings() -> dict[str, str]:
    """Return settings for a session that is started in a notebook, and keep its first display from asking twice.

    Returns
    -------
    dict of str to str
        Empty elsewhere: a debugger or a log, which ask for a DataFrame's text, would run its query.
    """
    shell = _notebook()
    if shell is None:
        return {}
    # Of the class itself: IPython looks for a printer from there, and takes its __repr__ before that of a base.
    from pyspark.sql.classic.dataframe import DataFrame

    # Jupyter asks for a text beside the table, and Spark would run the query once for each.
    shell.display_formatter.formatters["text/plain"].for_type(DataFrame, _write_columns)
    return {EAGER: "true"}


def _notebook() -> Any | None:
    """IPython's shell, where it serves a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def _write_columns(frame: DataFrame, printer: Any, cycle: bool) -> None:
    printer.text(f"DataFrame[{', '.join(f'{name}: {kind}' for name, kind in frame.dtypes)}]")

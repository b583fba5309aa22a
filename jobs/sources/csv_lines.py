"""Lines of CSV that end inside a value in quotes, which Spark would end there and say nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from patternlake.jobs.sources.bad_files import MISREAD, show_line

OPEN_QUOTE = f"{MISREAD}: a value in quotes goes on in the next line, which needs `multiLine: true`"


@dataclass(frozen=True)
class Quotes:
    """How values of CSV whose records are lines are quoted.

    Parameters
    ----------
    quote, escape, separator
        As the source's options have them.
    blanks
        Whether blanks before a quote are left out.
    comment
        What lines begin with that are no records.
    """

    quote: str
    escape: str = ""
    separator: str = ","
    blanks: bool = False
    comment: str = ""

    def find_open_one(self, lines: bytes) -> str | None:
        """Say what is wrong where a line ends inside quotes."""
        quote = self.quote.encode()
        if not quote or quote not in lines:
            return None
        data = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        at, counts = np.unique(np.searchsorted(ends, np.flatnonzero(data == quote[0])), return_counts=True)
        if self.escape == self.quote and len(quote) == 1:
            at = at[counts % 2 == 1]  # Quotes that are closed, or doubled, are even in number.
        begins = np.concatenate(([0], ends + 1))
        for begin, end in zip(begins[at].tolist(), ends[at].tolist(), strict=True):
            line = lines[begin:end].decode()
            if self.comment and line.startswith(self.comment):
                continue
            if self._opened.search(line):
                return f"{OPEN_QUOTE}: {show_line(line)}"
        return None

    @cached_property
    def _opened(self) -> re.Pattern[str]:
        """A line in which a value begins with a quote, and none closes it."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        inside = f"[^{quote}{escape}]" + (f"|{escape}{quote if escape == quote else '.'}" if escape else "")
        blanks = r"\s*" if self.blanks else ""
        return re.compile(f"(?:^|{re.escape(self.separator)}){blanks}{quote}(?:{inside})*$")

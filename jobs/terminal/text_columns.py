"""Rows as columns of text, for people who read a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def align(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> Iterator[str]:
    """Lay rows out in columns.

    Parameters
    ----------
    header
        Titles.
    rows
        One text per column; line breaks and tabs in it are shown as escapes.
    right
        Indices of the columns that are aligned right, as numbers are.

    Yields
    ------
    str
        One line each, without line break: titles, a rule, the rows.
    """
    from rich.cells import cell_len

    lines = [[_on_one_line(text) for text in row] for row in (header, *rows)]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(header))]
    to_right = set(right)

    def laid(line: list[str]) -> str:
        cells = []
        for index, text in enumerate(line):
            gap = " " * (widths[index] - cell_len(text))
            cells.append(gap + text if index in to_right else text + gap)
        return "  ".join(cells).rstrip()

    yield laid(lines[0])
    yield "  ".join("-" * width for width in widths)
    yield from map(laid, lines[1:])


def _on_one_line(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")

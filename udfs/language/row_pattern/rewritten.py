"""A text that edits made of another one, and where its pieces stand in that: errors show the user's own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Edit(NamedTuple):
    """A part of a text, and what takes its place.

    Attributes
    ----------
    start, end
        The part; an insertion has none.
    text
        What stands there then.
    place
        Where an error about it belongs.
    """

    start: int
    end: int
    text: str
    place: int

    def shift(self, by: int) -> Edit:
        """The same edit of a text that has this one behind so many characters."""
        return Edit(self.start + by, self.end + by, self.text, self.place + by)


class Piece(NamedTuple):
    """A piece of an edited text.

    Attributes
    ----------
    begin
        Where it begins.
    place
        Where it stands in the original.
    is_copied
        Whether it stands there word by word; else all of it belongs to the place.
    """

    begin: int
    place: int
    is_copied: bool


@dataclass(frozen=True)
class Rewritten:
    """An edited text.

    Attributes
    ----------
    text
        As it is now.
    pieces
        In their order; the last one is empty, and stands at the end.
    """

    text: str
    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, text: str) -> Rewritten:
        """A text without edits."""
        return cls(text, (Piece(0, 0, True), Piece(len(text), len(text), True)))

    def locate(self, offset: int) -> int:
        """Find the place in the original of an offset into the text."""
        piece = self.pieces[bisect_right(self.pieces, offset, key=lambda one: one.begin) - 1]
        return piece.place + (offset - piece.begin if piece.is_copied else 0)

    def edit(self, edits: Sequence[Edit]) -> Rewritten:
        """Edit the text; of two edits, the one that comes first ends before the other one, or where it begins."""
        texts: list[str] = []
        pieces: list[Piece] = []
        length = at = 0
        for edit in (*edits, Edit(len(self.text), len(self.text), "", len(self.text))):
            # What stands before the part stays, in the pieces that it has.
            for piece, following in zip(self.pieces, self.pieces[1:], strict=False):
                begin = max(at, piece.begin)
                if begin < min(edit.start, following.begin):
                    pieces.append(Piece(length + begin - at, self.locate(begin), piece.is_copied))
            texts += [self.text[at : edit.start], edit.text]
            length += edit.start - at
            if edit.text:
                pieces.append(Piece(length, self.locate(edit.place), False))
                length += len(edit.text)
            at = edit.end
        return Rewritten("".join(texts), (*pieces, Piece(length, self.locate(len(self.text)), True)))

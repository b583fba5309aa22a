"""Worked answers of SPEC 3 (and streams written as words) for the tests of the kleene engine."""

from __future__ import annotations

from dataclasses import dataclass

from naive.kleene import Event, Row

TYPES = {"x": "double", "y": "double", "s": "string"}


def stream(text: str) -> list[Event]:
    """``"a1 b2 a4=5"``: names with positions and, behind ``=``, attribute x; times are positions in milliseconds."""
    found = []
    for word in text.split():
        head, _, value = word.partition("=")
        position = int(head[1:])
        found.append(Event(position, position * 1000, head[0], {"x": float(value)} if value else {}))
    return found


@dataclass(frozen=True)
class Worked:
    """A pattern, its events and its rows, each as words."""

    pattern: str
    events: str
    rows: tuple[str, ...]


def words(row: Row, names: dict[int, str]) -> str:
    """A row as words in the order of positions."""
    return " ".join(f"{names[position]}{position}" for position in sorted(p for run in row.values() for p in run))


WORKED = (
    Worked(
        "g & m+ WITHIN 5 EVENTS",
        "m1 m2 g3 g4 m5 g6 m7",
        ("m1 m2 g3", "m1 m2 g4", "m2 m5 g6", "g3 m5 m7", "g4 m5 m7", "g6 m7"),
    ),
    Worked(
        "a ; b[3] ; c ; d",
        "a2 b4 b6 b7 b8 b9 c10 d12",
        (
            "a2 b4 b6 b7 c10 d12",
            "a2 b4 b6 b8 c10 d12",
            "a2 b4 b6 b9 c10 d12",
            "a2 b4 b7 b8 c10 d12",
            "a2 b4 b7 b9 c10 d12",
            "a2 b4 b8 b9 c10 d12",
            "a2 b6 b7 b8 c10 d12",
            "a2 b6 b7 b9 c10 d12",
            "a2 b6 b8 b9 c10 d12",
            "a2 b7 b8 b9 c10 d12",
        ),
    ),
    Worked("a+ ; b ; c+ WITHIN 5 EVENTS", "a1 a2 z3 b4 c5 c6", ("a1 a2 b4 c5", "a2 b4 c5 c6")),
    Worked("a+ ; b+", "a1 b2 a3 b4", ("a1 b2 b4", "a1 a3 b4")),
    Worked("b+ b[] WHERE b[i].x > b[i-1].x", "b1=5 b2=3 b3=4 b4=6", ("b1 b4",)),
    Worked("a+ ; !x ; b", "a1 x2 a3 b4", ("a1 a3 b4",)),
    # A collected event that fails is dropped, the composite stays; too few left end it.
    Worked("g ; m+ ; d ; i WHERE i.x > m.x", "g2=12 m3=16 m6=12 m7=13 d8=18 i9=14", ("g2 m6 m7 d8 i9",)),
    Worked("g ; m+ ; d ; i WHERE i.x > m.x", "g2=12 m3=16 d8=18 i9=14", ()),
    Worked("g ; m* ; d ; i WHERE i.x > m.x", "g2=12 m3=16 d8=18 i9=14", ("g2 d8 i9",)),
    # All pairs between two repeated operands.
    Worked("a+ ; b+ WHERE a.x < b.x", "a1=1 a2=3 b3=2 b4=4", ("a1 b3 b4", "a1 a2 b4")),
    # An event out of the window makes room for others.
    Worked("a+ WITHIN 3 EVENTS", "a1 a2 a3 a4", ("a1 a2 a3", "a2 a3 a4")),
    Worked("a+ a[] WHERE a[i].x > a[i-1].x WITHIN 3 EVENTS", "a1=5 a2=3 a3=4 a4=6", ("a1", "a2 a3 a4")),
    # Composites under '&' interleave, each repeated operand in one block.
    Worked("(a ; b) & c", "c1 a2 c3 b4 c5", ("c1 a2 b4", "a2 c3 b4", "a2 b4 c5")),
    Worked("(a ; b+) & c", "a1 b2 c3 b4", ("a1 b2 c3", "a1 c3 b4")),
    # A negated event counts only with its predicates, for all kept events.
    Worked("a+ ; !x ; b WHERE x.x > a.x", "a1=1 a2=5 x3=3 b4", ("a1 a2 b4",)),
    Worked("a+ ; !x ; b WHERE x.x > a.x", "a1=1 a2=2 x3=3 b4", ()),
    Worked("(a | b+) ; c", "a1 b2 b3 c4", ("a1 c4", "b2 b3 c4")),
    Worked("a+ ; b WHERE [x]", "a1=1 a2=2 a3=1 b4=1", ("a1 a3 b4",)),
    Worked("a* ; b*", "", ()),
)

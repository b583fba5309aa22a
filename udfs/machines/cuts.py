"""The states of one subscription: which of its operands are bound, as far as order goes.

Source: Muthusamy et al. 2010, sections 4.1 and 4.2 (BuildStateMachine; Boolean machines with child machines). A **cut**
says how far a chain has come: the items that are done, and of the item under way how far its child machines have come.
A sequence of m items has m + 1 cuts, the states N0 to Nm. From a cut, **moves** bind one more operand; where the item
that comes next must follow directly, the cut is **pending**: it lasts for one event and knows no other move. All other
cuts wait: they have the paper's self link.

Departures from the paper: child machines are not run beside their parent and joined by triggers; a cut holds the states
of all of them, which is the paper's global state (section 5.2.3). Only ``&`` multiplies cuts, so they are limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from patternlake.udfs.machines.subscription import Chain, Item


@dataclass(frozen=True, slots=True)
class Cut:
    """How far a chain has come.

    Attributes
    ----------
    done
        Number of its items that are done.
    alternative
        Of an ``|`` under way: which alternative was taken; -1 otherwise.
    children
        Of an item under way: the cuts of its child machines, of ``|`` that of the taken alternative alone; empty
        where no item is under way.
    """

    done: int = 0
    alternative: int = -1
    children: tuple[Cut, ...] = ()


START = Cut()


@dataclass(frozen=True, slots=True)
class Move:
    """One more operand is bound: `primitive`; `direct`: by the event directly after the one before it."""

    primitive: int
    target: Cut
    direct: bool


def complete(chain: Chain, cut: Cut) -> bool:
    """Whether all items are done."""
    return cut.done == len(chain.items)


def pending(chain: Chain, cut: Cut) -> bool:
    """Whether the next event decides: something must follow directly."""
    if cut.children:
        item = chain.items[cut.done]
        return any(pending(child, part) for child, part in _under_way(item, cut))
    return 0 < cut.done < len(chain.items) and chain.next_to[cut.done]


def moves(chain: Chain, cut: Cut) -> list[Move]:
    """All moves from a cut."""
    found = list(_moves(chain, cut))
    return [move for move in found if move.direct] if pending(chain, cut) else found


def _moves(chain: Chain, cut: Cut) -> Iterator[Move]:
    if complete(chain, cut):
        return
    item = chain.items[cut.done]
    after = Cut(cut.done + 1)
    if item.primitive >= 0:
        yield Move(item.primitive, after, chain.next_to[cut.done])
        return
    begins = not cut.children
    for number, (child, part) in enumerate(_under_way(item, cut)):
        for move in _moves(child, part):
            if item.every:
                parts = list(cut.children or (START,) * len(item.children))
                parts[number] = move.target
                whole = all(complete(one, state) for one, state in zip(item.children, parts, strict=True))
                target = after if whole else Cut(cut.done, -1, tuple(parts))
            else:
                alternative = number if begins else cut.alternative
                target = after if complete(child, move.target) else Cut(cut.done, alternative, (move.target,))
            yield Move(move.primitive, target, chain.next_to[cut.done] if begins else move.direct)


def behind(chain: Chain, cut: Cut) -> list[Cut]:
    """The cuts of a sequence of primitives that a discarded copy may go to: its own, and back to the first boundary."""
    boundaries = [done for done in range(1, len(chain.items)) if not chain.next_to[done]]
    return [Cut(done) for done in range(cut.done, boundaries[0] - 1, -1)] if boundaries else []


def fallbacks(chain: Chain, cut: Cut) -> list[Cut]:
    """The cuts that a discarded copy may go to by its own kin: those that led to it, back to the last that wait."""
    led: dict[Cut, set[Cut]] = {}
    order = {START: None}
    waiting = [START]
    for one in waiting:
        for move in moves(chain, one):
            led.setdefault(move.target, set()).add(one)
            if move.target not in order:
                order[move.target] = None
                waiting.append(move.target)
    found = {cut}
    looked = [cut]
    for one in looked:
        for before in led.get(one, ()):
            if before != START and before not in found:
                found.add(before)
                if pending(chain, before):
                    looked.append(before)
    return [one for one in reversed(order) if one in found]


def _under_way(item: Item, cut: Cut) -> list[tuple[Chain, Cut]]:
    """Child machines of an item with their cuts; of ``|`` the taken alternative alone, if one is taken."""
    if not cut.children:
        return [(child, START) for child in item.children]
    chains = item.children if item.every else (item.children[cut.alternative],)
    return list(zip(chains, cut.children, strict=True))


def state_name(chain: Chain, cut: Cut) -> str:
    """How a cut is shown: ``N2``, with the states of child machines under way as in ``N1(N1, N0)``."""
    if not cut.children:
        return f"N{cut.done}"
    inner = [state_name(child, part) for child, part in _under_way(chain.items[cut.done], cut)]
    if cut.alternative >= 0:
        inner = [f"{cut.alternative + 1}: {inner[0]}"]
    return f"N{cut.done}({', '.join(inner)})"

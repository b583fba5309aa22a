"""The states of one subscription: which of its operands are bound, as far as order goes.

Source: Muthusamy et al. 2010, sections 4.1 and 4.2 (BuildStateMachine; Boolean machines with child machines). A
**composite state** says how far a chain has come: the items that are done, and of the item under way how far its child
machines have come. A sequence of m items has m + 1 composite states, the states N0 to Nm. From a composite state,
**moves** bind one more operand; where the item that comes next must follow directly, the composite state is
**pending**: it lasts for one event and knows no other move. All other composite states wait: they have the paper's self
link.

Departures from the paper: child machines are not run beside their parent and joined by triggers; a composite state
holds the states of all of them, which is the paper's global state (section 5.2.3). Only ``&`` multiplies composite
states, so they are limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from patternlake.udfs.machines.query import Chain, Item


@dataclass(frozen=True, slots=True)
class CompositeState:
    """How far a chain has come.

    Attributes
    ----------
    done
        Number of its items that are done.
    alternative
        Of an ``|`` under way: which alternative was taken; -1 otherwise.
    children
        Of an item under way: the composite states of its child machines, of ``|`` that of the taken alternative alone;
        empty where no item is under way.
    """

    done: int = 0
    alternative: int = -1
    children: tuple[CompositeState, ...] = ()


START = CompositeState()


@dataclass(frozen=True, slots=True)
class Move:
    """One more operand is bound: `primitive`; `direct`: by the event directly after the one before it."""

    primitive: int
    target: CompositeState
    direct: bool


def complete(chain: Chain, composite_state: CompositeState) -> bool:
    """Whether all items are done."""
    return composite_state.done == len(chain.items)


def pending(chain: Chain, composite_state: CompositeState) -> bool:
    """Whether the next event decides: something must follow directly."""
    if composite_state.children:
        item = chain.items[composite_state.done]
        return any(pending(child, part) for child, part in _under_way(item, composite_state))
    return 0 < composite_state.done < len(chain.items) and chain.next_to[composite_state.done]


def moves(chain: Chain, composite_state: CompositeState) -> list[Move]:
    """All moves from a composite state."""
    found = list(_moves(chain, composite_state))
    return [move for move in found if move.direct] if pending(chain, composite_state) else found


def _moves(chain: Chain, composite_state: CompositeState) -> Iterator[Move]:
    if complete(chain, composite_state):
        return
    item = chain.items[composite_state.done]
    after = CompositeState(composite_state.done + 1)
    if item.primitive >= 0:
        yield Move(item.primitive, after, chain.next_to[composite_state.done])
        return
    begins = not composite_state.children
    for number, (child, part) in enumerate(_under_way(item, composite_state)):
        for move in _moves(child, part):
            if item.every:
                parts = list(composite_state.children or (START,) * len(item.children))
                parts[number] = move.target
                whole = all(complete(one, state) for one, state in zip(item.children, parts, strict=True))
                target = after if whole else CompositeState(composite_state.done, -1, tuple(parts))
            else:
                alternative = number if begins else composite_state.alternative
                target = (
                    after
                    if complete(child, move.target)
                    else CompositeState(composite_state.done, alternative, (move.target,))
                )
            yield Move(move.primitive, target, chain.next_to[composite_state.done] if begins else move.direct)


def fallback_states(chain: Chain, composite_state: CompositeState) -> list[CompositeState]:
    """The composite states of a sequence of primitives that a discarded copy may go to: its own, and back to the first
    boundary.
    """
    boundaries = [done for done in range(1, len(chain.items)) if not chain.next_to[done]]
    return [CompositeState(done) for done in range(composite_state.done, boundaries[0] - 1, -1)] if boundaries else []


def fallback_states_by_lineage(chain: Chain, composite_state: CompositeState) -> list[CompositeState]:
    """The composite states that a discarded copy may go to by its own kin: those that led to it, back to the last that
    wait.
    """
    led: dict[CompositeState, set[CompositeState]] = {}
    order = {START: None}
    waiting = [START]
    for one in waiting:
        for move in moves(chain, one):
            led.setdefault(move.target, set()).add(one)
            if move.target not in order:
                order[move.target] = None
                waiting.append(move.target)
    found = {composite_state}
    looked = [composite_state]
    for one in looked:
        for before in led.get(one, ()):
            if before != START and before not in found:
                found.add(before)
                if pending(chain, before):
                    looked.append(before)
    return [one for one in reversed(order) if one in found]


def _under_way(item: Item, composite_state: CompositeState) -> list[tuple[Chain, CompositeState]]:
    """Child machines of an item with their composite states; of ``|`` the taken alternative alone, if one is taken."""
    if not composite_state.children:
        return [(child, START) for child in item.children]
    chains = item.children if item.every else (item.children[composite_state.alternative],)
    return list(zip(chains, composite_state.children, strict=True))


def state_name(chain: Chain, composite_state: CompositeState) -> str:
    """How a composite state is shown: ``N2``, with the states of child machines under way as in ``N1(N1, N0)``."""
    if not composite_state.children:
        return f"N{composite_state.done}"
    inner = [state_name(child, part) for child, part in _under_way(chain.items[composite_state.done], composite_state)]
    if composite_state.alternative >= 0:
        inner = [f"{composite_state.alternative + 1}: {inner[0]}"]
    return f"N{composite_state.done}({', '.join(inner)})"

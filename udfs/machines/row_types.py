"""Rows of the structured arrays that the kernels read and write.

What a kernel needs of one thing together lies side by side in memory: where there are many subscriptions, waiting for
memory is most of the time of an event. In what is only read, numbers of rows take 4 bytes, for the same reason.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.void]
"""A structured array."""


def row_type(flags: str = "", numbers: str = "", wide: str = "", weights: str = "") -> np.dtype[np.void]:
    """The dtype of a structured array, by names of its fields.

    Parameters
    ----------
    flags, numbers, wide, weights
        Names of bool, int32, int64 and float64 fields.
    """
    kinds = ((wide, np.int64), (weights, np.float64), (numbers, np.int32), (flags, np.bool_))
    return np.dtype([(name, kind) for names, kind in kinds for name in names.split()], align=True)


# -- what is read: `tables.Tables` --

STATE = row_type("pending final plain lasting by_instance", "ahead_at out_at role_at", "exact earliest")
"""A state.

- **pending**, **final**: it lasts for one event; it completes a subscription.
- **plain**: it waits, and instances of it that bound the same operands are the same and live for good.
- **lasting**: instances of it live for good: they can be completed, and no condition, join or window can prevent it.
- **by_instance**: its instances count moves of their own.
- **ahead_at**: its completion paths.
- **exact**, **earliest**: operands, as bits, whose times tell instances apart, and those that may be as early as they
  like.
"""
DEADLINE = row_type("timed", "opens_at falls_at boundary_at", "most most_events most_closed")
"""What more there is to a state whose instances count moves of their own.

- **timed**: they have ages.
- **most**, **most_events**, **most_closed**: how much can be left, as `ages.age_of` takes it.
"""
LINK = row_type("rival", "source target operand rank limit_at move_at")
"""A link.

- **rival**: another link of the same subscription leads out of the source, so that one event may follow both.
- **rank**: of two rivals the one with the smaller rank counts as the move.
"""
PRIMITIVE = row_type("", "link_at join_at")
COMPLETION_PATH = row_type("", "missing bound_at agree_at")
"""A completion path; **missing**: operands that it misses, where the window counts events."""
BOUND = row_type("", "one other", "most")
"""The time of `one` is at most so much after that of the `other`; operands, `NOW`, `FIRST`."""
AGREEMENT = row_type("", "", "variables columns")
"""Variables and columns of the partition, as bits, that agree."""
OF_EVENT = -1
"""Stands for an operand: the one that the link's event is taken as."""
LIMIT = row_type("after absolute", "operand other onward otherwise beyond", "low high")
"""Bounds on the time of a link's event after that of an operand (**after** False: before; **absolute**: either).

- **other**: the operand whose time stands in the place of the event's, or `OF_EVENT`.
- **onward**, **otherwise**, **beyond**: how many rows further the link's conditions go on where it holds, where it does
  not (0: the link is not followed), and where its condition does not apply.
"""
JOIN = row_type("", "variable column")
MOVE = row_type("", "role advance_counter")
ROLE = row_type("", "counted_state")
OPEN = row_type("", "operand", "low")
COUNTED_STATE = row_type("waits", "fallback_state_at left_at")
"""A counted state; **left_at**: where its counts begin of what became of those that don't wait: one for each fallback
state, and one for `DEAD`.
"""
ADVANCE_COUNTER = row_type("waits", "state fired_at")
"""An advance counter: its counted state, whether that waits, and where its own such counts begin."""

# -- what is written: `workspace.Workspace` --

INSTANCE = row_type(wide="state mask previous following parent serial digest first_time first_rank due_time due_rank")
"""An instance of a state, of int64 alone: `Workspace.joins` and so on go on in the same row of memory.

- **state**: of the graph; `NONE`: not in use.
- **mask**: operands that are bound, as bits.
- **previous**, **following**: neighbours in the state's list.
- **parent**: what the current event made it of.
- **serial**: its number.
- **digest**: hash, or `NONE` of one that came when its state had none.
- **first_time**, **first_rank**: of the first event.
- **due_time**, **due_rank**: when a new look at the completion paths is due.
"""
MOVER = row_type(
    wide="ends_time ends_rank opens age since source source_serial moved_serial moved_row fell_state fell_age"
)
"""What more there is to an instance that counts moves of its own.

- **ends_time**, **ends_rank**: when no completion path is left.
- **opens**, **age**, **since**: when lower bounds are reached; the age after the events before `since`, up to which
  moves are counted.
- **source**, **source_serial**: of what lasts for one event the waiting instance that it is a copy of, and its serial.
- **moved_serial**, **moved_row**: the last event that followed a rival link, and its row of `Workspace.moved`.
- **fell_state**, **fell_age**: of what was discarded what it went back to.
"""
GROUP = row_type(wide="counted_state held digest advanced by_counter end nonwaiting_at", weights="since")
"""A group of instances.

- **counted_state**: `NONE`: not in use.
- **held**: how many instances hold it.
- **advanced**, **by_counter**: the last event at which it advanced, and by which advance counter.
- **end**, **nonwaiting_at**: what becomes of discarded copies at the current event; its index in
  `Workspace.nonwaiting_groups`.
- **since**: weight of the events before it was occupied.
"""
OCCUPANCY = row_type(wide="first others sets", weights="visits")
"""Of a counted state.

- **first**, **others**: the group that came when there was no other, or `NONE`, and how many there are beside it. What
  the empty assignment holds always is the first group of its counted state.
- **sets**: how many sets of variables its groups bind.
- **visits**: weight of the events at which it was occupied.
"""
STATE_LIST = row_type(wide="head best")
"""Of a state its first instance, and the smallest assignment that completes it at this event."""
MADE = row_type(wide="instance kept")
"""An instance that the current event made, and what stands for it."""
DISCARD = row_type(wide="instance state")
FIRING = row_type(wide="group advance_counter link")
MOVEMENT = row_type(wide="instance link age")
"""An instance that counts moves of its own, a link, and the age of what comes of it."""
MATCH = row_type(wide="event state mask")

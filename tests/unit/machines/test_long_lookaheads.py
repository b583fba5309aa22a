"""A lookahead in time that is longer than any two moments are apart."""

from __future__ import annotations

import json

import numpy as np
import pytest

from patternlake.udfs.machines.graph.composite_states import CompositeState
from patternlake.udfs.machines.request import COUNTING, check_request, forecast
from patternlake.udfs.published import Published, PublishedBatch

SECOND = 1_000_000
ENTRY = {"query": "a ; b PARTITION BY key", "params": {}, "smoothing": 0.0, "decay": 0.0}


def test_a_lookahead_may_be_longer_than_64_bits_hold() -> None:
    # One partition waited for a second, and three still wait for their next event.
    waits = [[0, 319, 0, 1, SECOND, SECOND, SECOND], [0, -1, 0, 3, 0, 0, 0]]
    at = PublishedBatch(
        object="s",
        object_id=1,
        base_batch=1,
        batch_id=1,
        watermark=10 * SECOND,
        source=json.dumps({"ingest_base": 1, "ingest_batch": 1}),
        state=json.dumps({"counting": COUNTING, "waits": {"key": waits}}),
        configuration=json.dumps({"subscriptions": {"ab": ENTRY}, "stream": {"attributes": {}, "key": None}}),
    )
    arguments = {"subscription": "ab", "lookahead": "300000000 DAYS"}
    asked = check_request(arguments, {"s": Published(at, first=0)})
    moves = [{"state": "N1", "age": 0, "next_state": "N2", "next_age": 0, "moves": 1.0}]
    passage = forecast(asked.question, moves, asked.waited, asked.time).passage
    none = np.zeros(1, np.int64)
    probability = passage.within(CompositeState(1), none, none, last=2)[0, -1]
    # An event comes if the wait is no longer than the one that ended, and it is b.
    assert probability == pytest.approx(1 / 4)

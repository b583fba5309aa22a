"""Which stream a subscription is asked of, by its name."""

from __future__ import annotations

import json

import pytest

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.machines.request import COUNTING, check_request
from patternlake.udfs.published import Published, PublishedBatch

ENTRY = {"query": "a ; b", "params": {}, "lookahead": 3, "threshold": 0.0, "smoothing": 0.0, "decay": 0.0}


def published(*names: str, stream: str) -> Published:
    configuration = {"subscriptions": dict.fromkeys(names, ENTRY), "stream": {"attributes": {}, "key": None}}
    at = PublishedBatch(
        object=stream,
        object_id=1,
        base_batch=1,
        batch_id=1,
        watermark=0,
        source=json.dumps({"ingest_base": 1, "ingest_batch": 1}),
        state=json.dumps({"counting": COUNTING}),
        configuration=json.dumps(configuration),
    )
    return Published(at, first=0)


def asked_of(name: str) -> str:
    streams = {one: published("both", *mine, stream=one) for one, mine in (("left", ["only"]), ("right", ["other"]))}
    return check_request({"subscription": name}, streams).stream


def test_a_subscription_is_asked_of_the_stream_that_has_it() -> None:
    assert (asked_of("only"), asked_of("other")) == ("left", "right")


def test_a_name_that_two_streams_have_is_refused_with_both() -> None:
    with pytest.raises(ArgumentError) as raised:
        asked_of("both")
    assert str(raised.value) == (
        "the streams 'left' and 'right' each have a subscription 'both', so that it is not said which one answers; "
        "configure it under one of the streams, or under another name, and run `predict` of both"
    )

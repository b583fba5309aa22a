"""What is refused of a call over trends before anything is read, of a configured query and of its text alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.published import Published, PublishedBatch
from patternlake.udfs.trends.request import TrendReads, check_request
from patternlake.udfs.trends.text_request import check_text

STATE = json.dumps({"vertices": 2, "lowest_pane": 0, "highest_pane": 0})


def of_a_configured_query(text: str, stream: dict[str, Any], **arguments: Any) -> TrendReads:
    configuration = {"stream_name": "letters", "query": text, "params": {}, "stream": stream}
    at = PublishedBatch(1, 1, 1, json.dumps(configuration), state=STATE)
    return check_request({"query": "ab", **arguments}, Published(at), ["ab"], whole=True)


def of_a_text(text: str, stream: dict[str, Any], **arguments: Any) -> TrendReads:
    at = PublishedBatch(1, 1, 1, json.dumps(stream))
    return check_text({"query": text, "stream": "letters", **arguments}, Published(at), ["letters"], [], whole=True)


@pytest.mark.parametrize("check", [of_a_configured_query, of_a_text])
def test_a_key_of_a_stream_without_keys_is_refused(check: Any) -> None:
    stream = {"key": None, "attributes": {"x": {"type": "bigint", "expr": "x"}}}
    with pytest.raises(ArgumentError, match=r"key => 'k1': the stream 'letters' has no key; configure `key` for it"):
        check("PATTERN A ; B", stream, key="k1")
    assert check("PATTERN A ; B PARTITION BY x", stream, key="1").request.key == "1"
    assert check("PATTERN A ; B", {**stream, "key": "who"}, key="k1").request.key == "k1"

"""Which conditions of DEFINE go to Spark, told before it is asked."""

from __future__ import annotations

import json
from typing import cast

import pytest

from patternlake.sql_ext.answering.stream_facts import StreamFacts
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.patterns.spark_definitions import with_definitions
from patternlake.udfs.errors import PredicateError
from patternlake.udfs.published import Published, PublishedBatch

NO_LAKE = cast(Lake, None)
STREAM = {"key": "who", "attributes": {"x": {"type": "double"}, "page": {"type": "string"}}}


@pytest.mark.parametrize(
    ("condition", "params", "place", "said"),
    [
        ("time > '2024-02-30' AND page RLIKE 'e'", {}, "'2024-02-30'", "'2024-02-30' cannot be read as a timestamp"),
        ("page RLIKE 'e' AND x > '1,000'", {}, "'1,000'", "'1,000' cannot be read as a double"),
        ("x > least", {"least": "abc"}, "least", "'abc' cannot be read as a double"),
    ],
)
def test_a_constant_that_can_never_match_is_refused(
    condition: str, params: dict[str, str], place: str, said: str
) -> None:
    # Spark would make NULL of it, and the condition would hold for no event.
    batch = PublishedBatch(object_id=1, base_batch=0, batch_id=1, configuration=json.dumps(STREAM), watermark=None)
    facts = StreamFacts(1, Published(batch), ["s"], [])
    text = f"A ; b DEFINE b AS {condition}"
    with pytest.raises(PredicateError) as caught:
        with_definitions(NO_LAKE, facts, {"pattern": text, "params": params})
    assert caught.value.message == said
    assert caught.value.text[caught.value.start :].startswith(place)

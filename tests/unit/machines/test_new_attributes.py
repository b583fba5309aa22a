"""Attributes that a stream gets while subscriptions run, with names that these use already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from patternlake.jobs.machines.subscriptions import refuse_new_meanings
from patternlake.udfs.errors import ConfigurationError

QUERIES = {
    "keyed": "a ; b PARTITION BY tailnum",
    "bounded": "a ; b DEFINE a AS name = 'a' AND x > least",
    "own": "a ; b DEFINE a AS name = 'a' AND x > 1 PARTITION BY key",
}


def refused(*added: str) -> list[str]:
    """The subscriptions that go on no more."""
    before = {"attributes": {"x": {"type": "bigint"}}, "key": "tailnum"}
    now = {**before, "attributes": {name: {"type": "bigint"} for name in ("x", *added)}}
    stream: Any = SimpleNamespace(object="flights", configuration=now)
    last: Any = SimpleNamespace(configuration={"stream": before})
    found = []
    for name, query in QUERIES.items():
        try:
            refuse_new_meanings({name: {"query": query, "params": {"least": "3"}}}, stream, last)
        except ConfigurationError:
            found.append(name)
    return found


@pytest.mark.parametrize(
    ("added", "names"),
    [((), []), (("y",), []), (("tailnum",), ["keyed"]), (("least", "y"), ["bounded"])],
)
def test_attributes_that_take_a_name_from_a_running_subscription_are_refused(
    added: tuple[str, ...], names: list[str]
) -> None:
    assert refused(*added) == names


def test_the_refusal_names_subscription_attribute_and_way_out() -> None:
    before: dict[str, Any] = {"attributes": {}, "key": "tailnum"}
    stream: Any = SimpleNamespace(
        object="flights", configuration={**before, "attributes": {"tailnum": {"type": "string"}}}
    )
    last: Any = SimpleNamespace(configuration={"stream": before})
    with pytest.raises(ConfigurationError) as raised:
        refuse_new_meanings({"keyed": {"query": QUERIES["keyed"], "params": {}}}, stream, last)
    assert str(raised.value) == (
        "subscriptions.keyed.query: 'tailnum' is an attribute of the stream 'flights' now, and was the key or a "
        "parameter when the subscription began; what is kept would not fit together with what comes: run `predict` "
        "with --rebuild"
    )

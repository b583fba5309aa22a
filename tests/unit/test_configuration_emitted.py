"""`emit: true`: a subscription's matches are a stream of the configuration, behind the one that they are made of."""

from __future__ import annotations

import textwrap

import pytest

from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.steps import find_waits, steps
from patternlake.udfs.errors import ConfigurationError

STREAMS = """
streams:
  clicks:
    source: {format: csv, path: clicks, options: {header: true}}
    time: at
    name: what
    attributes: {price: double}
subscriptions:
"""


def loaded(subscriptions: str) -> Configuration:
    return Configuration.from_text(STREAMS + textwrap.indent(textwrap.dedent(subscriptions), "  "))


CHAIN = """
twice: {stream: sale, query: "sale AS s1 ; sale AS s2 WITHIN 1 DAY", emit: true}
sale: {stream: clicks, query: "look ; buy PARTITION BY key", emit: true}
quiet: {stream: clicks, query: "look ; leave"}
"""


def test_matches_have_position_time_and_attributes_of_each_operand() -> None:
    configuration = loaded(CHAIN)
    assert list(configuration.streams) == ["clicks", "sale", "twice"]
    sale = configuration.streams["sale"]
    assert sale.types == {
        "look_position": "bigint",
        "look_time": "timestamp",
        "look_price": "double",
        "buy_position": "bigint",
        "buy_time": "timestamp",
        "buy_price": "double",
    }
    assert sale.key == "key"
    twice = configuration.streams["twice"]
    assert twice.types["s2_look_price"] == "double"
    assert twice.key is None
    assert [configuration.depth(name) for name in configuration.streams] == [0, 1, 2]


def test_jobs_on_matches_come_after_those_that_make_them() -> None:
    configuration = loaded(CHAIN)
    planned = steps(configuration)
    shown = [(step.job, step.object) for step in planned]
    assert shown == [
        *(("ingest", "clicks"), ("predict", "clicks")),
        *(("ingest", "sale"), ("predict", "sale")),
        *(("ingest", "twice"), ("predict", "twice")),
        *(("maintain", "clicks"), ("maintain", "sale"), ("maintain", "twice")),
    ]
    waits = find_waits(planned, configuration)
    assert waits[:6] == [set(), {0}, {1}, {2}, {3}, {4}]


@pytest.mark.parametrize(
    ("subscriptions", "said"),
    [
        (
            "one: {stream: one, query: a, emit: true}",
            "subscriptions.one.stream: 'one' takes the matches of 'one': a stream cannot be made of its own matches; "
            "take those of another stream",
        ),
        (
            """
            one: {stream: three, query: a, emit: true}
            two: {stream: one, query: a, emit: true}
            three: {stream: two, query: a, emit: true}
            """,
            "subscriptions.one.stream: 'one' takes the matches of 'three' takes the matches of 'two' takes the matches "
            "of 'one': a stream cannot be made of its own matches; take those of another stream",
        ),
        (
            "clicks: {stream: clicks, query: a, emit: true}",
            "subscriptions.clicks.emit: its matches would be events of a stream 'clicks', and there is one with a "
            "source of its own; give the subscription another name",
        ),
        (
            "sale: {stream: click, query: a, emit: true}",
            "subscriptions.sale.stream: no stream 'click' (did you mean 'clicks'?); streams are 'clicks'",
        ),
        (
            "twice: {stream: sale, query: a}\nsale: {stream: clicks, query: a}",
            "subscriptions.twice.stream: no stream 'sale'; streams are 'clicks'",
        ),
        (
            "sale: {stream: clicks, query: 'a_b ; a DEFINE a AS b_price > 1', emit: true}",
            "subscriptions.sale.query: line 1, column 21: b_price is not a column or a parameter; did you mean price?",
        ),
        (
            "sale: {stream: clicks, query: 'x AS a ; y AS A', emit: true}",
            "subscriptions.sale.emit: position of A and position of a would both be the attribute 'A_position' of a "
            "match; give one of the operands an alias, as in A AS other",
        ),
        ("sale: {stream: clicks, query: a, emit: 1}", "subscriptions.sale.emit: 1 is not true or false"),
    ],
)
def test_what_cannot_be_emitted_is_refused_with_what_would_be_right(subscriptions: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(subscriptions)
    assert str(raised.value).startswith(said)

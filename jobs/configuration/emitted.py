"""Streams of matches: what a subscription with `emit: true` adds to the streams of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from patternlake.jobs.configuration import values
from patternlake.jobs.configuration.streams import Attribute, Source, StreamConfiguration, problem
from patternlake.jobs.configuration.subscriptions import SubscriptionConfiguration
from patternlake.udfs.errors import PatternLakeError, shorten

if TYPE_CHECKING:
    from patternlake.udfs.machines.query import Subscription

POSITION, TIME = "position", "time"


class EmittedMatches(Source):
    """The matches of a subscription as a source; it is never written into a file.

    Attributes
    ----------
    subscription, stream
        Name of the subscription, and of the stream that it is one to.
    query, params
        What it means.
    operands
        Of its pattern, in text order.
    taken
        Attributes of the stream, which every operand's event has.
    """

    subscription: str
    stream: str
    query: str
    params: dict[str, str]
    operands: tuple[str, ...]
    taken: tuple[str, ...]

    @property
    def kind(self) -> Literal["matches"]:
        """It has a kind of its own."""
        return "matches"

    @property
    def meaning(self) -> dict[str, Any]:
        """What decides which matches there are."""
        told = {"subscription": self.subscription, "stream": self.stream, "query": self.query, "params": self.params}
        return {"format": self.kind, **told}


def attribute_of(operand: str, attribute: str) -> str:
    """What an attribute of an operand's event is called among those of a match."""
    return f"{operand}_{attribute}"


def with_emitted(
    streams: Mapping[str, StreamConfiguration], subscriptions: Mapping[str, SubscriptionConfiguration]
) -> dict[str, StreamConfiguration]:
    """The streams, and behind them those of matches, each behind the one that it is made of.

    Raises
    ------
    pydantic_core.PydanticCustomError
        A subscription that emits has the name of a stream, takes its own matches, directly or through others, or does
        not compile; two attributes of its matches would have one name.
    """
    found = dict(streams)
    emitting = {name: one for name, one in subscriptions.items() if one.emit}
    for name in emitting:
        if name in streams:
            raise problem(
                f"its matches would be events of a stream {shorten(name)}, and there is one with a source of its "
                "own; give the subscription another name",
                "subscriptions",
                name,
                "emit",
            )

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            circle = " takes the matches of ".join(map(repr, (*above[above.index(name) :], name)))
            text = f"{circle}: a stream cannot be made of its own matches; take those of another stream"
            raise problem(text, "subscriptions", name, "stream")
        one = emitting[name]
        if one.stream in emitting and one.stream not in found:
            add(one.stream, (*above, name))
        if one.stream in found:
            found[name] = _stream(name, one, found[one.stream])

    for name in emitting:
        if name not in found:
            add(name, ())
    return found


def _stream(name: str, one: SubscriptionConfiguration, stream: StreamConfiguration) -> StreamConfiguration:
    """The stream of a subscription's matches."""
    asked = {"attributes": {attribute: {"type": kind} for attribute, kind in stream.types.items()}, "key": stream.key}
    try:
        # numba takes seconds to load, and few configurations come here.
        from patternlake.udfs.machines.from_config import subscription_of

        compiled = subscription_of({"query": one.query, "params": one.params}, asked)
    except PatternLakeError as error:
        raise problem(str(error), "subscriptions", name, "query") from None
    operands = tuple(primitive.name for primitive in compiled.primitives)
    source = EmittedMatches(
        subscription=name, stream=one.stream, query=one.query, params=dict(sorted(one.params.items())),
        operands=operands, taken=tuple(stream.types),
    )  # fmt: skip
    return StreamConfiguration(
        source=source,
        time="time",
        name="name",
        key="key" if compiled.partition else None,
        attributes=_attributes(name, compiled, stream),
    )


def _attributes(name: str, compiled: Subscription, stream: StreamConfiguration) -> dict[str, Attribute]:
    """Of each operand the position, the time and the attributes of its event."""
    found: dict[str, Attribute] = {}
    spellings: dict[str, str] = {}
    for operand in (primitive.name for primitive in compiled.primitives):
        for attribute, kind in ((POSITION, "bigint"), (TIME, "timestamp"), *stream.types.items()):
            made = attribute_of(operand, attribute)
            told = f"{attribute} of {operand}"
            try:
                values.attribute_name(made)
            except ValueError as error:
                raise problem(f"{told}, as an attribute of a match: {error}", "subscriptions", name, "emit") from None
            if made.lower() in spellings:
                raise problem(
                    f"{told} and {spellings[made.lower()]} would both be the attribute {shorten(made)} of a match; "
                    f"give one of the operands an alias, as in {operand} AS other",
                    "subscriptions",
                    name,
                    "emit",
                )
            spellings[made.lower()] = told
            found[made] = Attribute(type=kind)
    return found

"""One call of `match_seq` or `match_exists`: its arguments, checked against the sketch that they ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from patternlake.udfs.arguments import check_bounds, check_given, given_or
from patternlake.udfs.errors import ArgumentError, PatternError
from patternlake.udfs.language.predicate.scopes import BUILT_IN, Scope
from patternlake.udfs.language.query.engines import ASK_EVENTS
from patternlake.udfs.language.query.names import quote
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.partitions import key_word
from patternlake.udfs.language.query.tree import Query
from patternlake.udfs.limits import MAX_MATCHES, MOST_NAMES
from patternlake.udfs.policies import check_arguments
from patternlake.udfs.requests import compile_once
from patternlake.udfs.sketch.conditions import conditions
from patternlake.udfs.sketch.query import SketchPattern, compile_pattern
from patternlake.udfs.sketch.windows import Window


@dataclass(frozen=True)
class Floor:
    """Ageing: segments below `before_segment` have no nodes under `level` any more; None: none at all.

    `until` is the greatest event time of such as have none at all, microseconds since the epoch; None: not known.
    """

    before_segment: int
    level: int | None
    until: int | None = None


@dataclass(frozen=True)
class SketchState:
    """The sketch that a call asks.

    Attributes
    ----------
    configuration, state
        JSON texts of its publication: what the job was configured to keep, and what it keeps.
    floors
        What ageing has removed by now: it is gone at any `as_of`.
    """

    configuration: str
    state: str
    floors: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class SketchRequest:
    """A checked call.

    Attributes
    ----------
    stream
        Name of the stream.
    pattern
        What is looked for.
    types
        Spark type of each of the stream's attributes.
    policy, after_match, level, verify, max_matches, truncate
        As asked.
    key, one_key, every_key
        The key asked for; whether one is; whether each key is asked for itself.
    window
        Inclusive bounds of positions and times.
    keyed, uniform, height, fanout, segment_events, expressions, tokens_are_names, seed, events
        Of the sketch; `keyed`: it can be asked for one key; `tokens_are_names`: an event has its name as its only
        token; `events`: how many it knows.
    floors
        What ageing has removed, oldest segments first.
    """

    stream: str
    pattern: SketchPattern
    types: Mapping[str, str]
    policy: str
    after_match: str
    key: str | None
    one_key: bool
    every_key: bool
    window: Window
    level: int
    verify: bool
    max_matches: int
    truncate: bool
    keyed: bool
    uniform: bool
    height: int
    fanout: int
    segment_events: int
    expressions: int
    tokens_are_names: bool
    seed: int
    events: int
    floors: tuple[Floor, ...]

    def floor(self, segment: int) -> int:
        """The lowest level that ageing has left of a segment."""
        levels = [floor.level or 0 for floor in self.floors if segment < floor.before_segment]
        return max(levels, default=0)

    @property
    def dropped(self) -> tuple[int, int] | None:
        """First and last position, inside the question's bounds, of what ageing has left nothing of; None: no such."""
        gone = max((floor for floor in self.floors if floor.level is None), key=_reach, default=None)
        if gone is None or self.window.empty:
            return None
        bounds = self.window
        low = max(1, bounds.from_position or 1)
        high = min(gone.before_segment * self.segment_events, self.events)
        if bounds.to_position is not None:
            high = min(high, bounds.to_position)
        earlier = bounds.from_time is not None and gone.until is not None and gone.until < bounds.from_time
        return None if low > high or earlier else (low, high)

    @property
    def leaf_events(self) -> int:
        """Events of one leaf."""
        return max(1, self.segment_events // self.fanout ** (self.height - 1))

    def tiers(self) -> list[str]:
        """Which parts of the node table hold the nodes that answer."""
        top = self.height - 1
        lowest = {self.level, *(max(self.level, floor.level or 0) for floor in self.floors)}
        # Where `uniform` has left out a parent, its children answer in its place.
        below = top > 0 and (self.uniform or min(lowest) < top)
        return (["body"] if below else []) + (["top"] if max(lowest) == top else [])


class Compile(Protocol):
    """Compiles a query for the engine that matches it."""

    def __call__(
        self, query: Query, *, verify: bool, scope: Scope, policy: str, names_are_tokens: bool
    ) -> SketchPattern:
        """Parameters and errors as of `query.compile_pattern`; `policy` is the one that it is asked with."""


def compile_own(query: Query, *, verify: bool, scope: Scope, policy: str, names_are_tokens: bool) -> SketchPattern:
    """Compile a query that the sketch engine matches by itself; as of `Compile`."""
    pattern = compile_pattern(query, verify=verify, scope=scope, names_are_tokens=names_are_tokens)
    conditions(pattern)
    return pattern


def check_call(
    arguments: Mapping[str, Any], sketch: SketchState | None, known: Sequence[str], compile: Compile = compile_own
) -> SketchRequest:
    """The request of a call; checks everything that can be checked before data is read.

    Parameters
    ----------
    arguments
        The SQL function's arguments by name; times in microseconds since the epoch.
    sketch
        The sketch that answers, or None where there is none.
    known
        Streams that have a sketch.
    compile
        A function of a module that compiles the pattern.

    Raises
    ------
    ArgumentError, PatternError
        Naming the argument and what would be right.
    """
    check_given(arguments)
    if sketch is None:
        streams = ", ".join(repr(name) for name in known) or "none yet; run `ingest` and `sketch`"
        raise ArgumentError(
            f"there is no sketch of a stream {arguments['stream']!r}; streams with a sketch: {streams}. Configure one "
            "under `sketches` and run `sketch`, or ask match_pattern, which needs none"
        )
    request = compile_once(_Compiler(compile), dict(arguments), sketch.configuration, sketch.state, sketch.floors)
    # match_exists has no `truncate`: it says NULL.
    if "truncate" in arguments and not request.verify and not request.truncate:
        _refuse_dropped(request)
    return request


@dataclass(frozen=True)
class _Compiler:
    """Makes requests of what `compile_once` takes; two of one function are the same."""

    compile: Compile

    def __call__(
        self, arguments: Mapping[str, Any], configured: str, kept: str, floors: Sequence[Mapping[str, Any]]
    ) -> SketchRequest:
        configuration, state = json.loads(configured), json.loads(kept)
        stream = configuration["stream"]
        query = parse(arguments["pattern"])
        verify = given_or(arguments, "verify", True)
        scope = Scope.of_stream(stream, arguments.get("params"))
        named = "name" in (stream.get("tokens") or ["name"])
        policy = given_or(arguments, "policy", "skip_till_next")
        max_matches = given_or(arguments, "max_matches", MAX_MATCHES)
        check_arguments(policy, "next", max_matches)
        pattern = self.compile(query, verify=verify, scope=scope, policy=policy, names_are_tokens=named)
        if len(pattern.names) > MOST_NAMES:
            raise ArgumentError(
                f"the pattern has {len(pattern.names):,} different names; at most {MOST_NAMES:,} are possible: ask "
                "several questions, or give the stream a token that stands for many names"
            )
        after_match = given_or(arguments, "after_match", "past_last")
        check_arguments(policy, after_match, max_matches, None if pattern.lent is None else pattern.lent.operands)
        height = len(state["plans"][0]["sizing"]["levels"])
        level = given_or(arguments, "level", 0)
        _check_level(arguments["stream"], level, height, verify)
        one_key, every_key = _check_keys(arguments, configuration, pattern, stream, verify)
        check_bounds(arguments, ("from_position", "to_position"), ("from_time", "to_time"))
        return SketchRequest(
            stream=arguments["stream"],
            pattern=pattern,
            types=scope.attributes,
            policy=policy,
            after_match=after_match,
            key=arguments.get("key"),
            one_key=one_key,
            every_key=every_key,
            window=Window(*(arguments.get(name) for name in ("from_position", "to_position", "from_time", "to_time"))),
            level=level,
            verify=verify,
            max_matches=max_matches,
            truncate=given_or(arguments, "truncate", False),
            keyed=configuration["keyed"],
            uniform=configuration["structure"] == "uniform",
            height=height,
            fanout=configuration["fanout"],
            segment_events=configuration["events_per_leaf"] * configuration["fanout"] ** (height - 1),
            expressions=len(stream.get("tokens") or ["name"]),
            tokens_are_names=(stream.get("tokens") or ["name"]) == ["name"],
            seed=configuration["seed"],
            events=state["events"],
            floors=tuple(
                # What a rule keeps may lie above the top, which is kept then.
                Floor(
                    entry["before_segment"],
                    None if entry["level"] is None else min(entry["level"], height - 1),
                    entry.get("until"),
                )
                for entry in floors
            ),
        )


def _reach(floor: Floor) -> int:
    return floor.before_segment


def _refuse_dropped(request: SketchRequest) -> None:
    if request.dropped is None:
        return
    low, high = request.dropped
    raise ArgumentError(
        f"ageing has dropped the sketch of positions {low:,} to {high:,} of {request.stream!r}, and the question "
        f"reaches into them; ask from_position => {high + 1}, match_seq or match_exists without verify => "
        "false (exact, on the events), or truncate => true (the rows of what is left, flagged)"
    )


def _check_level(stream: str, level: int, height: int, verify: bool) -> None:
    if not 0 <= level < height:
        raise ArgumentError(
            f"level {level}: the sketch of {stream!r} has the levels 0 (leaves) to {height - 1} (whole segments)"
        )
    if verify and level:
        raise ArgumentError(
            f"level {level}: an exact answer is about events; ask the sketch alone with verify => false, or leave the "
            "level out"
        )


def _check_keys(
    arguments: Mapping[str, Any],
    configuration: Mapping[str, Any],
    pattern: SketchPattern,
    stream: Mapping[str, Any],
    verify: bool,
) -> tuple[bool, bool]:
    """(one key is asked for, every key is asked for)."""
    one_key, partitioned = arguments.get("key") is not None, bool(pattern.partition)
    if partitioned:
        columns = {"key", stream["key"]} - (BUILT_IN.keys() - {"key"})
        strange = [column for column in pattern.partition if column not in columns]
        if strange or len(pattern.partition) > 1:
            raise ArgumentError(
                f"PARTITION BY {', '.join(map(quote, pattern.partition))}: match_seq, match_exists and sketch_error "
                "partition by the stream's key only; write PARTITION BY "
                f"{key_word(stream['key'], stream['attributes'])}, or ask match_pattern, which takes any column"
            )
    if not one_key and not partitioned:
        return False, False
    asked = f"key => {arguments['key']!r}" if one_key else f"PARTITION BY {pattern.partition[0]}"
    if stream["key"] is None:
        raise ArgumentError(f"{asked}: the stream {arguments['stream']!r} has no key; configure `key` for it")
    if not configuration["keyed"] and not verify:
        raise ArgumentError(
            f"{asked}: the sketch of {arguments['stream']!r} is not keyed; {ASK_EVENTS}, or configure `keyed: true` "
            "for it, and rebuild"
        )
    if pattern.counted and not verify:
        assert pattern.within is not None
        raise PatternError(
            f"WITHIN … EVENTS counts the events of a key here, and leaves don't: {ASK_EVENTS}",
            arguments["pattern"],
            pattern.within.span.start,
            pattern.within.span.end,
        )
    return one_key, not one_key

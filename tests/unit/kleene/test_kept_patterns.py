"""A kept pattern: whatever its stream is cut into, batches write each final match once, and with what is open that is
what the whole stream gives.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from naive.kleene import Event, matches
from naive.kleene_random import TYPES, Language, Pattern, random_events

from patternlake.udfs.errors import ArgumentError, PatternError
from patternlake.udfs.kept_attributes import read_attributes
from patternlake.udfs.kleene import request
from patternlake.udfs.kleene.batch import ADVANCED, EVENT, EVENT_COLUMNS, MATCH, batch_rows, open_rows
from patternlake.udfs.kleene.from_config import arguments_of, pattern_of, unfit
from patternlake.udfs.kleene.kernels import linearized
from patternlake.udfs.kleene.merged import merge_matches
from patternlake.udfs.kleene.result import MATCHES
from patternlake.udfs.kleene.state import Carried, kept_as_rows, reach
from patternlake.udfs.kleene.task import match_partitions
from patternlake.udfs.language.query import operands
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.published import NameCount, Published, PublishedBatch
from patternlake.udfs.record_batches import columns_of

STREAM = {"attributes": {name: {"type": type_} for name, type_ in TYPES.items()}, "key": None}
FORMS = ("directly", "optional", "bounded", "until", "some_of", "all", "group")
Part = tuple[str | None, ...]
Found = tuple[Part, str]
"""A match: its partition, and its bindings as text."""
Answer = dict[Found, dict[str, Any]]
"""For each match its row of the answer."""


@dataclass
class Kept:
    """What the job and the function do, without tables.

    `taken` of the `events` the job has read; those that it wrote of are `written`, with the place of their last event.
    """

    text: str
    policy: str = "skip_till_any"
    after_match: str = "next"
    lateness: int = 0
    by: str | None = None
    most: int = 1_000_000
    """Matches of a partition that are held at once."""
    repetition: str = "maximal"
    measured: bool = False
    """Whether the pattern has measures of all its operands."""
    events: list[Event] = field(default_factory=list)
    taken: int = 0
    carried: Carried | None = None
    rows: list[tuple[Part, Event]] = field(default_factory=list)
    written: list[tuple[Found, tuple[int, int]]] = field(default_factory=list)
    stored: list[pa.Table] = field(default_factory=list)
    """Rows of `MATCHES` as batches wrote them."""

    def __post_init__(self) -> None:
        text = with_measures(self.text) if self.measured else self.text
        query = {"query": text, "policy": self.policy, "after_match": self.after_match, "params": {}}
        chosen = {} if self.repetition == "maximal" else {"repetition": self.repetition}
        self.configuration = {"stream_name": "s", "stream": STREAM, **query, **chosen}
        self.pattern = pattern_of(self.configuration)
        self.watermark: int | None = None

    @property
    def unfit(self) -> str | None:
        """What keeps the pattern from being kept."""
        return unfit(self.pattern, self.after_match)

    def part(self, event: Event) -> Part:
        if self.by is None:
            return ()
        value = event.values[self.by]
        return (None if value is None else str(value),)

    def ingest(self, events: Sequence[Event]) -> None:
        """Publish events under the next positions; those that come too late are in quarantine."""
        low = self.watermark
        for event in events:
            if low is None or event.time >= low:
                self.events.append(replace(event, position=len(self.events) + 1))
        if self.events:
            self.watermark = max(event.time for event in self.events) - self.lateness

    def given(self) -> list[tuple[Part, Event]]:
        """The events that a batch or a question reads, in order."""
        if self.carried is None:
            rows = [(self.part(event), event) for event in self.events]
        elif kept_as_rows(self.pattern):
            rows = [*self.rows, *((self.part(event), event) for event in self.events[self.taken :])]
        else:
            begin = self.carried.from_time
            rows = [(self.part(event), event) for event in self.events if begin is None or event.time >= begin]
        return sorted(rows, key=lambda row: (row[1].time, row[1].position))

    def ruled(self) -> list[tuple[Part, Event]]:
        """Where matches that are known end, under past_last: all of them, as files are read that were written last."""
        if self.after_match != "past_last" or self.policy == "skip_till_any" or kept_as_rows(self.pattern):
            return []
        return [(part, Event(position, time, "")) for (part, _), (time, position) in reversed(self.written)]

    def portions(self, carried: Carried | None) -> Any:
        """The request, and each portion with its rows."""
        publication = Published(
            PublishedBatch(
                object_id=1, base_batch=1, batch_id=1, configuration=json.dumps(STREAM), watermark=self.watermark,
                source_to=len(self.events),
            )
        )  # fmt: skip
        names = sorted({event.name for event in self.events})
        counts = []
        for name in names:
            times = [event.time for event in self.events if event.name == name]
            counts.append(NameCount(name, len(times), min(times), max(times)))
        asked = request.check_request(arguments_of(self.configuration), publication, ["s"], counts, carried=carried)
        question, dealt = asked.request, asked.request.portions
        whole = sorted(self.events, key=lambda event: (event.time, event.position))
        read = [(self.part(event), event) for event in whole] if carried is None else self.given()
        rows = list(enumerate(read))
        markers = self.ruled() if carried is not None else []
        if dealt.width is None:
            yield question, 0, columns([row for _, row in rows], markers)
            return
        for portion in range(dealt.low, dealt.high + 1):
            assert dealt.within is not None
            span = np.array([rank if dealt.counted else event.time for rank, (_, event) in rows])
            first, last = ((span + sign * dealt.within) // dealt.width for sign in (-1, 1))
            low, high = np.clip(first, dealt.low, dealt.high), np.clip(last, dealt.low, dealt.high)
            own = [row for row, inside in zip(rows, (low <= portion) & (portion <= high), strict=True) if inside]
            if own:
                yield question, portion, columns([row for _, row in own], [], [rank for rank, _ in own])

    def batch(self) -> None:
        """What a run of the job does."""
        assert self.watermark is not None
        margin = reach(self.pattern, self.policy)
        by_rows = kept_as_rows(self.pattern)
        kept: list[tuple[Part, Event]] = []
        advanced: set[Part] = set()
        for question, portion, rows in self.portions(self.carried):
            for table in self.made(question, portion, rows, margin if by_rows else None):
                self.stored.append(table.filter(pc.equal(table["kind"], MATCH)).select(MATCHES.names))
                for row in table.to_pylist():
                    part = tuple(row["part"])
                    if row["kind"] == MATCH:
                        assert row["final"]
                        end = (int(row["last_time"].timestamp() * 1e6 + 0.5), row["last_position"])
                        self.written.append(((part, shown(row["bindings"])), end))
                    elif row["kind"] == EVENT:
                        event = next(event for event in self.events if event.position == row["position"])
                        kept.append((part, event))
                    elif row["kind"] == ADVANCED:
                        advanced.add(part)
        self.rows = [row for row in self.rows if row[0] not in advanced] + kept
        settled = sorted(event.time for event in self.events if event.time <= self.watermark)
        begin: int | None
        if by_rows:
            begin = None
        elif self.pattern.within is not None and self.pattern.within.counted:
            begin = settled[-margin] if len(settled) >= margin else None
        else:
            begin = self.watermark - margin + 1
        self.taken = len(self.events)
        state = Carried(request.Moment(self.watermark, self.taken), begin, len(self.given()))
        self.carried = Carried.of(json.loads(json.dumps(state.state)), self.watermark, self.taken)

    def made(self, question: Any, portion: int, rows: dict[str, pa.Array], kept_events: int | None) -> list[pa.Table]:
        """The rows of a portion; as if any number could be held where that many are too few."""
        try:
            return list(batch_rows(replace(question, max_matches=self.most), portion, rows, kept_events=kept_events))
        except ArgumentError as error:
            if "alone begins more matches" not in str(error) and "begins with [n]" not in str(error):
                raise
            return list(batch_rows(question, portion, rows, kept_events=kept_events))

    def answered(self, **limits: Any) -> Answer:
        """What the function says: what is stored, and what is open; `limits` are those of the call."""
        assert self.carried is not None
        tables = [MATCHES.empty_table(), *self.stored]
        for unlimited, portion, rows in self.portions(self.carried):
            question = replace(unlimited, **limits)
            tables += open_rows(question, portion, rows)
        return self.rows_by_match([merge_matches(question, pa.concat_tables(tables))])

    def from_scratch(self) -> Answer:
        """What match_pattern says of the text."""
        return self.rows_by_match(
            table
            for question, portion, rows in self.portions(None)
            for table in match_partitions(question, portion, rows)
        )

    def rows_by_match(self, tables: Iterable[pa.Table]) -> Answer:
        """Rows of an answer, all their columns but the number, which each portion begins anew."""
        parts = {self.part(event)[0] if self.by else None: self.part(event) for event in self.events}
        found: Answer = {}
        for row in (row for table in tables for row in table.to_pylist()):
            match = parts.get(row["key"], ()), shown(row["bindings"])
            assert match not in found, "there twice"
            # One NaN is not the other.
            values = {name: "NaN" if value != value else value for name, value in row.items()}
            found[match] = {name: value for name, value in values.items() if name != "match_no"}
        return found

    def defined(self) -> set[Found]:
        """What SPEC says, by the oracle."""
        found = set()
        for part in {self.part(event) for event in self.events}:
            own = [event for event in self.events if self.part(event) == part]
            text = self.text.replace(f" PARTITION BY {self.by}", "")
            how = {"policy": self.policy, "after_match": self.after_match, "repetition": self.repetition}
            for row in matches(text, own, TYPES, **how):
                found.add((part, shown(list(row.items()))))
        return found


def finality(kept: Kept) -> dict[Found, bool]:
    """Whether each match is final."""
    return {match: row["final"] for match, row in kept.answered().items()}


def shown(bindings: Sequence[tuple[str, Sequence[int]]]) -> str:
    return repr(sorted((name, list(positions)) for name, positions in bindings if len(positions)))


def columns(
    rows: Sequence[tuple[Part, Event]], markers: Sequence[tuple[Part, Event]], ranks: Sequence[int] | None = None
) -> dict[str, pa.Array]:
    every = [*rows, *markers]
    made = {
        "part": pa.array([list(part) for part, _ in every], pa.list_(pa.string())),
        **{name: pa.nulls(len(every), type_) for name, type_ in EVENT_COLUMNS.items()},
        "position": pa.array([event.position for _, event in every], pa.int64()),
        "time": pa.array([event.time for _, event in every], pa.timestamp("us", "UTC")),
        "name": pa.array([event.name or None for _, event in every], pa.string()),
        "attributes": pa.array(
            [[(name, None if value is None else str(value)) for name, value in e.values.items()] for _, e in every],
            EVENT_COLUMNS["attributes"],
        ),
    }
    made = columns_of(read_attributes(pa.table(made), TYPES))
    return made if ranks is None else {**made, "rank": pa.array(list(ranks), pa.int64())}


MOST_LINEARIZATIONS = 60
"""Patterns with more take minutes, as each batch is compared with an answer from scratch."""


def random_pattern(rng: random.Random, policy: str) -> tuple[str, str | None, str]:
    """A pattern with WITHIN, often with an aggregate, the column that it partitions by, and what repetitions take."""
    while True:
        repetition = "maximal"
        if policy == "skip_till_any" and rng.random() < 0.6:
            drawn = Language(rng, policy=policy, forms=[form for form in FORMS if rng.random() < 0.5], most=3)
            text, repetition = drawn.text, drawn.repetition
        else:
            text = Pattern(rng, scan=policy != "skip_till_any", most=3, aggregated=0.5).text
            repetition = rng.choice(["maximal", "all"]) if policy != "skip_till_any" else "maximal"
        if " WITHIN " in text:
            break
    by = rng.choice([None, "s", "n"])
    return text if by is None else text.replace(" WITHIN ", f" PARTITION BY {by} WITHIN "), by, repetition


def with_measures(text: str) -> str:
    """A pattern with WITHIN that measures attributes of every type, and what every event has."""
    names = [one.name for one in operands.number(parse(text)) if not one.negated and one.name.isidentifier()]
    measures = ", ".join(
        f"FIRST({name}.x) AS f{n}, LAST(t({name})) AS l{n}, ARRAY_AGG({name}.s) AS a{n}, SUM({name}.n * 2) AS s{n}, "
        f"MAX({name}.position) AS p{n}, MIN({name}.name) AS m{n}"
        for n, name in enumerate(names)
    )
    behind = " PARTITION BY " if " PARTITION BY " in text else " WITHIN "
    return text.replace(behind, f" MEASURES {measures or 'COUNT(*) AS n'}{behind}")


def check(kept: Kept, events: Sequence[Event], rng: random.Random) -> int:
    """Cut events into batches; the job runs after some of them; how many matches were written before the last one."""
    sure: set[Found] = set()
    begin, early = 0, 0
    while begin < len(events):
        end = begin + rng.randint(1, 5)
        kept.ingest(events[begin:end])
        begin = end
        if not kept.events:
            continue
        if kept.carried is None or rng.random() < 0.7:
            early = len(kept.written)
            kept.batch()
        found = kept.answered()
        told = (kept.text, kept.policy, kept.after_match, kept.lateness, kept.events)
        assert set(found) == kept.defined(), told
        assert found == kept.from_scratch(), told
        assert sure <= set(found), ("was said to be final", sure - set(found), told)
        sure |= {match for match, row in found.items() if row["final"]}
        check_limited(kept, found, rng.randint(1, 4))
    return early


def check_limited(kept: Kept, found: Answer, most: int) -> None:
    """Compare a call with `max_matches` with the first rows of each partition that one without it `found`."""
    counts = Counter(part for part, _ in found)
    number: Counter[Part] = Counter()
    expected: Answer = {}
    for (part, bindings), row in found.items():
        number[part] += 1
        if number[part] <= most:
            expected[part, bindings] = {**row, "truncated": counts[part] > most}
    limited = kept.answered(max_matches=most, truncate=True)
    told = (most, kept.text, kept.policy, kept.after_match, kept.lateness, kept.events)
    assert list(limited.items()) == list(expected.items()), told
    if max(counts.values(), default=0) > most:
        with pytest.raises(ArgumentError, match=f"more than max_matches = {most}"):
            kept.answered(max_matches=most)
    else:
        assert kept.answered(max_matches=most) == found, told


@pytest.mark.parametrize("seed", range(4))
def test_written_and_open_matches_are_those_of_the_whole_stream(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    done = early = 0
    while done < 25:
        monkeypatch.setattr(request, "TASK_EVENTS", rng.choice([2, 100_000]))
        monkeypatch.setattr(request, "MARGINS", 1)
        policy = rng.choice(["skip_till_any", "skip_till_any", "skip_till_next", "strict"])
        text, by, repetition = random_pattern(rng, policy)
        try:
            after_match, lateness = rng.choice(["next", "past_last"]), 1000 * rng.choice([0, 1, 3])
            most, measured = rng.choice([1, 2, 4, 1_000_000]), rng.random() < 0.5
            kept = Kept(text, policy, after_match, lateness, by, most=most, repetition=repetition, measured=measured)
        except PatternError:
            continue
        if len(kept.pattern.linearizations) > MOST_LINEARIZATIONS:
            continue
        early += check(kept, random_events(rng, 13), rng) > 0
        done += 1
    assert early > 0, "matches are written as the stream goes on"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_more(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    test_written_and_open_matches_are_those_of_the_whole_stream(seed, monkeypatch)


def letters(text: str, begin: int = 1) -> list[Event]:
    """An event per letter, a millisecond apart; x is its position."""
    return [
        Event(begin + number, (begin + number) * 1000, name, {"x": float(begin + number), "n": None, "s": None})
        for number, name in enumerate(text)
    ]


def test_a_match_is_written_as_soon_as_its_last_event_is_settled() -> None:
    kept = Kept("A ; B WITHIN 1 HOUR", lateness=2000)
    kept.ingest(letters("AB"))
    kept.batch()
    assert kept.written == [], "an A or a B that comes late could still change what there is"
    kept.ingest(letters("CC", begin=3))
    kept.batch()
    assert [match for match, _ in kept.written] == [((), "[('A', [1]), ('B', [2])]")]


def test_matches_that_are_written_take_no_place_among_the_first_of_those_that_are_open() -> None:
    kept = Kept("A ; B WITHIN 1 HOUR", lateness=8000)
    kept.ingest(letters("ABABAB"))
    kept.ingest(letters("ABCCCCC", begin=7))
    kept.batch()
    assert 0 < len(kept.written) < 7
    check_limited(kept, kept.answered(), 7)


def test_matches_that_only_a_later_beginning_of_the_events_gives_are_not_counted() -> None:
    """An X at 1 that is not read again kept the As at 3 to 5 from being matches."""
    kept = Kept("!X ; A WITHIN 5 MILLISECOND")
    for events in (letters("XZAAA"), letters("C", begin=12)):
        kept.ingest(events)
    kept.batch()
    kept.ingest(letters("A", begin=13))
    found = kept.answered()
    assert [readable(row["bindings"]) for row in found.values()] == ["A 7"]
    check_limited(kept, found, 1)


def test_a_growing_end_is_written_when_its_window_has_passed() -> None:
    kept = Kept("A ; B+ WITHIN 4 MILLISECOND")
    for number, name in enumerate("ABBCC", start=1):
        kept.ingest(letters(name, begin=number))
        kept.batch()
        assert len(kept.written) == (number >= 5), "the window of the A ends before the event at 5"
    assert kept.written[0][0] == ((), "[('A', [1]), ('B', [2, 3])]")


def test_aggregates_are_those_of_the_match_that_is_written() -> None:
    """The second batch finds the first match again, and leaves it out: its B is not summed for another match."""
    kept = Kept("A ; B+ ; C WHERE SUM(B.x) > 0 MEASURES SUM(B.x) AS total WITHIN 10 MILLISECOND")
    for begin, names, x in ((1, "ABC", 1.0), (4, "ABC", 10.0)):
        kept.ingest([replace(event, values={**event.values, "x": x}) for event in letters(names, begin)])
        if begin == 4:
            kept.ingest([Event(7, 30_000, "Z", {"x": None, "n": None, "s": None})])
        kept.batch()
    sums = {readable(row["bindings"]): row["__patternlake_atom_0"] for row in kept.answered().values()}
    assert sums == {"A 1, B 2, C 3": 1.0, "A 1, B 2 5, C 6": 11.0, "A 4, B 5, C 6": 10.0}


def readable(bindings: Sequence[tuple[str, Sequence[int]]]) -> str:
    """Bindings as a text."""
    return ", ".join(f"{name} {' '.join(map(str, positions))}" for name, positions in bindings)


def test_more_matches_than_can_be_held_are_written_in_portions() -> None:
    """Each A begins three matches, and no more than three are held at once."""
    kept = Kept("A ; B WITHIN 1 HOUR", most=3)
    kept.ingest(letters("AAAABBB"))
    kept.batch()
    assert sorted(match for match, _ in kept.written) == [
        ((), f"[('A', [{first}]), ('B', [{last}])]") for first in range(1, 5) for last in range(5, 8)
    ]


def test_a_first_plus_is_not_cut_where_portions_begin() -> None:
    """The matches of As at 1 to 3 differ in their Bs alone: no match begins with the A at 2."""
    kept = Kept("A+ ; B WITHIN 1 HOUR", most=2)
    kept.ingest(letters("AABAB"))
    kept.batch()
    assert {match for match, _ in kept.written} == kept.defined()


@pytest.mark.parametrize("text", ["A ; B ; C WITHIN 1 HOUR", "A & B & C WITHIN 1 HOUR", "A ; B+ ; C WITHIN 1 HOUR"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_matches_that_begin_with_one_event_are_written_in_portions(text: str, most: int) -> None:
    kept = Kept(text, most=most)
    kept.ingest(letters("ABBBCCCXC"))
    ((question, portion, rows),) = kept.portions(None)
    tables = list(batch_rows(replace(question, max_matches=most), portion, rows, kept_events=None))
    assert max(table.num_rows for table in tables) <= most
    found = [((), shown(row["bindings"])) for table in tables for row in table.to_pylist()]
    assert len(found) == len(set(found)), "each once"
    assert set(found) == kept.defined()


def test_partial_matches_of_one_event_are_divided_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linearized, "ROWS_AT_ONCE", 4)
    kept = Kept("A ; B ; C ; D WHERE D.x > B.x + 5 WITHIN 1 HOUR")
    kept.ingest(letters("ABBBCCCD"))
    kept.batch()
    assert {match for match, _ in kept.written} == kept.defined()
    assert len(kept.written) == 3, "of nine with any B, those with the B at 2"


def test_one_event_that_begins_too_many_matches_is_named() -> None:
    """Which two of the Bs are taken is not divided, and nothing else is open."""
    question, portion, rows = next(_given("A ; B[2] ; C WITHIN 1 HOUR", "ABBBC"))
    with pytest.raises(ArgumentError, match=r"event at position 1 alone begins more matches .* 2, or .*; narrow"):
        list(batch_rows(replace(question, max_matches=2), portion, rows, kept_events=None))


def test_a_pattern_that_is_not_divided_says_what_to_do() -> None:
    question, portion, rows = next(_given("A[2] ; B WITHIN 1 HOUR", "AAABB"))
    with pytest.raises(ArgumentError, match=r"begins with \[n\] is not matched in portions; .* more often"):
        list(batch_rows(replace(question, max_matches=2), portion, rows, kept_events=None))


def test_one_match_for_each_start_is_never_too_many() -> None:
    for after_match in ("next", "past_last"):
        kept = Kept("A ; B WITHIN 1 HOUR", "skip_till_next", after_match, most=1)
        kept.ingest(letters("AABAAB"))
        kept.batch()
        assert {match for match, _ in kept.written} == kept.defined()
        assert len(kept.written) == (4 if after_match == "next" else 2)


def _given(text: str, events: str) -> Any:
    kept = Kept(text)
    kept.ingest(letters(events))
    return kept.portions(None)


def test_past_last_waits_for_a_start_that_may_still_get_a_match() -> None:
    """The A at 1 wants a B with its own n; a match of the A at 2 would lie inside it."""
    values = [("A", 1), ("A", 2), ("B", 2), ("C", 0), ("B", 1)]
    events = [Event(at, at * 1000, name, {"x": None, "n": n, "s": None}) for at, (name, n) in enumerate(values, 1)]
    text = "A ; B WHERE A.n = B.n WITHIN 10 MILLISECOND"
    kept = Kept(text, "skip_till_next", "past_last")
    kept.ingest(events[:4])
    kept.batch()
    assert kept.written == []
    assert finality(kept) == {((), "[('A', [2]), ('B', [3])]"): False}
    kept.ingest(events[4:])
    kept.batch()
    assert [match for match, _ in kept.written] == [((), "[('A', [1]), ('B', [5])]")]
    assert finality(kept) == {((), "[('A', [1]), ('B', [5])]"): True}


def test_a_start_gives_way_to_an_earlier_alternative() -> None:
    """A B at 3 is a match until a D comes, for then C and D are, which the text names first."""
    kept = Kept("A ; ((C ; D) | B) WITHIN 10 MILLISECOND", "skip_till_next")
    kept.ingest(letters("ACB"))
    kept.batch()
    assert finality(kept) == {((), "[('A', [1]), ('B', [3])]"): False}
    kept.ingest(letters("D", begin=4))
    kept.batch()
    assert list(kept.answered()) == [((), "[('A', [1]), ('C', [2]), ('D', [4])]")]


def test_no_more_is_read_again_than_the_window_holds() -> None:
    kept = Kept("A ; B WITHIN 3 MILLISECOND")
    counted = Kept("A ; B PARTITION BY s WITHIN 3 EVENTS", by="s")
    for number in range(1, 40):
        for each in (kept, counted):
            each.ingest(letters("AB"[number % 2], begin=number))
            each.batch()
            assert each.carried is not None
            assert len(each.given()) <= 3


def test_of_a_partition_only_events_behind_a_possible_beginning_are_kept() -> None:
    kept = Kept("A ; B WHERE A.x > 3 PARTITION BY s WITHIN 9 EVENTS", by="s")
    kept.ingest(letters("BAXBAXB"))
    kept.batch()
    assert [event.position for _, event in kept.rows] == [5, 6, 7], "the A at 2 has too small an x"
    kept.ingest(letters("BBBBBBBB", begin=8))
    kept.batch()
    assert kept.rows == []


def test_what_is_not_settled_is_kept_whatever_it_is() -> None:
    kept = Kept("A ; B PARTITION BY s WITHIN 3 EVENTS", by="s", lateness=1500)
    kept.ingest(letters("XBXBB"))
    kept.batch()
    assert [event.position for _, event in kept.rows] == [4, 5], "an A may still come before"


def test_a_pattern_without_a_window_is_not_fit_to_be_kept() -> None:
    assert unfit(Kept("A ; B WITHIN 3 EVENTS").pattern) is None
    assert "no WITHIN" in (unfit(Kept("A ; B").pattern) or "")

"""The XES reader: what becomes a column, what a default fills, what is refused and where."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternlake.jobs.sources.xes import FAULT, LATE_GLOBAL, NUMBERED, events
from patternlake.udfs.errors import SourceError


def columns(open_file: BinaryIO, *, name: str) -> list[str]:
    """Every attribute key of a log's events, in order of first appearance."""
    return list(dict.fromkeys(key for event in events(open_file, name=name) for key in event if key != FAULT))


SHOP = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1849-2016" xes.features="nested-attributes" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <global scope="trace">
    <string key="concept:name" value="unknown case"/>
    <string key="shop" value="main"/>
  </global>
  <global scope="event">
    <string key="concept:name" value="unknown"/>
    <string key="lifecycle:transition" value="complete"/>
  </global>
  <classifier name="Activity" keys="concept:name"/>
  <string key="concept:name" value="shop"/>
  <trace>
    <string key="concept:name" value="order 1"/>
    <float key="total" value="12.50"/>
    <event>
      <string key="concept:name" value="placed"/>
      <date key="time:timestamp" value="2021-01-01T08:00:00.000+01:00"/>
      <int key="items" value="03"/>
      <boolean key="express" value="true"/>
    </event>
    <event>
      <date key="time:timestamp" value="2021-01-05T09:30:00Z"/>
      <id key="identity:id" value="b1f8"/>
      <string key="lifecycle:transition" value="start"/>
    </event>
  </trace>
  <trace>
    <event><string key="concept:name" value="sent &amp; billed"/></event>
  </trace>
</log>
"""


def read(text: str | bytes, name: str = "shop.xes") -> list[dict[str, str | None]]:
    data = text.encode() if isinstance(text, str) else text
    return list(events(io.BytesIO(data), name=name))


def only(inside_event: str) -> dict[str, str | None]:
    (event,) = read(f"<log><event>{inside_event}</event></log>")
    return event


def refusal(text: str | bytes) -> str:
    with pytest.raises(SourceError) as caught:
        read(text)
    return str(caught.value)


class TestEvents:
    def test_event_attributes_stand_under_their_key_and_the_traces_under_case(self) -> None:
        assert read(SHOP)[0] == {
            "case:concept:name": "order 1",
            "case:total": "12.50",
            "case:shop": "main",
            "concept:name": "placed",
            "time:timestamp": "2021-01-01T08:00:00.000+01:00",
            "items": "03",
            "express": "true",
            "lifecycle:transition": "complete",
        }

    def test_a_global_fills_what_the_event_lacks_and_leaves_what_it_has(self) -> None:
        second = read(SHOP)[1]
        assert (second["concept:name"], second["lifecycle:transition"]) == ("unknown", "start")

    def test_a_global_of_scope_trace_fills_what_the_trace_lacks(self) -> None:
        third = read(SHOP)[2]
        assert third == {
            "case:concept:name": "shop.xes#2",
            "case:shop": "main",
            "concept:name": "sent & billed",
            "lifecycle:transition": "complete",
        }

    def test_events_come_in_the_files_order_whatever_their_times(self) -> None:
        text = (
            "<log><trace><event><date key='t' value='2'/></event></trace><event><date key='t' value='1'/></event></log>"
        )
        assert [event["t"] for event in read(text)] == ["2", "1"]

    def test_an_event_outside_of_every_trace_has_no_case(self) -> None:
        text = """<log><global scope="trace"><string key="k" value="d"/></global>
            <trace><string key="a" value="1"/><event><string key="n" value="x"/></event></trace>
            <event><string key="n" value="y"/></event></log>"""
        assert read(text) == [{"case:a": "1", "case:k": "d", "case:concept:name": "shop.xes#1", "n": "x"}, {"n": "y"}]

    def test_a_trace_without_events_and_a_log_without_traces_give_nothing(self) -> None:
        assert read("<log><trace><string key='a' value='1'/></trace></log>") == []
        assert read("<log/>") == []

    def test_an_attribute_without_value_is_null_and_an_empty_one_is_empty(self) -> None:
        assert only("<string key='a'/><string key='b' value=''/>") == {"a": None, "b": ""}

    def test_namespace_prefixes_do_not_matter(self) -> None:
        text = "<x:log xmlns:x='http://x'><x:event><x:string key='n' value='a'/></x:event></x:log>"
        assert read(text) == [{"n": "a"}]

    def test_other_encodings_are_read_as_declared(self) -> None:
        text = "<?xml version='1.0' encoding='ISO-8859-1'?><log><event><string key='n' value='Grün'/></event></log>"
        assert read(text.encode("latin-1")) == [{"n": "Grün"}]


class TestStructuredAttributes:
    def test_a_list_is_a_json_array_of_keys_and_values_where_keys_may_repeat(self) -> None:
        event = only(
            "<list key='parts'><values><string key='p' value='wheel'/><string key='p' value='bell'/></values></list>"
        )
        assert json.loads(event["parts"] or "") == [{"key": "p", "value": "wheel"}, {"key": "p", "value": "bell"}]

    def test_a_list_without_values_holds_its_items_directly(self) -> None:
        event = only("<list key='parts'><string key='p' value='wheel'/></list>")
        assert json.loads(event["parts"] or "") == [{"key": "p", "value": "wheel"}]

    def test_a_container_is_a_json_object_and_nests(self) -> None:
        event = only(
            "<container key='c'><int key='n' value='1'/><container key='d'><string key='e' value='é'/></container>"
            "<list key='l'><values><int key='i' value='2'/></values></list></container>"
        )
        assert event["c"] == '{"n": "1", "d": {"e": "é"}, "l": [{"key": "i", "value": "2"}]}'

    def test_an_attribute_nested_in_a_plain_one_stands_beside_it(self) -> None:
        event = only("<string key='cost' value='7'><string key='currency' value='EUR'/></string>")
        assert event == {"cost": "7", "cost/currency": "EUR"}

    def test_attributes_of_a_list_beside_its_values_stand_beside_it(self) -> None:
        event = only("<list key='l'><string key='unit' value='kg'/><values><int key='i' value='2'/></values></list>")
        assert event == {"l": '[{"key": "i", "value": "2"}]', "l/unit": "kg"}

    def test_traces_and_globals_may_hold_them_too(self) -> None:
        text = """<log><global scope="event"><container key="c"><int key="n" value="1"/></container></global>
            <trace><list key="l"/><event/></trace></log>"""
        assert read(text) == [{"case:l": "[]", "case:concept:name": "shop.xes#1", "c": '{"n": "1"}'}]


class TestColumns:
    def test_every_key_once_in_order_of_first_appearance(self) -> None:
        assert columns(io.BytesIO(SHOP.encode()), name="shop.xes") == [
            "case:concept:name",
            "case:total",
            "case:shop",
            "concept:name",
            "time:timestamp",
            "items",
            "express",
            "lifecycle:transition",
            "identity:id",
        ]

    def test_a_log_without_events_has_none(self) -> None:
        assert columns(io.BytesIO(b"<log><string key='a' value='1'/></log>"), name="empty.xes") == []


class TestCompressed:
    def test_gzip_is_told_by_its_first_bytes_and_reads_the_same(self) -> None:
        assert read(gzip.compress(SHOP.encode()), name="shop.xes.gz") == read(SHOP, name="shop.xes.gz")

    def test_several_gzip_members_in_one_file_are_one_log(self) -> None:
        half = len(SHOP) // 2
        assert read(gzip.compress(SHOP[:half].encode()) + gzip.compress(SHOP[half:].encode())) == read(SHOP)

    def test_a_cut_gzip_file_is_refused_by_name(self) -> None:
        assert refusal(gzip.compress(SHOP.encode())[:-20]).startswith("shop.xes, after line ")

    def test_the_open_file_stays_open(self) -> None:
        with io.BytesIO(gzip.compress(SHOP.encode())) as file:
            list(events(file, name="shop.xes.gz"))
            assert not file.closed


class TestFaults:
    """What is irregular in one event is that event's fault, and the others come as they are."""

    @pytest.mark.parametrize(
        ("attributes", "fault"),
        [
            ("<date value='1'/>", "line 2: <date> in <event> has no key"),
            ("<int key='b'><int value='1'/></int>", "line 2: <int> in <int> has no key"),
            ("<int key='a'/><int key='a'/>", "line 2: attribute 'a' stands twice in one <event>"),
            (
                "<container key='c'><int key='a'/><int key='a'/></container>",
                "line 2: attribute 'a' stands twice in one <container>",
            ),
            ("<int key='case:t'/>", "attribute 'case:t' of an event has the name of an attribute of its trace"),
            (
                "<what><ever key='a'/></what>",
                "line 2: <what> cannot stand in <event>; expected <boolean>, <container>, <date>, <float>, <id>, "
                "<int>, <list>, <string>",
            ),
            (
                "<container key='c'>" * 100 + "</container>" * 100,
                "line 2: elements are nested more than 64 deep",
            ),
        ],
    )
    def test_of_an_event(self, attributes: str, fault: str) -> None:
        text = (
            "<log><trace><int key='t' value='5'/><event><int key='n' value='1'/></event>\n"
            f"<event>{attributes}</event><event><int key='n' value='3'/></event></trace></log>"
        )
        before, between, behind = read(text)
        assert between[FAULT] == fault
        case = {"case:t": "5", "case:concept:name": "shop.xes#1"}
        assert (before, behind) == (case | {"n": "1"}, case | {"n": "3"})

    def test_of_a_trace_is_one_of_all_its_events_and_of_no_others(self) -> None:
        text = """<log><trace><int key='a'/><int key='a'/><event/><event/></trace>
            <trace><string value='x'/><event/></trace><trace><event/></trace></log>"""
        assert [event.get(FAULT) for event in read(text)] == [
            "line 1: attribute 'a' stands twice in one <trace>",
            "line 1: attribute 'a' stands twice in one <trace>",
            "line 2: <string> in <trace> has no key",
            None,
        ]

    @pytest.mark.parametrize(
        "metadata",
        [
            "<string value='no key'/>",
            "<string key='a'><string value='no key'/></string>",
            "<string key='a'/><string key='a'/>",
            "<container key='c'>" * 100 + "</container>" * 100,
            "<extension><string/></extension>",
            "<what><ever/></what>",
            "<global><string key='n' value='default'/></global>",
            "<global scope='log'><string value='default'/></global>",
            "<global scope='event'><string value='no key'/></global>",
        ],
    )
    def test_what_describes_the_log_spoils_no_event(self, metadata: str) -> None:
        assert read(f"<log>{metadata}<event><int key='x' value='1'/></event></log>") == [{"x": "1"}]

    def test_attributes_of_a_trace_may_stand_behind_its_events(self) -> None:
        text = "<log><trace><event/><string key='concept:name' value='7'/><event/></trace></log>"
        assert read(text) == [{"case:concept:name": "7"}] * 2

    def test_traces_without_a_name_go_by_the_file_and_their_number(self) -> None:
        named = "<trace><string key='concept:name' value='b'/><event/></trace>"
        text = f"""<log><global scope='trace'><string key='concept:name' value='__INVALID__'/></global>
            <trace><event/></trace>{named}<trace><string key='concept:name'/><event/></trace>
            <trace><string key='concept:name' value=''/><event/></trace></log>"""
        notes: list[str] = []
        found = events(io.BytesIO(text.encode()), name="file:/data/shop.xes", label="shop.xes", on_note=notes.append)
        assert [event["case:concept:name"] for event in found] == ["shop.xes#1", "b", "shop.xes#3", "shop.xes#4"]
        assert notes == [NUMBERED]

    def test_attributes_of_a_trace_may_stand_behind_thousands_of_its_events(self) -> None:
        inside = "".join(f"<event><int key='n' value='{n}'/></event>" for n in range(2500))
        text = f"<log><trace>{inside}<string key='concept:name' value='long'/></trace><trace><event/></trace></log>"
        *long, short = read(text)
        assert long == [{"case:concept:name": "long", "n": str(n)} for n in range(2500)]
        assert short == {"case:concept:name": "shop.xes#2"}

    def test_a_global_behind_the_first_trace_holds_for_what_stands_behind_it(self) -> None:
        late = "<global scope='event'><int key='x' value='7'/></global>"
        text = f"<log><trace><event/></trace>{late}<trace><event/></trace>{late}<event/></log>"
        notes: list[str] = []
        found = list(events(io.BytesIO(text.encode()), name="shop.xes", on_note=notes.append))
        assert [event.get("x") for event in found] == [None, "7", "7"]
        assert LATE_GLOBAL in notes
        assert len(notes) == 2

    def test_an_event_where_none_can_stand_is_a_fault_of_both(self) -> None:
        text = """<log><trace><string key='concept:name' value='t'/>
            <event><int key='n' value='1'/><event><int key='n' value='2'/></event></event>
            <event><int key='n' value='3'/></event></trace>
            <global scope='event'><event><int key='n' value='4'/></event></global></log>"""
        told = "<event> cannot stand in"
        assert [(event["n"], event.get(FAULT, "")[: len("line 2: ") + len(told)]) for event in read(text)] == [
            ("2", f"line 2: {told}"), ("1", f"line 2: {told}"), ("3", ""), ("4", f"line 4: {told}"),
        ]  # fmt: skip

    def test_a_trace_in_a_trace_spoils_both_and_no_others(self) -> None:
        inner = "<trace><string key='concept:name' value='in'/><event/></trace>"
        text = f"""<log><trace><event/>
            {inner}<string key='concept:name' value='out'/><event/></trace>
            <trace><event/></trace></log>"""
        found = [(event["case:concept:name"], FAULT in event) for event in read(text)]
        assert found == [("in", True), ("out", True), ("out", True), ("shop.xes#3", False)]

    @pytest.mark.parametrize("misplaced", ["<global scope='trace'/>", "<log><event/></log>", "<classifier/>"])
    def test_what_cannot_stand_in_a_trace_is_a_fault_of_that_trace(self, misplaced: str) -> None:
        text = f"<log><trace><event/>{misplaced}</trace><trace><event/></trace></log>"
        tag = misplaced[1:].split()[0].strip("/>").split(">")[0]
        first, second = read(text)
        assert (first.get(FAULT) or "").startswith(f"line 1: <{tag}> cannot stand in <trace>; expected <boolean>")
        assert FAULT not in second


class TestRefusals:
    """Each names the file, the line and what is wrong."""

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "shop.xes, line 1, column 1: broken XML: the file is empty, expected <log>"),
            ("<log>\n<trace>\n", "shop.xes, line 3, column 1: broken XML: the file ends inside <trace>"),
            ("<log>\n<event></trace></log>", "shop.xes, line 2, column 10: broken XML: mismatched tag"),
            ("<log>\n<event a=1/></log>", "shop.xes, line 2, column 10: broken XML: not well-formed (invalid token)"),
            ("<html/>", "shop.xes, line 1: <html> cannot stand as the root; expected <log>"),
            ("<?xml version='1.0' encoding='klingon'?><log/>", "shop.xes"),
        ],
    )
    def test_what_is_not_xes(self, text: str, message: str) -> None:
        assert message in refusal(text)

    def test_a_doctype_is_refused_before_any_entity_is_expanded(self) -> None:
        laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
        bomb = (
            f'<?xml version="1.0"?>\n<!DOCTYPE log [<!ENTITY l0 "ha">{laughs}]>'
            '<log><event><string key="n" value="&l11;"/></event></log>'
        )
        assert refusal(bomb).startswith("shop.xes, line 2: the file has a DOCTYPE")

    def test_a_doctype_that_names_an_outside_file_is_refused(self) -> None:
        assert "DOCTYPE" in refusal('<!DOCTYPE log SYSTEM "file:///etc/passwd"><log/>')

    def test_an_entity_that_nobody_declared_is_refused(self) -> None:
        assert "undefined entity" in refusal("<log><event><string key='n' value='&x;'/></event></log>")

    def test_events_before_the_broken_place_have_been_given(self) -> None:
        whole = "<event><string key='n' value='a'/></event>" * 5000
        reading = events(io.BytesIO(f"<log>{whole}</oops>".encode()), name="shop.xes")
        assert next(reading) == {"n": "a"}
        with pytest.raises(SourceError, match="mismatched tag"):
            list(reading)


class _Endless(io.RawIOBase):
    """A log of many events that exists only as it is read."""

    def __init__(self, count: int) -> None:
        self._parts = self._write(count)

    def _write(self, count: int) -> Iterator[bytes]:
        yield b"<log><trace>"
        event = b"<event><string key='n' value='" + b"x" * 400 + b"'/></event>"
        for _ in range(count // 100):
            yield event * 100
        yield b"</trace></log>"

    def read(self, size: int = -1) -> bytes:
        return next(self._parts, b"")


def test_memory_does_not_grow_with_the_log() -> None:
    tracemalloc.start()
    count = sum(1 for _ in events(_Endless(40_000), name="long.xes"))  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 40_000
    assert peak < 2_000_000  # the log has 17 MB


_TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufffe\uffff"), max_size=8)


@given(
    st.lists(st.tuples(_TEXTS, st.lists(st.dictionaries(_TEXTS.filter(bool), _TEXTS, max_size=3), max_size=3))),
    st.integers(1, 40),
)
def test_any_log_comes_back_however_it_is_cut_into_reads(
    traces: list[tuple[str, list[dict[str, str]]]], size: int
) -> None:
    from xml.sax.saxutils import quoteattr

    text = "<log>"
    expected: list[dict[str, str | None]] = []
    for number, (case, own) in enumerate(traces, 1):
        text += f"<trace><string key='id' value={quoteattr(case)}/>"
        for event in own:
            inside = "".join(f"<string key={quoteattr(k)} value={quoteattr(v)}/>" for k, v in event.items())
            text += f"<event>{inside}</event>"
            expected.append({"case:id": case, "case:concept:name": f"any.xes#{number}", **event})
        text += "</trace>"

    class Slow(io.BytesIO):
        def read(self, _size: int | None = -1, /) -> bytes:
            return super().read(size)

    assert list(events(Slow((text + "</log>").encode()), name="any.xes")) == expected

"""Every query printed in the five papers can be asked here: as printed, or with a named correction where it must be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from patternlake.udfs.errors import PatternError
from patternlake.udfs.language.predicate.predicates import Scope, bind, parse_predicate
from patternlake.udfs.language.query import operands
from patternlake.udfs.language.query.engines import ENGINES, check
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.printing import to_text
from patternlake.udfs.language.query.tree import Query, Span

Entry = dict[str, str | None]

GOLDEN: list[Entry] = yaml.safe_load(
    (Path(__file__).parents[2] / "golden" / "paper_queries.yaml").read_text(encoding="utf-8")
)
CORRECTED = [entry for entry in GOLDEN if entry["correction"] is not None]

# What the papers' examples speak of: attributes of their events, and names that their text leaves open.
ATTRIBUTES = {
    "001": {"value": "double"},
    "003": {
        "type": "string",
        "src": "string",
        "dest": "string",
        "id": "bigint",
        "price": "double",
        "attr": "double",
    },
    "004": {"STATUS": "string", "IP": "string", "T": "double"},
}
PARAMETERS = {"003": {"ratio": "2.8"}, "004": {"d": "5 MIN", "T": "5 MIN"}}


def each(entries: list[Entry]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "entry", entries, ids=[f"{entry['paper']}-{entry['place']}-{entry['printed']}" for entry in entries]
    )


def readable(entry: Entry) -> str:
    """The text to ask: the corrected one where there is one."""
    text = entry["corrected"] if entry["correction"] is not None else entry["printed"]
    assert text is not None
    return text


def understand(text: str, paper: str) -> Query:
    """Read a query with all of its predicates, in the scope of the paper's examples."""
    query = parse(text)
    attributes, parameters = ATTRIBUTES.get(paper, {}), PARAMETERS.get(paper, {})
    one_event = Scope(attributes=attributes, parameters=parameters)
    whole_match = Scope(operands.number(query).names, attributes, parameters)

    def read(predicate: str, place: Span, scope: Scope) -> None:
        bind(parse_predicate(predicate, query_text=text, offset=place.start), scope)

    for definition in query.define:
        read(definition.predicate, definition.predicate_span, one_event)
    if query.where is not None:
        read(query.where, query.where_span, whole_match)
    for node in query.pattern.walk():
        for condition in node.conditions:
            read(condition.text, condition.span, whole_match)
    return query


@each(GOLDEN)
def test_it_reads_as_its_normal_form(entry: Entry) -> None:
    assert to_text(understand(readable(entry), str(entry["paper"]))) == entry["normal"]


@each(GOLDEN)
def test_its_normal_form_reads_back_as_the_same_tree(entry: Entry) -> None:
    assert parse(str(entry["normal"])) == parse(readable(entry))


@each(CORRECTED)
def test_what_is_corrected_cannot_be_read_as_printed(entry: Entry) -> None:
    with pytest.raises(PatternError, match=r"^line \d+, column \d+: "):
        understand(str(entry["printed"]), str(entry["paper"]))


@each(GOLDEN)
def test_the_engine_of_its_paper_takes_it_or_says_what_it_does_not_take(entry: Entry) -> None:
    query, engine = parse(readable(entry)), str(entry["engine"])
    if "refused" not in entry:
        check(query, engine)
        return
    # What the paper has of an engine is, of sequences, the sketch alone.
    with pytest.raises(PatternError) as refusal:
        check(query, engine, verify=False)
    assert str(entry["refused"]) in refusal.value.message


def test_every_paper_and_every_engine_is_there() -> None:
    assert {entry["paper"] for entry in GOLDEN} == {"000", "001", "002", "003", "004"}
    # Funnels come from no paper.
    assert {entry["engine"] for entry in GOLDEN} == set(ENGINES) - {"funnels"}


def test_every_print_stands_once_a_paper() -> None:
    count = Counter((entry["paper"], entry["printed"]) for entry in GOLDEN)
    assert [print_ for print_, times in count.items() if times > 1] == []


def test_a_correction_comes_with_its_corrected_text() -> None:
    assert [entry for entry in GOLDEN if (entry["correction"] is None) != (entry.get("corrected") is None)] == []

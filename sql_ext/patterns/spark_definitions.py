"""Conditions of DEFINE outside of the predicate language: Spark evaluates them, as truth values beside the attributes.

The events of such a question come from a plan of Spark's, with one attribute more for each condition; the pattern asks
for that attribute. So dates, regular expressions, JSON and whatever else Spark knows may say what an event is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.spark.spark_types import first_line
from patternlake.sql_ext.answering.stream_facts import StreamFacts
from patternlake.sql_ext.declarations.over_tables import lake_of_events
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.attributes import column_of, types_of_attributes
from patternlake.udfs.errors import PatternError, PredicateError
from patternlake.udfs.language.predicate.predicates import parse_predicate
from patternlake.udfs.language.predicate.scopes import BUILT_IN
from patternlake.udfs.language.query.over_streams import DEFINED
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.tree import Definition, Query
from patternlake.udfs.language.row_pattern.expressions import AGGREGATES
from patternlake.udfs.language.row_pattern.tokens import tokens_of
from patternlake.udfs.measures.pattern_measures import constant_sql, restore
from patternlake.udfs.own_names import OWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EVENT = f"{OWN}event"
_NAME = OWN + "defined_{}"


def with_definitions(lake: Lake, facts: StreamFacts, arguments: Mapping[str, Any]) -> tuple[Lake, StreamFacts]:
    """What answers a question some of whose conditions Spark evaluates.

    Parameters
    ----------
    lake
        Where it is asked.
    facts
        What is known of its stream.
    arguments
        Of the call: its ``pattern`` and ``params``.

    Returns
    -------
    (lake, facts)
        As they are, where the predicate language has all conditions.

    Raises
    ------
    PredicateError
        Spark does not take a condition either, or it says nothing of one event alone that is always the same.
    """
    at = facts.published.at
    if at is None:
        return lake, facts
    stream, parameters = json.loads(at.configuration), dict(arguments["params"] or {})
    refused = _find_refused(arguments["pattern"])
    if not refused:
        return lake, facts
    query = parse(arguments["pattern"])
    names = {part.name: _NAME.format(number) for number, part in enumerate(refused)}

    def events(asked: Lake) -> DataFrame:
        return _with_truths(asked.database.table("events"), query, refused, stream, parameters)

    made = lake_of_events(lake, events(lake), lambda: events(lake.apart()))
    attributes = {**stream["attributes"], **{name: {"type": "boolean"} for name in names.values()}}
    configuration = json.dumps({**stream, "attributes": attributes, DEFINED: names})
    published = replace(facts.published, at=replace(at, configuration=configuration))
    return made, replace(facts, number=None, published=published)


def _find_refused(text: str | None) -> dict[Definition, PredicateError]:
    """The definitions that the predicate language cannot read, and why."""
    try:
        query = parse(text or "")
    except PatternError:
        return {}  # the question itself tells
    found: dict[Definition, PredicateError] = {}
    for part in query.define:
        try:
            parse_predicate(part.predicate, query_text=query.text, offset=part.predicate_span.start)
        except PredicateError as error:
            found[part] = error
    return found


def _with_truths(
    events: DataFrame,
    query: Query,
    refused: Mapping[Definition, PredicateError],
    stream: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> DataFrame:
    """Events with an attribute more for each condition."""
    columns = {name: _attribute(name, kind) for name, kind in types_of_attributes(stream).items()}
    columns |= {name: F.expr("NULL" if text is None else constant_sql(text)) for name, text in parameters.items()}
    columns |= {name: F.col(name) for name in BUILT_IN if name in events.columns}
    if stream.get("key") not in (None, *columns):
        columns[stream["key"]] = F.col("key")
    read = events.select(F.struct("*").alias(_EVENT), *(column.alias(name) for name, column in columns.items()))
    truths = [
        _truth(read, part, query, error).alias(column_of(_NAME.format(number), "boolean"))
        for number, (part, error) in enumerate(refused.items())
    ]
    return read.select(*(F.col(f"{_EVENT}.{identifier(name)}") for name in events.columns), *truths)


def _attribute(name: str, kind: str) -> Column:
    """An attribute as its type."""
    return F.expr(restore(identifier(column_of(name, kind)), kind))


def _truth(read: DataFrame, part: Definition, query: Query, refused: PredicateError) -> Column:
    """A condition, once Spark takes it for one of an event."""

    def fail(message: str) -> PredicateError:
        place = part.predicate_span
        return PredicateError(message, query.text, place.start, place.end)

    for token in tokens_of(part.predicate):
        if token.word in ("SELECT", "OVER", *AGGREGATES):
            raise refused
    condition = F.expr(f"({part.predicate})")
    try:
        frame = read.select(condition)
    except ParseException:
        raise refused from None
    except PySparkException as error:
        message = f"{refused.message}; nor does Spark take the condition: {first_line(error)}"
        raise PredicateError(message, query.text, refused.start, refused.end) from None
    plan: Any = frame._jdf.queryExecution().analyzed()
    kind = frame.schema[0].dataType.simpleString()
    if kind != "boolean":
        raise fail(f"a condition is true or false, not of the type {kind}")
    if not plan.expressions().apply(0).deterministic():
        raise fail("a condition that gives another value each time it is asked says nothing of an event")
    return condition

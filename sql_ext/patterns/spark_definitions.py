"""Conditions of DEFINE outside of the predicate language: Spark evaluates them, as truth values beside the attributes.

The events of such a question come from a plan of Spark's, with one attribute more for each condition; the pattern asks
for that attribute. So dates, regular expressions, JSON and whatever else Spark knows may say what an event is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from patternlake.delta_tables.committing.sessions import own_session
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.spark.repeatability import moving_part
from patternlake.delta_tables.spark.spark_types import first_line
from patternlake.sql_ext.answering.stream_facts import StreamFacts
from patternlake.sql_ext.declarations.over_tables import lake_of_events
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.attributes import column_of, stored_type, types_of_attributes
from patternlake.udfs.errors import PatternError, PredicateError
from patternlake.udfs.language.predicate.predicates import ConstantError, bind, parse_predicate
from patternlake.udfs.language.predicate.scopes import BUILT_IN, Scope
from patternlake.udfs.language.query.over_streams import DEFINED
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.tree import Definition
from patternlake.udfs.language.row_pattern.expressions import AGGREGATES, is_like_some
from patternlake.udfs.language.row_pattern.formulas import split_at_and
from patternlake.udfs.language.row_pattern.tokens import tokens_of
from patternlake.udfs.measures.event_values import is_handed_on
from patternlake.udfs.measures.pattern_measures import constant_sql, restore
from patternlake.udfs.own_names import OWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EVENT = f"{OWN}event"
_NAME = OWN + "defined_{}"
_MEANING = {"spark.sql.ansi.enabled": "false"}
"""As predicates have it; the zone of an own session is UTC, as theirs is."""


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
    refused = _find_refused(arguments["pattern"], Scope.of_stream(stream, parameters))
    if not refused:
        return lake, facts
    names = {part.definition.name: _NAME.format(number) for number, part in enumerate(refused)}

    def events(asked: Lake) -> DataFrame:
        return _with_truths(asked.database.table("events"), refused, stream, parameters)

    made = lake_of_events(lake, events(lake), lambda: events(lake.apart()))
    attributes = {**stream["attributes"], **{name: {"type": "boolean"} for name in names.values()}}
    defined = {part.definition.name: " AND ".join([names[part.definition.name], *part.kept]) for part in refused}
    configuration = json.dumps({**stream, "attributes": attributes, DEFINED: defined})
    published = replace(facts.published, at=replace(at, configuration=configuration))
    return made, replace(facts, number=None, published=published)


@dataclass(frozen=True)
class _Refused:
    """A definition that is not all in the predicate language.

    Attributes
    ----------
    definition
        As it was written.
    kept
        Of what AND joins, that which is: so the names that may occur still narrow what is read.
    text
        The rest of it, for Spark.
    error
        Why; it has the text of the query, and the place.
    of_types
        Whether the language refuses the types alone: if Spark does so, too, that is no more than the error says.
    """

    definition: Definition
    kept: tuple[str, ...]
    text: str
    error: PredicateError
    of_types: bool


def _find_refused(text: str | None, scope: Scope) -> list[_Refused]:
    """The definitions that the predicate language does not take as a whole."""
    try:
        query = parse(text or "")
    except PatternError:
        return []  # the question itself tells
    found: list[_Refused] = []
    for definition in query.define:
        kept: list[str] = []
        rest: list[tuple[str, PredicateError, bool]] = []
        for tokens in split_at_and(tokens_of(definition.predicate)[:-1]):
            part = definition.predicate[tokens[0].start : tokens[-1].end]
            start = definition.predicate_span.start + tokens[0].start
            read = None
            try:
                read = parse_predicate(part, query_text=query.text, offset=start)
                bind(read, scope)
                kept.append(f"({part})")
            except ConstantError:
                raise  # Spark would make NULL of it, too, and the condition would never hold.
            except PredicateError as error:
                rest.append((f"({part})", error, read is not None))
        if rest:
            _, why, of_types = next((one for one in rest if not one[2]), rest[0])
            found.append(_Refused(definition, tuple(kept), " AND ".join(part for part, *_ in rest), why, of_types))
    return found


def _with_truths(
    events: DataFrame, refused: Sequence[_Refused], stream: Mapping[str, Any], parameters: Mapping[str, Any]
) -> DataFrame:
    """Events with an attribute more for each condition, which means the same in whatever session it is asked."""
    asker = events.sparkSession

    def with_truths() -> DataFrame:
        with own_session(asker, _MEANING) as own:
            return _in_session(_add_truths(_in_session(events, own), refused, stream, parameters), asker)

    # A thread in which a question is planned has the settings of its session, whichever session is active.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(with_truths).result()


def _add_truths(
    events: DataFrame, refused: Sequence[_Refused], stream: Mapping[str, Any], parameters: Mapping[str, Any]
) -> DataFrame:
    # Of several that have one name the last one is meant, as in predicates.
    columns = {name: F.expr("NULL" if text is None else constant_sql(text)) for name, text in parameters.items()}
    if stream.get("key") is not None:
        columns[stream["key"]] = F.col("key")
    columns |= {name: _attribute(name, kind) for name, kind in types_of_attributes(stream).items()}
    columns |= {name: F.col(name) for name in BUILT_IN if name in events.columns}
    read = events.select(F.struct("*").alias(_EVENT), *(column.alias(name) for name, column in columns.items()))
    truths = [
        _truth(read, part).alias(column_of(_NAME.format(number), "boolean")) for number, part in enumerate(refused)
    ]
    return read.select(*(F.col(f"{_EVENT}.{identifier(name)}") for name in events.columns), *truths)


def _in_session(frame: DataFrame, session: SparkSession) -> DataFrame:
    """What a frame's plan is in another session: what it means was settled when it was made."""
    from pyspark.sql import DataFrame

    jvm: Any = session._jvm
    plan = frame._jdf.queryExecution().analyzed()
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)


def _attribute(name: str, kind: str) -> Column:
    """An attribute as its type."""
    stored = F.expr(restore(identifier(column_of(name, kind)), kind))
    return stored.cast(kind) if is_handed_on(kind) and stored_type(kind) != kind else stored


def _truth(read: DataFrame, part: _Refused) -> Column:
    """A condition, once Spark takes it for one of an event."""
    refused, place = part.error, part.definition.predicate_span

    def fail(message: str) -> PredicateError:
        return PredicateError(message, refused.text, place.start, place.end)

    tokens = tokens_of(part.text)
    for at, token in enumerate(tokens):
        called = token.word in AGGREGATES and tokens[at + 1].sign == "(" and not is_like_some(tokens, at)
        if token.word in ("SELECT", "OVER") or called:
            raise refused
    condition = F.expr(part.text)
    try:
        frame = read.select(condition)
    except ParseException:
        raise refused from None
    except PySparkException as error:
        if part.of_types:
            raise refused from None
        message = f"{refused.message}; nor does Spark take the condition: {first_line(error)}"
        raise PredicateError(message, refused.text, refused.start, refused.end) from None
    plan: Any = frame._jdf.queryExecution().analyzed()
    kind = frame.schema[0].dataType.simpleString()
    if kind != "boolean":
        raise fail(f"a condition is true or false, not of the type {kind}")
    if moving_part(frame, part.text) is not None or not plan.expressions().apply(0).deterministic():
        raise fail("a condition that gives another value each time it is asked says nothing of an event")
    return condition

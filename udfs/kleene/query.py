"""A query for exact matching, compiled: operands, linearizations, conditions, window.

Source: Behravesh et al., "Kleene operator in FAEM", and SPEC section 3. WHERE is cut into its conjuncts, and each
belongs to one place:

- over no operand: it holds for all rows or for none;
- over one event of one operand: the operand's filter;
- ``[attr]``: all events of a match agree, so each value is matched on its own;
- with aggregates of repeated operands: an **aggregate condition**, judged last, of whole matches;
- anything else: a **condition**, judged at the lowest node that has all its operands, for all kept events of the
  repeated ones; with ``b[i-1]``, for each kept event of b and the one kept before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from patternlake.udfs.attributes import attribute_columns
from patternlake.udfs.errors import PredicateError
from patternlake.udfs.kleene.aggregate_conditions import (
    AggregateCondition,
    SteeringCondition,
    aggregate_condition,
    steering_condition,
)
from patternlake.udfs.kleene.deadlines import Deadline, deadline_of
from patternlake.udfs.kleene.linearizations import Gap, Linearization, linearizations_of
from patternlake.udfs.kleene.refusals import refuse_untaken
from patternlake.udfs.kleene.rounds import repeated_groups
from patternlake.udfs.kleene.ways import Way, ways_of
from patternlake.udfs.language.predicate.aggregates import aggregates_in, operand_of
from patternlake.udfs.language.predicate.expressions import Aggregate, EqualAlong
from patternlake.udfs.language.predicate.predicates import (
    Predicate,
    Scope,
    bind,
    conjunction,
    names_admitted,
    parse_predicate,
    read_predicate,
    read_where,
    refuse_joined,
    refuse_neighbours,
    refuse_variables,
)
from patternlake.udfs.language.query import engines, extents, operands, tree
from patternlake.udfs.language.query.names import quote
from patternlake.udfs.language.query.partitions import partition_columns
from patternlake.udfs.language.query.printing import repetition_text
from patternlake.udfs.language.query.tree import Extent, Query
from patternlake.udfs.measures.pattern_measures import PatternMeasures, read_pattern_measures

MOST_OPERANDS = 64
"""Greatest number of operands of one pattern."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A name of UNTIL, and its DEFINE where it has one."""

    takes: str
    define: Predicate | None


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of the pattern.

    Attributes
    ----------
    name
        What predicates and bindings call it.
    takes
        The event name, or the DEFINE primitive, that it takes.
    least, most
        How many events; `most` is None where there is no greatest number. Where they differ, the operand takes all
        that can be added, up to `most`, or under `KleenePattern.every` any choice of so many.
    negated
        True under ``!``.
    filter
        What its events must satisfy alone: DEFINE, and the conjuncts of WHERE over one event of it; None: the name is
        enough.
    define
        True where `takes` is a DEFINE primitive.
    text
        The operand as the pattern writes it, for plans.
    always
        Whether it has an event in every match of an order that it is in. A repeated group chooses among alternatives
        in each round, so that none of them always has one, whatever `least` says.
    until
        What ends its collecting, by name and DEFINE: it takes no event behind the first such one that follows its own
        first. Empty without UNTIL.
    """

    name: str
    takes: str
    least: int
    most: int | None
    negated: bool
    filter: Predicate | None
    define: Predicate | None
    text: str
    always: bool
    until: tuple[Ending, ...] = ()

    @property
    def asking(self) -> tuple[Operand | Ending, ...]:
        """The operand and what ends it: all that asks for events by name or DEFINE."""
        return self, *self.until

    @property
    def names(self) -> frozenset[str] | None:
        """The names of the events that it may take; None: any."""
        return _names_taken([self])

    @property
    def grows(self) -> bool:
        """True for ``+``, ``*``, ``?``, ``{n,}`` and ``{n,m}``: how many events it takes depends on what there is."""
        return self.most != self.least

    @property
    def repeated(self) -> bool:
        """True for all but those that take exactly one event."""
        return not self.least == self.most == 1

    @property
    def counted(self) -> bool:
        """True for ``[n]`` with n above 1."""
        return self.most == self.least and self.repeated


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunct over several operands, or over neighbours of one.

    Attributes
    ----------
    predicate
        The conjunct.
    operands, names
        Numbers and names of the operands that it names and that are not negated.
    before
        The operand that stands in it with ``[i-1]``, or None.
    absent
        Numbers of the negated operands that it judges, in text order.
    absent_names
        Their names.
    deadline
        What it says where it bounds the time between one negated operand and another operand, and no more; or None.
    """

    predicate: Predicate
    operands: tuple[int, ...]
    names: tuple[str, ...]
    before: int | None
    absent: tuple[int, ...] = ()
    absent_names: tuple[str, ...] = ()
    deadline: Deadline | None = None

    @property
    def negated(self) -> int | None:
        """The first negated operand that it judges, or None."""
        return self.absent[0] if self.absent else None


@dataclass(frozen=True)
class KleenePattern:
    """A compiled query.

    Attributes
    ----------
    operands
        In text order, negated ones too.
    linearizations
        The orders whose union the pattern is; those of its ways, where it has such.
    ways
        What ``skip_till_next`` and ``strict`` try for a start, one after another. Under ``skip_till_any`` there are
        none but of a pattern with repeated groups, which is the union of all of them.
    constants
        Conjuncts over no operand.
    conditions
        Conjuncts over several operands or neighbours.
    aggregates
        Aggregates of the query and the operand of each, in text order, each once.
    aggregate_conditions
        Conjuncts with aggregates that judge whole matches.
    steering
        Those that judge events as they are taken; none under ``skip_till_any``.
    along
        Columns of ``[attr]``.
    partition
        Columns of PARTITION BY; the stream's key is called ``key``.
    within
        Window, or None.
    every
        Whether repeated operands take every choice of events (``repetition => 'all'``), not all that can be added.
    columns
        All columns of events that matching reads, but for ``position``, ``time`` and what only `partition` names.
    query
        The query.
    measures
        MEASURES, or None.
    """

    operands: tuple[Operand, ...]
    linearizations: tuple[Linearization, ...]
    ways: tuple[Way, ...]
    constants: tuple[Predicate, ...]
    conditions: tuple[Condition, ...]
    aggregates: Mapping[Aggregate, int]
    aggregate_conditions: tuple[AggregateCondition, ...]
    steering: tuple[SteeringCondition, ...]
    along: tuple[str, ...]
    partition: tuple[str, ...]
    within: Extent | None
    every: bool
    columns: frozenset[str]
    query: Query
    measures: PatternMeasures | None = None

    @property
    def positive(self) -> tuple[int, ...]:
        """Numbers of the operands that take events, in text order."""
        return tuple(number for number, operand in enumerate(self.operands) if not operand.negated)

    @property
    def needed(self) -> Mapping[int, int]:
        """For each operand the events that it needs at least, by `Operand.least` and by what its COUNTs must reach."""
        found = {number: operand.least for number, operand in enumerate(self.operands)}
        for condition in self.aggregate_conditions:
            if condition.least is not None:
                aggregate, count = condition.least
                number = self.aggregates[aggregate]
                found[number] = max(found[number], count)
        return found

    @property
    def growing_ends(self) -> tuple[tuple[Linearization, int], ...]:
        """The operands that grow and that a match of a linearization may end in, which later events may still join."""
        return tuple(
            (linearization, one)
            for linearization in self.linearizations
            for one in linearization.operands
            if self.operands[one].grows and not any(self.operands[other].always for other in linearization.behind(one))
        )

    @property
    def ranked(self) -> bool:
        """Whether it matters how many events of the partition lie between two, those of no operand among them."""
        counted = self.within is not None and self.within.counted
        beside = any(gap.behind or gap.ahead or any(one.directly for one in gap.negated) for gap in self.gaps)
        return counted or beside or any(linearization.adjacent for linearization in self.linearizations)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What must not be, of all linearizations."""
        return tuple(dict.fromkeys(gap for linearization in self.linearizations for gap in linearization.gaps))

    @property
    def looked_at_first(self) -> frozenset[int]:
        """Numbers of the negated operands whose events count before a match begins."""
        return frozenset(
            number for gap in self.gaps if not gap.left for absent in gap.negated for number in absent.operands
        )

    @property
    def beyond_window(self) -> int:
        """Microseconds before and behind its window in which a match may look for what is absent."""
        own = [part.deadline for part in self.conditions if part.deadline is not None and part.deadline.own]
        ends = [bound for deadline in own for bound in (deadline.low, deadline.high) if bound is not None]
        return max((abs(bound) + 1 for bound in ends), default=0)

    @property
    def beginnings(self) -> frozenset[int]:
        """Numbers of the operands that the first event of a match may belong to."""
        found: set[int] = set()
        for linearization in self.linearizations:
            behind = {later for earlier, later in linearization.before if self.operands[earlier].always}
            found |= set(linearization.operands) - behind
        return frozenset(found)

    @property
    def always_one(self) -> frozenset[int]:
        """Numbers of the operands that take one event in every match."""
        found = {n for n in self.positive if self.operands[n].always and not self.operands[n].repeated}
        return frozenset(found.intersection(*(linearization.operands for linearization in self.linearizations)))

    @property
    def choice_first(self) -> bool:
        """Whether a match may begin in an operand that takes any n of the events that fit it: ``[n]``, and ``{n,m}``
        where there are m of them.
        """
        return not self.ways and any(
            (self.operands[one].counted or (not self.every and (self.operands[one].most or 1) > 1))
            and not any(behind == one and self.operands[other].always for other, behind in linearization.before)
            for linearization in self.linearizations
            for one in linearization.operands
        )

    def event_columns(self, types: Mapping[str, str]) -> tuple[str, ...]:
        """Columns of the table of events that hold what is read of them, given attributes' types."""
        return _columns_of_events(self.columns | self.measured | set(self.partition), types)

    def matched_columns(self, types: Mapping[str, str]) -> tuple[str, ...]:
        """Those of `event_columns` that are read once it is known which partition an event belongs to."""
        return _columns_of_events(self.columns | self.measured, types)

    @property
    def measured(self) -> frozenset[str]:
        """Columns of events that measures read of a match."""
        return frozenset() if self.measures is None else self.measures.columns

    @property
    def asked_names(self) -> tuple[str, ...]:
        """The event names that operands and their primitives ask for, in text order, each once; negated ones too."""
        found: dict[str, None] = {}
        for taking in (part for operand in self.operands for part in operand.asking):
            asked = [taking.takes] if taking.define is None else sorted(names_admitted(taking.define) or ())
            found.update(dict.fromkeys(asked))
        return tuple(found)

    @property
    def names(self) -> frozenset[str] | None:
        """Names of events that can take part, or end a repetition; None where a DEFINE may hold for any name."""
        return _names_taken(part for operand in self.operands for part in operand.asking)

    @property
    def beginning_names(self) -> frozenset[str] | None:
        """Names of events that a match begins with, or that count before it; None where a DEFINE may hold for any."""
        return _names_taken(self.operands[number] for number in self.beginnings | self.looked_at_first)


def compile_pattern(
    query: Query, scope: Scope | None = None, *, policy: str = "skip_till_any", repetition: str = "maximal"
) -> KleenePattern:
    """Compile a query for the kleene engine.

    Parameters
    ----------
    query
        The parsed query.
    scope
        Attributes, parameters and key column that predicates may use; its operands are replaced by the query's.
    policy
        ``skip_till_any``, ``skip_till_next`` or ``strict``.
    repetition
        ``maximal`` or ``all``.

    Raises
    ------
    UnsupportedOperatorError
        Naming the operator and its place: what `engines.check` and `refusals.refuse_untaken` refuse, more than
        `MOST_OPERANDS` operands or `linearizations.MOST_LINEARIZATIONS` linearizations, or as many `KleenePattern.ways`
        under another policy than ``skip_till_any``.
    PatternSyntaxError, PredicateError
        Two operands have one name; a predicate is not allowed or names what is not in scope; ``[i-1]`` of an operand
        that takes one event, of two operands in one conjunct or of a negated one; a conjunct over two negated operands,
        over three that take any number of events, or over neighbours of one and all events of another such; an
        aggregate of an operand that takes one event or is negated, or beside one that takes several; a PARTITION BY
        column that does not exist.
    """
    engines.check(query, "kleene")
    scope = scope or Scope()
    refuse_untaken(query, policy, every=repetition == "all")
    return _Compiler(query, scope, policy, every=repetition == "all").pattern()


def _names_taken(parts: Iterable[Operand | Ending]) -> frozenset[str] | None:
    """Names of events that some parts of a pattern take; None where a DEFINE may hold for any name."""
    found: set[str] = set()
    for part in parts:
        if part.define is None:
            found.add(part.takes)
            continue
        admitted = names_admitted(part.define)
        if admitted is None:
            return None
        found |= admitted
    return frozenset(found)


def _columns_of_events(read: Collection[str], types: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of the table of events that hold these, and those that any pattern needs."""
    built_in = [name for name in ("step", "key", "probability") if name in read]
    return ("position", "time", "name", *built_in, *attribute_columns(read, types))


def _bounds(node: tree.Node, least: int = 1, most: int | None = 1) -> Iterator[tuple[int, int | None]]:
    """How many events each operand takes at least and at most, in text order, by all repetitions that it is in."""
    if isinstance(node, tree.Event):
        yield least, most
    if isinstance(node, tree.Repetition):
        least *= node.minimum
        most = None if most is None or node.maximum is None else most * node.maximum
    for child in node.children():
        yield from _bounds(child, least, most)


def _always(node: tree.Node, *, grouped: bool = False, always: bool = True) -> Iterator[bool]:
    """Of each operand, in text order, whether every match of an order that it is in has an event of it."""
    if isinstance(node, tree.Event):
        yield always
    if isinstance(node, tree.Repetition):
        grouped |= not isinstance(node.item, tree.Event)
        always &= node.minimum > 0
    if isinstance(node, tree.Disjunction | tree.SomeOf):
        always &= not grouped
    for child in node.children():
        yield from _always(child, grouped=grouped, always=always)


def _groups(node: tree.Node, around: frozenset[int] = frozenset()) -> Iterator[frozenset[int]]:
    """The repeated groups that each operand is in, in text order."""
    if isinstance(node, tree.Event):
        yield around
    if isinstance(node, tree.Repetition) and not isinstance(node.item, tree.Event):
        around |= {id(node)}
    for child in node.children():
        yield from _groups(child, around)


def _definition(part: tree.Definition, text: str) -> Predicate:
    """Read a condition of DEFINE."""
    try:
        return parse_predicate(part.predicate, query_text=text or None, offset=part.predicate_span.start)
    except PredicateError as error:
        # match_pattern has given what only Spark evaluates to Spark by now, as an attribute.
        message = (
            f"{error.message}; Spark evaluates other conditions of DEFINE only where match_pattern is given the text: "
            f"elsewhere, make the condition of {quote(part.name)} an attribute of the "
            "stream, of type boolean, and write its name here"
        )
        raise PredicateError(message, error.text, error.start, error.end) from None


class _Compiler:
    def __init__(self, query: Query, scope: Scope, policy: str, *, every: bool) -> None:
        self.query = query
        self.scope = scope
        self.every = every
        self.named = operands.number(query)
        if len(self.named) > MOST_OPERANDS:
            message = f"a pattern has at most {MOST_OPERANDS} operands, this has {len(self.named)}"
            raise query.unsupported(message, self.named[MOST_OPERANDS].span)
        self.bounds = list(_bounds(query.pattern))
        self.always = list(_always(query.pattern))
        self.untils = {
            id(event): node.until
            for node in query.pattern.walk()
            if isinstance(node, tree.Repetition) and node.until is not None
            for event in node.walk()
            if isinstance(event, tree.Event)
        }
        self.number_of = {operand.name: operand.number - 1 for operand in self.named}
        nodes = {id(operand.event): operand.number - 1 for operand in self.named}
        repeated = frozenset(
            n for n, one in enumerate(self.named) if not (self.least(n) == self.most(n) == 1 or one.negated)
        )
        self.scans = policy != "skip_till_any"
        grouped = any(repeated_groups(query.pattern))
        self.ways = ways_of(query, nodes, repeated) if self.scans or grouped else ()
        self.linearizations = tuple(dict.fromkeys(way.order for way in self.ways)) or linearizations_of(
            query, nodes, repeated
        )
        gaps = [gap for linearization in self.linearizations for gap in linearization.gaps]
        self.absent_together = {absent.operands for gap in gaps for absent in gap.negated}
        self.filters: dict[int, list[Predicate]] = {}
        self.constants: list[Predicate] = []
        self.conditions: list[Condition] = []
        self.aggregates: dict[Aggregate, int] = {}
        self.aggregate_conditions: list[AggregateCondition] = []
        self.steering: list[SteeringCondition] = []
        self.groups = list(_groups(query.pattern))
        self.along: list[str] = []
        self.defined = {
            part.name: bind(_definition(part, query.text), replace(scope, operands=())) for part in query.define
        }
        refuse_joined(self.defined)

    def pattern(self) -> KleenePattern:
        """The compiled query."""
        scope = replace(self.scope, operands=self.named.names)
        where = read_where(self.query, replace(scope, aggregates=True))
        for conjunct in () if where is None else where.conjuncts:
            self.place(conjunct)
        negations = [node for node in self.query.pattern.walk() if isinstance(node, tree.Negation)]
        negated = {id(inner) for node in negations for inner in node.walk()}
        for node in self.query.pattern.walk():
            for condition in node.conditions:
                for conjunct in read_predicate(condition.text, condition.span, self.query, scope).conjuncts:
                    self.place(conjunct, own=id(node) in negated)
        made = tuple(self.operand(operand) for operand in self.named)
        partition = partition_columns(self.query, self.scope)
        return KleenePattern(
            operands=made,
            linearizations=self.linearizations,
            ways=self.ways,
            constants=tuple(self.constants),
            conditions=tuple(self.conditions),
            aggregates=self.aggregates,
            aggregate_conditions=tuple(self.aggregate_conditions),
            steering=tuple(self.steering),
            along=tuple(dict.fromkeys(self.along)),
            partition=partition,
            within=extents.clip(self.query.within),
            every=self.every,
            columns=self.columns(made),
            query=self.query,
            measures=read_pattern_measures(self.query, self.named, self.scope),
        )

    def operand(self, operand: operands.Operand) -> Operand:
        node = operand.node
        least, most = self.bounds[operand.number - 1]
        define = self.defined.get(operand.event.name)
        parts = self.filters.get(operand.number - 1, [])
        form = repetition_text(node) if isinstance(node, tree.Repetition) else ""
        return Operand(
            name=operand.name,
            takes=operand.event.name,
            least=least,
            most=most,
            negated=operand.negated,
            filter=conjunction(parts) if parts else None,
            define=define,
            text=("!" if operand.negated else "") + quote(operand.name) + form,
            always=self.always[operand.number - 1],
            until=self.endings(operand.event),
        )

    def endings(self, event: tree.Event) -> tuple[Ending, ...]:
        """What ends the collecting of an operand: behind it, or behind a group that it is in."""
        until = self.untils.get(id(event))
        events = [part for part in until.walk() if isinstance(part, tree.Event)] if until is not None else []
        return tuple(Ending(part.name, self.defined.get(part.name)) for part in events)

    def place(self, conjunct: Predicate, *, own: bool = False) -> None:
        """Put a conjunct in its place; `own`: it stands behind ``!`` as ``@( … )``."""
        root = conjunct.root
        if isinstance(root, EqualAlong):
            self.along.append(root.attribute)
            return
        refuse_variables(conjunct)
        if aggregates_in(conjunct):
            steering = steering_condition(conjunct, self.named, self.most, self.groups) if self.scans else None
            if steering is not None:
                before = {number for number in (steering.before,) if number is not None}
                self.check(conjunct, sorted(set(steering.operands.values())), before)
                self.steering.append(steering)
                return
            condition = aggregate_condition(conjunct, self.named, self.most)
            self.aggregate_conditions.append(condition)
            self.aggregates |= {one: self.number_of[operand_of(one)] for one in condition.aggregates.values()}
            return
        numbers = sorted(self.number_of[name] for name in conjunct.operands)
        before = {self.number_of[r.operand or ""] for r in conjunct.references if r.index == "i-1"}
        self.check(conjunct, numbers, before)
        if not numbers:
            self.constants.append(conjunct)
        elif len(numbers) == 1 and not before:
            self.filters.setdefault(numbers[0], []).append(conjunct)
        else:
            absent = tuple(number for number in numbers if self.named[number].negated)
            positive = tuple(number for number in numbers if number not in absent)
            names, absent_names = (tuple(self.named[number].name for number in each) for each in (positive, absent))
            deadline = None
            if len(positive) == len(absent) == 1:
                deadline = deadline_of(conjunct, absent_names[0], names[0], positive[0], own=own)
            timed = {reference.operand for reference in conjunct.references if reference.column == "time"}
            if own and deadline is None and timed & {*absent_names}:
                raise conjunct.error(
                    "a condition on times behind '!' compares the time of what is absent with that of one operand, as "
                    "in t(C) - t(B) < 5 MIN; it is a deadline, which WITHIN does not bound"
                )
            first = min(before, default=None)
            self.conditions.append(Condition(conjunct, positive, names, first, absent, absent_names, deadline))

    def check(self, conjunct: Predicate, numbers: list[int], before: set[int]) -> None:
        """Refuse what has no reading."""
        growing = [number for number in numbers if self.most(number) not in (1, self.least(number))]
        shown = [quote(self.named[number].name) for number in growing]
        absent = {number for number in numbers if self.named[number].negated}
        if len(absent) > 1 and not any(absent <= set(together) for together in self.absent_together):
            raise conjunct.error(
                "a conjunct can name several negated operands only where one '!' is of all of them, as in !(B ; C); "
                "write one conjunct for each"
            )
        for number in sorted(before):
            operand = self.named[number]
            if operand.negated or self.most(number) == 1:
                refuse_neighbours(conjunct, operand.name, negated=operand.negated)
        if len(before) > 1:
            both = " and ".join(quote(self.named[number].name) for number in sorted(before))
            raise conjunct.error(f"[i-1] of {both} in one conjunct; compare neighbours of one operand at a time")
        if len(growing) > 2:
            raise conjunct.error(
                f"a conjunct compares two operands with '+' or '*' at most, this names {', '.join(shown)}"
            )
        if before and any(number not in before for number in growing):
            raise conjunct.error(
                f"[i-1] compares neighbours, and {' and '.join(shown)} take any number of events; write one conjunct "
                "for the neighbours and one for the two operands"
            )

    def least(self, number: int) -> int:
        return self.bounds[number][0]

    def most(self, number: int) -> int | None:
        return self.bounds[number][1]

    def columns(self, made: tuple[Operand, ...]) -> frozenset[str]:
        taking = [part for operand in made for part in operand.asking]
        predicates = [part.define for part in taking if part.define is not None]
        predicates += [operand.filter for operand in made if operand.filter is not None]
        predicates += [condition.predicate for condition in self.conditions]
        predicates += [Predicate(aggregate) for aggregate in self.aggregates]
        predicates += [Predicate(one) for condition in self.steering for one, _ in condition.aggregates.values()]
        read = {reference.column for predicate in predicates for reference in predicate.references}
        read |= {reference.column for condition in self.aggregate_conditions for reference in condition.operands}
        read |= {reference.column for condition in self.steering for reference in condition.operands}
        if any(part.define is None for part in taking):
            read.add("name")
        return frozenset(read | set(self.along)) - {"position", "time"}

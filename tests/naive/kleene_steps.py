"""skip_till_next and strict, event by event: what a start takes in each way of a pattern (SPEC 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from typing import Any

from naive.kleene_absence import absent
from naive.kleene_asked import Asked, Kept, Taken, bare_references, numbers_of, reads
from naive.kleene_orders import Absence, TooManyError, UndefinedError
from naive.predicates import judge

from patternlake.udfs.language.query import tree

State = Any
"""What a form has taken: of `One` the events and whether it has ended, of others the states below and where it is."""


@dataclass(frozen=True)
class One:
    """The events of one operand; `optional`: where it takes none, nothing is missing."""

    name: str
    least: int
    most: int | None
    until: tree.Node | None = None
    optional: bool = False


@dataclass(frozen=True)
class Row:
    """Forms one after another, directly where `directly`."""

    items: tuple[Form, ...]
    directly: bool = False


@dataclass(frozen=True)
class Beside:
    """Forms at once; in a repeated group perhaps only some of them are `needed`."""

    sides: tuple[Form, ...]
    needed: int | None = None


@dataclass(frozen=True)
class Either:
    """One of several forms, inside a repeated group: the one that takes the nearest event."""

    forms: tuple[Form, ...]


@dataclass(frozen=True)
class Rounds:
    """A form again and again; `optional` as of `One`."""

    form: Form
    least: int
    most: int | None
    until: tree.Node | None = None
    optional: bool = False


@dataclass(frozen=True)
class Round:
    """One round of a group whose rounds are counted beforehand."""

    form: Form
    number: int


@dataclass(frozen=True, eq=False)
class Nothing:
    """A negation: it takes nothing."""

    node: tree.Negation


Form = One | Row | Beside | Either | Rounds | Round | Nothing


MOST_FORMS = 1000
"""Greatest number of forms with exact numbers that a way has."""

# The ways of a pattern.


def ways_of(asked: Asked, node: tree.Node, every_count: bool) -> list[Form]:
    """The ways of a part in the order in which they are tried.

    `every_count`: for ``repetition => 'all'``, a repetition may take nothing where it need not.
    """
    if isinstance(node, tree.Event):
        return [One(asked.name_of[id(node)], 1, 1)]
    if isinstance(node, tree.Negation):
        return [Nothing(node)]
    if isinstance(node, tree.Repetition):
        taken = repetition_of(asked, node, node.minimum if every_count else max(1, node.minimum))
        taken = replace(taken, optional=not node.minimum)
        return [taken] if every_count or node.minimum else [taken, replace(taken, least=0, most=0)]
    below = [ways_of(asked, child, every_count) for child in node.children()]
    if isinstance(node, tree.Disjunction):
        return [way for ways in below for way in ways]
    if isinstance(node, tree.SomeOf):
        chosen = [some for size in range(len(below), node.count - 1, -1) for some in combinations(below, size)]
        return [Beside(sides) for some in chosen for sides in product(*some)]
    if isinstance(node, tree.Conjunction):
        return [Beside(sides) for sides in product(*below)]
    return [Row(items, isinstance(node, tree.Contiguous)) for items in product(*below)]


def repetition_of(asked: Asked, node: tree.Repetition, least: int) -> One | Rounds:
    if isinstance(node.item, tree.Event):
        return One(asked.name_of[id(node.item)], least, node.maximum, node.until)
    return Rounds(inside(asked, node.item), least, node.maximum, node.until)


def inside(asked: Asked, node: tree.Node) -> Form:
    """What stands in a repeated group: alternatives are chosen by events, what is optional is taken if it comes."""
    if isinstance(node, tree.Event):
        return One(asked.name_of[id(node)], 1, 1)
    if isinstance(node, tree.Negation):
        raise UndefinedError("a negation in a repeated group")
    if isinstance(node, tree.Repetition):
        return repetition_of(asked, node, node.minimum)
    below = tuple(inside(asked, child) for child in node.children())
    if isinstance(node, tree.SomeOf):
        if not all(isinstance(side, One) for side in below):
            raise UndefinedError("n OF groups in a repeated group")
        return Beside(below, node.count)
    if isinstance(node, tree.Disjunction):
        return Either(below)
    if isinstance(node, tree.Conjunction):
        return Beside(below)
    return Row(below, isinstance(node, tree.Contiguous))


def counted(form: Form, most: int) -> Iterator[tuple[Form, int]]:
    """The forms with every repetition at an exact number, `most` events at most; and how many each takes at least."""
    if isinstance(form, One):
        for count in range(form.least, min(most, form.most or most) + 1):
            yield One(form.name, count, count, form.until), count
    elif isinstance(form, Nothing):
        yield form, 0
    elif isinstance(form, Either):
        for chosen in product(*(fitting(one, most) for one in form.forms)):
            least = min(count for _, count in chosen)
            if least <= most:
                yield Either(tuple(one for one, _ in chosen)), least
    elif isinstance(form, Rounds):
        if not form.least:
            yield Rounds(form.form, 0, 0), 0
        for rounds in range(max(1, form.least), min(most, form.most or most) + 1):
            for items, count in in_line([form.form] * rounds, most):
                if not all(map(greatest, items)):
                    continue
                yield Row(tuple(Round(item, at) for at, item in enumerate(items))), count
    elif isinstance(form, Round):
        for each, count in counted(form.form, most):
            yield Round(each, form.number), count
    elif isinstance(form, Beside) and form.needed is not None:
        for chosen in product(*(fitting(side, most) for side in form.sides)):
            least = sum(sorted(count for _, count in chosen)[: form.needed])
            if least <= most:
                yield Beside(tuple(side for side, _ in chosen), form.needed), least
    elif isinstance(form, Beside):
        for items, count in in_line(form.sides, most):
            yield Beside(items), count
    else:
        for items, count in in_line(form.items, most):
            yield Row(items, form.directly), count


def fitting(form: Form, most: int) -> list[tuple[Form, int]]:
    """As `counted`, of a form that need not end: where `most` events are too few for it, it may take one of them."""
    while not (found := list(islice(counted(form, most), MOST_FORMS + 1))):
        most += 1
    return found


def exact(form: Form, most: int) -> list[Form]:
    """As `counted`."""
    found = [one for one, _ in islice(counted(form, most), MOST_FORMS + 1)]
    if len(found) > MOST_FORMS:
        raise TooManyError(f"more than {MOST_FORMS} forms")
    return found


def greatest(form: Form) -> int:
    """How many events a form with exact numbers takes at most."""
    if isinstance(form, One):
        return form.most or 0
    if isinstance(form, Either):
        return max(map(greatest, form.forms))
    if isinstance(form, Round):
        return greatest(form.form)
    below = form.items if isinstance(form, Row) else form.sides if isinstance(form, Beside) else ()
    return sum(map(greatest, below))


def in_line(forms: Sequence[Form], most: int) -> Iterator[tuple[tuple[Form, ...], int]]:
    if not forms:
        yield (), 0
        return
    for first, count in counted(forms[0], most):
        for rest, more in in_line(forms[1:], most - count):
            yield (first, *rest), count + more


# What a form has taken.


def fresh(form: Form) -> State:
    """The state before the first event."""
    if isinstance(form, One):
        return ((), False)
    if isinstance(form, Row):
        return (0, tuple(map(fresh, form.items)))
    if isinstance(form, Beside):
        return tuple(map(fresh, form.sides))
    if isinstance(form, Either):
        return None
    if isinstance(form, Rounds):
        return ((), None, False)
    return fresh(form.form) if isinstance(form, Round) else None


def enough(form: Form, state: State) -> bool:
    """Whether what follows may begin."""
    if isinstance(form, One):
        return len(state[0]) >= form.least
    if isinstance(form, Row):
        return all(enough(item, one) for item, one in zip(form.items, state[1], strict=True))
    if isinstance(form, Beside):
        ready = [enough(side, one) for side, one in zip(form.sides, state, strict=True)]
        return sum(ready) >= (len(ready) if form.needed is None else form.needed)
    if isinstance(form, Either):
        if state is None:
            return any(enough(one, fresh(one)) for one in form.forms)
        return enough(form.forms[state[0]], state[1])
    if isinstance(form, Rounds):
        return len(whole_rounds(form, state)) >= form.least
    # A round has an event.
    return not isinstance(form, Round) or (enough(form.form, state) and bool(events_of(form, state, ())))


def whole_rounds(form: Rounds, state: State) -> tuple[State, ...]:
    done, current, _ = state
    return (*done, current) if current is not None and enough(form.form, current) else done


def dropped(form: Form, state: State) -> State:
    """The state without rounds that are not complete."""
    if isinstance(form, Row):
        return (state[0], tuple(dropped(item, one) for item, one in zip(form.items, state[1], strict=True)))
    if isinstance(form, Beside):
        return tuple(dropped(side, one) for side, one in zip(form.sides, state, strict=True))
    if isinstance(form, Either):
        return None if state is None else (state[0], dropped(form.forms[state[0]], state[1]))
    if isinstance(form, Rounds):
        rounds = tuple(dropped(form.form, one) for one in whole_rounds(form, state))
        return (rounds, None, state[2])
    return dropped(form.form, state) if isinstance(form, Round) else state


def ended(form: Form, state: State) -> State:
    """The state when another side of ``&`` takes an event: a repeated operand that has begun takes no more."""
    if isinstance(form, One):
        return (state[0], state[1] or bool(state[0]))
    if isinstance(form, Row):
        at, below = state
        return (at, tuple(ended(item, one) for item, one in zip(form.items, below, strict=True)))
    if isinstance(form, Beside):
        return tuple(ended(side, one) for side, one in zip(form.sides, state, strict=True))
    if isinstance(form, Either):
        return None if state is None else (state[0], ended(form.forms[state[0]], state[1]))
    if isinstance(form, Rounds):
        raise UndefinedError("a repeated group beside another side of '&'")
    return ended(form.form, state) if isinstance(form, Round) else state


def stopped(asked: Asked, form: Form, state: State, number: int) -> State:
    """The state before an event is offered, which may be one that UNTIL names."""
    if isinstance(form, One):
        begun = bool(state[0]) and state[0][0] < number
        return (state[0], state[1] or (form.until is not None and begun and asked.ends(form.until, number)))
    if isinstance(form, Row):
        at, below = state
        return (at, tuple(stopped(asked, item, one, number) for item, one in zip(form.items, below, strict=True)))
    if isinstance(form, Beside):
        return tuple(stopped(asked, side, one, number) for side, one in zip(form.sides, state, strict=True))
    if isinstance(form, Either):
        return None if state is None else (state[0], stopped(asked, form.forms[state[0]], state[1], number))
    if isinstance(form, Rounds):
        done, current, closed = state
        first = min((taken.number for _, taken in events_of(form, state, ())), default=number)
        if form.until is not None and first < number and asked.ends(form.until, number):
            return (whole_rounds(form, state), None, True)
        return (done, None if current is None else stopped(asked, form.form, current, number), closed)
    return stopped(asked, form.form, state, number) if isinstance(form, Round) else state


def events_of(form: Form, state: State, rounds: tuple[int, ...]) -> list[tuple[str, Taken]]:
    """All that is taken, with its operand."""
    if isinstance(form, One):
        return [(form.name, Taken(number, rounds)) for number in state[0]]
    if isinstance(form, Row):
        return [pair for item, one in zip(form.items, state[1], strict=True) for pair in events_of(item, one, rounds)]
    if isinstance(form, Beside):
        return [pair for side, one in zip(form.sides, state, strict=True) for pair in events_of(side, one, rounds)]
    if isinstance(form, Either):
        return [] if state is None else events_of(form.forms[state[0]], state[1], rounds)
    if isinstance(form, Rounds):
        done, current, _ = state
        states = done if current is None else (*done, current)
        return [pair for at, one in enumerate(states) for pair in events_of(form.form, one, (*rounds, at))]
    return events_of(form.form, state, (*rounds, form.number)) if isinstance(form, Round) else []


def kept_of(form: Form, state: State) -> Kept:
    kept: Kept = {}
    for name, taken in sorted(events_of(form, state, ()), key=lambda pair: pair[1].number):
        kept[name] = (*kept.get(name, ()), taken)
    return kept


def adjoining(form: Form, state: State) -> bool:
    """Whether all that must stand directly next to each other does."""
    if isinstance(form, Row):
        before: list[int] = []
        for item, one in zip(form.items, state[1], strict=True):
            numbers = sorted(taken.number for _, taken in events_of(item, one, ()))
            if form.directly and before and numbers and numbers[0] != max(before) + 1:
                return False
            before += numbers
        return all(adjoining(item, one) for item, one in zip(form.items, state[1], strict=True))
    if isinstance(form, Beside):
        return all(adjoining(side, one) for side, one in zip(form.sides, state, strict=True))
    if isinstance(form, Either):
        return state is None or adjoining(form.forms[state[0]], state[1])
    if isinstance(form, Rounds):
        done, current, _ = state
        return all(adjoining(form.form, one) for one in (*done, *(() if current is None else (current,))))
    return not isinstance(form, Round) or adjoining(form.form, state)


# Taking an event.


def offered(asked: Asked, form: Form, state: State, number: int) -> Iterator[tuple[State, str]]:
    """The states in which a form has taken an event, and the operand that has, the furthest place first."""
    if isinstance(form, One):
        taken, closed = state
        has_room = not closed and (form.most is None or len(taken) < form.most)
        if has_room and asked.takes(form.name, number):
            yield ((*taken, number), False), form.name
    elif isinstance(form, Row):
        at, below = state
        reached = [
            place
            for place in range(at, len(form.items))
            if all(enough(form.items[i], below[i]) for i in range(at, place))
        ]
        for place in reversed(reached):
            passed = [dropped(form.items[i], below[i]) for i in range(at, place)]
            for one, name in offered(asked, form.items[place], below[place], number):
                yield (place, (*below[:at], *passed, one, *below[place + 1 :])), name
    elif isinstance(form, Beside):
        for at, side in enumerate(form.sides):
            for one, name in offered(asked, side, state[at], number):
                others = [ended(other, state[place]) for place, other in enumerate(form.sides)]
                yield (*others[:at], one, *others[at + 1 :]), name
    elif isinstance(form, Either):
        for at, alternative in enumerate(form.forms):
            if state is None or state[0] == at:
                below = fresh(alternative) if state is None else state[1]
                for one, name in offered(asked, alternative, below, number):
                    yield (at, one), name
    elif isinstance(form, Rounds):
        done, current, closed = state
        whole = whole_rounds(form, state)
        begun = len(done) + (current is not None)
        if not closed and len(whole) == begun and (form.most is None or begun < form.most):
            for one, name in offered(asked, form.form, fresh(form.form), number):
                yield (whole, one, closed), name
        if not closed and current is not None:
            for one, name in offered(asked, form.form, current, number):
                yield (done, one, closed), name
    elif isinstance(form, Round):
        yield from offered(asked, form.form, state, number)


class Start:
    """The match of one start in one way."""

    def __init__(self, asked: Asked, way: Form, start: int, strict: bool) -> None:
        self.asked = asked
        self.way = way
        self.start = start
        self.strict = strict
        self.names = frozenset(names_in(way))
        self.steering: set[int] = set()
        self.state = fresh(way)

    def scan(self) -> None:
        for number in range(self.start, len(self.asked.events)):
            self.state = stopped(self.asked, self.way, self.state, number)
            if not self.take(number) and (self.strict or number == self.start):
                break

    def match(self) -> Kept | None:
        self.scan()
        self.state = dropped(self.way, self.state)
        kept = kept_of(self.way, self.state)
        if not kept or not enough(self.way, self.state):
            return None
        whole = [part for at, part in enumerate(self.asked.totals) if at not in self.steering]
        free = all(absent(self.asked, absence, self.names, kept) for absence in absences_in(self.way))
        return kept if free and all(self.asked.totalled(part, kept) for part in whole) else None

    def take(self, number: int) -> bool:
        for state, name in offered(self.asked, self.way, self.state, number):
            if self.qualifies(state, name, number):
                self.state = state
                return True
        return False

    def qualifies(self, state: State, name: str, number: int) -> bool:
        """Whether the event that an operand has just taken may stay, given all that is kept."""
        kept = kept_of(self.way, state)
        numbers = numbers_of(kept)
        if numbers[0] != self.start or not self.asked.in_window(self.start, number) or not adjoining(self.way, state):
            return False
        if self.strict and numbers != list(range(self.start, number + 1)):
            return False
        judged = [part for part in self.asked.conjuncts if name in part.operands and part.operands <= kept.keys()]
        return (
            self.asked.equal(numbers)
            and all(self.asked.holds(part, kept, (name, number)) for part in judged)
            and all(self.steered(at, kept, name, number) for at in range(len(self.asked.totals)))
        )

    def steered(self, at: int, kept: Kept, name: str, number: int) -> bool:
        """A condition over collected events, where it is one of the event that is taken; of others it says nothing."""
        conjunct = self.asked.totals[at]
        bare = sorted({reference.operand or "" for reference in bare_references(conjunct.root)})
        before = {**kept, name: tuple(taken for taken in kept[name] if taken.number != number)}
        if name not in bare or any(not kept.get(other) for other in bare):
            return True
        unknown = False
        for read in reads(conjunct):
            if read == name or self.share_group(read, name):
                unknown = unknown or not before.get(read)
            elif self.asked.names.index(read) > self.asked.names.index(name):
                return True
        self.steering.add(at)
        values = self.asked.collected(conjunct, before)
        if values is None:
            return True
        own = {**kept, name: tuple(taken for taken in kept[name] if taken.number == number)}
        paired = any(reference.index == "i-1" for reference in bare_references(conjunct.root))
        rows = self.asked.choices(conjunct, bare, kept if paired else own, (name, number))
        truths = [judge(conjunct.root, values | row) for row in rows]
        return all(truth is True or (unknown and truth is None) for truth in truths)

    def share_group(self, one: str, other: str) -> bool:
        return bool(set(self.asked.groups[one]) & set(self.asked.groups[other]))


def names_in(form: Form) -> list[str]:
    """The operands of a form in text order."""
    if isinstance(form, One):
        return [form.name]
    if isinstance(form, Nothing):
        return []
    if isinstance(form, Rounds | Round):
        return names_in(form.form)
    below = form.items if isinstance(form, Row) else form.sides if isinstance(form, Beside) else form.forms
    return [name for one in below for name in names_in(one)]


def absences_in(form: Form, left: frozenset[str] = frozenset(), right: frozenset[str] = frozenset()) -> list[Absence]:
    """The negations of a way, each between its sides."""
    if isinstance(form, Nothing):
        return [Absence(id(form.node), form.node, left, right)]
    if isinstance(form, Beside):
        return [absence for side in form.sides for absence in absences_in(side, left, right)]
    found: list[Absence] = []
    for at, item in enumerate(form.items if isinstance(form, Row) else ()):
        before = left.union(*map(names_in, form.items[:at]))
        later = right.union(*map(names_in, form.items[at + 1 :]))
        for absence in absences_in(item, before, later):
            if isinstance(form, Row) and form.directly and isinstance(item, Nothing):
                if 0 < at < len(form.items) - 1:
                    raise UndefinedError("a negation inside of a run")
                absence = Absence(absence.key, absence.node, before, later, "after" if at else "before")
            found.append(absence)
    return found


def per_start(asked: Asked, strict: bool, after_match: str, repetition: str) -> list[tuple[Kept, tuple[Absence, ...]]]:
    """The matches of all starts, each with the absences of its way."""
    found: list[tuple[Kept, tuple[Absence, ...]]] = []
    resume = 0
    ways = ways_of(asked, asked.pattern, repetition == "all")
    tries = [[way] if repetition == "maximal" else exact(way, len(asked.events)) for way in ways]
    for start in range(len(asked.events)):
        if start < resume:
            continue
        for forms in tries:
            tried = [(Start(asked, form, start, strict).match(), form) for form in forms]
            matched = [kept for kept, _ in tried if kept is not None]
            if matched:
                found += [(kept, tuple(absences_in(form))) for kept, form in tried if kept is not None]
                resume = max(resumed(kept, start, after_match) for kept in matched)
                break
    return found


def resumed(kept: Kept, start: int, after_match: str) -> int:
    """Where the search goes on behind a match."""
    if after_match == "next":
        return start + 1
    if after_match == "past_last":
        return numbers_of(kept)[-1] + 1
    which, name = after_match.split(maxsplit=1)
    run = kept.get(name)
    if not run:
        raise NoSkipError(f"{name} has no events")
    number = run[0 if which == "first" else -1].number
    if number == start:
        raise NoSkipError(f"{name} begins the match")
    return number


class NoSkipError(Exception):
    """A match without an event to go on at."""

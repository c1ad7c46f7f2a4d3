"""Which question decided a choice of devices, and what other sets lose by it.

The questions are those of the choice itself, in its order: it is not made here.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from itertools import combinations
from math import comb

import attrs

from accelkit.backends.kubelet.preferred import Preference
from accelkit.core.preference import Choice, Method, closeness
from accelkit.core.topology import unit_of
from accelkit.core.values import freeze

MOST_SETS = 20_000
"""Up to so many other sets are looked at one by one."""
SHOWN = 3
"""Alternatives."""


class By(StrEnum):
    """What sets are compared by; those later in an order count only among equals."""

    LINKS = "links"
    LINKS_LEFT = "linksLeft"
    BUS = "bus"
    BUS_LEFT = "busLeft"
    USE = "use"
    USE_LEFT = "useLeft"
    SETS_LEFT = "setsLeft"
    IDS = "ids"


@attrs.frozen(kw_only=True)
class Step:
    """A question, and how many sets were still as good as the choice after it."""

    by: By
    value: int
    """Of the choice: closeness, or how many sets it leaves whole."""
    sets: int
    """The choice is one of them."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Alternative:
    """Another set, and what it would lose."""

    ids: tuple[str, ...]
    by: By
    """The first question by which it is worse; IDS: it is as good."""
    loses: int
    """By that question."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Decision:
    """Why a set was chosen among the others."""

    sets: int
    """How many there were, the choice included."""
    usable: int
    """How many of them come into question for the vendor, the choice included."""
    compared: bool
    """Whether they were few enough to look at each."""
    steps: tuple[Step, ...]
    """Every question, in order; none where nothing was compared."""
    alternatives: tuple[Alternative, ...]
    """The best of the others that may be used, one for each loss."""


_Question = tuple[By, Callable[[int], int]]


def decision(
    preference: Preference, free: Collection[str], must: Collection[str], choice: Choice
) -> Decision:
    """Find out what decided that *choice* was made of *free*, those of *must* among them."""
    rank = preference.topology.rank
    open_to_all = sorted({*free} - {*must}, key=lambda name: rank[name])
    wanted = len(choice.ids) - len({*must})
    sets = comb(len(open_to_all), wanted)
    if sets > MOST_SETS + 1:
        return Decision(sets=sets, usable=sets, compared=False, steps=(), alternatives=())
    questions = _questions(preference, {*free, *must}, choice)
    chosen = _answers(questions, _mask(preference, choice.ids))
    allowed = _allowed(preference, choice)
    lost_at: Counter[int] = Counter()
    best: dict[tuple[int, int], Alternative] = {}
    for some in combinations(open_to_all, wanted):
        mask = _mask(preference, (*some, *must))
        if {*some, *must} == {*choice.ids} or (allowed is not None and mask not in allowed):
            continue
        answers = _answers(questions, mask)
        at = next((n for n, (a, b) in enumerate(zip(chosen, answers, strict=True)) if a != b), None)
        place = len(questions) if at is None else at
        lost_at[place] += 1
        loses = 0 if at is None else chosen[at] - answers[at]
        if (-place, loses) not in best:
            by = By.IDS if at is None else questions[at][0]
            ids = sorted((*some, *must), key=lambda name: rank[name])
            best[-place, loses] = Alternative(ids=tuple(ids), by=by, loses=loses)
    return Decision(
        sets=sets,
        usable=1 + lost_at.total(),
        compared=True,
        steps=_steps(questions, chosen, lost_at),
        alternatives=tuple(best[key] for key in sorted(best)[:SHOWN]),
    )


def _steps(
    questions: Sequence[_Question], chosen: Sequence[int], lost_at: Counter[int]
) -> tuple[Step, ...]:
    left = 1 + lost_at.total()
    steps = []
    for place, ((by, _), value) in enumerate(zip(questions, chosen, strict=True)):
        left -= lost_at[place]
        steps.append(Step(by=by, value=value, sets=left))
    return tuple(steps)


def _questions(
    preference: Preference, everything: Collection[str], choice: Choice
) -> tuple[_Question, ...]:
    """What is asked of a set, a mask, in turn; the greatest answer is the best."""
    topology = preference.topology
    unit = unit_of(preference.view, preference.offer, everything)
    whole = _mask(preference, everything)

    def close(mask: int) -> int:
        return closeness(topology, mask, unit=unit)

    def left(level: int) -> Callable[[int], int]:
        return lambda mask: closeness(topology, whole & ~mask, level=level)

    def bus(mask: int) -> int:
        return closeness(topology, mask, level=1)

    if len(topology.levels) == 1:
        return (By.USE, close), (By.USE_LEFT, left(0))
    if choice.method is Method.LIST:
        return (By.LINKS, close), *_whole_sets(preference, whole), (By.BUS, bus)
    return (By.LINKS, close), (By.LINKS_LEFT, left(0)), (By.BUS, bus), (By.BUS_LEFT, left(1))


def _whole_sets(preference: Preference, everything: int) -> tuple[_Question, ...]:
    """How many of the vendor's sets are left whole, a question for each size."""
    legal = preference.legal
    assert legal is not None

    def question(size: int) -> _Question:
        there = [some for some in legal.at(size) if not some & ~everything]
        return By.SETS_LEFT, lambda mask: sum(not some & mask for some in there)

    return tuple(question(size) for size in legal.sizes_down())


def _answers(questions: Sequence[_Question], mask: int) -> tuple[int, ...]:
    return tuple(ask(mask) for _, ask in questions)


def _allowed(preference: Preference, choice: Choice) -> Collection[int] | None:
    """Sets that come into question beside *choice*; None: all."""
    if preference.legal is None or not (choice.legal or preference.legal.hard):
        return None
    return preference.legal.at(len(choice.ids))


def _mask(preference: Preference, ids: Collection[str]) -> int:
    return sum(1 << preference.topology.rank[name] for name in {*ids})

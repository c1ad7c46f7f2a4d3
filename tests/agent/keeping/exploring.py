"""Finds every state in which an end may leave a node, and runs on from each of them."""

import json
from functools import lru_cache

import attrs

from tests.agent.keeping import truths
from tests.agent.keeping.board import Board, Part
from tests.agent.keeping.playing import Play
from tests.agent.keeping.process import Process
from tests.agent.keeping.scenarios import Scenario
from tests.agent.keeping.storage import MemoryStorage, Storage
from tests.agent.keeping.virtual import VirtualLoop
from tests.agent.keeping.world import CLAIMS, World


@attrs.frozen
class State:
    """All that is left of a node when its agent ends."""

    files: tuple[tuple[str, bytes], ...]
    directories: frozenset[str]
    modes: tuple[tuple[str, str], ...]
    parts: tuple[tuple[str, str, str, int, bool], ...]
    """In the order of their numbers."""
    settings: tuple[tuple[tuple[str, str], str], ...]
    failures: tuple[tuple[str, int], ...]
    facts: frozenset[str]


def start(scenario: Scenario, storage: Storage | None = None) -> tuple[World, set[str]]:
    """The node and the facts with which *scenario* begins."""
    world = World(scenario.board(), MemoryStorage() if storage is None else storage)
    world.storage.add(truths.FOREIGN_FILE, truths.FOREIGN)
    parts = world.board.parts.items()
    return world, {f"{truths.STRANGER} has {name} {part.number}" for name, part in parts}


def state_of(world: World, facts: set[str]) -> State:
    """The state of *world*; what makes no difference is the same in equal ones."""
    board = world.board
    numbers = {name: str(n) for n, name in enumerate(sorted(board.parts), 1)}

    def number_of(name: str, number: str) -> str:
        part = board.parts.get(name)
        return numbers[name] if part is not None and str(part.number) == number else "lost"

    def renumbered(fact: str) -> str:
        owner, _, what = fact.partition(" has ")
        return f"{owner} has {what.split()[0]} {number_of(*what.split())}" if what else fact

    def rewritten(path: str, content: bytes) -> bytes:
        """*content* without what makes no difference: torn text, signatures, durations."""
        if path.endswith((".tmp", ".lock")):
            return b""
        if not path.startswith(CLAIMS) or not path.endswith(".json"):
            return content
        tree = dict(_parsed(content), trace=[])
        tree["handles"] = [
            {**made, "handle": number_of(made["device"].partition("/")[2], made["handle"])}
            for made in tree["handles"]
        ]
        return json.dumps(tree).encode()

    return State(
        files=tuple(
            (path, rewritten(path, content))
            for path, content in sorted(world.storage.contents().items())
        ),
        directories=frozenset(world.storage.folders()),
        modes=tuple(sorted(board.modes.items())),
        parts=tuple(
            (name, p.root, p.profile, p.start, p.usable) for name, p in sorted(board.parts.items())
        ),
        settings=tuple(sorted(board.settings.items())),
        failures=tuple(sorted(board.failures.items())),
        facts=frozenset(map(renumbered, facts)),
    )


@lru_cache(maxsize=4096)
def _parsed(content: bytes) -> dict[str, list[dict[str, str]]]:
    tree: dict[str, list[dict[str, str]]] = json.loads(content)
    return tree


def world_of(state: State, scenario: Scenario) -> World:
    """A node in *state*."""
    board = Board(
        plain=scenario.board().plain,
        modes=dict(state.modes),
        parts={
            name: Part(root, profile, first, number, usable)
            for number, (name, root, profile, first, usable) in enumerate(state.parts, 1)
        },
        settings=dict(state.settings),
        failures=dict(state.failures),
        numbers=len(state.parts),
        tells_numbers=False,
    )
    files = MemoryStorage(directories=set(state.directories))
    for path, content in state.files:
        files.add(path, content)
    return World(board, files)


@attrs.frozen(kw_only=True)
class Explored:
    """What was found of one scenario."""

    states: int
    """In which an end may leave the node, after any number of ends before."""
    single: int
    """Schedules with one end: before the first effect, and after each."""
    double: int
    """Schedules with two."""


def explore(scenario: Scenario, loop: VirtualLoop) -> Explored:
    """Run *scenario* from its start, and from every state in which an end can leave it.

    A run is one agent that does not end; it notes the state before each of its effects, which is
    the one that an end there would leave. As what follows depends on the state alone, running
    from each state once covers every schedule of ends, however many.

    Raises:
        AssertionError: Something was wrong at some moment, or in the end.
    """
    world, facts = start(scenario)
    first = state_of(world, facts)
    found: dict[State, list[State]] = {}
    waiting = [first]
    while waiting:
        state = waiting.pop()
        if state not in found:
            found[state] = _run(state, scenario, loop)
            waiting += found[state]
    return Explored(
        states=len(found),
        single=len(found[first]),
        double=sum(len(found[state]) for state in found[first]),
    )


def _run(state: State, scenario: Scenario, loop: VirtualLoop) -> list[State]:
    """States before each effect of an agent that begins in *state*, and in the end."""
    world = world_of(state, scenario)
    facts = set(state.facts)
    passed: list[State] = []

    def note(_effect: str) -> None:
        play.check()
        passed.append(state_of(world, facts))

    play = Play(
        scenario=scenario,
        world=world,
        facts=facts,
        processes=(iter([Process(before=note)]),),
    )
    loop.run(play.run())
    passed.append(state_of(world, facts))
    return passed

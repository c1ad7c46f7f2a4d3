# ruff: noqa: T201 - how much was covered is told with -s
"""Whether claims survive the end of an agent at any moment, and agents that overlap."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.keeping.exploring import explore, start
from tests.agent.keeping.playing import Play
from tests.agent.keeping.process import Process
from tests.agent.keeping.scenarios import SCENARIOS, Scenario
from tests.agent.keeping.storage import MemoryDisk, MemoryStorage, RealStorage
from tests.agent.keeping.virtual import VirtualLoop
from tests.agent.keeping.world import CLAIMS, Agent

pytestmark = pytest.mark.timeout(300)  # seconds of work, on a machine that does much else

RANDOM_RUNS, PORTION = 3_000, 250
POLLING = "a device that stays taken"
"""Most of its effects are one lock, taken and given back."""
CALLS = ("edits", "needs", "apply", "revert", "create", "destroy", "set_mode", "find")


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


@pytest.mark.slow
def test_no_end_of_an_agent_at_any_effect_loses_or_leaves_anything(loop: VirtualLoop) -> None:
    """All schedules of one end and of two, and of more: every state that ends can leave."""
    found = {name: explore(scenario, loop) for name, scenario in SCENARIOS.items()}

    for name, one in found.items():
        print(f"{name:45} {one.states:5} states {one.single:5} single {one.double:7} double")
    single = sum(one.single for one in found.values())
    double = sum(one.double for one in found.values())
    print(f"{'all':45} {single:18} single {double:7} double")
    assert single >= 1_400
    assert double >= 80_000


def ends(*before: int) -> Iterator[Process]:
    """Processes that end before the effects of these numbers, and one that does not."""
    yield from (Process(number) for number in before)
    yield Process()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != POLLING])
def test_an_end_at_any_effect_on_real_files_is_survived(
    name: str, loop: VirtualLoop, tmp_path: Path
) -> None:
    """The same on a real directory, with the product's own door, process after process."""
    scenario = SCENARIOS[name]
    number = 0
    ended = True
    while ended:
        storage = RealStorage(tmp_path / str(number))
        first = Process(number)
        world, facts = start(scenario, storage)
        play = Play(
            scenario=scenario,
            world=world,
            facts=facts,
            processes=(iter([first, Process()]),),
        )
        loop.run(play.run())
        ended = first.dead
        number += 1
    print(f"{name}: {number} runs")
    assert number > 30


def chances(seed: int, scenario: Scenario, storage: MemoryStorage | None = None) -> Play:
    """A story in which much is left to chance: ends, pauses, durations, a disk that is full."""
    chance = random.Random(seed)
    disk = MemoryStorage() if storage is None else storage
    world, facts = start(scenario, disk)

    def slow_down(agent: Agent) -> None:
        agent.hardware.slow |= {call: chance.choice((0.0, 0.0, 0.1, 3.0)) for call in CALLS}

    def fill(_effect: str) -> None:
        play.check()
        disk.full = chance.random() < (0.7 if disk.full else 0.01)

    def line() -> Iterator[Process]:
        for _ in range(chance.randrange(4)):
            yield Process(chance.randrange(80), before=fill)
        disk.full = False
        yield Process(before=lambda _effect: play.check())

    play = Play(
        scenario=scenario,
        world=world,
        facts=facts,
        processes=tuple(line() for _ in range(chance.choice((1, 1, 2)))),
        restart_s=lambda: chance.uniform(0.0, 5.0),
        again=lambda seconds: seconds * chance.uniform(0.1, 1.2),
        choose=chance.choice,
        chance=slow_down,
    )
    return play


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.slow] if first else [])
        for first in range(0, RANDOM_RUNS, PORTION)
    ],
)
def test_agents_that_come_and_go_by_chance_lose_and_leave_nothing(
    first: int, loop: VirtualLoop
) -> None:
    """Ends at any moment, one agent or two, calls that take time, a disk that is full at times."""
    names = list(SCENARIOS)
    for seed in range(first, first + PORTION):
        name = names[seed % len(names)]
        try:
            loop.run(chances(seed, SCENARIOS[name]).run())
        except BaseException as error:
            error.add_note(f"seed {seed}: {name}")
            raise
    print(f"{PORTION} runs by chance, from {first}")


class Forgetful(MemoryStorage):
    """Loses entries when a process ends."""

    def door(self, process: Process) -> MemoryDisk:
        process.last.append(lambda: self.wipe(Path(CLAIMS)))
        return super().door(process)


class Lockless(MemoryStorage):
    """Locks nobody out."""

    def door(self, process: Process) -> MemoryDisk:
        return LocklessDisk(self, process)


class LocklessDisk(MemoryDisk):
    def lock(self, path: Path) -> int | None:
        handle = super().lock(path)
        return 0 if handle is None else handle


@pytest.mark.parametrize("storage", [Forgetful, Lockless])
def test_a_disk_that_breaks_its_promise_is_found(
    storage: type[MemoryStorage], loop: VirtualLoop
) -> None:
    scenario = SCENARIOS["a place that is being given back"]

    def play_all() -> None:
        for seed in range(RANDOM_RUNS):
            loop.run(chances(seed, scenario, storage()).run())

    with pytest.raises(AssertionError):
        play_all()

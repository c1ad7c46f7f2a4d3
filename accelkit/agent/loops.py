"""When the agent looks at what. Not here: what it makes of it."""

from collections.abc import Coroutine

from accelkit.agent.knowledge import Knowledge
from accelkit.agent.measuring import Measuring
from accelkit.agent.signals import Bell
from accelkit.agent.sources import Source
from accelkit.core.clock import Clock
from accelkit.core.vendor import SupportsEvents, SupportsHolders, SupportsTelemetry

HOLDERS_S = 60.0
"""Between two looks at the processes that use devices."""
FILES_S = 1.0
"""Between two looks at watched files."""
SPACING_S = 2.0
"""At least between two reads of one vendor, however often it is woken."""
LISTEN_PAUSES_S = (1.0, 60.0)
"""Shortest and longest pause after a listen call that failed."""


async def read_inventory(knowledge: Knowledge, source: Source, clock: Clock) -> None:
    """Read one vendor every ``read.inventory``, and when its bell rings."""
    while True:
        await knowledge.learn(source)
        read = knowledge.policy.read
        spacing = min(SPACING_S, read.inventory)
        await clock.sleep(spacing)
        await source.inventory.wait(clock, read.inventory - spacing, read.debounce)


async def read_health(knowledge: Knowledge, source: Source, clock: Clock) -> None:
    """Read how one vendor's devices are every ``read.health``, and when its bell rings.

    The first ring is answered at once, and those of a storm together: ``read.debounce`` apart.
    """
    spacing = 0.0
    while True:
        read = knowledge.policy.read
        rung = await source.health.wait(clock, read.health - spacing)
        if source.report is not None:
            await knowledge.examine(source)
        spacing = min(read.debounce, read.health) if rung else 0.0
        await clock.sleep(spacing)


async def listen(knowledge: Knowledge, source: Source, clock: Clock) -> None:
    """Write down what one vendor's library tells, as long as the agent runs."""
    if not issubclass(source.kind, SupportsEvents):
        return
    shortest, longest = LISTEN_PAUSES_S
    pause = shortest
    while True:
        begun = clock.monotonic()
        try:
            events = await source.listen()
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            source.hears(error)
            await clock.sleep(pause)
            pause = min(pause * 2, longest)
            continue
        source.hears()
        pause = shortest
        if events:
            knowledge.hear(source.name, events)
            source.health.ring()
        elif clock.monotonic() - begun < shortest:
            await clock.sleep(shortest)  # it does not block as it should: no busy loop


async def watch_files(source: Source, clock: Clock) -> None:
    """Wake the reader of one vendor when files that it names come, go or change."""
    if not source.watches_files:
        return
    before = await source.watched_files()
    calm = True
    while True:
        await clock.sleep(FILES_S)
        now = await source.watched_files()
        if now is not None and before is not None and now != before:
            source.inventory.ring(urgent=calm)
            calm = False
        else:
            calm = True
        before = now if now is not None else before


async def ask_holders(knowledge: Knowledge, source: Source, clock: Clock) -> None:
    """Ask one vendor every minute which processes use its devices."""
    if not issubclass(source.kind, SupportsHolders):
        return
    while True:
        if source.report is not None:
            await source.ask_holders(knowledge.store.view.snapshot.devices)
            knowledge.commit()
        await clock.sleep(HOLDERS_S if source.report is not None else FILES_S)


async def measure(knowledge: Knowledge, source: Source, measuring: Measuring, clock: Clock) -> None:
    """Let one vendor measure its devices every ``read.telemetry``; a scrape never does."""
    if not issubclass(source.kind, SupportsTelemetry):
        return
    while True:
        if source.report is not None:
            view = knowledge.store.view
            samples = await source.measure(view.snapshot.devices)
            if samples is None:
                knowledge.commit()  # it has a problem
            else:
                measuring.learn(source.name, samples, view)
        period = knowledge.policy.read.telemetry
        await clock.sleep(period if source.report is not None else min(FILES_S, period))


async def read_holdings(knowledge: Knowledge, bell: Bell, clock: Clock) -> None:
    """Ask the kubelet every ``read.holdings``, and after each Allocate, who holds what."""
    while True:
        await knowledge.ask_holders()
        read = knowledge.policy.read
        await bell.wait(clock, read.holdings, read.debounce)


def all_of(
    knowledge: Knowledge, source: Source, measuring: Measuring, clock: Clock
) -> tuple[Coroutine[None, None, None], ...]:
    """Every loop of one vendor."""
    return (
        read_inventory(knowledge, source, clock),
        read_health(knowledge, source, clock),
        listen(knowledge, source, clock),
        watch_files(source, clock),
        ask_holders(knowledge, source, clock),
        measure(knowledge, source, measuring, clock),
    )

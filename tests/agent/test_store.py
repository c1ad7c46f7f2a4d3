import asyncio

import attrs

from accelkit.agent.store import Switch, ViewStore
from accelkit.core.model import Problem, Snapshot
from accelkit.core.view import View
from tests.agent.toys import until


def view(revision: str, reason: str = "") -> View:
    problem = Problem(vendor="toy", code="x", reason=reason)
    return View(snapshot=Snapshot(problems=(problem,)), revision=revision)


async def test_reader_gets_the_current_view_then_newer_ones() -> None:
    store = ViewStore(view("1"))
    views = store.views()

    first = await anext(views)
    store.publish(view("2"))
    second = await anext(views)

    assert (first.revision, second.revision) == ("1", "2")


async def test_slow_reader_skips_to_the_newest() -> None:
    store = ViewStore(view("1"))
    views = store.views()
    await anext(views)

    for revision in ("2", "3", "4"):
        store.publish(view(revision))

    assert (await anext(views)).revision == "4"


async def test_every_reader_has_its_own_place() -> None:
    store = ViewStore(view("1"))
    seen: dict[str, list[str]] = {"a": [], "b": []}

    async def read(name: str) -> None:
        async for found in store.views():
            seen[name].append(found.revision)

    tasks = [asyncio.create_task(read(name)) for name in seen]
    await until(lambda: all(seen.values()))
    store.publish(view("2"))
    await until(lambda: seen == {"a": ["1", "2"], "b": ["1", "2"]})

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_equal_view_wakes_nobody_but_its_messages_are_kept() -> None:
    store = ViewStore(view("1", "old words"))
    views = store.views()
    await anext(views)
    waiting = asyncio.ensure_future(anext(views))
    await asyncio.sleep(0)

    assert not store.publish(view("1", "new words"))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert store.view.snapshot.problems[0].reason == "new words"
    assert store.version == 0
    assert store.publish(attrs.evolve(store.view, revision="2"))
    assert (await waiting).revision == "2"


async def test_flag_wakes_those_who_wait_for_true_and_for_change() -> None:
    flag = Switch()
    true = asyncio.create_task(flag.wait())
    change = asyncio.create_task(flag.changed())
    await asyncio.sleep(0)

    flag.set(False)
    await asyncio.sleep(0)
    assert not true.done()
    assert not change.done()
    flag.set(True)
    await asyncio.gather(true, change)

    assert flag.now
    await flag.wait()


async def test_flag_that_was_true_for_a_moment_lets_nobody_through() -> None:
    flag = Switch()
    true = asyncio.create_task(flag.wait())
    await asyncio.sleep(0)

    flag.set(True)
    flag.set(False)
    for _ in range(3):
        await asyncio.sleep(0)

    assert not true.done()
    true.cancel()

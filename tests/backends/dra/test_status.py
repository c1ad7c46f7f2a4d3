"""The status of claims whose devices are ready."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accelkit.backends.dra.claims_tree import items, text
from accelkit.backends.dra.status import StatusDevices, with_ready
from accelkit.core.allocation import Answer
from accelkit.core.errors import ApiError, TransportError
from accelkit.core.kube import Json
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.service_world import (
    ACME,
    DRIVER,
    POOL,
    QUICK,
    SHARE,
    World,
    asked,
    claim,
    ident,
    result,
    serving,
)
from tests.backends.dra.watching import until

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"
OTHER: Json = {"driver": "other.example.com", "pool": "p", "device": "d", "conditions": []}


def answer(name: str, share: str | None = None) -> Answer:
    return Answer(device=ident(name), requests=("gpu",), share=share, cdi_ids=())


def entry(name: str, *, since: str = NOW, **more: str) -> dict[str, object]:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Prepared",
        "message": "the device can be used",
        "lastTransitionTime": since,
    }
    where = {"driver": DRIVER, "pool": POOL, "device": name, **more}
    return {**where, "conditions": [condition]}


def with_status(*entries: Json) -> dict[str, object]:
    tree = claim(1)
    status = tree["status"]
    assert isinstance(status, dict)
    return {**tree, "status": {**status, "devices": list(entries)}}


def entries(tree: Json) -> object:
    status = tree["status"]
    assert isinstance(status, Mapping)
    return status["devices"]


def test_every_share_has_an_entry_and_the_rest_of_the_claim_stays() -> None:
    tree = claim(1)
    fresh = with_ready(tree, ACME, [answer("gpu-0"), answer("gpu-1", SHARE)], NOW)

    assert entries(fresh) == [entry("gpu-0"), entry("gpu-1", shareID=SHARE)]
    assert {**fresh, "status": None} == {**tree, "status": None}


def test_entries_of_others_stay_and_ours_that_are_old_go() -> None:
    tree = with_status(entry("gpu-9"), OTHER)

    assert entries(with_ready(tree, ACME, [answer("gpu-0")], NOW)) == [OTHER, entry("gpu-0")]


def test_device_that_was_ready_keeps_its_time() -> None:
    tree = with_status(entry("gpu-0"))

    assert with_ready(tree, ACME, [answer("gpu-0")], LATER) == tree


def test_device_that_was_not_ready_is_ready_now() -> None:
    before = {**entry("gpu-0"), "conditions": [{"type": "Ready", "status": "False"}]}

    fresh = with_ready(with_status(before), ACME, [answer("gpu-0")], LATER)

    assert entries(fresh) == [entry("gpu-0", since=LATER)]


def test_device_of_two_requests_has_one_entry() -> None:
    fresh = with_ready(claim(1), ACME, [answer("gpu-0"), answer("gpu-0")], NOW)

    assert entries(fresh) == [entry("gpu-0")]


@asynccontextmanager
async def writing(root: Path, *claims: Mapping[str, object]) -> AsyncGenerator[World, None]:
    """A node service that writes statuses."""
    tasks: list[asyncio.Task[None]] = []

    def begin(node: NodePortDouble) -> list[StatusDevices]:
        status = StatusDevices(ACME, node, QUICK)
        tasks.append(asyncio.create_task(status.run()))
        return [status]

    async with serving(root, *claims, companions=begin) as here:
        try:
            yield here
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def devices_of(here: World, name: str = "c1") -> list[str]:
    """Devices in the status of a claim, as the API server has it."""
    return [text(entry, "device") for entry in items(here.kube.claims[name], "status", "devices")]


async def test_status_is_written_after_the_claim_was_prepared(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1, result(), result("gpu-1", shareID=SHARE))) as here:
        await here.prepare_one()
        await until(lambda: here.kube.written)

        assert devices_of(here) == ["gpu-0", "gpu-1"]


async def test_claim_that_was_ready_before_is_not_written_again(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1), claim(2)) as here:
        await here.prepare_one(1)
        await here.prepare_one(1)
        await here.prepare_one(2)
        await until(lambda: len(here.kube.written) > 1)

        assert here.kube.written == ["c1", "c2"]
        assert here.kube.asked == ["c1", "c1", "c2", "c2"]


PASSING = [
    ApiError("the object has been modified", status=409),
    TransportError("connection refused"),
    ApiError("etcdserver: leader changed", status=503),
]


async def test_status_is_tried_until_it_is_written(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1)) as here:
        here.kube.refusing = list(PASSING)
        await here.prepare_one()
        await until(lambda: here.kube.written)

        assert devices_of(here) == ["gpu-0"]
        assert here.node.problems == {}


@pytest.mark.parametrize("status", [403, 422])
async def test_missing_rights_are_a_problem_and_the_claim_is_fine(
    tmp_path: Path, status: int
) -> None:
    """1.36 and later answer 422 where the verb on resourceclaims/driver is missing."""
    async with writing(tmp_path, claim(1), claim(2)) as here:
        here.kube.refusing = [ApiError("changing status.devices requires ...", status=status)]
        answer = await here.prepare_one(1)
        await until(lambda: here.node.problems)
        problems = dict(here.node.problems)
        await here.prepare_one(2)
        await until(lambda: here.kube.written)

        assert answer.error == ""
        assert set(problems) == {("status-devices", DRIVER)}
        assert (
            "associated-node:update resourceclaims/driver" in problems["status-devices", DRIVER][1]
        )
        assert here.kube.written == ["c2"]
        assert here.node.problems == {}


async def test_claim_that_is_gone_by_now_keeps_nobody(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1), claim(2), claim(3)) as here:
        here.kube.refusing = [PASSING[1]]
        await here.prepare(asked(1))
        await until(lambda: here.node.problems)
        del here.kube.claims["c1"]
        here.kube.refusing = [PASSING[1]]
        await here.prepare(asked(2))
        await until(lambda: here.kube.asked.count("c2") > 1)
        await here.unprepare(asked(2))
        await here.prepare(asked(3))
        await until(lambda: "c3" in here.kube.written)

        assert set(here.kube.written) <= {"c2", "c3"}


async def test_claim_that_was_made_again_is_left_alone(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1), claim(3)) as here:

        def replace(name: str) -> None:
            if here.kube.asked.count("c1") == 1 and name == "c1":
                here.kube.claims["c1"] = claim(1)
            elif name == "c1":
                here.kube.claims["c1"] = claim(2, name="c1")

        here.kube.reading = replace
        await here.prepare_one(1)
        await here.prepare_one(3)
        await until(lambda: here.kube.written)

        assert here.kube.written == ["c3"]

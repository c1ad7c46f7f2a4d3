"""What containers get, over real sockets."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import attrs
import grpc
import grpc.aio
import pytest

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.backends.wire.serve import dial
from accelkit.conformance.sims.events import Answer, PreferredAsked
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.pods import Phase
from accelkit.core.allocation import ContainerEdits, Edits, Hook, Mount, Piece
from accelkit.core.errors import IllegalSet
from accelkit.core.model import DeviceNode, Locality
from accelkit.core.policy import Divide, Inject, Offer, Sharing
from accelkit.core.values import FrozenMap
from accelkit.core.view import View
from tests.backends.kubelet.calls import asked, ready, refused
from tests.backends.kubelet.world import (
    QUICK,
    RESOURCE,
    endpoints,
    gpu,
    health,
    holding,
    ident,
    serving,
    sick,
    view_of,
    world,
)

BY_NAME = Offer(name="all", inject=Inject.CDI)


def envs(answer: dp.AllocateResponse) -> list[dict[str, str]]:
    return [dict(one.envs) for one in answer.container_responses]


async def test_unknown_id_is_not_found(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        await ready(sim)

        assert await refused(sim, ["nope"]) == (
            grpc.StatusCode.NOT_FOUND,
            f"{RESOURCE} has no device 'nope'; see `accelkit devices`",
        )
        assert here.node.meter.observed["accelkit_allocate_seconds", (RESOURCE, "unknown-device")]


async def test_id_of_a_megabyte_is_refused_with_a_text_that_reaches_the_peer(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))):
        await ready(sim)
        code, text = await refused(sim, ["ü" * 500_000])

    assert code is grpc.StatusCode.NOT_FOUND
    assert text.startswith(f"{RESOURCE} has no device 'üü")


async def test_unhealthy_device_is_refused_with_its_reason(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(sick(gpu("a"))))):
        await ready(sim)

        code, text = await refused(sim, ["a"])

    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "a of acme.test/gpu is not to be had: it is unhealthy: burnt" in text


async def test_leaving_device_is_refused(tmp_path: Path, sim: KubeletSim) -> None:
    other = [Offer(name="other", through="dra")]
    before = view_of(gpu("a"))
    view = view_of(gpu("a"), offers=other, held=[holding("a")], previous=before)
    async with serving(world(tmp_path, view)):
        await ready(sim)

        code, text = await refused(sim, ["a"])

    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "it leaves the offer" in text


async def test_set_that_the_vendor_cannot_run_is_refused_for_good(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async def admit(_offer: str, _pieces: Sequence[Piece]) -> Edits:
        raise IllegalSet("acme cannot run a, b together")

    async with serving(world(tmp_path, view_of(gpu("a"), gpu("b")))) as here:
        here.node.admitting = admit
        await ready(sim)
        pod = await sim.admit("p", {RESOURCE: 2})

    assert pod.phase is Phase.FAILED
    assert "code = FailedPrecondition desc = acme cannot run a, b together" in pod.message


async def test_each_container_gets_its_own_answer_in_order(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(gpu("a"), gpu("b"), gpu("c")))):
        await ready(sim)

        answer = await asked(sim, ["c", "b"], [], ["a"])

    assert [one.get("ACME_DEVICES") for one in envs(answer)] == ["b,c", None, "a"]


async def test_asking_twice_gives_the_same_answer(tmp_path: Path, sim: KubeletSim) -> None:
    async with serving(world(tmp_path, view_of(gpu("a"), gpu("b")))):
        await ready(sim)

        assert await asked(sim, ["a", "b"]) == await asked(sim, ["b", "a"])


async def test_shares_of_one_device_are_folded(tmp_path: Path, sim: KubeletSim) -> None:
    sharing = Sharing(shares=4, divide=Divide.EQUAL)
    view = view_of(gpu("a"), offers=[Offer(name="all", sharing=sharing)])
    async with serving(world(tmp_path, view)) as here:
        await ready(sim)
        answer = await asked(sim, ["a::0", "a::3"])

    quarter = FrozenMap({"memory": 2 << 30})
    assert envs(answer) == [{"ACME_DEVICES": "a", "HAS_A": "1"}]
    assert [(d.host_path, d.permissions) for d in answer.container_responses[0].devices] == [
        ("/dev/a", "rw")
    ]
    assert here.node.admitted == [
        (
            "all",
            (
                Piece(device=ident("a"), request=RESOURCE, share="0", amounts=quarter),
                Piece(device=ident("a"), request=RESOURCE, share="3", amounts=quarter),
            ),
        )
    ]


async def test_variables_that_list_a_set_are_in_the_order_of_pci_addresses(
    tmp_path: Path, sim: KubeletSim
) -> None:
    first = gpu("z", locality=Locality(pci_address="0000:01:00.0"))
    second = gpu("a", locality=Locality(pci_address="0000:02:00.0"))
    async with serving(world(tmp_path, view_of(first, second))):
        await ready(sim)

        assert envs(await asked(sim, ["a", "z"]))[0]["ACME_DEVICES"] == "z,a"


async def test_mounts_nodes_and_variables_are_given_in_full(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async def admit(_offer: str, _pieces: Sequence[Piece]) -> Edits:
        edits = ContainerEdits(
            nodes=[DeviceNode(path="/dev/in", host_path="/dev/out", permissions="rwm")],
            mounts=(
                Mount(host_path="/opt/x", container_path="/x"),
                Mount(host_path="/opt/y", container_path="/y", options=("rw",)),
            ),
        )
        whole = ContainerEdits(env=FrozenMap({"SET": "1"}))
        return Edits(each=FrozenMap({ident("a"): edits}), whole=whole)

    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        here.node.admitting = admit
        await ready(sim)
        answer = await asked(sim, ["a"])

    assert Answer.of(answer.container_responses[0]) == Answer(
        envs=(("SET", "1"),),
        mounts=(("/x", "/opt/x", True), ("/y", "/opt/y", False)),
        devices=(("/dev/in", "/dev/out", "rwm"),),
    )


async def test_answer_that_takes_too_long_is_an_error_and_others_are_answered_meanwhile(
    tmp_path: Path, sim: KubeletSim
) -> None:
    hanging = asyncio.Event()

    async def admit(_offer: str, pieces: Sequence[Piece]) -> Edits:
        if pieces[0].device == ident("a"):
            await hanging.wait()
        return Edits()

    patience = attrs.evolve(QUICK, allocate_s=0.5)
    view = view_of(gpu("a"), gpu("b"))
    async with serving(world(tmp_path, view, patience=patience)) as here:
        here.node.admitting = admit
        await ready(sim)
        late = asyncio.create_task(refused(sim, ["a"]))
        await sim.wait_for(lambda: here.node.admitted)
        await asked(sim, ["b"])
        assert not late.done()
        code, text = await late

    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "could not be handed out in 0.5 s" in text


async def test_fault_of_ours_is_not_told_to_the_peer(tmp_path: Path, sim: KubeletSim) -> None:
    async def admit(_offer: str, _pieces: Sequence[Piece]) -> Edits:
        raise RuntimeError("a secret")

    async with serving(world(tmp_path, view_of(gpu("a")))) as here:
        here.node.admitting = admit
        await ready(sim)
        code, text = await refused(sim, ["a"])

    assert code is grpc.StatusCode.INTERNAL
    assert "secret" not in text


@pytest.mark.parametrize(
    "method",
    [
        services.GET_OPTIONS,
        services.LIST_AND_WATCH,
        services.GET_PREFERRED,
        services.ALLOCATE,
        services.PRE_START,
    ],
    ids=lambda method: method.path.rpartition("/")[2],
)
async def test_bytes_that_are_no_message_are_an_invalid_argument(
    tmp_path: Path, sim: KubeletSim, method: services.Method[dp.Empty, dp.Empty]
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))):
        await ready(sim)
        async with dial(Path(endpoints(sim)[-1])) as channel:
            ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
            ask = channel.unary_unary(method.path)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask(b"\xff\xff")

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_starting_a_container_needs_no_call_and_one_is_answered(
    tmp_path: Path, sim: KubeletSim
) -> None:
    async with serving(world(tmp_path, view_of(gpu("a")))):
        await ready(sim)
        async with dial(Path(endpoints(sim)[-1])) as channel:
            options = await services.call(channel, services.GET_OPTIONS, dp.Empty())
            started = await services.call(
                channel, services.PRE_START, dp.PreStartContainerRequest(devices_ids=["a"])
            )

    assert options == dp.DevicePluginOptions(get_preferred_allocation_available=True)
    assert started == dp.PreStartContainerResponse()


async def test_close_devices_are_preferred(tmp_path: Path, sim: KubeletSim) -> None:
    view = view_of(gpu("a", numa=0), gpu("b", numa=1), gpu("c", numa=0), gpu("d", numa=1))
    async with serving(world(tmp_path, view)) as here:
        await ready(sim)
        await sim.admit("first", {RESOURCE: 1})
        pod = await sim.admit("p", {RESOURCE: 2})

    assert sim.seen(PreferredAsked)[-1].answer == ("b", "d")
    assert pod.ids() == ("b", "d")
    assert here.node.meter.observed["accelkit_preferred_seconds", (RESOURCE, "ok")] == 2


async def test_preference_never_fails_even_on_nonsense(tmp_path: Path, sim: KubeletSim) -> None:
    request = dp.PreferredAllocationRequest(
        container_requests=[
            dp.ContainerPreferredAllocationRequest(
                available_deviceIDs=["nope", "a", "a"],
                must_include_deviceIDs=["also-nope"],
                allocation_size=size,
            )
            for size in (-5, 0, 2, 2**31 - 1)
        ]
    )
    async with serving(world(tmp_path, view_of(gpu("a")))):
        await ready(sim)
        async with dial(Path(endpoints(sim)[-1])) as channel:
            answer = await services.call(channel, services.GET_PREFERRED, request)

    sizes = [len(one.deviceIDs) for one in answer.container_responses]
    assert sizes == [0, 0, 2, 3]


async def test_hooks_and_groups_that_no_direct_answer_can_say_are_told_once_for_each_offer(
    tmp_path: Path, sim: KubeletSim
) -> None:
    needs = ContainerEdits(gids=(44,), hooks=(Hook(name="createContainer", path="/bin/hook"),))
    devices = [gpu("a"), gpu("b")]

    def offered(inject: Inject) -> View:
        view = view_of(*devices, offers=[Offer(name="all", inject=inject)])
        return attrs.evolve(view, edits=FrozenMap(dict.fromkeys(view.edits, needs)))

    async with serving(world(tmp_path, offered(Inject.DIRECT))) as here:
        await sim.wait_for(lambda: health(sim) == {"a": True, "b": True})
        told = dict(here.node.problems)
        answer = await asked(sim, ["a"])
        here.node.publish(offered(Inject.CDI))
        await sim.wait_for(lambda: not here.node.problems)

    assert told == {
        ("edits-dropped", "all"): (
            "containers get neither hooks nor groups, which acme/a and 1 more should come with",
            "use inject: cdi",
        )
    }
    assert list(answer.container_responses) == [dp.ContainerAllocateResponse()]

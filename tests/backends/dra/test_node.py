"""Claims that the kubelet wants to be prepared and released, over a real socket."""

import asyncio
import logging
from pathlib import Path

import attrs
import grpc
import grpc.aio
import pytest

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra
from accelkit.core.allocation import Allocation, Answer, ClaimRef, PodRef, Prepared
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import AlreadyAllocated, ApiError, PrepareFailed, TransportError
from accelkit.core.model import DeviceId
from tests.backends.dra.service_world import (
    DRIVER,
    POOL,
    QUICK,
    SHARE,
    asked,
    claim,
    ident,
    result,
    serving,
    uid,
)

AWAY = TransportError("https://10.0.0.1 cannot be reached: connection refused")


def device(name: str = "gpu-0", *requests: str, share: str | None = None) -> dra.Device:
    """What the double's agent makes of an allocated device."""
    short = "" if share is None else f"-{share[:8]}"
    return dra.Device(
        request_names=requests or ["gpu"],
        pool_name=POOL,
        device_name=name,
        cdi_device_ids=[f"{DRIVER}/claim={uid(1)}-{name}{short}"],
        share_id=share,
    )


def ref(number: int) -> ClaimRef:
    return ClaimRef(uid=uid(number), namespace="default", name=f"c{number}")


async def test_claim_is_prepared_and_answered_with_its_devices(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1, result("gpu-0"), result("gpu-1", "more"))) as here:
        answer = await here.prepare_one()

        assert answer == dra.NodePrepareResourceResponse(
            devices=[device("gpu-0"), device("gpu-1", "more")]
        )
        assert here.node.told == []


async def test_log_names_claim_pods_and_devices(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, claim(1)) as here:
        with caplog.at_level(logging.INFO):
            await here.prepare_one()
    told = next(r for r in caplog.records if r.getMessage() == "claim prepared").__dict__

    assert (told["claim"], told["claim_name"]) == (uid(1), "default/c1")
    assert (told["pods"], told["devices"]) == (["default/p1"], ["acme/gpu-0"])


async def test_claim_that_is_ready_is_answered_without_the_api_server(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1)) as here:
        first = await here.prepare_one()
        here.kube.failing = AWAY
        again = await here.prepare_one()

        assert again == first
        assert here.kube.asked == ["c1"]


async def test_every_claim_has_one_answer_and_its_own_error(tmp_path: Path) -> None:
    bad = claim(2)
    bad["status"] = {}
    async with serving(tmp_path, claim(1), bad, claim(3)) as here:
        answers = await here.prepare(*map(asked, (1, 2, 3, 4)), asked(1))

        assert sorted(answers) == [uid(number) for number in (1, 2, 3, 4)]
        assert [bool(answers[uid(n)].error) for n in (1, 2, 3, 4)] == [False, True, False, True]
        assert sorted(here.node.entries) == [uid(1), uid(3)]


async def test_error_says_what_is_wrong_and_what_to_do_in_one_line(tmp_path: Path) -> None:
    unallocated = claim(1)
    unallocated["status"] = {}
    async with serving(tmp_path, unallocated) as here:
        assert await here.refusal() == (
            "claim c1 is not allocated; let the scheduler place the pod: do not set its nodeName"
        )
        assert here.node.told == [("PrepareFailed", await here.refusal())] * 2
        assert here.node.meter.observed["accelkit_prepare_seconds", ("acme", "claim-mismatch")] == 2


async def test_claim_that_was_made_again_under_its_name_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(2, name="c1")) as here:
        assert (await here.refusal()).startswith(
            f"claim c1 is another one by now: its uid is {uid(2)}, not {uid(1)}"
        )
        assert here.node.entries == {}


async def test_claim_that_was_deleted_is_refused_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        assert (await here.refusal()).startswith("claim c1 does not exist any more")
        assert here.kube.asked == ["c1"]


async def test_claim_that_was_prepared_under_another_name_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1)) as here:
        await here.prepare_one()
        answers = await here.prepare(asked(1, name="other"))

        assert "was prepared for claim default/c1" in answers[uid(1)].error


@pytest.mark.parametrize(
    "strange",
    [
        dra.Claim(namespace="default", name="c1", uid="../../etc/passwd"),
        dra.Claim(namespace="default", name="c1", uid=""),
        dra.Claim(namespace="default", name="c1/status", uid=uid(1)),
        dra.Claim(namespace="../kube-system", name="c1", uid=uid(1)),
        dra.Claim(namespace="default", name="c\u00e4\n1", uid=uid(1)),
    ],
)
async def test_what_names_no_claim_is_refused_before_anything_is_made_of_it(
    tmp_path: Path, strange: dra.Claim
) -> None:
    async with serving(tmp_path, claim(1)) as here:
        answers = await here.prepare(strange)

        assert "names no claim" in answers[strange.uid].error
        assert here.kube.asked == []


async def test_api_server_that_comes_back_is_waited_for(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1)) as here:
        here.kube.failing = AWAY

        def come_back(_name: str) -> None:
            if len(here.kube.asked) == 3:
                here.kube.failing = None

        here.kube.reading = come_back
        answer = await here.prepare_one()

        assert (answer.error, len(answer.devices)) == ("", 1)


@pytest.mark.parametrize(
    "failing", [AWAY, ApiError("etcdserver: leader changed", status=503), ApiError("", status=429)]
)
async def test_api_server_that_stays_away_fails_the_claim_and_no_device_is_guessed(
    tmp_path: Path, failing: TransportError | ApiError, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, claim(1)) as here:
        here.kube.failing = failing
        text = await here.refusal()

        assert text.startswith(f"claim c1 could not be read for {QUICK.claim_s:g} s: {failing}")
        assert text.endswith("at once when a label of the pod changes")
        assert len(here.kube.asked) > 2
        assert here.node.entries == {}
    assert [r.getMessage() for r in caplog.records].count("claim cannot be read yet") == 1


async def test_missing_rights_are_told_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1)) as here:
        here.kube.failing = ApiError("resourceclaims is forbidden", status=403)
        text = await here.refusal()

        assert text == (
            "claim c1 cannot be read: resourceclaims is forbidden; "
            "let the agent's service account get resourceclaims"
        )
        assert here.kube.asked == ["c1"]


async def test_node_without_api_access_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1)) as here:
        here.node.kube = None

        assert "no access to an API server is configured" in await here.refusal()


async def test_slow_claim_does_not_hold_up_another_call(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1), claim(2)) as here:
        go_on = asyncio.Event()

        async def hang(name: str) -> None:
            if name == "c1":
                await go_on.wait()

        here.kube.reading = hang
        slow = asyncio.create_task(here.prepare_one(1))
        quick = await here.prepare_one(2)
        slow_was_done = slow.done()
        go_on.set()

        assert (quick.error, slow_was_done) == ("", False)
        assert (await slow).error == ""


async def test_claims_of_one_call_run_side_by_side(tmp_path: Path) -> None:
    async with serving(tmp_path, *(claim(number) for number in range(1, 7))) as here:
        together = asyncio.Barrier(6)
        here.kube.reading = lambda _name: together.wait()
        answers = await here.prepare(*map(asked, range(1, 7)))

        assert {answer.error for answer in answers.values()} == {""}


async def test_256_claims_are_prepared_in_one_call(tmp_path: Path) -> None:
    numbers = range(1, 257)
    async with serving(tmp_path, *(claim(number) for number in numbers)) as here:
        answers = await here.prepare(*map(asked, numbers))

        assert len(answers) == 256
        assert all(answer.devices and not answer.error for answer in answers.values())


async def test_caller_that_leaves_before_the_work_begins_begins_nothing(tmp_path: Path) -> None:
    """After a force delete a late Prepare would take the device that the next pod has by now."""
    async with serving(tmp_path, claim(1)) as here:
        reading, go_on = asyncio.Event(), asyncio.Event()

        async def hang(_name: str) -> None:
            reading.set()
            await go_on.wait()

        here.kube.reading = hang
        call = asyncio.create_task(here.prepare_one())
        await reading.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await here.service.calls.idle()
        go_on.set()

        assert here.node.entries == {}


async def test_error_of_the_agent_is_the_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, claim(1)) as here:

        async def refuse(_: Allocation) -> Prepared:
            raise AlreadyAllocated("gpu-0 belongs to claim c9", remedy="wait for its end")

        here.node.preparing = refuse

        assert await here.refusal() == "gpu-0 belongs to claim c9; wait for its end"
        assert here.node.told == []  # the agent does that itself, and logs it
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_error_before_the_agent_is_asked_is_told_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as here:
        text = await here.refusal()

        assert here.node.told == [("PrepareFailed", text)]
    warned = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert warned == ["claim not prepared"]


async def test_answer_comes_before_the_kubelet_gives_up(tmp_path: Path) -> None:
    async def hang(_: Allocation) -> Prepared:
        await asyncio.Event().wait()
        raise AssertionError

    patience = attrs.evolve(QUICK, answer_s=0.05)
    async with serving(tmp_path, claim(1), patience=patience) as here:
        here.node.preparing = hang
        text = await here.refusal()

        assert text.startswith("claim c1 could not be prepared in 0.05 s; its devices or the API")
        assert here.node.told == [("PrepareFailed", text)]


async def test_foreign_error_stays_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, claim(1), claim(2)) as here:

        async def broken(allocation: Allocation) -> Prepared:
            if allocation.claim.uid == uid(1):
                raise ValueError("secret=abc")
            return Prepared(claim=allocation.claim, answers=())

        here.node.preparing = broken
        with caplog.at_level(logging.ERROR):
            answers = await here.prepare(asked(1), asked(2))

    assert answers[uid(1)].error.startswith("internal error (id ")
    assert answers[uid(2)].error == ""
    assert "secret=abc" in caplog.text


async def test_malformed_request_is_an_error_of_the_call(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        path = services.PREPARE.path
        ask = here.channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(b"\xff\xff\xff")

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_subrequest_is_answered_under_its_request(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1, result(request="gpu/small"))) as here:
        answer = await here.prepare_one()

        assert list(answer.devices[0].request_names) == ["gpu"]


async def test_device_of_several_requests_names_each_once(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1)) as here:

        async def answer(allocation: Allocation) -> Prepared:
            requests = ("gpu/small", "gpu/large", "other", "")
            one = Answer(device=ident("gpu-0"), requests=requests, cdi_ids=())
            return Prepared(claim=allocation.claim, answers=(one,))

        here.node.preparing = answer

        assert list((await here.prepare_one()).devices[0].request_names) == ["gpu", "other"]


async def test_driver_answers_with_its_own_devices_of_a_claim_that_has_others(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, claim(1)) as here:

        async def answer(allocation: Allocation) -> Prepared:
            other = DeviceId(vendor="other", name="card-0")
            devices = (other, ident("g"))
            answers = (Answer(device=d, requests=("gpu",), cdi_ids=()) for d in devices)
            return Prepared(claim=allocation.claim, answers=tuple(answers))

        here.node.preparing = answer
        first, again = await here.prepare_one(), await here.prepare_one()

        assert [device.device_name for device in first.devices] == ["g"]
        assert again == first


async def test_share_id_is_told_on_v1_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1, result(shareID=SHARE))) as here:
        new = await here.prepare(asked(1))
        old = await here.prepare(asked(1), beta=True)

        assert new[uid(1)].devices[0] == device(share=SHARE)
        assert not old[uid(1)].devices[0].HasField("share_id")


async def test_claim_is_released_without_the_api_server(tmp_path: Path) -> None:
    async with serving(tmp_path, claim(1)) as here:
        await here.prepare_one()
        here.kube.failing = AWAY
        answers = await here.unprepare(asked(1))

        assert answers == {uid(1): dra.NodeUnprepareResourceResponse()}
        assert here.node.entries == {}


async def test_claim_that_is_given_back_while_it_is_read_is_not_prepared(tmp_path: Path) -> None:
    """A kubelet gives back inside a running call after a force delete, and never again."""
    async with serving(tmp_path, claim(1)) as here:
        reading, go_on = asyncio.Event(), asyncio.Event()

        async def hang(_name: str) -> None:
            reading.set()
            await go_on.wait()

        here.kube.reading = hang
        call = asyncio.create_task(here.prepare_one())
        await reading.wait()
        released = await here.unprepare(asked(1))
        go_on.set()

        assert released == {uid(1): dra.NodeUnprepareResourceResponse()}
        assert (await call).error == "claim c1 was given back while it was being read"
        assert here.node.entries == {}


@pytest.mark.parametrize("beta", [True, False])
async def test_release_of_unknown_claims_is_fine(tmp_path: Path, beta: bool) -> None:
    strange = dra.Claim(namespace="default", name="c1", uid="../../etc/passwd")
    async with serving(tmp_path) as here:
        answers = await here.unprepare(asked(1), asked(1), asked(2), strange, beta=beta)

        assert answers == dict.fromkeys(
            (uid(1), uid(2), strange.uid), dra.NodeUnprepareResourceResponse()
        )


async def test_failing_release_fails_its_claim_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:

        async def fail(claim_uid: str) -> None:
            if claim_uid == uid(1):
                raise PrepareFailed("gpu-0 is still in use", remedy="end process 12")

        here.node.releasing = fail
        answers = await here.unprepare(asked(1), asked(2))

        assert answers[uid(1)].error == "gpu-0 is still in use; end process 12"
        assert answers[uid(2)].error == ""


async def test_release_that_does_not_end_is_told_in_the_namespace_of_the_pod(
    tmp_path: Path,
) -> None:
    """The kubelet says nothing about it to anybody."""

    async def hang(_: str) -> None:
        await asyncio.Event().wait()

    async with serving(tmp_path, patience=attrs.evolve(QUICK, answer_s=0.05)) as here:
        pod = PodRef(uid="p", namespace="default", name="p1")
        here.node.entries[uid(1)] = LedgerEntry(
            state=EntryState.READY, claim=ref(1), driver=DRIVER, pieces=(), pods=(pod,)
        )
        here.node.releasing = hang
        text = (await here.unprepare(asked(1)))[uid(1)].error

        assert text.startswith("claim c1 could not be released in 0.05 s")
        assert here.node.told == [("ReleaseFailing", text)]
        assert here.node.meter.observed["accelkit_release_seconds", ("acme", "prepare-failed")] == 1


async def test_companions_come_after_the_work_and_may_add_to_it(tmp_path: Path) -> None:
    done = []

    class Adds:
        async def prepared(self, prepared: Prepared, tree: object) -> Prepared:
            done.append(("prepared", tree is not None))
            one = Answer(device=ident("gpu-7"), requests=("gpu",), cdi_ids=("x",))
            return Prepared(claim=prepared.claim, answers=(*prepared.answers, one))

        async def released(self, claim_uid: str) -> None:
            done.append(("released", claim_uid in here.node.entries))

    async with serving(tmp_path, claim(1), companions=lambda _node: [Adds()]) as here:
        first = await here.prepare_one()
        await here.prepare_one()
        await here.unprepare(asked(1))

        assert [d.device_name for d in first.devices] == ["gpu-0", "gpu-7"]
        assert done == [("prepared", True), ("prepared", False), ("released", False)]

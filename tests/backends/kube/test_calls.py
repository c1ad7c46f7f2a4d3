"""Single questions to a server: what is sent, and what becomes of each kind of answer."""

import asyncio
import threading
from pathlib import Path

import pytest

from accelkit.backends.kube.asking import CALLS
from accelkit.backends.kube.faults import Closed
from accelkit.backends.kube.objects import Objects
from accelkit.backends.kube.reading import BODY_BYTES
from accelkit.core.errors import ApiError, TransportError
from accelkit.core.kube import CLAIMS, NODES, SLICES
from accelkit.core.values import FrozenMap
from tests.backends.kube.clients import Clients
from tests.backends.kube.scripted import (
    Asked,
    Reply,
    Scripted,
    Writer,
    chunk,
    hang_up,
    head,
    kubeconfig,
    metadata,
    nothing,
    raw,
    reset,
    says,
    slow,
    status,
    until,
)

pytestmark = pytest.mark.slow  # its processes and pauses take seconds

SLICE = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata("a")}
PATH = "/apis/resource.k8s.io/v1/resourceslices"


async def test_an_object_is_asked_for_by_its_path_and_returned_as_it_is(
    server: Scripted, kube: Objects
) -> None:
    server.answer(says({**SLICE, "unknown": {"field": [1, None]}}))

    found = await kube.get(SLICES, "a")

    assert found == {**SLICE, "unknown": {"field": [1, None]}}
    asked = server.asked[0]
    assert (asked.method, asked.target) == ("GET", f"{PATH}/a")
    assert asked.headers["user-agent"] == "accelkit-test/1"
    assert asked.headers["accept"] == "application/json"


async def test_a_namespaced_object_is_asked_for_in_its_namespace(
    server: Scripted, kube: Objects
) -> None:
    await kube.get(CLAIMS, "c", namespace="n")

    assert server.asked[0].target == "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c"


async def test_a_name_cannot_lead_elsewhere(server: Scripted, kube: Objects) -> None:
    await kube.get(CLAIMS, "../secrets?x=#", namespace="n/m")

    expected = "namespaces/n%2Fm/resourceclaims/..%2Fsecrets%3Fx%3D%23"
    assert server.asked[0].target == f"/apis/resource.k8s.io/v1/{expected}"


async def test_an_object_without_a_name_is_refused_before_all_are_deleted(
    server: Scripted, kube: Objects
) -> None:
    with pytest.raises(ApiError, match="one object has a name"):
        await kube.delete(SLICES, "")
    with pytest.raises(ApiError, match="ResourceClaim /c"):
        await kube.delete(CLAIMS, "c")

    assert server.asked == []


async def test_writes_say_what_they_do(server: Scripted, kube: Objects) -> None:
    item = {**SLICE, "spec": FrozenMap({"driver": "d", "nodeName": "n"})}
    await kube.create(SLICES, item, dry_run=True)
    await kube.create(CLAIMS, {"metadata": {"namespace": "n"}})
    await kube.replace(SLICES, item)
    await kube.replace(CLAIMS, SLICE, namespace="n", subresource="status")
    await kube.patch(CLAIMS, "c", {"status": None}, namespace="n", subresource="status")

    claims = "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims"
    assert [(a.method, a.target) for a in server.asked] == [
        ("POST", f"{PATH}?dryRun=All"),
        ("POST", claims),
        ("PUT", f"{PATH}/a"),
        ("PUT", f"{claims}/a/status"),
        ("PATCH", f"{claims}/c/status"),
    ]
    assert server.asked[0].item == {**SLICE, "spec": {"driver": "d", "nodeName": "n"}}
    types = [a.headers["content-type"] for a in server.asked]
    assert types == [*["application/json"] * 4, "application/merge-patch+json"]
    assert server.asked[4].item == {"status": None}


async def test_deleting_asks_for_the_version_if_there_is_one(
    server: Scripted, kube: Objects
) -> None:
    await kube.delete(SLICES, "a")
    await kube.delete(CLAIMS, "c", namespace="n", version="7")

    assert [a.method for a in server.asked] == ["DELETE", "DELETE"]
    options = {"apiVersion": "v1", "kind": "DeleteOptions"}
    assert server.asked[0].item == options
    assert server.asked[1].item == {**options, "preconditions": {"resourceVersion": "7"}}


async def test_deleting_what_is_not_there_is_fine(server: Scripted, kube: Objects) -> None:
    server.answer(status(404), status(409))

    await kube.delete(SLICES, "a")

    with pytest.raises(ApiError) as caught:
        await kube.delete(SLICES, "a", version="7")
    assert caught.value.status == 409


async def test_the_version_of_the_server_is_read(server: Scripted, kube: Objects) -> None:
    server.answer(says({"gitVersion": "v1.37.2"}), says({}))

    assert [await kube.version(), await kube.version()] == ["v1.37.2", ""]
    assert server.asked[0].target == "/version"


@pytest.mark.parametrize("answer", [{"allowed": True}, {"allowed": False}, {}])
async def test_rights_are_reviewed_by_the_server(
    server: Scripted, kube: Objects, answer: dict[str, bool]
) -> None:
    server.answer(says({"status": answer}))

    assert await kube.can_i("update", CLAIMS, namespace="n") == answer.get("allowed", False)

    review = server.asked[0].item
    assert review["kind"] == "SelfSubjectAccessReview"
    assert review["spec"] == {
        "resourceAttributes": {
            "verb": "update",
            "group": "resource.k8s.io",
            "version": "v1",
            "resource": "resourceclaims",
            "subresource": "",
            "namespace": "n",
        }
    }


async def test_what_cannot_be_written_as_json_is_an_error_of_the_caller(kube: Objects) -> None:
    with pytest.raises(TypeError, match="set cannot be written as JSON"):
        await kube.create(SLICES, {"spec": {1, 2}})


# Refusals.


@pytest.mark.parametrize("code", [400, 403, 404, 409, 410, 413, 422, 500, 504, 599])
async def test_a_refusal_tells_its_code_and_what_the_server_said(
    server: Scripted, kube: Objects, code: int
) -> None:
    server.answer(status(code, "the server's\n own words"))

    with pytest.raises(ApiError, match="the server's own words") as caught:
        await kube.get(NODES, "n")

    assert caught.value.status == code
    assert str(caught.value).startswith(f"get /api/v1/nodes/n: {code} ")
    assert len(server.asked) == 1


async def test_missing_rights_are_named(server: Scripted, kube: Objects) -> None:
    server.answer(status(403))

    with pytest.raises(ApiError) as caught:
        await kube.list(CLAIMS)

    assert caught.value.remedy == "grant list on resourceclaims to our account"


async def test_the_page_of_a_proxy_is_quoted(server: Scripted, kube: Objects) -> None:
    page = b"<html>Bad Gateway</html>"
    server.answer(raw(head(502, Content_Length=str(len(page))) + page))

    with pytest.raises(ApiError, match="502 Bad Gateway: <html>Bad Gateway</html>"):
        await kube.get(SLICES, "a")


async def test_nobody_is_followed_elsewhere(server: Scripted, kube: Objects) -> None:
    server.answer(says({}, 302, Location=f"{server.url}/elsewhere"))

    with pytest.raises(ApiError) as caught:
        await kube.get(SLICES, "a")

    assert caught.value.status == 302
    assert [a.target for a in server.asked] == [f"{PATH}/a"]


async def test_a_busy_server_is_left_alone_as_long_as_it_asks(
    server: Scripted, kube: Objects
) -> None:
    server.answer(status(429, Retry_After="0"), status(503, Retry_After="0"), says(SLICE))

    assert await kube.create(SLICES, SLICE) == SLICE
    assert [a.body for a in server.asked] == [server.asked[0].body] * 3


@pytest.mark.parametrize("headers", [{"Retry_After": "60"}, {"Retry_After": "soon"}, {}])
async def test_a_server_that_stays_busy_is_an_error(
    server: Scripted, kube: Objects, headers: dict[str, str]
) -> None:
    server.answer(status(429, "too many requests", **headers))

    with pytest.raises(ApiError) as caught:
        await kube.get(SLICES, "a")

    assert caught.value.status == 429
    assert len(server.asked) == 1


async def test_credentials_that_are_not_accepted_are_tried_once_more(
    server: Scripted, kube: Objects
) -> None:
    server.answer(status(401), says(SLICE), status(401, "Unauthorized"))

    assert await kube.get(SLICES, "a") == SLICE
    with pytest.raises(ApiError) as caught:
        await kube.get(SLICES, "a")

    assert caught.value.status == 401
    assert len(server.asked) == 4


# Answers that are none.


WRONG: dict[str, tuple[Reply, str]] = {
    "text": (raw(head(Content_Length="4") + b"nope"), "is not JSON"),
    "array": (says([1]), "is no object"),
    "empty": (raw(head(Content_Length="0")), "is not JSON"),
    "deep": (raw(head(Content_Length="200000") + b"[" * 200_000), "is not JSON"),
    "large": (raw(head(Content_Length=str(BODY_BYTES + 1))), "more than 32 MiB"),
    "endless": (
        raw(head(Transfer_Encoding="chunked") + chunk(bytes(2**20)) * 34),
        "more than 32 MiB",
    ),
    "half": (raw(head(Content_Length="9") + b'{"a":', then_close=True), "broke off"),
    "half a chunk": (
        raw(head(Transfer_Encoding="chunked") + b"9\r\n{", then_close=True),
        "broke off",
    ),
    "no chunk": (raw(head(Transfer_Encoding="chunked") + b"{}\r\n"), "broke off"),
    "half a head": (raw(b"HTTP/1.1 200 OK\r\nContent-", then_close=True), "ended|speak|not JSON"),
    "garbage": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "does not speak as an API server does"),
    "long head": (raw(b"HTTP/1.1 200 OK\r\nA: " + b"a" * 70_000), "does not speak"),
    "hanging up": (hang_up, "ended the connection"),
    "reset": (reset, "ended the connection"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_an_answer_that_is_none_is_named_and_its_connection_ended(
    server: Scripted, kube: Objects, wrong: str
) -> None:
    reply, text = WRONG[wrong]
    server.answer(reply, says(SLICE))

    with pytest.raises(TransportError, match=text) as caught:
        await kube.create(SLICES, SLICE)

    assert str(caught.value).startswith(f"the API server at {server.url}: ")
    assert caught.value.remedy
    assert await kube.get(SLICES, "a") == SLICE


async def test_an_answer_that_only_the_end_of_the_connection_ends_is_read(
    server: Scripted, kube: Objects
) -> None:
    server.answer(raw(b"HTTP/1.0 200 OK\r\n\r\n{}", then_close=True))

    assert await kube.get(SLICES, "a") == {}


async def test_an_answer_in_chunks_is_read(server: Scripted, kube: Objects) -> None:
    text = head(Transfer_Encoding="chunked") + chunk(b'{"a"') + chunk(b":1}") + b"0\r\n\r\n"
    server.answer(raw(text))

    assert [await kube.get(SLICES, "a") for _ in range(2)] == [{"a": 1}, {"a": 1}]
    assert server.connections == 1


# Connections.


async def test_one_connection_carries_all_calls_one_after_another(
    server: Scripted, kube: Objects
) -> None:
    for _ in range(5):
        await kube.get(SLICES, "a")

    assert server.connections == 1


async def test_few_connections_carry_many_calls_at_once(server: Scripted, kube: Objects) -> None:
    await asyncio.gather(*(kube.get(SLICES, "a") for _ in range(20)))
    await asyncio.gather(*(kube.get(SLICES, "a") for _ in range(20)))

    assert 1 <= server.connections <= CALLS


async def test_many_calls_at_once_are_shared_out(server: Scripted, kube: Objects) -> None:
    all_ask = asyncio.Barrier(CALLS)

    async def together(asked: Asked, writer: Writer) -> None:
        await all_ask.wait()
        await says(SLICE)(asked, writer)

    server.answer(together)
    found = await asyncio.gather(*(kube.get(SLICES, "a") for _ in range(3 * CALLS)))

    assert found == [SLICE] * 3 * CALLS


async def test_a_call_does_not_wait_for_one_that_is_not_answered(
    server: Scripted, kube: Objects
) -> None:
    server.answer(nothing, says(SLICE))
    slow = asyncio.create_task(kube.get(SLICES, "slow"))
    await until(lambda: server.asked)

    await kube.get(SLICES, "quick")

    assert not slow.done()
    slow.cancel()


async def test_a_refusal_keeps_the_connection(server: Scripted, kube: Objects) -> None:
    server.answer(status(409), says(SLICE))

    with pytest.raises(ApiError):
        await kube.replace(SLICES, SLICE)
    await kube.get(SLICES, "a")

    assert server.connections == 1


async def test_a_connection_that_the_server_ended_meanwhile_is_not_used_again(
    server: Scripted, kube: Objects
) -> None:
    server.answer(says({}))
    await kube.get(SLICES, "a")
    for task in [*server.open]:
        task.cancel()
    await asyncio.gather(*server.open, return_exceptions=True)

    await kube.create(SLICES, SLICE)

    assert [a.connection for a in server.asked] == [1, 2]


@pytest.mark.parametrize("ending", [hang_up, reset])
async def test_a_read_that_met_the_end_of_a_kept_connection_is_made_again(
    server: Scripted, kube: Objects, ending: Reply
) -> None:
    server.answer(says({}), ending, says(SLICE))
    await kube.get(SLICES, "a")

    assert await kube.get(SLICES, "a") == SLICE
    assert [a.connection for a in server.asked] == [1, 1, 2]


async def test_a_write_that_met_the_end_of_a_kept_connection_is_not_made_twice(
    server: Scripted, kube: Objects
) -> None:
    """The server may have done it."""
    server.answer(says({}), hang_up, says(SLICE))
    await kube.get(SLICES, "a")

    with pytest.raises(TransportError, match="ended the connection"):
        await kube.create(SLICES, SLICE)

    assert len(server.asked) == 2


# Time.

HALVES = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nX-Long: ",
    "half a body": head(Content_Length="1000000") + b"{",
    "half of the chunks": head(Transfer_Encoding="chunked") + chunk(b"{"),
}
TIMEOUT_S = 0.5


@pytest.mark.parametrize("drips", [False, True], ids=["and stops", "and drips"])
@pytest.mark.parametrize("half", HALVES)
async def test_an_answer_that_takes_too_long_ends_its_connection(
    server: Scripted, clients: Clients, tmp_path: Path, half: str, *, drips: bool
) -> None:
    server.answer(slow(HALVES[half], drips=drips))
    kube = clients.dial(kubeconfig(tmp_path, server.url), timeout_s=TIMEOUT_S)

    with pytest.raises(TransportError, match="no answer in time"):
        await kube.get(SLICES, "a")

    await server.all_closed()
    server.answer(says(SLICE))
    patient = clients.dial(kubeconfig(tmp_path, server.url))
    assert await patient.get(SLICES, "a") == SLICE


async def test_the_thread_is_free_again_after_a_call_that_took_too_long(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    server.answer(slow(b"HTTP/1.1 200 OK\r\nX: ", drips=True))
    kube = clients.dial(kubeconfig(tmp_path, server.url), timeout_s=4.0)
    with pytest.raises(TransportError):
        await kube.get(SLICES, "a")
    server.answer(says(SLICE))

    assert await kube.get(SLICES, "a") == SLICE


async def test_calls_that_wait_for_their_turn_have_no_more_time_than_others(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    server.answer(nothing)
    kube = clients.dial(kubeconfig(tmp_path, server.url), timeout_s=TIMEOUT_S)

    async with asyncio.timeout(20 * TIMEOUT_S):  # a turn after the other, they would take 30
        found = await asyncio.gather(
            *(kube.get(SLICES, "a") for _ in range(30 * CALLS)), return_exceptions=True
        )

    assert {type(error) for error in found} == {TransportError}


async def test_a_call_that_is_cancelled_ends_its_connection_at_once(
    server: Scripted, kube: Objects
) -> None:
    server.answer(nothing, says(SLICE))
    call = asyncio.create_task(kube.get(SLICES, "a"))
    await until(lambda: server.asked)

    call.cancel()

    await server.all_closed()
    assert await kube.get(SLICES, "a") == SLICE
    assert call.cancelled()


async def test_a_call_that_is_cancelled_before_its_turn_is_never_made(
    server: Scripted, kube: Objects
) -> None:
    server.answer(*[nothing] * CALLS, says(SLICE))
    first = [asyncio.create_task(kube.get(SLICES, "first")) for _ in range(CALLS)]
    await until(lambda: len(server.asked) == CALLS)
    second = asyncio.create_task(kube.get(SLICES, "second"))
    await asyncio.sleep(0)

    for task in (second, *first):
        task.cancel()
    await kube.get(SLICES, "third")

    targets = [asked.target for asked in server.asked]
    assert targets == [*[f"{PATH}/first"] * CALLS, f"{PATH}/third"]


# The end.


async def test_closing_ends_calls_that_run_and_that_wait(server: Scripted, kube: Objects) -> None:
    server.answer(nothing)
    calls = [asyncio.create_task(kube.get(SLICES, "a")) for _ in range(3)]
    await until(lambda: server.asked)

    await kube.close()

    found = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(error) for error in found} == {Closed}
    await server.all_closed()


async def test_closing_ends_threads_and_kept_connections(server: Scripted, kube: Objects) -> None:
    await until(lambda: not threads())
    await kube.get(SLICES, "a")
    assert threads() == ["kube-calls"]

    await kube.close()
    await kube.close()

    await until(lambda: not threads())
    await server.all_closed()
    with pytest.raises(Closed):
        await kube.get(SLICES, "a")


async def test_closing_what_was_never_used_is_fine(kube: Objects) -> None:
    await kube.close()

    with pytest.raises(Closed):
        await kube.version()


# Counting.


async def test_every_request_is_counted_by_verb_resource_and_code(
    server: Scripted, kube: Objects, clients: Clients
) -> None:
    server.answer(says(SLICE), status(409), hang_up)
    await kube.get(SLICES, "a")
    with pytest.raises(ApiError):
        await kube.replace(SLICES, SLICE)
    with pytest.raises(TransportError):
        await kube.delete(SLICES, "a")

    assert clients.counted == {
        ("get", "resourceslices", "200"): 1,
        ("update", "resourceslices", "409"): 1,
        ("delete", "resourceslices", "error"): 1,
    }


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("kube-")]

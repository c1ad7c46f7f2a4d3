"""What goes wrong by script, and a server that goes away."""

import asyncio

import pytest

from accelkit.conformance.sims.api.faults import asks, writes
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import SLICES
from tests.conformance.sims.api.client import SLICES as PATH, Client
from tests.conformance.sims.api.objects import slice_named

BROKEN = (asyncio.IncompleteReadError, ConnectionResetError, UnicodeDecodeError, ValueError)


async def test_next_requests_fail_and_the_one_after_does_not(api: ApiSim, client: Client) -> None:
    api.faults.fail(2, status=503, reason="ServiceUnavailable", message="not now")

    answers = [await client.ask("GET", PATH) for _ in range(3)]

    assert [answer.status for answer in answers] == [503, 503, 200]
    assert answers[0].document["message"] == "not now"
    assert answers[0].document["reason"] == "ServiceUnavailable"


async def test_only_those_that_are_meant_fail(api: ApiSim, client: Client) -> None:
    api.faults.fail(None, status=403, which=asks(verb="create", plural="resourceslices"))
    other = Client(api.port, agent="kubelet/1")
    api.faults.fail(None, status=500, which=asks(agent="kubelet"))

    made = await client.ask("POST", PATH, slice_named("a"))
    read = await client.ask("GET", PATH)
    theirs = await other.ask("GET", PATH)
    api.faults.mend()
    later = await client.ask("POST", PATH, slice_named("a"))

    assert [made.status, read.status, theirs.status, later.status] == [403, 200, 500, 201]


async def test_throttled_request_is_told_when_to_come_back(api: ApiSim, client: Client) -> None:
    api.faults.throttle(retry_s=3, which=writes)

    read = await client.ask("GET", PATH)
    written = await client.ask("POST", PATH, slice_named("a"))

    assert read.status == 200
    assert written.status == 429
    assert written.headers["retry-after"] == "3"
    assert written.document["details"]["retryAfterSeconds"] == 3
    assert not api.has(SLICES, "a")


async def test_delayed_request_is_answered_after_one_that_came_later(
    api: ApiSim, client: Client
) -> None:
    api.faults.delay(0.5, which=asks(verb="list"))
    order = []

    async def ask(path: str) -> None:
        await client.ask("GET", path)
        order.append(path)

    slow = asyncio.create_task(ask(PATH))
    await api.wait_for(lambda: api.journal.of(verb="list"))
    await ask("/version")
    await slow

    assert order == ["/version", PATH]


async def test_answer_may_be_lost_after_the_deed(api: ApiSim, client: Client) -> None:
    api.faults.hang_up(after=True, which=writes)

    with pytest.raises(BROKEN):
        await client.ask("POST", PATH, slice_named("a"))

    assert api.has(SLICES, "a")


async def test_answer_may_be_lost_before_the_deed(api: ApiSim, client: Client) -> None:
    api.faults.hang_up(which=writes)

    with pytest.raises(BROKEN):
        await client.ask("POST", PATH, slice_named("a"))

    assert not api.has(SLICES, "a")


async def test_answer_may_be_noise_or_break_off(api: ApiSim, client: Client) -> None:
    api.faults.garble()
    with pytest.raises(BROKEN):
        await client.ask("GET", PATH)

    api.faults.truncate()
    with pytest.raises(BROKEN):
        await client.ask("GET", PATH)

    assert (await client.ask("GET", PATH)).status == 200


async def test_server_that_goes_away_comes_back_on_its_port_with_its_objects(
    api: ApiSim, client: Client
) -> None:
    api.create(SLICES, slice_named("a"))
    async with client.watch("resourceVersion=0") as stream:
        await stream.told(1)
        await api.stop()
        with pytest.raises(BROKEN):
            await stream.line()
    with pytest.raises(ConnectionRefusedError):
        await client.ask("GET", PATH)

    await api.start()

    assert (await client.ask("GET", PATH)).names == ["a"]


async def test_restart_forgets_what_watches_knew(api: ApiSim, client: Client) -> None:
    version = api.store.version

    await api.restart()

    async with client.watch(f"resourceVersion={version}") as stream:
        line = await stream.line()
    assert line is not None
    assert line["object"]["code"] == 410


async def test_server_becomes_another_release(api: ApiSim, client: Client) -> None:
    made = api.create(SLICES, slice_named("a"))
    tainted = {**made, "spec": {**made["spec"], "devices": [_tainted()]}}  # type: ignore[dict-item]  # JSON

    api.become("1.35")
    kept = api.replace(SLICES, tainted)
    found = await client.ask("GET", "/version")

    assert found.document["gitVersion"] == "v1.35.4"
    assert kept["spec"] == {**made["spec"], "devices": [{"name": "d"}]}  # type: ignore[dict-item]  # JSON


def _tainted() -> dict[str, object]:
    return {"name": "d", "taints": [{"key": "k", "effect": "NoSchedule"}]}


async def test_journal_tells_writes_from_attempts(api: ApiSim, client: Client) -> None:
    await client.ask("POST", f"{PATH}?dryRun=All", slice_named("a"))
    await client.ask("POST", PATH, slice_named("a"))
    await client.ask("PUT", f"{PATH}/a", slice_named("a"))
    await Client(api.port, agent="other/2").ask("DELETE", f"{PATH}/a")
    await client.ask("GET", PATH)
    await client.ask("GET", "/version")

    assert [asked.verb for asked in api.journal.writes()] == ["create", "update", "delete"]
    assert [asked.verb for asked in api.journal.writes(dry_run=True)] == ["create"]
    assert [asked.verb for asked in api.journal.writes(agent="other")] == ["delete"]
    assert [asked.status for asked in api.journal.writes("resourceslices")] == [201, 200, 200]
    assert api.journal.writes("nodes") == []
    assert [asked.path for asked in api.journal.of(verb="list")] == [PATH]


async def test_connection_serves_several_requests(api: ApiSim, client: Client) -> None:
    async with client.connected() as (reader, writer):
        answers = [
            await client.on(reader, writer, "POST", PATH, slice_named("a")),
            await client.on(reader, writer, "GET", f"{PATH}/a"),
            await client.on(reader, writer, "DELETE", f"{PATH}/a"),
        ]

    assert [answer.status for answer in answers] == [201, 200, 200]
    assert not api.has(SLICES, "a")


async def test_body_in_chunks_is_read(api: ApiSim, client: Client) -> None:
    body = b'{"metadata":{"name":"n1"}}'
    head = (
        "POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    async with client.connected() as (reader, writer):
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        writer.write(head.encode() + chunks + b"0\r\n\r\n")
        first = await reader.readline()

    assert first == b"HTTP/1.1 201 Created\r\n"
    assert api.store.version > 1


@pytest.mark.parametrize(
    "sent",
    ["nonsense\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "GET x HTTP/1.1\r\n\r\n"],
)
async def test_what_is_no_request_is_refused(client: Client, sent: str) -> None:
    async with client.connected() as (reader, writer):
        writer.write(sent.encode())
        first = await reader.readline()

    assert first == b"HTTP/1.1 400 Bad Request\r\n"

"""What clients of either kind do with an API server, real or simulated: one suite for all.

Not here: the servers, and what no server does right.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

import pytest

from accelkit.backends.kube.follow import Key, follow
from accelkit.backends.kube.objects import PAGE, Objects
from accelkit.core.errors import ApiError, BackendError, TransportError
from accelkit.core.kube import CLAIMS, CLASSES, SLICES, Change, ChangeKind, Json
from tests.backends.kube.clients import BOTH, Clients
from tests.backends.kube.scripted import named

PATIENCE_S = 60.0


class Server(Protocol):
    """An API server that a test may disturb."""

    def kubeconfig(self, folder: Path) -> Path:
        """Write one of somebody who may do everything."""
        ...

    def tokens(self) -> tuple[str, str]:
        """Two tokens of somebody who may do everything."""
        ...

    def with_token_file(self, folder: Path, file: Path) -> Path:
        """Write a kubeconfig whose token is in *file*."""
        ...

    async def stop(self) -> None:
        """Go away; what is kept stays."""
        ...

    async def start(self) -> None:
        """Come back."""
        ...

    def expire(self) -> None:
        """Forget versions that were, and pages of lists that were begun; may end connections."""
        ...


def slice_of(name: str, driver: str, node: str = "node-a") -> Json:
    return {
        "apiVersion": SLICES.api_version,
        "kind": SLICES.kind,
        "metadata": {"name": name, "labels": {"test": driver}},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }


def part(item: Json, *path: str) -> object:
    """What is at *path* of an object."""
    found: object = item
    for key in path:
        assert isinstance(found, Mapping)
        found = found[key]
    return found


def version_of(item: Json) -> str:
    return str(part(item, "metadata", "resourceVersion"))


class Behaviour:
    """The suite; a subclass in a module with a fixture *server* runs it."""

    @pytest.fixture(params=BOTH, ids=str)
    async def clients(self, request: pytest.FixtureRequest) -> AsyncGenerator[Clients, None]:
        found = Clients(request.param)
        yield found
        await found.close()

    @pytest.fixture
    async def kube(
        self, server: Server, clients: Clients, driver: str, tmp_path: Path
    ) -> AsyncGenerator[Objects, None]:
        found = clients.dial(server.kubeconfig(tmp_path))
        yield found
        for item in (await found.list(SLICES, labels=f"test={driver}")).items:
            await found.delete(SLICES, named(item)[0])

    @pytest.fixture
    def driver(self) -> str:
        """A name that only this test uses."""
        return f"d{secrets.token_hex(4)}.test"

    async def test_the_server_tells_its_version(self, kube: Objects) -> None:
        assert (await kube.version()).startswith("v1.")

    async def test_objects_are_written_and_read(self, kube: Objects, driver: str) -> None:
        made = await kube.create(SLICES, slice_of(f"{driver}-a", driver))
        changed = {**made, "spec": {**_spec(made), "devices": [{"name": "gpu-1"}]}}

        replaced = await kube.replace(SLICES, changed)
        patched = await kube.patch(
            SLICES, f"{driver}-a", {"metadata": {"labels": {"more": "yes", "test": driver}}}
        )
        read = await kube.get(SLICES, f"{driver}-a")

        assert part(made, "metadata", "uid") == part(read, "metadata", "uid")
        assert len({version_of(item) for item in (made, replaced, patched)}) == 3
        assert read == patched
        assert part(read, "spec", "devices") == [{"name": "gpu-1"}]
        assert part(read, "metadata", "labels") == {"more": "yes", "test": driver}

    async def test_refusals_have_their_codes(self, kube: Objects, driver: str) -> None:
        name = f"{driver}-a"
        made = await kube.create(SLICES, slice_of(name, driver))
        await kube.patch(SLICES, name, {"metadata": {"labels": {"more": "yes"}}})

        async def code(asking: object) -> int:
            with pytest.raises(ApiError) as caught:
                await asking  # type: ignore[misc]  # calls of different results
            assert name in str(caught.value)
            return caught.value.status

        assert await code(kube.create(SLICES, {**made, "metadata": {"name": name}})) == 409
        assert await code(kube.replace(SLICES, made)) == 409
        assert await code(kube.delete(SLICES, name, version=version_of(made))) == 409
        assert await code(kube.get(SLICES, f"{name}-not-there")) == 404
        assert await code(kube.create(SLICES, slice_of(f"{name}_", driver))) == 422

    async def test_a_dry_run_leaves_nothing(self, kube: Objects, driver: str) -> None:
        made = await kube.create(SLICES, slice_of(f"{driver}-a", driver), dry_run=True)

        assert part(made, "spec", "driver") == driver
        with pytest.raises(ApiError) as caught:
            await kube.get(SLICES, f"{driver}-a")
        assert caught.value.status == 404

    async def test_deleting_removes_once_and_again(self, kube: Objects, driver: str) -> None:
        made = await kube.create(SLICES, slice_of(f"{driver}-a", driver))

        await kube.delete(SLICES, f"{driver}-a", version=version_of(made))
        await kube.delete(SLICES, f"{driver}-a")

        assert (await kube.list(SLICES, labels=f"test={driver}")).items == ()

    async def test_an_object_of_a_namespace_and_its_status(
        self, kube: Objects, driver: str
    ) -> None:
        name = driver.partition(".")[0]
        claim = {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {"name": name},
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": driver}}]}
            },
        }
        allocation = {
            "devices": {
                "results": [
                    {"request": "r", "driver": driver, "pool": "p", "device": "gpu-0"},
                ]
            }
        }
        made = await kube.create(CLAIMS, claim, namespace="default")
        try:
            written = await kube.replace(
                CLAIMS, {**made, "status": {"allocation": allocation}}, subresource="status"
            )
            listed = await kube.list(CLAIMS, namespace="default", fields=f"metadata.name={name}")

            assert part(written, "status", "allocation", "devices") == allocation["devices"]
            assert list(listed.items) == [written]
        finally:
            await kube.delete(CLAIMS, name, namespace="default")

    async def test_a_long_list_comes_in_pages(
        self, kube: Objects, clients: Clients, driver: str
    ) -> None:
        names = await many(kube, driver, 2 * PAGE + 1)
        clients.counted.clear()

        found = await kube.list(SLICES, labels=f"test={driver}", fields="spec.nodeName=node-a")

        assert set(named(*found.items)) == names
        assert len(found.items) == len(names)
        assert {item["kind"] for item in found.items} == {"ResourceSlice"}
        assert clients.counted == {("list", "resourceslices", "200"): 3}

    async def test_a_list_whose_pages_expire_is_whole_nevertheless(
        self, server: Server, kube: Objects, clients: Clients, driver: str, tmp_path: Path
    ) -> None:
        names = await many(kube, driver, PAGE + 1)
        codes: list[str] = []

        def expire(_verb: str, _resource: str, code: str) -> None:
            codes.append(code)
            if len(codes) == 1:
                server.expire()

        other = clients.dial(server.kubeconfig(tmp_path), count=expire)
        found = await other.list(SLICES, labels=f"test={driver}")

        assert set(named(*found.items)) == names
        assert codes == ["200", "410", "200", "200"]

    async def test_a_watch_tells_what_happens_after_a_version(
        self, kube: Objects, driver: str
    ) -> None:
        where = {"labels": f"test={driver}", "fields": "spec.nodeName=node-a"}
        name = f"{driver}-a"
        await kube.create(SLICES, slice_of(f"{driver}-before", driver))
        begun = await kube.list(SLICES, **where)
        await kube.create(SLICES, slice_of(f"{driver}-other", driver, node="node-b"))
        made = await kube.create(SLICES, slice_of(name, driver))
        patch = {"metadata": {"labels": {"more": "yes"}}}
        changed = await kube.patch(SLICES, name, patch)
        await kube.delete(SLICES, name)

        changes = await some(kube.watch(SLICES, version=begun.version, **where), 3)

        assert [change.kind for change in changes] == [
            ChangeKind.ADDED,
            ChangeKind.MODIFIED,
            ChangeKind.DELETED,
        ]
        assert [change.item for change in changes[:2]] == [made, changed]
        assert named(changes[2].item) == [name]

    async def test_a_watch_tells_at_once(self, kube: Objects, driver: str) -> None:
        begun = await kube.list(SLICES, labels=f"test={driver}")
        changes = kube.watch(SLICES, version=begun.version, labels=f"test={driver}")
        coming = asyncio.create_task(some(changes, 1))
        made = await kube.create(SLICES, slice_of(f"{driver}-a", driver))

        assert [change.item for change in await coming] == [made]

    async def test_a_version_that_is_too_old_is_gone(
        self, server: Server, kube: Objects, driver: str
    ) -> None:
        begun = await kube.list(SLICES, labels=f"test={driver}")
        await kube.create(SLICES, slice_of(f"{driver}-a", driver))
        await kube.create(SLICES, slice_of(f"{driver}-b", driver))
        server.expire()

        with pytest.raises(ApiError) as caught:
            await some(kube.watch(SLICES, version=begun.version), 2)

        assert caught.value.status == 410

    async def test_a_collection_is_followed_while_the_server_goes_and_comes(
        self, server: Server, kube: Objects, driver: str
    ) -> None:
        heard: list[BackendError | None] = []
        maps = follow(kube, SLICES, labels=f"test={driver}", told=heard.append)
        held: list[set[Key]] = []
        reading = asyncio.create_task(read(maps, held))
        await kube.create(SLICES, slice_of(f"{driver}-a", driver))
        await until(lambda: held[-1:] == [{("", f"{driver}-a")}])
        await server.stop()
        with pytest.raises(TransportError, match=r"nobody listens there|ended the connection"):
            await kube.create(SLICES, slice_of(f"{driver}-b", driver))
        await until(lambda: any(isinstance(error, TransportError) for error in heard))
        await server.start()
        await until(lambda: heard[-1] is None)
        await kube.create(SLICES, slice_of(f"{driver}-b", driver))
        await kube.delete(SLICES, f"{driver}-a")
        await until(lambda: held[-1] == {("", f"{driver}-b")})

        reading.cancel()

    async def test_a_collection_is_followed_though_the_server_forgets(
        self, server: Server, kube: Objects, driver: str
    ) -> None:
        held: list[set[Key]] = []
        maps = follow(kube, SLICES, labels=f"test={driver}")
        reading = asyncio.create_task(read(maps, held))
        await kube.create(SLICES, slice_of(f"{driver}-a", driver))
        await until(lambda: held[-1:] == [{("", f"{driver}-a")}])
        await kube.create(CLASSES, device_class(driver))
        await kube.delete(CLASSES, driver)
        server.expire()
        await kube.create(SLICES, slice_of(f"{driver}-b", driver))
        await until(lambda: held[-1] == {("", f"{driver}-a"), ("", f"{driver}-b")})

        reading.cancel()

    async def test_rights_are_told(self, kube: Objects) -> None:
        assert await kube.can_i("create", SLICES)
        assert await kube.can_i("update", CLAIMS, namespace="default")

    async def test_a_token_is_changed_in_its_file(
        self, server: Server, clients: Clients, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        file.write_text("nobody knows this one")
        kube = clients.dial(server.with_token_file(tmp_path, file))
        with pytest.raises(ApiError) as caught:
            await kube.list(SLICES)

        for token in server.tokens():
            (tmp_path / "fresh").write_text(token)
            (tmp_path / "fresh").rename(file)
            await kube.list(SLICES)

        assert caught.value.status == 401


async def read(maps: AsyncGenerator[Mapping[Key, Json], None], held: list[set[Key]]) -> None:
    """Note what each map has."""
    while True:
        held.append(set(await anext(maps)))


def device_class(name: str) -> Json:
    return {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.kind,
        "metadata": {"name": name},
        "spec": {},
    }


def _spec(item: Json) -> Json:
    found = item["spec"]
    assert isinstance(found, dict)
    return found


async def many(kube: Objects, driver: str, count: int) -> set[str]:
    """Make so many slices; returns their names."""
    names = {f"{driver}-{number}" for number in range(count)}
    for name in names:
        await kube.create(SLICES, slice_of(name, driver))
    return names


async def some(changes: AsyncGenerator[Change, None], count: int) -> list[Change]:
    """The next so many that are no bookmarks."""
    found: list[Change] = []
    async with aclosing(changes), asyncio.timeout(PATIENCE_S):
        async for change in changes:
            if change.kind is not ChangeKind.BOOKMARK:
                found.append(change)
            if len(found) == count:
                break
    return found


async def until(ready: Callable[[], object]) -> None:
    """Look until it is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not ready():  # noqa: ASYNC110 - servers set no event
            await asyncio.sleep(0.02)

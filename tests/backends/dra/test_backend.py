"""The backend as the agent has it: its policy, its drivers, and what it says of itself."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from accelkit.backends.dra import accelkit_backends
from accelkit.backends.dra.backend import DraBackend, create
from accelkit.backends.wire.serve import dial
from accelkit.core.backend import BackendStatus
from accelkit.core.model import Holder, Holding
from accelkit.core.policy import (
    Backends,
    DraPolicy,
    Kube,
    Offer,
    Paths,
    Policy,
    Selection,
)
from accelkit.core.values import FrozenMap, HolderKind
from accelkit.core.view import View
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.service_world import (
    QUICK,
    KubeDouble,
    asked,
    claim,
    ident,
    node_double,
    prepare,
    uid,
)
from tests.backends.dra.test_health import gpu, view_of
from tests.backends.dra.watching import register, sockets_in, until, watching

DRA = Offer(name="all", through="dra")
DOMAINS = FrozenMap({"acme": "acme.test", "other": "other.test"})


@attrs.frozen(eq=False)
class World:
    registry: Path
    node: NodePortDouble
    kube: KubeDouble
    backend: DraBackend

    def sockets(self) -> Mapping[str, Path]:
        """Of each driver, by its name."""
        if not self.registry.exists():
            return {}
        return {path.name.rpartition("-")[0]: path for path in sockets_in(self.registry)}

    @property
    def status(self) -> BackendStatus | None:
        return self.node.statuses[-1] if self.node.statuses else None


@asynccontextmanager
async def serving(root: Path, view: View, **drivers: str) -> AsyncGenerator[World, None]:
    """The backend of a policy with these drivers, served by an agent that sees *view*."""
    registry = root / "k" / "plugins_registry"
    registry.mkdir(parents=True)
    kube = KubeDouble()
    node = node_double(root, kube)
    node.leading.set(False)  # who leads needs a whole API server
    node.publish(view)
    backends = Backends(dra=DraPolicy(drivers=FrozenMap(drivers)))
    backend = create(Policy(paths=node.paths, backends=backends), QUICK)
    task = asyncio.create_task(backend.serve(node))
    try:
        yield World(registry, node, kube, backend)
    finally:
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(ended, asyncio.CancelledError), ended


def before_any_answer(**fields: object) -> View:
    return View(offers=(DRA,), domains=DOMAINS, **fields)  # type: ignore[arg-type]  # fields by name


async def test_every_vendor_has_its_driver_before_it_has_answered(tmp_path: Path) -> None:
    """A pod that starts while its driver is not registered waits for a minute."""
    async with serving(tmp_path, before_any_answer(), other="gpu.corp.example") as here:
        await until(lambda: len(here.sockets()) == 2)
        sockets = here.sockets()
        names = {(await register(path)).name for path in sockets.values()}

        assert names == {"acme.accelkit.dev", "gpu.corp.example"}
        assert names == set(sockets)
        await until(lambda: here.status and here.status.registered)


async def test_only_vendors_that_an_offer_may_select_have_drivers(tmp_path: Path) -> None:
    offers = (
        Offer(name="ours", through="dra", select=Selection(vendor=("ac*",))),
        Offer(name="rest", through="kubelet"),
    )
    async with serving(tmp_path, attrs.evolve(before_any_answer(), offers=offers)) as here:
        await until(here.sockets)

        assert set(here.sockets()) == {"acme.accelkit.dev"}


async def test_claims_that_are_held_have_a_driver_whatever_the_policy_says(tmp_path: Path) -> None:
    holder = Holder(kind=HolderKind.CLAIM, claim="c1")
    holding = Holding(device=ident("gpu-0"), through="dra", holder=holder)
    view = View(domains=DOMAINS, holdings=(holding,))
    async with serving(tmp_path, view) as here:
        await until(here.sockets)

        assert set(here.sockets()) == {"acme.accelkit.dev"}


async def test_driver_stays_when_its_offer_goes(tmp_path: Path) -> None:
    async with serving(tmp_path, before_any_answer()) as here:
        await until(lambda: len(here.sockets()) == 2)
        sockets = here.sockets()
        here.node.publish(View(domains=DOMAINS))
        reports = len(here.node.statuses)
        await until(lambda: len(here.node.statuses) > reports)

        assert here.sockets() == sockets


async def test_status_says_how_many_drivers_are_registered(tmp_path: Path) -> None:
    async with serving(tmp_path, before_any_answer()) as here:
        await until(lambda: len(here.sockets()) == 2)
        await register(here.sockets()["acme.accelkit.dev"])
        await until(lambda: here.status and here.status.detail.startswith("1 of 2"))

        assert here.status is not None
        assert not here.status.registered
        assert here.status.detail == "1 of 2 drivers registered"


async def test_claims_and_health_go_through_one_socket(tmp_path: Path) -> None:
    view = attrs.evolve(view_of(gpu("gpu-0")), offers=(DRA,), domains=DOMAINS)
    async with serving(tmp_path, view) as here:
        here.kube.put(claim(1))
        await until(here.sockets)
        path = here.sockets()["acme.accelkit.dev"]
        async with watching(path) as stream, dial(path) as channel:
            answers = await prepare(channel, asked(1))

            assert [d.device_name for d in answers[uid(1)].devices] == ["gpu-0"]
            assert stream.health() == {"gpu-0": 1}


def test_pools_are_rendered_for_a_server_that_keeps_everything() -> None:
    view = attrs.evolve(view_of(gpu("gpu-0")), offers=(DRA,), domains=DOMAINS)
    view = attrs.evolve(view, snapshot=attrs.evolve(view.snapshot, answered=frozenset({"acme"})))
    names = FrozenMap({"acme": "gpu.corp.example"})
    backend = create(Policy(backends=Backends(dra=DraPolicy(drivers=names))))

    pool = backend.render(view).pools["gpu.corp.example"]

    assert [device.name for part in pool.slices for device in part.devices] == ["gpu-0"]


def problems(policy: Policy) -> dict[str, str]:
    (factory,) = accelkit_backends()
    assert factory.name == "dra"
    return dict(factory.check(policy))


def named(**drivers: str) -> Policy:
    return Policy(backends=Backends(dra=DraPolicy(drivers=FrozenMap(drivers))))


@pytest.mark.parametrize(
    "name", ["", "Gpu.example", "gpu_1.example", "1gpu.example", "a..b", "n" * 64, "-a", "ä.b"]
)
def test_driver_name_must_be_a_subdomain_that_may_stand_in_names_of_cdi(name: str) -> None:
    assert problems(named(acme=name)) == {
        "$.backends.dra.drivers.acme": (
            "expected a DNS subdomain of at most 63 bytes that begins with a letter, "
            f"found {name!r}"
        )
    }


def test_every_vendor_has_a_driver_of_its_own() -> None:
    assert problems(named(acme="gpu.example", other="gpu.example")) == {
        "$.backends.dra.drivers.other": "gpu.example is the driver of acme already"
    }
    assert problems(named(acme="other.accelkit.dev")) == {
        "$.backends.dra.drivers.acme": "other.accelkit.dev is the driver of other already"
    }


def test_names_that_are_right_are_taken() -> None:
    right = named(acme="acme.accelkit.dev", other=f"{'n' * 55}.example")

    assert problems(right) == {}
    assert problems(Policy(offers=(DRA,))) == {}


def test_offer_needs_an_api_server() -> None:
    nowhere = Kube(config="none")

    assert problems(Policy(offers=(Offer(name="a"), DRA), kube=nowhere)) == {
        "$.offers[1].through": "needs an API server: set kube.config"
    }
    assert problems(Policy(kube=nowhere)) == {}


def test_settings_follow_the_policy() -> None:
    told = DraPolicy(metadata=True, status_devices=True)
    policy = Policy(paths=Paths(kubelet="/k"), backends=Backends(dra=told))

    settings = create(policy).settings

    assert settings.registry == Path("/k/plugins_registry")
    assert (settings.metadata, settings.status_devices) == (True, True)

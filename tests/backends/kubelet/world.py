"""A backend, an agent's double and a simulated kubelet, in one directory."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import attrs

from accelkit.backends.kubelet.backend import KubeletBackend
from accelkit.backends.kubelet.settings import Patience, Settings
from accelkit.conformance.sims.events import Listed, ListedDevice, Registered
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    DeviceNode,
    Group,
    Holder,
    Holding,
    Locality,
    Placement,
    Profile,
    Snapshot,
)
from accelkit.core.policy import Offer, Paths, Policy, Register
from accelkit.core.snapshot import build_view
from accelkit.core.values import FrozenMap, HolderKind, Severity, Standing
from accelkit.core.view import View
from accelkit.testing.node_port import NodePortDouble

RESOURCE = "acme.test/gpu"
DOMAINS = {"acme": "acme.test"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
BAD = Condition(code="burnt", severity=Severity.FATAL)

QUICK = Patience(
    info_s=0.4,
    stream_s=0.4,
    look_s=0.05,
    rivals_s=0.1,
    again_s=(0.05, 0.5),
    cut_off_s=(0.02, 0.2),
    first_view_s=20.0,
)


def ident(name: str, vendor: str = "acme") -> DeviceId:
    return DeviceId(vendor=vendor, name=name)


def gpu(name: str, *, numa: int | None = None, **fields: object) -> Device:
    given = {
        "id": ident(name),
        "kind": "gpu",
        "locality": Locality(numa_node=numa),
        "capacity": {"memory": 8 << 30},
        "slots": 4,
        "profiles": (Profile(name="1g", slug="1g", size=1, starts=range(4)),),
        **fields,
    }
    return Device(**given)  # type: ignore[arg-type]  # fields of a device by name


def part(parent: str, start: int) -> Device:
    return gpu(
        f"{parent}-1g-{start}",
        kind="part",
        parent=ident(parent),
        placement=Placement(profile="1g", start=start, size=1),
    )


def edits_of(device: Device) -> ContainerEdits:
    name = device.id.name
    return ContainerEdits(
        env=FrozenMap({f"HAS_{name.upper().replace('-', '_')}": "1"}),
        nodes=(DeviceNode(path=f"/dev/{name}"),),
        joined=FrozenMap({"ACME_DEVICES": name}),
    )


def view_of(
    *devices: Device,
    offers: Iterable[Offer] = (Offer(name="all"),),
    held: Iterable[Holding] = (),
    groups: Iterable[Group] = (),
    previous: View | None = None,
    without_edits: Iterable[str] = (),
    answered: Iterable[str] = ("acme",),
    sets: Iterable[str] = (),
) -> View:
    """What the core makes of *devices*, each with the edits of `edits_of`."""
    return build_view(
        Snapshot(
            node="node-a", devices=devices, groups=tuple(groups), answered=frozenset(answered)
        ),
        Policy(offers=tuple(offers)),
        holdings=held,
        edits={d.id: edits_of(d) for d in devices if d.id.name not in set(without_edits)},
        domains=DOMAINS,
        sets=frozenset(sets),
        previous=previous,
        now_s=0.0,
        now=NOW,
    )


def sick(device: Device) -> Device:
    return attrs.evolve(device, conditions=(BAD,))


def lost(device: Device) -> Device:
    return attrs.evolve(device, standing=Standing.LOST)


def holding(
    name: str,
    *,
    share: str | None = None,
    resource: str | None = RESOURCE,
    through: str = "kubelet",
    kind: HolderKind = HolderKind.POD,
) -> Holding:
    return Holding(
        device=ident(name),
        share=share,
        through=through,
        holder=Holder(kind=kind, namespace="default", pod="p", container="main"),
        resource=resource,
    )


@attrs.frozen(eq=False)
class World:
    """Everything that a test looks at."""

    root: Path
    node: NodePortDouble
    backend: KubeletBackend

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    def sockets(self) -> set[str]:
        """Our sockets, in whichever directory."""
        folders = (self.root / "k" / "device-plugins", self.root / "k" / "plugins_registry")
        return {
            path.name
            for folder in folders
            if folder.exists()
            for path in folder.iterdir()
            if path.name != "kubelet.sock" and not path.name.startswith(".")
        }


def world(
    root: Path,
    view: View,
    *,
    register: Register = Register.AUTO,
    patience: Patience = QUICK,
    leading: bool = True,
) -> World:
    kubelet = root / "k"
    node = NodePortDouble(paths=Paths(kubelet=str(kubelet), cdi=str(root / "cdi")), view=view)
    node.leading.set(leading)
    settings = Settings(
        plugins=kubelet / "device-plugins",
        registry=kubelet / "plugins_registry",
        pod_resources=kubelet / "pod-resources" / "kubelet.sock",
        cdi=root / "cdi",
        register=register,
        patience=patience,
    )
    return World(root, node, KubeletBackend(settings))


@asynccontextmanager
async def serving(here: World) -> AsyncGenerator[World, None]:
    """Let the backend serve; at the end it is cancelled, as an agent does that ends."""
    task = asyncio.create_task(here.backend.serve(here.node))
    try:
        yield here
    finally:
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(ended, asyncio.CancelledError), ended


def listed(sim: KubeletSim, resource: str = RESOURCE) -> tuple[ListedDevice, ...] | None:
    """The last list of *resource*; None: there was none yet."""
    found = sim.seen(Listed, resource=resource)
    return found[-1].devices if found else None


def health(sim: KubeletSim, resource: str = RESOURCE) -> Mapping[str, bool] | None:
    last = listed(sim, resource)
    return None if last is None else {device.id: device.healthy for device in last}


def endpoints(sim: KubeletSim, resource: str = RESOURCE) -> list[str]:
    """Of each registration, in order."""
    return [event.endpoint for event in sim.seen(Registered, resource=resource)]


def elsewhere(here: World, registry: Path) -> World:
    """The same backend with another plugin registry."""
    settings = attrs.evolve(here.backend.settings, registry=registry)
    return attrs.evolve(here, backend=KubeletBackend(settings))


async def relisted(sim: KubeletSim, times: int = 1) -> None:
    """So many registrations were made, and the last one was followed by a list."""

    def there() -> bool:
        found = endpoints(sim)
        return len(found) >= times and bool(sim.seen(Listed, endpoint=found[-1]))

    await sim.wait_for(there)

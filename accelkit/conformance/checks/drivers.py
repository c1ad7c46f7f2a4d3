"""DR: how a driver makes itself known, and tells about health. Not here: claims."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import dra, registration as reg
from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.claims_bench import ClaimsBench
from accelkit.conformance.model import Check, Feature, Inapplicable
from accelkit.conformance.setups import Setup
from accelkit.conformance.sims.dra.events import (
    DriverRegistered,
    HealthEnded,
    HealthHeard,
)
from accelkit.conformance.sims.events import Notified
from accelkit.conformance.sims.plugins import accepts
from accelkit.conformance.sims.watcher import sockets
from accelkit.conformance.stage import Stage
from accelkit.conformance.staged import SOON_S
from accelkit.conformance.subjects import DriverSubject
from accelkit.core.limits import is_dns_subdomain

NAME_LIMIT = 63
MESSAGE_LIMIT = 1000
SOCKET_LIMIT = 107
"""Bytes of the path of a socket."""
ROOM = 24
"""Bytes that are left for the name of a socket in a directory with a long name."""
AGAIN_S = 15.0
"""Half of how long the kubelet believes what it was told of health."""
METADATA = "/var/run/kubernetes.io/dra-device-attributes/"
"""Where containers look for files that describe their devices. Source: KEP-5304."""


def infos(bench: ClaimsBench) -> Iterator[tuple[Path, reg.PluginInfo]]:
    """What answers in plugins_registry, and says that it is the driver."""
    for path in sorted(sockets(bench.sim.registry_dir)):
        try:
            info = bench.call(services.GET_INFO, reg.InfoRequest(), 1.0, path)
        except grpc.aio.AioRpcError:
            continue
        if info.name == bench.stage.name:
            yield path, info


def says_who(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    found = list(infos(bench))
    if not found:
        yield "nothing in plugins_registry answers for it within a second"
    for path, info in found:
        if not is_dns_subdomain(info.name, NAME_LIMIT):
            yield f"its name {info.name!r} is no DNS subdomain of at most {NAME_LIMIT} bytes"
        if info.endpoint and not accepts(Path(info.endpoint)):
            yield f"it names the endpoint {info.endpoint}, where nobody listens"
        missing = {"v1.DRAPlugin", "v1beta1.DRAPlugin"} - set(info.supported_versions)
        yield from (f"it does not say that it serves {version}" for version in sorted(missing))
        known = [v for v in info.supported_versions if v.endswith(".DRAPlugin")]
        if not missing and known[0] != "v1.DRAPlugin":
            yield f"it names {known[0]} before v1.DRAPlugin, so that kubelets call that"
        endpoint = Path(info.endpoint or path)
        request = dra.NodePrepareResourcesRequest()
        for method in (services.PREPARE, services.PREPARE_BETA):
            try:
                bench.call(method, request, path=endpoint)
            except grpc.aio.AioRpcError as error:
                yield f"{method.path} fails for no claim at all: {error.details()}"


def comes_again(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    bench.sim.dra.refusal = "conformance: not yet"
    bench.stage.do(bench.sim.restart())
    refused = bench.happens(lambda: len(_refusals(bench)) > 1)
    ready = _ready(bench) if Feature.PROBES in bench.features else False
    bench.sim.dra.refusal = ""
    if not refused:
        yield "it goes away when the kubelet refuses it"
    if ready:
        yield "it is ready while the kubelet refuses it"
    before = len(bench.sim.seen(DriverRegistered, driver=bench.stage.name))
    if not bench.happens(
        lambda: len(bench.sim.seen(DriverRegistered, driver=bench.stage.name)) > before, 3 * SOON_S
    ):
        yield "refused by the kubelet for a while, it does not register any more"


def _refusals(bench: ClaimsBench) -> list[Notified]:
    return [e for e in bench.sim.seen(Notified, registered=False) if "not yet" in e.error]


def _ready(bench: ClaimsBench) -> bool:
    """Whether it says so, though it had time to learn better."""
    until = time.monotonic() + bench.patience(SOON_S)
    while time.monotonic() < until:
        if bench.driver.probe("/readyz")[0] != 200:
            return False
        bench.still(0.1)
    return True


def long_paths(bench: ClaimsBench) -> Iterator[str]:
    subject = bench.subject
    if isinstance(subject, DriverSubject) and subject.directory is not None:
        raise Inapplicable("it looks for the kubelet in one directory")
    bench.spoil()
    above = bench.directory()
    length = SOCKET_LIMIT - ROOM - len(f"{above}//plugins_registry/")
    root = above / ("x" * length)
    setup = Setup()
    bench.enter(Stage(subject, setup, bench.seed, bench.scale, root=root))
    yield from ()


def health(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    versions = [v for _, info in infos(bench) for v in info.supported_versions]
    if not any(version.endswith(".DRAResourceHealth") for version in versions):
        raise Inapplicable("it does not tell about health")
    yield from _heard(bench, "1.36")
    bench.leave()
    bench.up(release="1.37")
    yield from _heard(bench, "1.37")


def _heard(bench: ClaimsBench, release: str) -> Iterator[str]:
    names = {device.name for device in bench.devices()}

    def told() -> set[str]:
        return {name for event in bench.sim.seen(HealthHeard) for name in event.devices}

    if not bench.happens(lambda: names <= told()):
        why = [event.why for event in bench.sim.seen(HealthEnded)]
        missing = sorted(names - told())
        yield f"a kubelet of {release} is not told how {missing[0]} is ({why[-1:] or 'it waits'})"


def metadata(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    mounts = bench.injected(bench.prepared(bench.claim(device))).mounts
    files = [Path(host) for inside, host in mounts if inside.startswith(METADATA)]
    if not files:
        raise Inapplicable("claims come without files that describe their devices")
    told = [
        one
        for path in files
        for file in ([path] if path.is_file() else sorted(path.rglob("*.json")))
        for request in json.loads(file.read_text("utf-8")).get("requests", [])
        for one in request.get("devices", [])
    ]
    mine = [one for one in told if one.get("name") == device.name]
    if not mine:
        yield f"no file describes {device.name}, which the claim got"
    for one in mine:
        if one.get("attributes", {}) != device.item.get("attributes", {}):
            yield f"{device.name} has other attributes in its file than in its slice"


def short_messages(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    heard = len(bench.sim.seen(HealthHeard))
    bench.driver.break_device()
    if not bench.happens(
        lambda: any(
            word != "Healthy"
            for event in bench.sim.seen(HealthHeard)[heard:]
            for word, _ in event.devices.values()
        ),
        3 * SOON_S,
    ):
        yield "a device is broken, and the kubelet is not told"
    longest = max((size for e in bench.sim.seen(HealthHeard) for size in e.sizes), default=0)
    if longest > MESSAGE_LIMIT:
        yield f"a message about health has {longest} bytes, more than {MESSAGE_LIMIT}"


def told_again(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    bench.spoil()
    first = bench.endpoint()
    twin = bench.driver.twin()
    bench.later(twin.kill)
    twin.start(bench.stage.root)
    if not bench.happens(lambda: bench.endpoint() != first, 3 * SOON_S):
        yield f"a second instance does not register beside the first{twin.said()}"
        return
    path = str(bench.endpoint())
    if not bench.happens(lambda: bench.sim.seen(HealthHeard, endpoint=path)):
        raise Inapplicable("it does not tell about health")
    bench.driver.stop()
    bench.happens(lambda: bench.sim.seen(HealthEnded, endpoint=str(first)))
    since = len(bench.sim.seen(HealthHeard, endpoint=path))
    if not bench.happens(lambda: len(bench.sim.seen(HealthHeard, endpoint=path)) > since, AGAIN_S):
        yield "when another instance has ended, health is not told again, and the kubelet forgot it"


CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims("DR01", "The driver says who it is and what it serves.", says_who),
    with_claims("DR02", "A driver that was refused stays, and comes again.", comes_again),
    with_claims("DR03", "Sockets have short names where directories have long ones.", long_paths),
    with_claims(
        "DR21", "Health is told to every kubelet that asks.", health, setup=Setup(release="1.36")
    ),
    with_claims(
        "DR22",
        "Files that describe devices say what slices say.",
        metadata,
        Feature.CDI,
        setup=Setup(metadata=True),
    ),
    with_claims(
        "DR28", "A message about health has at most 1,000 bytes.", short_messages, Feature.BREAK
    ),
    with_claims(
        "DR29",
        "Health is told again when another instance has ended.",
        told_again,
        Feature.TWIN,
    ),
)

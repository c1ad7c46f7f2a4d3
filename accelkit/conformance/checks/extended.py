"""ER: devices that pods ask for by a resource name, served by claims. Not here: other claims."""

from collections.abc import Iterator

import attrs

from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.claims_bench import RUN_S, ClaimsBench
from accelkit.conformance.model import Badge, Check, Feature, Inapplicable, Unanswered
from accelkit.conformance.setups import BY_PROFILE, RESOURCE, Setup
from accelkit.conformance.sims.api.refusals import Refused
from accelkit.conformance.sims.api.values import part, parts, text
from accelkit.conformance.sims.dra.events import DriverRegistered, PrepareAsked
from accelkit.conformance.sims.events import Listed, PodFailed
from accelkit.conformance.sims.plugins import is_extended
from accelkit.conformance.sims.scheduler import cel
from accelkit.conformance.sims.scheduler.pools import Device
from accelkit.conformance.socket_bench import FIRST_S
from accelkit.conformance.stage import Stage
from accelkit.conformance.staged import SOON_S
from accelkit.core.kube import CLAIMS, CLASSES, Json

OLD = "1.35"
"""The last kubelet that lets such pods run without a device."""
BY_CLAIMS = Setup(resource=RESOURCE)
BY_PLUGIN = attrs.evolve(BY_CLAIMS, through="kubelet")
NOTHING_S = 4.0
"""Enough for a driver that publishes at all."""


def _with_classes(bench: ClaimsBench) -> tuple[Json, ...]:
    """Let the classes that go with the driver be there, as an administrator does."""
    classes = bench.driver.classes()
    for item in classes:
        try:
            bench.ask(lambda item=item: bench.api.create(CLASSES, item))  # type: ignore[misc]  # mypy#7464
        except Refused as error:
            raise Unanswered(f"a class of its is refused: {error}") from error
    if not classes:
        raise Unanswered("it names no class for the resource that its devices are offered under")
    return classes


def mapped(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    classes = _with_classes(bench)
    named = [text(item, "spec", "extendedResourceName") for item in classes]
    yield from (f"{name!r} is no name of a resource" for name in named if not is_extended(name))
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield f"{named.count(name)} classes have the name {name}: the newest wins"
    if RESOURCE not in named:
        yield f"no class has the name {RESOURCE}, under which devices are offered"
        return
    pod = bench.run(resources={RESOURCE: 1})
    claim = text(bench.find_item(pod), "status", "extendedResourceClaimStatus", "resourceClaimName")
    if not claim:
        yield f"a pod that asks for {RESOURCE} runs without a claim"
    elif not bench.sim.seen(PrepareAsked, pod=pod):
        yield f"a pod that asks for {RESOURCE} runs without a device"


def as_many(bench: ClaimsBench) -> Iterator[str]:
    claims = len(bench.up())
    bench.leave()
    plugin = len(listed_first(bench))
    if claims != plugin:
        yield f"{claims} devices can be had by claims, and {plugin} by the device plugin"


def listed_first(bench: ClaimsBench) -> set[str]:
    """Ids of the resource, served by the device plugin."""
    bench.up(through="kubelet")
    if not bench.happens(lambda: _listed(bench), FIRST_S):
        raise Unanswered(f"no list of {RESOURCE} comes{bench.driver.said()}")
    return set(_listed(bench))


def _listed(bench: ClaimsBench) -> dict[str, bool]:
    """Devices in the last list of the resource, and whether they are healthy."""
    lists = bench.sim.seen(Listed, resource=RESOURCE)
    return {device.id: device.healthy for device in lists[-1].devices} if lists else {}


def _allocatable(bench: ClaimsBench) -> int:
    return int(bench.sim.status.get(RESOURCE, ("0", "0"))[1])


def one_path(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    bench.still(1.0)
    if _allocatable(bench):
        yield f"{RESOURCE} is served by claims, and the node has it by a device plugin, too"
    bench.leave()
    listed_first(bench)
    bench.still(1.0)
    if devices := bench.devices():
        yield (
            f"{RESOURCE} is served by the device plugin, and {devices[0].name} is published for "
            "claims, too"
        )


def kept(bench: ClaimsBench) -> Iterator[str]:
    before = listed_first(bench)
    pod = bench.run(resources={RESOURCE: 1})
    bench.restart(through="dra")
    bench.still(1.0)
    if failed := bench.sim.seen(PodFailed, pod=pod):
        yield f"a running pod fails when its devices change the interface: {failed[0].message}"
        return
    if not bench.running(pod):
        yield "a running pod ends when its devices change the interface"
    held = set(_held(bench, pod))
    if gone := held - _listed(bench).keys():
        yield f"{min(gone)} leaves the list of the device plugin while a pod has it"
    bench.delete(pod)
    bench.happens(lambda: len(bench.stage.devices()) == len(before), 3 * SOON_S)
    after = {device.name for device in bench.devices()}
    if lost := {ident.partition("::")[0] for ident in before} - after:
        yield f"{min(lost)} is not published for claims when nobody has it any more"


def _held(bench: ClaimsBench, pod: str) -> tuple[str, ...]:
    found = bench.find(pod)
    return found.pod.ids() if found else ()


def when_free(bench: ClaimsBench) -> Iterator[str]:
    listed_first(bench)
    pod = bench.run(resources={RESOURCE: 1})
    (held,) = _held(bench, pod)
    name = held.partition("::")[0]
    bench.restart(through="dra")
    since = bench.version()
    bench.still()
    for state in bench.pools(since):
        if name in _names(state):
            yield f"{name} is published for claims while a pod has it by the device plugin"
            break
    bench.delete(pod)
    if not bench.happens(lambda: name in _names(bench.stage.slices()), 3 * SOON_S):
        yield f"{name} is free, and is not published for claims"


def _names(slices: list[Json]) -> set[str]:
    return {text(device, "name") for item in slices for device in parts(item, "spec", "devices")}


def as_a_whole(bench: ClaimsBench) -> Iterator[str]:
    listed_first(bench)
    pod = bench.run(resources={RESOURCE: 1})
    watch = bench.watch(lambda: _allocatable(bench) > 0 and bool(bench.stage.devices()))
    bench.restart(through="dra")
    published = bench.happens(lambda: bool(bench.stage.devices()), 3 * SOON_S)
    bench.delete(pod)
    bench.gone(pod)
    bench.still(1.0)
    if watch():
        yield (
            "devices are published for claims while the node has some by the device plugin: "
            "pods wait for the latter"
        )
    if not published:
        yield "its free devices are not published for claims while one is in use"


def waits_for_claims(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    _with_classes(bench)
    pod = bench.run(resources={RESOURCE: 1})
    bench.restart(through="kubelet")
    if not bench.happens(lambda: bench.sim.seen(Listed, resource=RESOURCE), FIRST_S):
        raise Inapplicable("the resource is not registered while a claim has a device of it")
    bench.still()
    healthy = [i for e in bench.sim.seen(Listed, resource=RESOURCE) for i in e.devices if i.healthy]
    if healthy:
        yield f"{healthy[0].id} is healthy in the list while a claim has a device of the name"
    bench.delete(pod)
    bench.gone(pod)
    if not bench.happens(lambda: any(_listed(bench).values()), 3 * SOON_S):
        yield "no claim has a device of the name any more, and none is healthy in the list"


def not_free(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    ref = bench.claim(device)
    bench.prepared(ref)
    bench.restart(through="kubelet")
    if not bench.happens(lambda: bench.sim.seen(Listed, resource=RESOURCE), FIRST_S):
        raise Inapplicable("the resource is not registered while a claim has a device")
    bench.still(1.0)
    for event in bench.sim.seen(Listed, resource=RESOURCE):
        if any(d.healthy and d.id.partition("::")[0] == device.name for d in event.devices):
            yield f"{device.name} can be had by the device plugin while a claim has it"
            break
    bench.unprepare(ref)
    bench.forget(ref)
    if not bench.happens(lambda: all(_listed(bench).values()), 3 * SOON_S):
        yield "no claim has a device any more, and not all can be had by the device plugin"


def old_kubelet(bench: ClaimsBench) -> Iterator[str]:
    setup = Setup(resource=RESOURCE, kubelet=OLD)
    bench.spoil()
    stage = Stage(bench.subject, setup, bench.seed, bench.scale)
    bench.work_with(stage)
    stage.open()
    stage.driver.start(stage.root)
    bench.happens(lambda: bench.sim.seen(DriverRegistered, driver=stage.name), FIRST_S)
    bench.still(NOTHING_S)
    if devices := bench.devices():
        yield (
            f"{devices[0].name} is published behind {RESOURCE} on a kubelet of {OLD}, "
            "which runs such pods without a device"
        )


def by_profile(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    classes = _with_classes(bench)
    named = [text(item, "spec", "extendedResourceName") for item in classes]
    if len(named) == 1:
        raise Inapplicable("its devices are of one kind")
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield f"{named.count(name)} classes have the name {name}"
    every = [Device(d, s, ()) for s, d in bench.ask(bench.stage.devices)]
    chosen: set[str] = set()
    for item in classes:
        found = {d.id[2] for d in every if _selects(item, d)}
        if not found:
            yield f"no device is behind {text(item, 'spec', 'extendedResourceName')}"
        if found & chosen:
            yield f"{min(found & chosen)} is behind two names"
        chosen |= found
    if left := {d.id[2] for d in every} - chosen:
        yield f"{min(left)} is behind no name"


def _selects(item: Json, device: Device) -> bool:
    return all(cel.matches(one, device) for one in cel.selectors(part(item, "spec")))


def nothing(bench: ClaimsBench) -> Iterator[str]:
    bench.up()
    _with_classes(bench)
    pod = bench.pod(resources={RESOURCE: 0})
    if not bench.happens(lambda: bench.running(pod), RUN_S):
        yield f"a pod that asks for 0 of {RESOURCE} does not start: {bench.why(pod)}"
        return
    bench.still(1.0)
    made = [c for c in bench.ask(lambda: bench.api.items(CLAIMS)) if _is_for(c, pod)]
    if made or bench.sim.seen(PrepareAsked, pod=pod):
        yield f"a pod that asks for 0 of {RESOURCE} gets a claim"
    found = bench.find(pod)
    if found and found.injected["main"].nodes:
        yield f"a pod that asks for 0 of {RESOURCE} gets a device"


def _is_for(claim: Json, pod: str) -> bool:
    return any(text(one, "name") == pod for one in parts(claim, "metadata", "ownerReferences"))


EXTENDED = (Badge.EXTENDED,)
CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims(
        "DP19",
        "A device that a claim has cannot be had by the device plugin.",
        not_free,
        Feature.EXTENDED,
        Feature.SWITCH,
        Feature.RESTART,
        badges=(Badge.DEVICE_PLUGIN,),
        setup=BY_CLAIMS,
    ),
    with_claims(
        "ER01",
        "Each resource name has one class that selects its devices.",
        mapped,
        Feature.EXTENDED,
        badges=EXTENDED,
        setup=BY_CLAIMS,
    ),
    with_claims(
        "ER02",
        "There are as many devices by claims as by the device plugin.",
        as_many,
        Feature.EXTENDED,
        Feature.SWITCH,
        badges=EXTENDED,
        setup=BY_CLAIMS,
    ),
    with_claims(
        "ER03",
        "A name is served in one way.",
        one_path,
        Feature.EXTENDED,
        Feature.SWITCH,
        badges=EXTENDED,
        setup=BY_CLAIMS,
    ),
    with_claims(
        "ER04",
        "Ids and running pods stay when devices change the interface.",
        kept,
        Feature.EXTENDED,
        Feature.SWITCH,
        Feature.RESTART,
        badges=EXTENDED,
        setup=BY_PLUGIN,
    ),
    with_claims(
        "ER05",
        "Each kind of partition has a class of its own.",
        by_profile,
        Feature.EXTENDED,
        badges=EXTENDED,
        must=False,
        setup=Setup(cut=True, resource=BY_PROFILE),
    ),
    with_claims(
        "ER06",
        "Who asks for none gets nothing.",
        nothing,
        Feature.EXTENDED,
        Feature.CDI,
        badges=EXTENDED,
        setup=BY_CLAIMS,
    ),
    with_claims(
        "ER07",
        "A device in use changes the interface when it is free.",
        when_free,
        Feature.EXTENDED,
        Feature.SWITCH,
        Feature.RESTART,
        badges=EXTENDED,
        setup=BY_PLUGIN,
    ),
    with_claims(
        "ER08",
        "A name changes the interface as a whole.",
        as_a_whole,
        Feature.EXTENDED,
        Feature.SWITCH,
        Feature.RESTART,
        badges=EXTENDED,
        setup=BY_PLUGIN,
    ),
    with_claims(
        "ER09",
        "While a claim has a device of a name, the device plugin offers none.",
        waits_for_claims,
        Feature.EXTENDED,
        Feature.SWITCH,
        Feature.RESTART,
        badges=EXTENDED,
        setup=BY_CLAIMS,
    ),
    with_claims(
        "ER10",
        "Nothing is published behind a name on a kubelet before 1.36.",
        old_kubelet,
        Feature.EXTENDED,
        badges=EXTENDED,
    ),
)

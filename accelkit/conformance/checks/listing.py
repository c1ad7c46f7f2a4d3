"""DP, H, I: what a driver lists. Not here: how it is known, and what it answers."""

from collections.abc import Iterator

from accelkit.conformance.checks.making import over_sockets
from accelkit.conformance.model import Badge, Check, Feature
from accelkit.conformance.sims.events import Listed, StreamEnded
from accelkit.conformance.socket_bench import NUMA_NODES, SOON_S, SocketBench
from accelkit.core.limits import DEVICE_ID_LIMIT, RESOURCE_IDS_LIMIT

STREAMS = 64
CHANGES = 3
"""Of a device, there and back, before it stays as it is."""
MESSAGE_LIMIT = 4 << 20
"""Bytes; a longer message ends the stream (gRPC's default, which the kubelet keeps)."""
_DEVICE_BYTES = 32
"""Of a listed device, beyond its id."""


def _broken(bench: SocketBench) -> Iterator[str]:
    """Break a device, and wait until the list tells of it."""
    bench.driver.break_device()
    if not bench.happens(lambda: bench.sick(), 3 * SOON_S):  # noqa: PLW0108 - asked again and again
        yield "a device is broken, and the list does not tell of it"


def every_stream(bench: SocketBench) -> Iterator[str]:
    bench.up()
    streams = [bench.watch() for _ in range(3)]
    if not bench.happens(lambda: all(s.lists for s in streams)):
        yield f"{sum(not s.lists for s in streams)} of 3 further streams get no first list"
        return
    wrong = list(_broken(bench))
    if not wrong and not bench.happens(lambda: all(s.sick() for s in streams)):
        missing = sum(not s.sick() for s in streams)
        yield f"{missing} of 3 further streams do not get a change that another gets"
    yield from wrong
    for stream in streams:
        bench.do(stream.close())


def cancelled(bench: SocketBench) -> Iterator[str]:
    bench.up()
    for number in range(STREAMS):
        stream = bench.watch()
        came = bench.happens(lambda stream=stream: stream.lists or stream.ended)  # type: ignore[misc]  # mypy#7464
        bench.do(stream.close())
        if not came or not stream.lists:
            yield f"after {number} streams that were ended, the next gets no list"
            return


def stays(bench: SocketBench) -> Iterator[str]:
    before = {d.id for d in bench.up()}
    yield from _broken(bench)
    gone = sorted(before - set(bench.ids()))
    if gone:
        yield f"{gone[0]} leaves the list when it is not healthy"
    capacity, allocatable = bench.sim.amounts()[bench.resource]
    if not gone and capacity - allocatable != len(bench.sick()):
        yield f"of {capacity} devices {allocatable} can be had with {len(bench.sick())} broken"
    bench.driver.mend_device()
    if not bench.happens(lambda: not bench.sick(), 3 * SOON_S):
        yield f"{min(bench.sick())} is mended, and stays unhealthy in the list"


def as_the_plugin_says(bench: SocketBench) -> Iterator[str]:
    bench.up()
    told = {d.id.name: d.locality.numa_node for d in bench.devices()}
    for device in bench.listed():
        node = told.get(device.id.partition("::")[0])
        if device.nodes != (() if node is None else (node,)):
            yield f"{device.id} is listed at NUMA nodes {device.nodes}, and is at {node}"


def same_names(bench: SocketBench) -> Iterator[str]:
    bench.up()
    devices = bench.devices()
    names = {d.id.name for d in devices if d.usable}

    def strange() -> set[str]:
        listed = _all_ids(bench)
        # Of a device and its parts only one can be listed: the kubelet knows of no overlaps.
        cut = {d.parent.name for d in devices if d.parent and d.id.name in listed}
        return (listed ^ names) - (cut - listed)

    bench.happens(lambda: not strange())
    for ident in sorted(strange()):
        yield f"{ident} is {'a device' if ident in names else 'listed'} under this name only"


def _all_ids(bench: SocketBench) -> set[str]:
    newest = {e.resource: e.devices for e in bench.sim.seen(Listed)}
    return {d.id.partition("::")[0] for devices in newest.values() for d in devices}


def numa(bench: SocketBench) -> Iterator[str]:
    for device in bench.up():
        strange = [n for n in device.nodes if n not in NUMA_NODES]
        if strange:
            yield f"{device.id} is listed at NUMA node {strange[0]}, which the host does not have"
        if len(device.nodes) > len(set(device.nodes)):
            yield f"{device.id} names a NUMA node twice"


def held(bench: SocketBench) -> Iterator[str]:
    count = len(bench.up())
    pod = bench.do(bench.sim.admit("pod", {bench.resource: count}))
    if pod.message:
        yield f"a pod that wants all {count} devices fails: {pod.message}"
        return
    bench.driver.withdraw_device()
    if not bench.happens(lambda: bench.sick() or len(bench.ids()) < count, 3 * SOON_S):
        yield "a device vanishes, and the list is as before"
    gone = sorted(set(pod.ids()) - set(bench.ids()))
    if gone:
        yield f"{gone[0]} leaves the list while a pod holds it"


def empty(bench: SocketBench) -> Iterator[str]:
    bench.up()
    before = len(bench.registered())
    bench.driver.withdraw_all()
    if not bench.happens(lambda: bench.sim.amounts()[bench.resource][1] == 0, 3 * SOON_S):
        yield f"no device is there, and {bench.sim.amounts()[bench.resource][1]} can be had"
    if bench.sim.seen(StreamEnded, resource=bench.resource):
        yield "no device is there, and it ends its list instead of sending an empty one"
        return
    bench.driver.bring_back()
    if not bench.happens(lambda: bench.sim.amounts()[bench.resource][1] > 0, 3 * SOON_S):
        yield "devices are back, and none can be had"
    if len(bench.registered()) > before:
        yield "it registers anew when devices are back"


def within_limits(bench: SocketBench) -> Iterator[str]:
    listed = bench.up()
    if len(listed) > RESOURCE_IDS_LIMIT:
        yield f"{len(listed)} ids are listed in one resource, more than {RESOURCE_IDS_LIMIT}"
    size = sum(len(d.id.encode()) + _DEVICE_BYTES for d in listed)
    if size > MESSAGE_LIMIT:
        yield f"a list has about {size} bytes"
    for device in listed:
        if len(device.id) > DEVICE_ID_LIMIT:
            yield f"the id {device.id[:20]}... has {len(device.id)} characters"
    ids = [d.id for d in listed]
    yield from (f"{i} is listed twice" for i in sorted({i for i in ids if ids.count(i) > 1}))


def over_restarts(bench: SocketBench) -> Iterator[str]:
    bench.up()
    yield from _broken(bench)
    sick, seen = bench.sick(), len(bench.lists())
    bench.do(bench.sim.restart())
    if not bench.happens(lambda: len(bench.lists()) > seen, 3 * SOON_S):
        yield "no list comes after a restart of the kubelet"
        return
    first = {d.id for d in bench.lists()[seen].devices if not d.healthy}
    for ident in sorted(sick ^ first):
        turned = "healthy" if ident in sick else "unhealthy"
        yield f"{ident} turns {turned} by a restart of the kubelet"


def slow_or_gone(bench: SocketBench) -> Iterator[str]:
    bench.up()
    slow, gone, steady = (bench.watch() for _ in range(3))
    if not bench.happens(lambda: slow.lists and gone.lists and steady.lists):
        yield "of 3 further streams not all get a first list"
        return
    bench.do(slow.pause())
    bench.do(gone.close())
    # Nobody waits in between: a driver may join changes, but not lose the last.
    for _ in range(CHANGES):
        bench.driver.break_device()
        bench.driver.mend_device()
    bench.driver.break_device()
    if not bench.happens(lambda: steady.sick() and bench.sick(), 3 * SOON_S):
        yield "a device is broken for good, and while one reads slowly others are not told"
        return
    bench.do(slow.go_on())
    if not bench.happens(slow.sick, 3 * SOON_S):
        yield "who reads slowly does not get the last state"
        return
    bench.driver.mend_device()
    if not bench.happens(lambda: not (steady.sick() or slow.sick() or bench.sick()), 3 * SOON_S):
        yield "the device is mended, and not all who watch are told"
    for stream in (slow, steady):
        bench.do(stream.close())


CHECKS: tuple[Check[SocketBench], ...] = (
    over_sockets("DP06", "Every stream gets every change.", every_stream, Feature.BREAK),
    over_sockets("DP07", "Streams that are ended leave nothing behind.", cancelled),
    over_sockets(
        "DP08",
        "A device that is not healthy stays listed, until it is mended.",
        stays,
        Feature.BREAK,
    ),
    over_sockets(
        "DP14", "NUMA nodes are listed as the plugin says.", as_the_plugin_says, Feature.TOLD
    ),
    over_sockets(
        "DP17",
        "Without any device it stays registered, and none can be had.",
        empty,
        Feature.EMPTY,
    ),
    over_sockets("DP23", "NUMA nodes are nodes of the host, or are left out.", numa),
    over_sockets("DP24", "A device that a pod holds stays listed.", held, Feature.WITHDRAW),
    over_sockets("DP26", "A list stays within what a kubelet can bear.", within_limits, must=False),
    over_sockets(
        "H08",
        "A restart of the kubelet changes nobody's health.",
        over_restarts,
        Feature.BREAK,
        badges=(Badge.DEVICE_PLUGIN, Badge.HEALTH),
    ),
    over_sockets(
        "H09",
        "Who reads slowly or is gone neither holds up others nor loses the last state.",
        slow_or_gone,
        Feature.BREAK,
        badges=(Badge.DEVICE_PLUGIN, Badge.HEALTH),
    ),
    over_sockets(
        "I07",
        "A device has the same name in lists as everywhere.",
        same_names,
        Feature.TOLD,
        badges=(Badge.DEVICE_PLUGIN, Badge.CORE),
    ),
)

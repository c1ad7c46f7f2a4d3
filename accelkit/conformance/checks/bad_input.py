"""B: what a plugin makes of requests and facts that nobody should meet. Not here: the wire."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product

from accelkit.conformance.bench import PluginBench, Rig, grant
from accelkit.conformance.checks.concurrency import typed
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.doors import Garbage, Noted, Remembered, Swapped
from accelkit.conformance.model import Check, Feature
from accelkit.core.allocation import ContainerEdits, Grant, Granted
from accelkit.core.answers import checked_holdings
from accelkit.core.errors import AccelkitError, PluginContractError
from accelkit.core.model import Device, Evidence, VendorReport
from accelkit.core.reading import grant_edits, read_inventory
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import (
    Signal,
    SupportsDiagnosis,
    SupportsGroups,
    SupportsHolders,
    SupportsLinks,
    SupportsSignals,
)
from accelkit.core.working import needed_settings

RUNS = 40
FEW = 2
"""Units of a machine that is read hundreds of times."""
PATHS = ("../../../etc/passwd", "/../..", "..", "a/../../b")
TEXTS = (
    "", "\0", "\x00rubbish", "-1", "0", "9" * 40, "nan", "0x", "é" * 300, "\ufffd\ufffd", " \n ",
    "x" * 5000, "1e400", "None", "a b c d e f", "0000:00:00.0 FABRIC -3", *PATHS,
)  # fmt: skip
BUGS = frozenset({"plugin-bug", "plugin-contract"})


def gone(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    before = rig.devices()
    rig.do(Feature.REMOVE, rig.units()[1])
    now = {d.id for d in rig.report().devices}
    for device in (d for d in before if d.id not in now and d.usable):
        try:
            grant_edits(rig.vendor, rig.door, grant((device,)))
        except AccelkitError as error:
            if error.code in BUGS:
                yield f"{device.id} is gone, and edits of it are no typed refusal: {error}"
        else:
            yield f"{device.id} is gone, and is handed out all the same"
        reading = rig.reading((device,))
        yield from (
            f"{i} is gone, and asking how it is fails in no typed way: {problem.reason}"
            for i, problem in reading.failed.items()
            if problem.code in BUGS
        )


def degenerate(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    device = next(d for d in rig.devices() if d.usable)
    yield from typed(lambda: grant_edits(rig.vendor, rig.door, grant(())), "edits of nothing")
    twice = Grant(
        owner="conformance",
        granted=tuple(Granted(device=device, share=share) for share in ("0", "1")),
    )
    alone = grant_edits(rig.vendor, rig.door, grant((device,))).each
    if grant_edits(rig.vendor, rig.door, twice).each != alone:
        yield f"{device.id} has other edits when two shares of it are granted"
    vendor = rig.vendor
    if isinstance(vendor, SupportsLinks):
        yield from typed(lambda: list(vendor.links(rig.door, ())), "links of nothing")
    if isinstance(vendor, SupportsGroups):
        yield from typed(lambda: list(vendor.groups(())), "groups of nothing")
    if isinstance(vendor, SupportsHolders):
        for devices in ((), rig.devices()):
            yield from typed(
                lambda devices=devices: checked_holdings(  # type: ignore[misc]  # mypy#7464
                    vendor, vendor.holders(rig.door, devices)
                ),
                f"holders of {len(devices)} devices",
            )
    if isinstance(vendor, SupportsDiagnosis):
        for host in (rig.door, bench.nothing()):
            yield from typed(lambda host=host: list(vendor.diagnose(host)), "diagnosis")  # type: ignore[misc]  # mypy#7464


def amounts(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    device = next(d for d in rig.devices() if d.usable)
    for amount in (-1, 0, 2**63, 10**30):
        named = FrozenMap(dict.fromkeys({*device.capacity, "memory", "nothing"}, amount))
        asked = Grant(owner="conformance", granted=(Granted(device=device, amounts=named),))
        yield from typed(
            lambda asked=asked: grant_edits(rig.vendor, rig.door, asked),  # type: ignore[misc]  # mypy#7464
            f"edits for amounts of {amount}",
        )
        yield from typed(
            lambda asked=asked: needed_settings(rig.vendor, rig.door, asked),  # type: ignore[misc]  # mypy#7464
            f"settings for amounts of {amount}",
        )


def strange_texts(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    device = next(d for d in rig.devices() if d.usable)
    for text in ("ü" * 300, "\U0001f525", "", "x" * 5000):
        asked = Grant(
            owner=text, granted=(Granted(device=device, share=text, request=text),), config=text
        )
        yield from typed(
            lambda asked=asked: grant_edits(rig.vendor, rig.door, asked),  # type: ignore[misc]  # mypy#7464
            f"edits for the name {text[:12]!r}",
        )


def no_traversal(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig(count=FEW)
    same = Remembered(rig.door)
    for file, text in product(_files(rig), PATHS):
        devices = read_inventory(rig.vendor, Swapped(same, file, text)).devices
        yield from (
            f"{d.id} names the file {n.on_host}"
            for d in devices
            for n in d.nodes
            if ".." in (n.on_host + n.path).split("/")
        )
    for device in rig.devices()[:1]:
        edits = grant_edits(rig.vendor, rig.door, grant((device,), owner=PATHS[0]))
        yield from _leaving(device, edits.each[device.id])
        yield from _leaving(device, edits.whole)


def _files(rig: Rig) -> dict[str, str]:
    """Names of the files that the plugin reads, each with the path of one of them."""
    noted = Noted(rig.door)
    rig.reading(read_inventory(rig.vendor, noted).devices, door=noted)
    return {path.rpartition("/")[2]: path for path in sorted(noted.files)}


def _leaving(device: Device, edits: ContainerEdits) -> Iterator[str]:
    hosts = [n.on_host for n in edits.nodes] + [m.host_path for m in edits.mounts]
    yield from (f"{device.id} needs {path}" for path in hosts if ".." in path.split("/"))


def rubbish(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig(count=FEW)
    devices, same = rig.devices(), Remembered(rig.door)
    found: dict[str, None] = {}
    for run in range(RUNS):
        rng = random.Random(bench.seed * 1000 + run)  # noqa: S311 - a check repeats with its seed
        door = Garbage(same, rng, TEXTS, (0.05, 0.3, 1.0)[run % 3])
        vendor = bench.plugin()
        # With everything in disorder devices may well look alike: that is no crash.
        bugs = _bugs(read_inventory(vendor, door))
        found |= dict.fromkeys(b for b in bugs if PluginContractError.__name__ not in b)
        failed = rig.reading(devices, vendor=vendor, door=door).failed.values()
        found |= {f"conditions: {p.reason}": None for p in failed if p.code in BUGS}
    for file, text in product(_files(rig).values(), TEXTS):
        swapped = Swapped(same, file, text)
        found |= dict.fromkeys(_bugs(read_inventory(rig.vendor, swapped)))
        failed = rig.reading(devices[:1], door=swapped).failed.values()
        found |= {f"conditions: {p.reason}": None for p in failed if p.code in BUGS}
    yield from list(found)[:10]


def _bugs(report: VendorReport) -> Iterator[str]:
    for problem in report.problems:
        if problem.code in BUGS:
            yield f"{problem.subject or 'discovery'}: {problem.reason}"


def future(bench: PluginBench) -> Iterator[str]:
    rig = bench.rig()
    devices = rig.devices()
    yield from _future_evidence(rig, devices)
    vendor = rig.vendor
    if isinstance(vendor, SupportsSignals):
        for signal in (
            Signal(source="kernel", text="a line that nobody has written yet: 4711"),
            Signal(source="uevent", subject="/devices/none", fields=FrozenMap({"ACTION": "sing"})),
            Signal(source="something-new"),
        ):
            try:
                heard = list(vendor.interpret(signal))
            except Exception as error:  # noqa: BLE001 - a plugin may raise anything
                yield f"a signal that is not known yet: {type(error).__name__}: {error}"
                continue
            if heard:
                yield f"a {signal.source} signal that nobody knows is taken for {heard[0].code}"


def _future_evidence(rig: Rig, devices: tuple[Device, ...]) -> Iterator[str]:
    now = datetime.now(UTC)
    strange = Evidence(
        vendor=rig.vendor.name, subject="", code="not-known-yet", source="a-new-source",
        count=1, first=now, last=now, data=FrozenMap({"colour": "green", "number": "many"}),
    )  # fmt: skip
    reading = rig.reading(devices, (strange,))
    for i, problem in list(reading.failed.items())[:1]:
        yield f"evidence of a code that is not known yet, {i}: {problem.reason}"
    verdicts = rig.verdicts(devices, reading)
    before = rig.verdicts(devices, rig.reading(devices))
    for i in sorted(verdicts):
        if verdicts[i].health is not before[i].health:
            yield f"{i} changes its health by evidence of a code that is not known yet"


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process("B01", "A device that is gone is refused in a typed way.", gone, Feature.REMOVE),
    in_process("B02", "Empty and repeated requests are answered.", degenerate),
    in_process("B05", "Negative, zero and huge amounts are answered or refused.", amounts),
    in_process("B06", "Long, empty and foreign texts are answered or refused.", strange_texts),
    in_process("B07", "No text becomes a path that leaves its folder.", no_traversal),
    in_process("B08", "Rubbish in files and libraries never crashes the plugin.", rubbish),
    in_process(
        "B09", "Evidence and signals of kinds that are not known yet change nothing.", future
    ),
)

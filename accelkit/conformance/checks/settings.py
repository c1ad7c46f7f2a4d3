"""L: settings that claims need of hardware. Not here: who needs which, which is the plugin's."""

from collections.abc import Iterator

from accelkit.conformance.bench import PluginBench, Rig, told
from accelkit.conformance.checks.life import of_claim, prepare, release
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import left_over
from accelkit.conformance.doors import Shuffled, Watched
from accelkit.conformance.keeping import KEPT, Seen, seen_of
from accelkit.conformance.kinds import grant_for, node_of, setting
from accelkit.conformance.model import Check, Feature, Unanswered
from accelkit.core.allocation import Setting
from accelkit.core.errors import AccelkitError
from accelkit.core.model import Device
from accelkit.core.policy import Sharing
from accelkit.core.vendor import SupportsPreparation, Vendor
from accelkit.core.working import apply_setting, needed_settings, revert_setting


def inverse(bench: PluginBench) -> Iterator[str]:
    kind = setting(bench)
    rig = bench.rigged(bench.machine(kind.way, count=1))
    device = next(d for d in rig.devices() if d.id == kind.device)
    assert kind.body is not None
    grant = grant_for(bench, device, kind.body)
    watched = Watched(rig.host)
    settings = needed_settings(rig.vendor, watched, grant)
    yield from (f"needs writes to {path}" for path in watched.written)
    shuffled = Shuffled(rig.door, bench.rng)
    for vendor, door in ((rig.vendor, rig.door), (bench.plugin(), shuffled)):
        if needed_settings(vendor, door, grant) != settings:
            yield f"{device.id} needs other settings when it is asked again"
    yield from _applied(rig, device, settings)


def _applied(rig: Rig, device: Device, settings: tuple[Setting, ...]) -> Iterator[str]:
    what = f"{device.id}, {', '.join(f'{s.key} {s.value}' for s in settings)}"
    before = _seen(rig)
    _call(rig, rig.vendor, settings, apply=True)
    applied = _seen(rig)
    if applied == before:
        yield f"{what}: nothing shows that it was applied"
    _call(rig, rig.bench.plugin(), settings, apply=True)
    yield from told(f"{what} is applied again", left_over(applied, _seen(rig)))
    for again in ("reverted", "reverted again"):
        _call(rig, rig.bench.plugin(), settings[::-1], apply=False)
        yield from told(f"{what} is {again}", left_over(before, _seen(rig)))


def _seen(rig: Rig) -> Seen:
    assert rig.directory is not None
    return seen_of(rig.directory)


def _call(rig: Rig, vendor: Vendor, settings: tuple[Setting, ...], *, apply: bool) -> None:
    for one in settings:
        try:
            (apply_setting if apply else revert_setting)(vendor, rig.host, one)
        except AccelkitError as error:
            done = "applied" if apply else "reverted"
            raise Unanswered(
                f"{one.device}: {one.key} {one.value} is not {done}: {error}"
            ) from error


def shared(bench: PluginBench) -> Iterator[str]:
    kind = setting(bench)
    node = node_of(bench, kind, sharing=Sharing(shares=2), settled=True)
    first, second = kind.claim("1", share="11111111-0"), kind.claim("2", share="22222222-0")
    before = node.seen()
    prepare(node, first)
    alone = _hardware(node.seen())
    prepare(node, second)
    prepare(node, first)
    yield from of_claim(
        kind, told("a second one joins it", left_over(alone, _hardware(node.seen())))
    )
    release(node, first)
    yield from of_claim(
        kind, told("the first of two is given back", left_over(alone, _hardware(node.seen())))
    )
    release(node, second)
    yield from of_claim(kind, told("both are given back", left_over(before, node.seen())))


def _hardware(seen: Seen) -> Seen:
    """What is on the machine."""
    return {path: content for path, content in seen.items() if not path.startswith(KEPT)}


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "L09",
        "What claims share is set up by the first and undone by the last.",
        shared,
        SupportsPreparation,
        Feature.MACHINE,
    ),
    in_process(
        "L12",
        "The same is needed each time, and what is applied is reverted.",
        inverse,
        SupportsPreparation,
        Feature.MACHINE,
    ),
)

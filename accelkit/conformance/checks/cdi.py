"""CD: files of the Container Device Interface that go with claims. Not here: which claims."""

from collections.abc import Iterator
from pathlib import Path

from accelkit.conformance.checks.claims import two_of
from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.claims_bench import ClaimsBench
from accelkit.conformance.inotify import Written
from accelkit.conformance.model import Check, Feature, Inapplicable, Unanswered
from accelkit.conformance.setups import Setup
from accelkit.conformance.sims.dra import specs
from accelkit.conformance.sims.dra.cdi import SUFFIXES, Unresolvable, read_specs
from accelkit.conformance.sims.dra.events import PreparedDevice
from accelkit.conformance.stage import Stage
from accelkit.conformance.staged import SOON_S
from accelkit.core.allocation import ClaimRef

TIMES = 20
ORPHAN = "00000000-0000-4000-8000-0000000000ff"
"""The uid of a claim that never was."""
ORPHANED_S = 30.0
"""Until files of no claim are removed."""
NEIGHBOUR = """{"cdiVersion": "0.3.0", "kind": "neighbour.test/x", "devices":
 [{"name": "a", "containerEdits": {"env": ["NEIGHBOUR=1"]}}]}
"""


def _resolvable(bench: ClaimsBench, devices: tuple[PreparedDevice, ...]) -> bool:
    try:
        bench.injected(devices)
    except Unresolvable:
        return False
    return True


def valid(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    bench.prepared(bench.claim(devices[0]))
    if len(devices) > len(("alone", "one", "other")):
        bench.prepared(bench.claim(*devices[2:4]))
    files = read_specs([bench.cdi])
    if not files:
        raise Inapplicable("it writes no CDI file for a claim")
    for spec in files:
        yield from (f"{spec.path.name}: {fault}" for fault in spec.faults)
        said, least = str(spec.tree.get("cdiVersion")), specs.needed(spec.tree)
        if not spec.faults and said.removeprefix("v") != least:
            yield f"{spec.path.name} has version {said}, which older runtimes refuse; {least} does"


def in_one_step(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    bench.cdi.mkdir(parents=True, exist_ok=True)
    with Written(bench.cdi) as written:
        for _ in range(TIMES):
            bench.prepared(ref)
            bench.unprepare(ref)
        names = sorted(name for name in written.names() if Path(name).suffix in SUFFIXES)
    if names:
        yield f"{names[0]} is written under its name, so that a runtime may read half of it"


def names(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    seen: dict[str, ClaimRef] = {}
    for _ in range(2):
        ref = bench.claim(device)
        for name in {name for one in bench.prepared(ref) for name in one.cdi}:
            if name in seen:
                yield f"{name} is given to two claims, and runtimes may remember what it was"
            seen[name] = ref
            kind, equals, own = name.partition("=")
            if not (equals and "/" in kind and specs.is_device_name(own)):
                yield f"{name!r} is no name of a CDI device"
        bench.unprepare(ref)


def before_the_answer(bench: ClaimsBench) -> Iterator[str]:
    for device in bench.up():
        found = bench.prepared(bench.claim(device))
        try:
            bench.injected(found)
        except Unresolvable as error:
            yield f"a claim is answered, and a container cannot be made: {error}"


def made_again(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    found = bench.prepared(ref)
    files = bench.files_of(ref)
    if not files:
        raise Inapplicable("it writes no CDI file for a claim")
    for file in files:
        file.unlink()
    if bench.prepared(ref) != found:
        yield "when CDI files are gone a claim is answered otherwise"
    if not _resolvable(bench, found):
        yield "when CDI files are gone a claim is answered, and its file is not there"


def by_itself(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    found = bench.prepared(ref)
    files = bench.files_of(ref)
    if not files:
        raise Inapplicable("it writes no CDI file for a claim")
    for file in files:
        file.unlink()
    if not bench.happens(lambda: _resolvable(bench, found), SOON_S):
        yield f"{files[0].name} vanishes and is not made again: no container can be restarted"


def cleaned(bench: ClaimsBench) -> Iterator[str]:
    device = bench.up()[0]
    ref = bench.claim(device)
    bench.cdi.mkdir(parents=True, exist_ok=True)
    neighbour = bench.cdi / "neighbour.test-x.json"
    neighbour.write_text(NEIGHBOUR, "utf-8")
    bench.later(lambda: neighbour.unlink(missing_ok=True))
    bench.prepared(ref)
    orphans = [file.with_name(file.name.replace(ref.uid, ORPHAN)) for file in bench.files_of(ref)]
    orphans = [path for path in orphans if ORPHAN in path.name]
    for path, file in zip(orphans, bench.files_of(ref), strict=False):
        path.write_text(file.read_text("utf-8").replace(ref.uid, ORPHAN), "utf-8")
        bench.later(lambda path=path: path.unlink(missing_ok=True))  # type: ignore[misc]  # mypy#7464
    bench.unprepare(ref)
    if bench.files_of(ref):
        yield f"{bench.files_of(ref)[0].name} is left when its claim was given back"
    bench.restart()
    if not bench.happens(lambda: not any(path.exists() for path in orphans), ORPHANED_S):
        yield f"{orphans[0].name}, the file of a claim that never was, stays for ever"
    if not neighbour.exists() or neighbour.read_text("utf-8") != NEIGHBOUR:
        yield "it changes or removes the file of somebody else"


def own_devices(bench: ClaimsBench) -> Iterator[str]:
    mine, _ = two_of(bench.up())
    told = {
        device.id.name: {node.path for node in device.nodes} for device in bench.driver.devices()
    }
    if not told.get(mine.name):
        raise Inapplicable(f"nobody says which device files {mine.name} has")
    inside = {path for path, _ in bench.injected(bench.prepared(bench.claim(mine))).nodes}
    others = set().union(*told.values()) - told[mine.name]
    for path in sorted(inside & others):
        yield f"a claim for {mine.name} gives a container {path} of another device"
    for path in sorted(told[mine.name] - inside):
        yield f"a claim for {mine.name} does not give a container its {path}"


def there(bench: ClaimsBench) -> Iterator[str]:
    for device in bench.up():
        found = bench.injected(bench.prepared(bench.claim(device)))
        paths = [host for _, host in (*found.nodes, *found.mounts)] + list(found.hooks)
        missing = sorted(path for path in set(paths) if not Path(path).exists())
        yield from (f"{path} is given to a container, and is not there" for path in missing)


def together(bench: ClaimsBench) -> Iterator[str]:
    found = bench.injected(bench.prepared(bench.claim(*two_of(bench.up()))))
    yield from (f"in a claim with two devices {clash}" for clash in found.clashes)


def without_directory(bench: ClaimsBench) -> Iterator[str]:
    bench.spoil()
    stage = Stage(bench.subject, Setup(), bench.seed, bench.scale)
    assert stage.cdi is not None
    if stage.cdi.is_dir() and not any(stage.cdi.iterdir()):
        stage.cdi.rmdir()
    if stage.cdi.exists():
        stage.close()
        raise Inapplicable(f"{stage.cdi} has files of others in it")
    found = bench.prepared(bench.claim(bench.enter(stage)[0]))
    if not _resolvable(bench, found):
        yield "where its CDI directory is missing, a claim is answered without a file"


def full(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    bench.cdi.mkdir(parents=True, exist_ok=True)
    if any(bench.cdi.iterdir()):
        raise Unanswered(f"{bench.cdi} has files in it before anything was prepared")
    bench.cdi.rmdir()
    bench.cdi.write_text("", "utf-8")
    try:
        if bench.attempt(ref, SOON_S) is not None:
            yield "no CDI file can be written, and a claim is answered as if it were"
    finally:
        bench.cdi.unlink(missing_ok=True)
        bench.cdi.mkdir(exist_ok=True)
    found = bench.prepared(ref)
    if not _resolvable(bench, found):
        yield "when CDI files can be written again, a claim is answered without one"


CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims(
        "CD01", "CDI files are valid, and of the lowest version that will do.", valid, Feature.CDI
    ),
    with_claims("CD02", "Nobody can read half of a CDI file.", in_one_step, Feature.CDI),
    with_claims("CD03", "CDI names are valid and never used again.", names),
    with_claims("CD04", "CDI files are there before the answer.", before_the_answer, Feature.CDI),
    with_claims(
        "CD05", "A claim that is asked for again has its CDI file again.", made_again, Feature.CDI
    ),
    with_claims(
        "CD06",
        "CDI files go with their claims, and those of others stay.",
        cleaned,
        Feature.CDI,
        Feature.RESTART,
    ),
    with_claims(
        "CD07",
        "A claim gives a container its own devices, and no others.",
        own_devices,
        Feature.CDI,
        Feature.TOLD,
    ),
    with_claims("CD08", "What a container is given is there on the host.", there, Feature.CDI),
    with_claims("CD09", "Devices of a claim go together in a container.", together, Feature.CDI),
    with_claims(
        "CD10",
        "A CDI directory that is missing is made.",
        without_directory,
        Feature.CDI,
        must=False,
    ),
    with_claims("CD11", "A CDI file that cannot be written fails its claim.", full, Feature.CDI),
    with_claims(
        "CD12", "A CDI file that vanishes is made again by itself.", by_itself, Feature.CDI
    ),
)

"""Makes a capture: asks vendors everything that may be asked. Not here: how it is kept."""

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import attrs

from accelkit.core.errors import ConfigError, NotThere, SourceError
from accelkit.core.host import BOOT_ID, Host, ReadOnly
from accelkit.core.model import VendorReport
from accelkit.core.policy import Offer
from accelkit.core.reading import device_edits, read_conditions, read_inventory
from accelkit.core.vendor import SupportsDiagnosis, SupportsHolders, SupportsTelemetry, Vendor
from accelkit.testing.captures.kernel import patterns_of, read_log
from accelkit.testing.captures.layout import FORMAT, LOG, NAME, UNFINISHED
from accelkit.testing.captures.masking import mask_folder
from accelkit.testing.captures.recording import Keeper, RecordingHost

_TERMS = Offer(name="capture")


@attrs.frozen
class Captured:
    """What came of it."""

    devices: int
    problems: tuple[str, ...]


def capture(
    host: Host, vendors: Sequence[Vendor], folder: Path, now: datetime, *, mask: bool
) -> Captured:
    """Keep in *folder* what *vendors* read of *host*, each call once.

    Args:
        host: Is not changed.
        vendors: Those whose hardware is there.
        folder: Is made; may be there if it is empty.
        now: When.
        mask: Replace what names cards, the host and its owner, everywhere by the same others.

    Raises:
        ConfigError: Something is in *folder*, or it cannot be written; it is no host then.
    """
    try:
        return _capture(host, vendors, folder, now, mask=mask)
    except OSError as error:
        text = f"the capture cannot be kept in {folder}: {error.strerror or error}"
        remedy = "make room or name another directory, and remove what is there of this one"
        raise ConfigError([("OUT", text)], remedy=remedy) from error


def _capture(
    host: Host, vendors: Sequence[Vendor], folder: Path, now: datetime, *, mask: bool
) -> Captured:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        text = f"{folder} is not empty"
        raise ConfigError([("OUT", text)], remedy="name a directory that is not there yet")
    _tell(folder, {"format": UNFINISHED})
    keeper = Keeper(folder)
    door = RecordingHost(host, keeper)
    door.exists(BOOT_ID)
    found = [ask(vendor, door) for vendor in vendors]
    problems = [f"{p.vendor} {p.subject or ''}: {p.reason}" for r in found for p in r.problems]
    problems += _keep_log(host, vendors, folder)
    if keeper.wrong is not None:
        raise keeper.wrong
    told: dict[str, object] = {
        "format": FORMAT,
        "date": now.isoformat(),
        "kernel": platform.release() if host.live else "simulated",
        "vendors": sorted(vendor.name for vendor in vendors),
        "masked": mask,
        "nodes": dict(sorted(keeper.nodes.items())),
        "libraries": dict(sorted(keeper.libraries.items())),
        "modules": dict(sorted(keeper.modules.items())),
    }
    if mask:
        _tell(folder, {**told, "format": UNFINISHED})
        name = platform.node() if host.live else ""
        mask_folder(folder, [device for report in found for device in report.devices], name)
        told = {**json.loads((folder / NAME).read_text(encoding="utf-8")), "format": FORMAT}
    _tell(folder, told)
    return Captured(sum(len(report.devices) for report in found), tuple(problems))


def _keep_log(host: Host, vendors: Sequence[Vendor], folder: Path) -> Iterator[str]:
    """Keep what the kernel's log has of the vendors; what is wrong with it, if anything."""
    try:
        (folder / LOG).write_bytes(read_log(host, patterns_of(vendors)))
    except NotThere:
        return
    except SourceError as error:
        yield f"kernel log: {error}"


def _tell(folder: Path, told: Mapping[str, object]) -> None:
    (folder / NAME).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def ask(vendor: Vendor, host: Host) -> VendorReport:
    """What *vendor* found; what it cannot tell is kept as such."""
    door = ReadOnly(host)
    report = read_inventory(vendor, door)
    read_conditions(vendor, door, report.devices, ())
    for device in report.devices:
        if device.usable:
            _try(lambda device=device: device_edits(vendor, door, device, _TERMS))  # type: ignore[misc]  # of each device
    if isinstance(vendor, SupportsHolders):
        _try(lambda: _all(vendor.holders(door, report.devices)))
    if isinstance(vendor, SupportsTelemetry):
        _try(lambda: _all(vendor.samples(door, report.devices)))
    if isinstance(vendor, SupportsDiagnosis):
        _try(lambda: _all(vendor.diagnose(door)))
    return report


def _all(answer: Iterable[object]) -> tuple[object, ...]:
    return tuple(answer)


def _try(call: Callable[[], object]) -> None:
    try:
        call()
    except Exception:  # noqa: BLE001 - what it read until then is what matters
        return

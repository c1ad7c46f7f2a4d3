"""How many physical cores are one logical core, for the whole host. Not here: what follows."""

from collections.abc import Callable, Collection

from accelkit import Device, Host, ModeBusy, NotThere, PartitionError, SourceError
from accelkit.vendors.neuron import facts

VALUES = (1, 2)
"""Source: Neuron documentation, logical NeuronCore configuration."""
MODES = {f"lnc{value}": value for value in VALUES}
"""By the name of the mode, which is that of its partitions, too."""
_MOST = 1 << 16


def mode_of(lnc: int) -> str:
    return f"lnc{lnc}"


def read_lnc(host: Host) -> int:
    """What the host is set to: the last line of the file that says so, or else the default.

    Raises:
        SourceError: It cannot be read, says something else than 1 or 2, or is cut off.
    """
    try:
        text = host.read(facts.LNC_FILE, _MOST)
    except NotThere:
        return facts.LNC_DEFAULT
    lines = [line.strip() for line in text.splitlines()]
    # What is cut off may have been the setting.
    cut = next((line for line in lines if line and line[0] != "#" and "=" not in line), None)
    if cut is not None:
        raise _no_setting(f"{cut[:40]!r} is no setting")
    said = [
        value.strip().strip("\"'")
        for name, _, value in (line.partition("=") for line in lines)
        if name.strip() == facts.LNC_VARIABLE
    ]
    if not said:
        return facts.LNC_DEFAULT
    if said[-1] not in {str(value) for value in VALUES}:
        raise _no_setting(f"{facts.LNC_VARIABLE} is {said[-1][:40]!r}, not 1 or 2")
    return int(said[-1])


def _no_setting(what: str) -> SourceError:
    return SourceError(
        f"{facts.LNC_FILE}: {what}",
        remedy=f"write {facts.LNC_VARIABLE}={facts.LNC_DEFAULT} into it",
    )


def set_mode(
    host: Host, device: Device, mode: str, who_has_chips: Callable[[], Collection[str]]
) -> None:
    """Return when the file says *mode*, which is that of every chip of the host.

    Nothing in the hardware changes: what runs goes on with the cores that it began with, and
    containers see the file. So it is set only while nobody has a chip.

    Args:
        host: The door.
        device: One of the chips.
        mode: One of MODES.
        who_has_chips: Answers the processes that have a chip open.

    Raises:
        ModeBusy: Somebody has a chip.
        PartitionError: The chip has no such mode, or the file is not there.
    """
    if mode not in {known.name for known in device.modes}:
        known = " and ".join(m.name for m in device.modes) or "none"
        raise PartitionError(
            f"{device.id} has no mode {mode}; its modes: {known}", device=str(device.id)
        )
    if mode not in MODES or mode_of(read_lnc(host)) == mode:
        return
    if pids := sorted(who_has_chips(), key=int):
        raise ModeBusy(
            f"{device.id} cannot come into mode {mode} now: the mode is that of all chips, "
            f"and processes {', '.join(pids[:8])} have some",
            device=str(device.id),
            remedy="end what uses chips of this node; monitoring agents open them, too",
        )
    try:
        host.write(facts.LNC_FILE, f"{facts.LNC_VARIABLE}={MODES[mode]}\n")
    except NotThere as error:
        raise PartitionError(
            f"{device.id} cannot come into mode {mode}: {facts.LNC_FILE} is not there",
            device=str(device.id),
            remedy=f"make it, empty: mkdir -p /opt/aws/neuron && touch {facts.LNC_FILE}",
        ) from error
    if mode_of(read_lnc(host)) != mode:
        raise PartitionError(
            f"{device.id} is not in mode {mode}: {facts.LNC_FILE} was written and says otherwise",
            device=str(device.id),
            remedy="look who else writes it",
        )

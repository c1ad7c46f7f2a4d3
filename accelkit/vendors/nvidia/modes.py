"""The MIG mode of a GPU, set where that disturbs nobody. Not here: partitions."""

import time

from accelkit import Device, ModeBusy, NeedsReset, PartitionError, SourceError, StartOver
from accelkit.vendors.nvidia import facts, mig
from accelkit.vendors.nvidia.card import Card, card_of, handle_of
from accelkit.vendors.nvidia.holders import pids_of
from accelkit.vendors.nvidia.nvml import Nvml, NvmlError
from accelkit.vendors.nvidia.reading import can_change_mode

REACHED_S = 45.0
"""How long the driver may take; the GPU may vanish meanwhile."""
_PAUSE_S = 0.05
_SWITCH = {mig.MIG: 1, mig.WHOLE: 0}


def set_mode(nvml: Nvml, device: Device, mode: str, patience_s: float = REACHED_S) -> None:
    """Return when the driver shows *device* in *mode*; at once if it is.

    Raises:
        NeedsReset: Only a reset would do it, which is not even asked for: on Ampere the driver
            would make it, and where it cannot, the GPU would be left without a mode.
        ModeBusy: It has partitions, or somebody uses it.
        PartitionError: It has no such mode, or did not come into it.
    """
    card, wanted = card_of(nvml, device), _SWITCH.get(mode)
    current = nvml.maybe("nvmlDeviceGetMigMode", card.handle)
    if wanted is None or current is None:
        known = " and ".join(_SWITCH) if current is not None else "none"
        raise PartitionError(
            f"{card.name} has no mode {mode}; its modes: {known}", device=card.name
        )
    if current[0] == wanted:
        return
    if not can_change_mode(nvml, card.handle):
        raise _needs_reset(card, mode)
    _refuse_if_busy(card, mode)
    _switch(card, mode, wanted, current[0])
    _wait(nvml, device, mode, patience_s)


def _needs_reset(card: Card, mode: str) -> NeedsReset:
    switch = _SWITCH[mode]
    return NeedsReset(
        f"{card.name} comes into mode {mode} only with a reset",
        device=card.name,
        remedy=f"drain the node, then: nvidia-smi -mig {switch}, and reset the GPU or reboot",
    )


def _refuse_if_busy(card: Card, mode: str) -> None:
    cut = card.all() if mode == mig.WHOLE else ()
    who = [f"partition {i.profile} at slot {i.start}" for i in cut]
    who += [f"process {pid}" for pid in sorted(pids_of(card.nvml, card.handle))]
    if who:
        raise _busy(card, mode, f"it has {', '.join(who)}")


def _busy(card: Card, mode: str, why: str) -> ModeBusy:
    return ModeBusy(
        f"{card.name} cannot come into mode {mode} now: {why}",
        device=card.name,
        remedy="end what uses it; monitoring agents and persistenced hold GPUs, too",
    )


def _switch(card: Card, mode: str, wanted: int, before: int) -> None:
    try:
        # Whether the mode is set is one answer, whether it has come is another.
        status = card.nvml.ask("nvmlDeviceSetMigMode", card.handle, wanted)
    except NvmlError as error:
        status = error.value
        if status not in {facts.IN_USE, facts.RESET_REQUIRED, facts.NOT_SUPPORTED}:
            raise
    if status == 0:
        return
    _take_back(card, before)
    if status == facts.IN_USE:
        raise _busy(card, mode, "somebody uses it whom no list of processes shows")
    if status == facts.RESET_REQUIRED:
        raise _needs_reset(card, mode)
    words = facts.ERRORS.get(status, "unknown")
    raise PartitionError(
        f"{card.name} did not come into mode {mode}: {status} ({words})",
        device=card.name,
        remedy=facts.KERNEL_LOG,
    )


def _take_back(card: Card, before: int) -> None:
    """Let no other mode be pending: it would come with the next reset, whoever makes that."""
    try:
        card.nvml.ask("nvmlDeviceSetMigMode", card.handle, before)
    except SourceError:  # the refusal that is raised says more
        return


def _is_in(nvml: Nvml, device: Device, wanted: int) -> bool:
    try:
        current = nvml.ask("nvmlDeviceGetMigMode", handle_of(nvml, device))
    except StartOver:
        raise
    except NvmlError as error:
        if error.value == facts.GPU_IS_LOST:
            nvml.drop()  # a session does not see a GPU again that was away
        return False
    return bool(current[0] == wanted)


def _wait(nvml: Nvml, device: Device, mode: str, patience_s: float) -> None:
    end = time.monotonic() + patience_s
    while not _is_in(nvml, device, _SWITCH[mode]):
        if time.monotonic() >= end:
            raise PartitionError(
                f"{device.root} is not in mode {mode} {patience_s:g} s after the driver said so",
                device=str(device.root),
                remedy=facts.KERNEL_LOG,
            )
        time.sleep(_PAUSE_S)

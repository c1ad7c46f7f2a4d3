"""What keeps chips from being served, in words. Reads only."""

from collections.abc import Iterator, Mapping

from accelkit import DeviceId, Finding, Host, SourceError, file_finding
from accelkit.vendors.tpu.chips import Chip, Unready, nodes_of, shared_nodes
from accelkit.vendors.tpu.discovery import Inventory, name_of
from accelkit.vendors.tpu.facts import TPU_ENV
from accelkit.vendors.tpu.slices import there


def diagnose(host: Host, here: Inventory, strangers: Mapping[DeviceId, str]) -> Iterator[Finding]:
    """All that is wrong, the cause before what follows from it.

    Args:
        host: The door.
        here: What is on it.
        strangers: Who has chips open and is in no pod.
    """
    if not here.chips:
        yield Finding(
            symptom="no TPU is offered",
            suspect="hardware",
            proof="no PCI function of vendor 0x1ae0 with the id of a TPU is in sysfs",
            remedy="check that the machine has TPUs and that the agent sees the host's /sys",
        )
        return
    for chip in here.chips:
        yield from _chip(host, chip)
    yield from _slice(here)
    for device, who in sorted(strangers.items()):
        yield Finding(
            symptom=f"{device.name} is busy for every pod",
            suspect=who,
            proof=f"{who} has its device file open and is in no pod",
            remedy="end it: a chip is opened by one process only",
            sure=True,
        )


def _chip(host: Host, chip: Chip) -> Iterator[Finding]:
    try:
        nodes = nodes_of(host, chip)
    except Unready as error:
        yield Finding(
            symptom=f"{name_of(chip)} is not offered",
            suspect="the virtual machine's image or its driver",
            proof=str(error),
            remedy=error.remedy,
            sure=error.code == "driver-not-ready",
        )
        return
    except SourceError as error:
        yield Finding(
            symptom=f"{name_of(chip)} is not offered",
            suspect="sysfs",
            proof=str(error),
            remedy=error.remedy or "check what the agent may read",
        )
        return
    for path in (*shared_nodes(chip), *nodes):
        yield from _node(host, chip, path)


def _node(host: Host, chip: Chip, path: str) -> Iterator[Finding]:
    finding = file_finding(
        host,
        path,
        f"containers cannot use {name_of(chip)}",
        users="TPUs",
        missing="a restart of the virtual machine seldom brings it back: make a new one",
        closed="let udev give it mode 0666, or run the containers as root",
    )
    if finding is not None:
        yield finding


def _slice(here: Inventory) -> Iterator[Finding]:
    if here.slice is None:
        yield Finding(
            symptom="no TPU is offered",
            suspect=TPU_ENV,
            proof=here.unknown,
            remedy="set topology, and chipsPerHost if need be, in the options of the vendor",
            sure=True,
        )
    elif not here.complete:
        yield Finding(
            symptom="only single chips can be used, or none",
            suspect="chips that are missing, or " + TPU_ENV,
            proof=f"{there(len(here.chips))}, and a host should have {here.slice.chips}",
            remedy="see the kernel log; if chips are gone, make a new virtual machine",
        )

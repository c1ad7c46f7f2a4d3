"""What keeps chips from being served, in words. Reads only; works without the driver."""

from collections.abc import Iterator, Sequence

from accelkit import (
    AccessDenied,
    Finding,
    Host,
    NotThere,
    PciFunction,
    SourceError,
    Unreadable,
    file_finding,
)
from accelkit.vendors.neuron import chips, facts, lnc, places


def diagnose(host: Host, functions: Sequence[PciFunction], tool: str) -> Iterator[Finding]:
    """All that is wrong, the cause before what follows from it."""
    indices = chips.indices(host)
    if not functions and not indices:
        yield Finding(
            symptom="no Neuron chip is offered",
            suspect="hardware",
            proof="no PCI function of vendor 0x1d0f and a known device id is in sysfs",
            remedy="check that the instance has chips and that the agent sees the host's /sys",
        )
        return
    yield from _driver(host, functions, indices)
    yield from _rights(host, indices)
    for chip in chips.read_chips(host):
        if isinstance(chip, Unreadable):
            yield Finding(
                symptom=f"{chip.subject} is not offered",
                suspect="the chip",
                proof=chip.reason,
                remedy=chip.remedy,
            )
    for index in indices:
        yield from _node(host, index)
    yield from _logical_cores(host)
    if len(indices) > 1:
        yield from _places(host, functions, tool)


def _driver(
    host: Host, functions: Sequence[PciFunction], indices: Sequence[int]
) -> Iterator[Finding]:
    given = functions and all(f.driver not in (None, facts.DRIVER) for f in functions)
    # Where other drivers have all chips nobody needs this one.
    if not given and not host.exists("/sys/module/neuron"):
        yield Finding(
            symptom="no Neuron chip is offered",
            suspect="the neuron kernel module",
            proof="/sys/module/neuron is not there",
            remedy="modprobe neuron; install aws-neuronx-dkms if that fails",
            sure=True,
        )
        return
    bound = [function for function in functions if function.driver == facts.DRIVER]
    for function in functions:
        if function.driver is not None and function not in bound:
            yield Finding(
                symptom=f"chip {function.address} is not offered",
                suspect=function.driver,
                proof=f"{function.path('driver')} leads to {function.driver}",
                remedy=f"bind it to {facts.DRIVER}, unless a virtual machine is to have it",
            )
    if len(bound) > len(indices) or any(function.driver is None for function in functions):
        yield Finding(
            symptom="some Neuron chips are not offered",
            suspect="the driver",
            proof=f"of {len(functions)} PCI functions it shows {len(indices)} chips",
            remedy=facts.KERNEL_LOG + "; duplicate routing ids need another instance",
        )


def _rights(host: Host, indices: Sequence[int]) -> Iterator[Finding]:
    for index in indices:
        try:
            chips.read_beside(host, chips.folder(index))
        except AccessDenied as error:
            yield Finding(
                symptom="links between chips are not known",
                suspect="permissions",
                proof=str(error),
                remedy="run the agent as root",
                sure=True,
            )
            return
        except SourceError:
            continue


def _node(host: Host, index: int) -> Iterator[Finding]:
    name = chips.word_of(index)
    finding = file_finding(
        host,
        f"/dev/{name}",
        f"containers cannot use {name}",
        users="chips",
        missing="udevadm trigger, or load the driver anew",
        closed="let the udev rule of aws-neuronx-dkms set 0666",
    )
    if finding is not None:
        yield finding


def _logical_cores(host: Host) -> Iterator[Finding]:
    try:
        lnc.read_lnc(host)
    except SourceError as error:
        yield Finding(
            symptom="no core and no chip is offered",
            suspect=facts.LNC_FILE,
            proof=str(error),
            remedy=error.remedy,
            sure=True,
        )


def _places(host: Host, functions: Sequence[PciFunction], tool: str) -> Iterator[Finding]:
    try:
        places.ask(host, tool, [function.address for function in functions])
    except SourceError as error:
        yield Finding(
            symptom="NUMA nodes of chips are not known",
            suspect="neuron-ls",
            proof=str(error),
            remedy="install aws-neuronx-tools on the host, or set neuronLs"
            if isinstance(error, NotThere)
            else "run it on the host and look what it says",
        )

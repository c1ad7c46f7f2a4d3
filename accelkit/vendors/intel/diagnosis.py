"""What keeps Intel's GPUs from being served, in words. Reads only."""

from collections.abc import Iterator, Sequence

from accelkit import AccessDenied, Finding, Host, PciFunction, SourceError
from accelkit.vendors.intel import cards, discovery, facts, sriov

_OTHERS = 0o006


def diagnose(host: Host, functions: Sequence[PciFunction]) -> Iterator[Finding]:
    """All that is wrong, the cause before what follows from it."""
    if not functions:
        yield Finding(
            symptom="no GPU is offered",
            suspect="hardware",
            proof="no PCI function of vendor 0x8086 and class 0x0300 or 0x0380 is in sysfs",
            remedy="check that the node has a GPU and that the agent sees the host's /sys",
        )
        return
    loaded = [d for d in facts.DRIVERS if host.exists(f"/sys/module/{d}")]
    if not loaded:
        yield Finding(
            symptom="no GPU is offered",
            suspect="the kernel modules i915 and xe",
            proof="neither /sys/module/i915 nor /sys/module/xe is there",
            remedy="modprobe xe or i915 on the host; see dmesg for the reason if that fails",
            sure=True,
        )
    for function in functions:
        try:
            yield from _of(function)
        except SourceError as error:
            yield Finding(
                symptom=f"of GPU {function.address} not everything can be known",
                suspect="the agent's rights" if isinstance(error, AccessDenied) else "its files",
                proof=str(error),
                remedy=error.remedy,
            )


def _of(function: PciFunction) -> Iterator[Finding]:
    """Why one function is not offered, or not to everybody."""
    card = cards.card_of(function)
    virtual = "physfn" in card.files
    name = f"{'virtual function' if virtual else 'GPU'} {function.address}"
    if card.passed_on:
        yield Finding(
            symptom=f"{name} is not offered",
            suspect=str(card.driver),
            proof=f"{function.path('driver')} leads to {card.driver}",
            remedy="bind it to i915 or xe, unless a virtual machine is to have it",
        )
        return
    if (problem := discovery.why_not(card)) is not None:
        yield Finding(
            symptom=f"{name} is not offered",
            suspect=problem.code,
            proof=problem.reason,
            remedy=problem.remedy,
            sure=True,
        )
        return
    if (count := sriov.count_of(function, sriov.total_of(function))) > 0:
        yield Finding(
            symptom=f"{name} is not offered itself",
            suspect="its virtual functions",
            proof=f"{function.path('sriov_numvfs')} says {count}",
            remedy="set its mode to whole, or offer physical functions: option `offer`",
        )
    yield from _files(card, name)


def _files(card: cards.Card, name: str) -> Iterator[Finding]:
    function = card.function
    for node in card.nodes:
        found = function.host.stat(node.path)
        if found is None:
            yield Finding(
                symptom=f"containers cannot use {name}",
                suspect="device files",
                proof=f"{node.path} is not there, and {function.path('drm')} lists it",
                remedy="let the agent see the host's /dev; udev or devtmpfs makes the files",
                sure=True,
            )
        elif "renderD" in node.path and found.mode & _OTHERS != _OTHERS:
            yield Finding(
                symptom=f"containers that do not run as root cannot use {name}",
                suspect="permissions",
                proof=f"{node.path} has mode {found.mode:o}",
                remedy="run the containers with the group of it, as supplementalGroups",
            )

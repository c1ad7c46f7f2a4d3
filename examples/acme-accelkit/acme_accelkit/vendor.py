"""Which cards there are. Each ability is a file beside this one."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import attrs

from accelkit import (
    AccelkitError,
    Access,
    Device,
    DeviceNode,
    Enforcement,
    Host,
    PciFunction,
    PciMatch,
    Unreadable,
    Version,
    dns_label,
    pci_functions,
)
from acme_accelkit.diagnosis import Diagnosis
from acme_accelkit.halves import Halves
from acme_accelkit.health import Health
from acme_accelkit.links import Links
from acme_accelkit.measures import Measures
from acme_accelkit.runtime import Runtime


@attrs.frozen(kw_only=True)
class AcmeOptions:
    """The operator's block for this vendor, in the policy."""

    leave: tuple[str, ...] = ()
    """PCI addresses of cards that are for somebody else."""


class Acme(Halves, Runtime, Health, Links, Measures, Diagnosis):
    """Cards with the PCI vendor id of Acme, from the files of their driver."""

    name = "acme"
    domain = "acme.example"
    hardware = (PciMatch(vendor=0x1DEA),)
    machine = "acme_accelkit.machine:AcmeMachine"
    attributes: ClassVar[Mapping[str, type]] = {"firmware": Version, "board": str}
    options = AcmeOptions
    access = Access(
        capabilities=("SYS_PTRACE",),  # to see whose files are open
        read=("/sys", "/proc"),
        write=("/sys/bus/pci/devices/*/halves", "/sys/bus/pci/devices/*/clock"),
        devices=("/dev/acme*",),
        host_pid=True,
    )

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        for function in pci_functions(host, self.hardware):
            if function.address in self.chosen.leave:
                continue
            try:
                yield from self._card(host, function)
            except (AccelkitError, ValueError) as error:
                code = "unreadable" if function.driver else "driver-not-ready"
                yield Unreadable(
                    subject=function.address, code=code, reason=str(error), remedy="modprobe acme"
                )

    def _card(self, host: Host, function: PciFunction) -> Iterator[Device]:
        memory, board = int(function.read("memory_bytes")), function.read("board")
        if not 0 < memory < 1 << 63:
            raise ValueError(f"memory_bytes says {memory}")
        if not re.fullmatch(r"board-\d{1,6}", board, re.ASCII):
            raise ValueError(f"board says {board[:40]!r}")
        card = self.device(
            dns_label(function.read("serial")),
            kind="npu",
            product=function.read("product"),
            locality=function.locality,
            aliases={function.address},
            nodes=[DeviceNode(path=f"/dev/acme{int(function.read('minor'))}")],
            attributes={"firmware": Version.parse(function.read("firmware")), "board": board},
            capacity={"memory": memory},
            sharing={Enforcement.NONE, Enforcement.LIBRARY},
        )
        if function.has("halves"):
            yield from self.cut(host, card)
        else:
            yield card

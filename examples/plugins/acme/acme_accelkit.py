"""The whole of a plugin, for NPUs of a maker named Acme."""  # noqa: INP001 - installed by itself

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from accelkit import (
    Condition,
    Device,
    DeviceNode,
    Evidence,
    Host,
    ModelError,
    PciFunction,
    PciMatch,
    Severity,
    SourceError,
    SupportsHealth,
    Unreadable,
    Vendor,
    dns_label,
    hookimpl,
    pci_functions,
)

SEVERITY = {"ecc-uncorrected": Severity.FATAL, "too-hot": Severity.DEGRADED}


class Acme(Vendor, SupportsHealth):
    name = "acme"
    domain = "acme.example"
    hardware = (PciMatch(vendor=0x1DEA),)
    attributes: ClassVar[Mapping[str, type]] = {"firmware": str}

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        for function in pci_functions(host, self.hardware):
            if not function.has("serial"):
                yield Unreadable(
                    subject=function.address,
                    code="driver-not-ready",
                    reason="no driver is bound",
                    remedy="modprobe acme",
                )
                continue
            try:
                yield self._npu(function)
            except (SourceError, ModelError, ValueError) as error:
                yield Unreadable(
                    subject=function.address,
                    code="unreadable",
                    reason=str(error),
                    remedy="see the kernel log",
                )

    def _npu(self, function: PciFunction) -> Device:
        memory, firmware = int(function.read("memory_bytes")), function.read("firmware")
        if not 0 < memory < 1 << 50 or not re.fullmatch(r"[0-9.]{1,20}", firmware):
            raise ValueError("its files hold rubbish")
        return self.device(
            dns_label(function.read("serial")),
            kind="npu",
            product=function.read("product"),
            locality=function.locality,
            aliases=[function.address],
            nodes=[DeviceNode(path=f"/dev/acme{int(function.read('minor'))}")],
            attributes={"firmware": firmware},
            capacity={"memory": memory},
        )

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        del evidence  # no event of these NPUs is heard, only what they say now
        for code in host.read(f"/sys/bus/pci/devices/{device.locality.pci_address}/faults").split():
            if code in SEVERITY:
                yield Condition(code=code, severity=SEVERITY[code])

    def software(self, host: Host) -> Mapping[str, str]:
        return {"driver": host.read("/sys/module/acme/version")}


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    return [Acme]

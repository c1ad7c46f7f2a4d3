"""Why cards are not offered, for `accelkit doctor`."""

from collections.abc import Iterable

from accelkit import (
    Finding,
    Host,
    SourceError,
    SupportsDiagnosis,
    Vendor,
    Version,
    file_finding,
    pci_functions,
)

OLDEST = Version.parse("2.0")
"""Release notes of the driver 2.0: what is older loses halves when a card is reset."""


class Diagnosis(Vendor, SupportsDiagnosis):
    """Looks at the driver, its age, and its device files. Reads only."""

    def diagnose(self, host: Host) -> Iterable[Finding]:
        functions = pci_functions(host, self.hardware)
        for function in functions:
            if function.driver is None:
                yield Finding(
                    symptom=f"{function.address} is not offered",
                    suspect="the kernel module acme",
                    proof=f"{function.path('driver')} is not there",
                    remedy="modprobe acme; see dmesg for messages of acme if that does not help",
                    sure=True,
                )
            elif function.has("minor"):
                found = file_finding(
                    host,
                    f"/dev/acme{function.read('minor')}",
                    f"{function.address} is not ready",
                    users="Acme's cards",
                    missing="udevadm trigger",
                    closed="set its mode to 0666 in udev's rules",
                )
                if found is not None:
                    yield found
        yield from _age(host)


def _age(host: Host) -> Iterable[Finding]:
    try:
        version = host.read("/sys/module/acme/version")
        old = Version.parse(version) < OLDEST
    except (SourceError, ValueError):
        return  # not loaded, which is told above
    if old:
        yield Finding(
            symptom="halves may be lost when a card is reset",
            suspect="an old driver",
            proof=f"/sys/module/acme/version says {version}",
            remedy=f"install Acme's driver {OLDEST} or later",
        )

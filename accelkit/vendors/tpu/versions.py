"""Versions of the drivers of chips. Not here: libtpu's, which comes with each container."""

from collections.abc import Iterable, Mapping

from accelkit import Host, NotThere
from accelkit.vendors.tpu.chips import Chip, accel_folder

_KERNEL = "/proc/sys/kernel/osrelease"
"""VFIO is a part of it. Linux, Documentation/admin-guide/sysctl/kernel.rst."""
_VFIO = "/sys/module/vfio_pci/version"
"""Linux, drivers/vfio/pci/vfio_pci.c."""
_LONGEST = 64


def read_versions(host: Host, chips: Iterable[Chip]) -> Mapping[str, str]:
    """Versions by what they are of, as far as files say them; of a host without chips none.

    Raises:
        SourceError: One cannot be read.
    """
    files = {}
    for chip in chips:
        files["kernel"] = _KERNEL
        folder = None if chip.generation.vfio else accel_folder(host, chip.functions[0])
        if chip.generation.vfio:
            files["vfio-pci"] = _VFIO
        elif folder is not None:
            # Source: Linux 5.10, drivers/staging/gasket/gasket_sysfs.c.
            files["accel"] = f"{folder}/driver_version"
    return {name: text for name, path in files.items() if (text := _text(host, path))}


def _text(host: Host, path: str) -> str:
    try:
        text = host.read(path).strip()
    except NotThere:
        return ""
    return text if text.isprintable() and len(text) <= _LONGEST else ""

"""The driver as it is installed: version, roots, programs. Not here: what containers get of it."""

from collections.abc import Iterator, Sequence

from accelkit import Finished, Host, NotThere
from accelkit.vendors.nvidia import facts

PROGRAM_FOLDERS = (
    "/usr/bin",
    "/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/nvidia/bin",
    "/home/kubernetes/bin/nvidia/bin",
    "/opt/nvidia/bin",
    "/run/current-system/sw/bin",
)
"""Where distributions put them, commonest first."""
SMI, MODPROBE = "nvidia-smi", "nvidia-modprobe"


def driver_roots(option: str) -> tuple[str, ...]:
    """Roots to look for the driver in, in order: what ``driverRoot`` says."""
    return ("/", facts.DRIVER_CONTAINER) if option == "auto" else (option,)


def below(root: str, path: str) -> str:
    """*path* inside *root* as a host path."""
    return path if root == "/" else root.rstrip("/") + path


def loaded_version(host: Host) -> str | None:
    """The version of the loaded kernel module; None: it is not loaded, or does not say.

    Source:
        Linux, Documentation/ABI/stable/sysfs-module.
    """
    try:
        return host.read("/sys/module/nvidia/version").strip() or None
    except NotThere:
        return None


def run_program(
    host: Host, roots: Sequence[str], argv: Sequence[str], timeout_s: float
) -> Finished:
    """Run the program that *argv* begins with, in the first of *roots* that has it.

    Raises:
        NotThere: None has.
        SourceTimeout: It did not end in time.
    """
    name, *arguments = argv
    for inside in _inside(host, roots):
        for folder in PROGRAM_FOLDERS:
            if inside.exists(path := f"{folder}/{name}"):
                return inside.run([path, *arguments], timeout_s)
    raise NotThere(
        f"{name} is in no program folder of {' or '.join(roots)}",
        vendor="nvidia",
        operation="run",
        remedy="install the driver's programs, or set driverRoot",
    )


def _inside(host: Host, roots: Sequence[str]) -> Iterator[Host]:
    for root in roots:
        if root == "/":
            yield host
        elif host.exists(root):
            yield host.under(root)

"""The driver's programs, wherever they are installed. Not here: what they are asked for."""

from collections.abc import Iterator, Sequence

from accelkit import Finished, Host, NotThere

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

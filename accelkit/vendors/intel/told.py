"""What the kernel tells of simulated GPUs: log lines and uevents. Not here: what it means."""

from collections.abc import Iterator

from accelkit.vendors.intel import facts


def wedged(address: str, card: str, driver: str | None, methods: str) -> Iterator[tuple[str, ...]]:
    """That the driver has given up a GPU, or has recovered it.

    Args:
        address: Of its function.
        card: Where sysfs has its card.
        driver: Of the function.
        methods: Ways to bring it back.

    Source:
        Linux, drivers/gpu/drm/drm_drv.c, drm_dev_wedged_event; drivers/gpu/drm/xe/xe_device.c,
        xe_device_declare_wedged; Documentation/gpu/drm-uapi.rst, "Device Wedging".
    """
    if driver == facts.XE and methods != "none":
        text = f"[drm] *ERROR* CRITICAL: Xe has declared device {address} as wedged."
        yield ("kernel", f"xe {address}: {text}")
    yield (
        *("uevent", "change", card.removeprefix("/sys"), "SUBSYSTEM=drm", "DEVTYPE=drm_minor"),
        *(f"DEVNAME=dri/{card.rpartition('/')[2]}", f"WEDGED={methods}"),
    )


def bound(address: str, folder: str, driver: str) -> tuple[str, ...]:
    """That a driver has taken over the function in *folder*.

    Source:
        Linux, drivers/base/dd.c, driver_bound; drivers/pci/pci-driver.c, pci_uevent.
    """
    fields = ("SUBSYSTEM=pci", f"DRIVER={driver}", f"PCI_SLOT_NAME={address}")
    return ("uevent", "bind", folder.removeprefix("/sys"), *fields)

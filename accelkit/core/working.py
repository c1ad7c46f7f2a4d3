"""One call of a plugin that changes hardware, and what may be believed of its answer.

Not here: deadlines and threads, which are the lane's, and who decides what is changed.
"""

from collections.abc import Collection, Mapping

import attrs

from accelkit.core.allocation import Edits, Grant, Setting
from accelkit.core.answers import checked_devices, checked_partition, checked_settings
from accelkit.core.errors import (
    ConfigError,
    ConfigRefused,
    DriverNotReady,
    PartitionError,
    SourceError,
)
from accelkit.core.foreign import in_words
from accelkit.core.host import Host
from accelkit.core.model import Device, DeviceId, Placement, Unreadable
from accelkit.core.reading import as_found, contract, grant_edits
from accelkit.core.serde import from_tree
from accelkit.core.values import freeze
from accelkit.core.vendor import SupportsPartitioning, SupportsPreparation, Vendor


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Needed:
    """What a set needs before its containers start."""

    settings: tuple[Setting, ...] = ()
    """What must hold while it lives."""
    edits: Edits | None = None
    """What containers need; None: to be asked for once the settings hold."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Sight:
    """What a vendor shows now of the devices that are looked for."""

    devices: tuple[Device, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    """Those whose subject may stand for one of them."""

    def find(self, device: DeviceId, names: Collection[str] = ()) -> Device | None:
        """*device*; None: it is not there.

        *names* are all words that may stand for it, or for what it is cut out of.

        Raises:
            DriverNotReady: It is there, and its driver is not.
            SourceError: It cannot be read.
        """
        for found in self.devices:
            if found.id == device:
                return found
        for missing in self.unreadable:
            if missing.subject in {device.name, *names}:
                # Whoever undoes something there is done where the driver is gone, and with it all.
                kind = DriverNotReady if missing.code == DriverNotReady.code else SourceError
                raise kind(
                    f"{device} cannot be read: {missing.reason}",
                    vendor=device.vendor,
                    operation="discover",
                    remedy=missing.remedy,
                )
        return None


def look_for(
    vendor: Vendor, host: Host, devices: Collection[DeviceId], names: Collection[str]
) -> Sight:
    """What *vendor* shows now of *devices*, and of what may stand for them: *names*.

    Raises:
        SourceError: The vendor as a whole cannot be read.
        PluginError: The vendor answered what it must not.
    """
    with contract(vendor, "discover"):
        found, unreadable = checked_devices(vendor, vendor.discover(host))
    words = {*names, *(device.name for device in devices)}
    return Sight(
        devices=tuple(one for one in as_found(host, found) if one.id in devices),
        unreadable=tuple(one for one in unreadable if one.subject in words),
    )


def create_partition(vendor: Vendor, host: Host, parent: Device, placement: Placement) -> Device:
    """Make a partition of *parent*, as *discover* yields it from now on.

    Raises:
        PartitionError: It cannot be made.
        SourceError: Could not be known now.
        PluginError: The vendor answered what it must not.
    """
    with contract(vendor, "create"):
        made = _partitioning(vendor, parent).create(host, parent, placement)
    (device,) = as_found(host, (checked_partition(vendor, parent, placement, made),))
    return device


def destroy_partition(vendor: Vendor, host: Host, partition: Device) -> None:
    """Unmake *partition*; errors are those of *create_partition*."""
    with contract(vendor, "destroy"):
        _partitioning(vendor, partition).destroy(host, partition)


def set_device_mode(vendor: Vendor, host: Host, device: Device, mode: str) -> None:
    """Bring *device* into *mode*; errors are those of *create_partition*."""
    with contract(vendor, "set mode"):
        _partitioning(vendor, device).set_mode(host, device, mode)


def needed_settings(vendor: Vendor, host: Host, grant: Grant) -> tuple[Setting, ...]:
    """What must hold while *grant* lives.

    Raises:
        AllocationError: The vendor refuses it.
        SourceError: Could not be known now.
        PluginError: The vendor answered what it must not.
    """
    if not isinstance(vendor, SupportsPreparation):
        return ()
    with contract(vendor, "needs"):
        return checked_settings(vendor, vendor.needs(host, grant))


def needed(vendor: Vendor, host: Host, grant: Grant) -> Needed:
    """What *grant* needs, in one turn for those that need nothing set.

    Errors are those of *needed_settings* and *grant_edits*.
    """
    if settings := needed_settings(vendor, host, grant):
        return Needed(settings=settings)
    return Needed(edits=grant_edits(vendor, host, grant))


def apply_setting(vendor: Vendor, host: Host, setting: Setting) -> None:
    """Make *setting* true; errors are those of *needed_settings*."""
    if not isinstance(vendor, SupportsPreparation):
        raise SourceError(f"{vendor.name} has no settings", vendor=vendor.name, operation="apply")
    with contract(vendor, "apply"):
        vendor.apply(host, setting)


def revert_setting(vendor: Vendor, host: Host, setting: Setting) -> None:
    """Undo *setting*; fine for a vendor that sets nothing. Errors are those of *apply_setting*."""
    if isinstance(vendor, SupportsPreparation):
        with contract(vendor, "revert"):
            vendor.revert(host, setting)


def claim_config(vendor: type[Vendor], block: Mapping[str, object]) -> object:
    """A claim's *block* for *vendor* as the vendor's own class.

    Raises:
        ConfigRefused: It cannot be read so; with the path of everything that is wrong.
    """
    try:
        return from_tree(vendor.claim_config, block, "$.vendor")
    except ConfigError as error:
        wrong = "; ".join(f"{path}: {text}" for path, text in error.problems)
    except SystemExit as error:  # a plugin's validator may raise anything
        wrong = in_words(error)
    raise ConfigRefused(
        f"the configuration for {vendor.name} cannot be read: {wrong}",
        remedy="correct the ClaimConfig in the claim or its class",
    )


def _partitioning(vendor: Vendor, device: Device) -> SupportsPartitioning:
    if not isinstance(vendor, SupportsPartitioning):
        raise PartitionError(
            f"{device.id}: {vendor.name} cannot cut devices", device=str(device.id)
        )
    return vendor

"""What authors of vendors and backends need, under one roof; loaded when it is asked for."""

from importlib import import_module

_MODULES = {
    "allocation": "ContainerEdits Edits Finding Grant Granted Hook Mount Sample Setting "
    "equal_share",
    "device_files": "file_finding",
    "errors": "AccelkitError AccessDenied ConfigError ConfigRefused DriverNotReady IllegalSet "
    "LibraryMissing MissingParts ModeBusy ModelError NeedsReset NotThere PartitionError "
    "PartitionInUse PlaceOccupied SourceError SourceTimeout StartOver UnsatisfiableLayout",
    "hooks": "hookimpl",
    "host": "Finished Host Stat",
    "model": "Condition Device DeviceId DeviceNode Event Evidence Group Holder Holding Link "
    "Locality Mode Placement Profile Unreadable",
    "pci": "PciFunction char_major cpu_nodes numa_of pci_functions pcie_root quantity switch_links",
    "policy": "Divide Sharing Timeslice",
    "processes": "holders_of",
    "tables": "FunctionTable",
    "values": "Enforcement FrozenMap GroupRule HolderKind LinkKind Scope Severity Version "
    "dns_label is_host_path",
    "vendor": "Access PciMatch Signal Signals SupportsDiagnosis SupportsEvents SupportsGroups "
    "SupportsHealth SupportsHolders SupportsLinks SupportsPartitioning SupportsPreparation "
    "SupportsSignals SupportsTelemetry Vendor",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [*sorted(_HOME)]  # noqa: PLE0604 - computed from the one list


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"accelkit.core.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)

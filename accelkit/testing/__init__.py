"""Simulated machines and doubles, for tests of accelkit and of plugins that others write.

Names are loaded when they are asked for.
"""

from importlib import import_module

_MODULES = {
    "faults": "Fault duration read_faults",
    "hosts": "open_host",
    "machine_host": "MachineHost",
    "machines": "Entry File Function Json Line Link Live Machine Node Part State pointee",
    "pasted": "Cut Likeness Looks Output Told Unit nearest",
    "record": "MOST_UNITS",
    "simulate": "play set_faults set_state",
    "sysfs": "CPUS_PER_NODE NUMA_NODES PciPlace extended_minor part_place pci_function pci_place",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [*sorted(_HOME)]  # noqa: PLE0604 - computed from the one list


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)

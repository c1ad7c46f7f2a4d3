"""Hosts that are joined with others. Not here: how they are used together."""

from collections.abc import Mapping
from types import MappingProxyType

from accelkit import Host, SourceError
from accelkit.vendors.neuron import facts

ATTRIBUTES: Mapping[str, tuple[str, type]] = MappingProxyType(
    {
        "ultraserver_mode": ("ultraserverMode", str),
        "server_id_2": ("serverId2", str),
        "server_id_4": ("serverId4", str),
        "node_id_2": ("nodeId2", int),
        "node_id_4": ("nodeId4", int),
    }
)
"""Attributes by file of the class. Source: ncdev_class_attrs in neuron_cdev.c."""
_SILENT = {"", "busy", "invalid", "-1", "0000000000000000"}
"""While hosts look for each other, and where there are no others.
Source: npe_class_node_id_show_data in neuron_pelect.c."""
_ALONE = "4"
"""The only mode of a host that is in none. Source: NEURON_ULTRASERVER_MODE_X1."""


def attributes(host: Host) -> Mapping[str, str | int]:
    """What the host says of the UltraServer that it is in; nothing if it is in none."""
    found: dict[str, str | int] = {}
    for name, (attribute, kind) in ATTRIBUTES.items():
        try:
            text = host.read(f"{facts.CLASS}/{name}", 64).strip().rstrip(",")
        except SourceError:  # other drivers and other hosts do not have it
            continue
        if (
            text in _SILENT
            or (kind is str and text == _ALONE)
            or not (text.isascii() and text.isprintable())
        ):
            continue
        if kind is str:
            found[attribute] = text
        elif text.isdecimal() and len(text) <= 9:
            found[attribute] = int(text)
    return found

"""The plugins that come with accelkit, as subjects. Not here: plugins of others."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from accelkit.conformance.model import Feature
from accelkit.conformance.subjects import CLAIM_BLOCK, Blocks, Cut, PluginSubject, told
from accelkit.core.errors import ConfigError
from accelkit.core.kube import Json
from accelkit.core.registry import load_plugins
from accelkit.core.vendor import Vendor


def _level(name: str) -> Json:
    return {**CLAIM_BLOCK, "vendor": {"level": name}}


_RULES = (
    {"name": "widget", "match": {"path": "/dev/widget*"}},
    {"name": "card", "match": {"pci": {"vendor": 0x1DEA}}, "nodes": ["/dev/card/{address}"]},
    {"name": "stick", "match": {"usb": {"vendor": "0403"}}},
)
_ON_A_BUS: Mapping[str, object] = MappingProxyType(
    {"machine": None, "words": {Feature.FAULT: ("close {unit}", "restore {unit}")}}
)
_MIG = ("mig", "gpu-0", "on")
_KNOWN: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "sim": {
            "cut": Cut(product="split"),
            "claimed": Cut(product="carve"),
            "blocks": Blocks(first=_level("low"), second=_level("high"), file="level"),
        },
        "simset": {},
        "amd": {
            "cut": Cut(words=(("mode", "gpu-0", "CPX"),)),
            "many": 66,
            "words": {
                Feature.FAULT: ("lose {unit}", "restore {unit}"),
                Feature.FLAW: ("heat {unit} 101", "restore {unit}"),
            },
        },
        "generic": {
            "machine": "generic",  # as if it were another's: nodes alone make a widget
            "by_place": True,
            "options": {"devices": _RULES},
        },
        "gaudi": {
            "by_place": True,
            "many": 66,
            "words": {
                Feature.FAULT: ("status {unit} disabled", "restore {unit}"),
                Feature.FLAW: ("link {unit} 8", "restore {unit}"),
            },
        },
        "neuron": {
            "cut": Cut(),
            "many": 66,
            "words": {
                Feature.FAULT: ("ecc {unit} mem 1", "restore {unit}"),
                Feature.FLAW: ("ecc {unit} repairable 1", "restore {unit}"),
            },
        },
        "intel": {
            "by_place": True,
            "many": 66,
            "cut": Cut(words=(("vfs", "gpu-0", "4"),)),
            "words": {
                Feature.SPOIL: ("bind {unit} none", ""),
                Feature.FAULT: ("fall {unit}", "restore {unit}"),
                Feature.FLAW: ("throttle {unit} thermal", "restore {unit}"),
            },
        },
        "nvidia": {
            "cut": Cut(
                words=(
                    _MIG,
                    ("create-mig", "gpu-0", "1g", "0"),
                    ("create-mig", "gpu-0", "2g", "2"),
                )
            ),
            "claimed": Cut(words=(_MIG,)),
            "many": 66,
            "words": {
                Feature.FAULT: ("recovery {unit} 1", "restore {unit}"),
                Feature.FLAW: ("ecc {unit} 3", "restore {unit}"),
                Feature.EVENT: ("xid {unit} 43", "xid {unit} 13"),
            },
        },
        "tpu": {
            "by_place": True,
            "words": {
                Feature.FAULT: ("hide {unit}", "restore {unit}"),
                Feature.FLAW: ("narrow {unit}", "restore {unit}"),
            },
        },
    }
)
_OTHERWISE: Mapping[tuple[str, str | None], Mapping[str, object]] = MappingProxyType(
    {
        ("generic", "card"): _ON_A_BUS,
        ("generic", "stick"): _ON_A_BUS,
        ("nvidia", "rtx-pro-6000"): {"cut": Cut(words=(_MIG, ("create-mig", "gpu-0", "2g", "6")))},
        ("nvidia", "l4"): {"cut": None, "claimed": None},
        ("nvidia", "dgx1"): {"cut": None, "claimed": None},
        ("intel", "arc-a770"): {"cut": None},
        ("intel", "arc-b580"): {"cut": None},
        ("amd", "mi250x"): {"cut": None},
        ("amd", "mi210"): {"cut": None},
        ("amd", "rx7900"): {"cut": None},
    }
)
"""What is otherwise for one product."""
IN_TREE = tuple(_KNOWN)


def subject_of(name: str, *, product: str | None = None, host: str | None = None) -> PluginSubject:
    """The installed vendor *name* as a subject.

    Args:
        name: As ``accelkit vendor list`` shows it.
        product: Of its simulated machine; None: the first.
        host: Read this instead of simulated machines.

    Raises:
        ConfigError: There is no such vendor, or its machine has no such product.
    """
    registry = load_plugins()
    vendors: Mapping[str, type[Vendor]] = registry.vendors
    if name not in vendors:
        raise ConfigError(
            [(f"vendor {name}", registry.lack(name))], remedy=f"name one of {', '.join(vendors)}"
        )
    known = {**_KNOWN.get(name, {}), **_OTHERWISE.get((name, product), {})}
    subject = attrs.evolve(told(vendors[name]), **known)  # type: ignore[arg-type]  # tables of fields
    machine = subject.simulated
    if product is not None and (machine is None or product not in machine.products):
        there = ", ".join(machine.products) if machine else "none"
        raise ConfigError([(f"product {product}", f"is none of {name}: it has {there}")])
    return attrs.evolve(subject, product=product, host=host)

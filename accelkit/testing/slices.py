"""Machines from ResourceSlices, as kubectl prints them. Not here: how accelkit makes such."""

import re
from collections.abc import Iterable, Iterator, Mapping

import attrs
import yaml

from accelkit.core.errors import ConfigError
from accelkit.core.units import parse_quantity
from accelkit.testing.machines import Machine
from accelkit.testing.pasted import (
    Cut,
    Likeness,
    Told,
    Unit,
    Verb,
    address_in,
    nearest,
    numa_in,
    number_in,
    word_in,
)
from accelkit.testing.texts import json_in, mapping, mappings, word

SLICES = "kubectl get resourceslices -o yaml, or -o json"
_DEEPEST = 64
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C is ten times as fast."""
_PARTS = {"mig", "vf", "vfio", "amdgpu-partition"}
"""Values of *type* and *kind* of what is no whole device, in drivers of makers and here."""
_ADDRESSES = ("pciBusID", "pciAddress", "pciAddr", "parentPciAddr")
_NAMES = ("productName", "product", "model", "deviceType", "tpuGen")
_IDS = ("pciDeviceId", "pciId")
_MODULES = ("moduleId", "gpuModuleID", "moduleIdx")
_PROFILES = ("profile", "partitionProfile")
_OWNERS = ("parentUUID", "parent", "parentDeviceID")
_WHOLE = re.compile(r"whole|spx(_nps\d)?", re.IGNORECASE)
_NAMED = re.compile(r"gpu-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16})")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_START = re.compile(r"-(\d{1,2})")
_MOST = 1 << 16


@attrs.frozen(kw_only=True)
class _Published:
    """A device of a slice."""

    name: str
    facts: Mapping[str, str]
    """Attributes without their domain, as texts."""
    memory: int | None
    counted: bool
    """Takes from counters: with others it is one of several that could be."""
    tainted: bool

    def first(self, names: Iterable[str]) -> str:
        return next((self.facts[name] for name in names if self.facts.get(name)), "")

    @property
    def profile(self) -> str:
        return self.first(_PROFILES)

    @property
    def is_part(self) -> bool:
        """Whether it is a partition of another device."""
        kinds = {self.facts.get("type"), self.facts.get("kind")}
        cut = self.profile and not _WHOLE.fullmatch(self.profile)
        return bool(kinds & _PARTS) or bool(cut and self.owner != self.name)

    @property
    def owner(self) -> str:
        """What the whole device is called; of a part of which it is not told: its address."""
        return self.first((*_OWNERS, *_ADDRESSES)) or self.name

    @property
    def start(self) -> int | None:
        """Where on its device it lies: its name ends so."""
        found = _START.search(self.name, max(0, self.name.rfind("-")))
        return int(found[1]) if found else None


def is_slices(text: str) -> bool:
    return "ResourceSlice" in text and "devices" in text


def read_slices(kind: type[Machine], text: str) -> Likeness:
    """What *text* says of the devices of *kind*, on the first node that has some.

    Raises:
        ConfigError: It is no such text, or has no device of that vendor.
    """
    nodes: dict[str, list[_Published]] = {}
    others: set[str] = set()
    for spec in _specs(text):
        driver, node = word(spec.get("driver")), word(spec.get("nodeName"))
        found = [_published(one) for one in mappings(spec.get("devices"))]
        known = driver.startswith(f"{kind.vendor}.") or driver in kind.drivers
        if ours := [d for d in found if known or d.facts.get("vendor") == kind.vendor]:
            nodes.setdefault(node, []).extend(ours)
        elif found:
            others.add(driver or "none")
    if not nodes:
        told = f"has devices of {', '.join(sorted(others))} alone" if others else "has no devices"
        raise ConfigError([("text", f"{told}, and none of {kind.vendor}")])
    node = min(nodes)
    likeness = _likeness(kind, nodes[node])
    warnings = list(likeness.warnings)
    if len(nodes) > 1:
        warnings.insert(0, f"of {len(nodes)} nodes {node or 'that without a name'} is taken")
    if others:
        warnings.append(f"not taken over: devices of the drivers {', '.join(sorted(others))}")
    return attrs.evolve(likeness, warnings=tuple(warnings))


def _likeness(kind: type[Machine], devices: list[_Published]) -> Likeness:
    wholes = [device for device in devices if not device.is_part]
    parts = [device for device in devices if device.is_part]
    units = {_key(device): _unit(device) for device in wholes}
    cuts: dict[str, list[Cut]] = {}
    for part in parts:
        owner = _owner(part, wholes)
        units.setdefault(owner, _unit(part, whole=False))
        if not part.counted:
            cuts.setdefault(owner, []).append(Cut(profile=part.profile, start=part.start))
    order = sorted(units, key=lambda key: units[key].address or "")
    model = (wholes or parts)[0]
    product, sure = nearest(
        kind.looks,
        name=model.first(_NAMES),
        memory=model.memory if wholes else None,
        pci=_hexadecimal(model.first(_IDS)),
    )
    verbs: list[Verb] = []
    for index, key in enumerate(order):
        verbs += kind.cut(product, index, tuple(cuts.get(key, ())))
    return Likeness(
        product=product,
        told=Told(units=tuple(units[key] for key in order)),
        verbs=tuple(verbs),
        warnings=tuple(_warnings(model, product, devices, sure=sure, cut=not cuts or bool(verbs))),
    )


def _warnings(
    model: _Published, product: str, devices: list[_Published], *, sure: bool, cut: bool
) -> Iterator[str]:
    if not sure:
        yield f"{model.first(_NAMES) or 'the product'} is not simulated: {product} is nearest"
    products = {device.first(_NAMES) for device in devices}
    if len(products) > 1:
        yield f"of several products one is taken: {', '.join(sorted(products))}"
    yield f"links between devices are not told: they are those of {product}"
    if not cut:
        yield "not taken over: partitions that there are"
    if any(device.counted and device.is_part for device in devices):
        yield "not taken over: partitions that could be made"
    if any(device.tainted for device in devices):
        yield "not taken over: taints"


def _key(device: _Published) -> str:
    return device.name


def _owner(part: _Published, wholes: Iterable[_Published]) -> str:
    for whole in wholes:
        same = {whole.name, whole.facts.get("uuid"), whole.first(_ADDRESSES)} - {"", None}
        if part.owner in same or part.first(_ADDRESSES) in same:
            return whole.name
    return part.owner


def _unit(device: _Published, *, whole: bool = True) -> Unit:
    uuid = device.facts.get("uuid", "") if whole else device.facts.get("parentUUID", "")
    if not uuid and (named := _NAMED.fullmatch(device.owner if not whole else device.name)):
        uuid = f"GPU-{named[1]}"
    return Unit(
        address=address_in(device.first(_ADDRESSES)),
        root=root if _ROOT.fullmatch(root := device.facts.get("pcieRoot", "")) else None,
        numa=numa_in(device.facts.get("numaNode", "")),
        serial=word_in(device.first(("serial", "serialNumber"))) if whole else None,
        uuid=word_in(uuid),
        module=number_in(device.first(_MODULES), _MOST - 1),
    )


def _published(found: Mapping[str, object]) -> _Published:
    inner = mapping(found.get("basic")) or found  # so in v1beta1
    capacity = mapping(mapping(inner.get("capacity")).get("memory"))
    try:
        memory = int(parse_quantity(word(capacity.get("value"))))
    except ValueError:
        memory = None
    return _Published(
        name=word(found.get("name")),
        facts={
            key.rpartition("/")[2]: _text(value)
            for key, value in mapping(inner.get("attributes")).items()
        },
        memory=memory,
        counted=bool(inner.get("consumesCounters")),
        tainted=bool(inner.get("taints")),
    )


def _text(value: object) -> str:
    for one in mapping(value).values():
        first = one[0] if isinstance(one, list) and one else one
        return "" if first == "unknown" else word(first)
    return ""


def _hexadecimal(text: str) -> int | None:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,4}", text) else None


def _specs(text: str) -> Iterator[Mapping[str, object]]:
    """The specs of all slices, in lists or not."""
    for document in _documents(text):
        top = mapping(document)
        for one in mappings(top.get("items")) if "items" in top else [top]:
            if one.get("kind", "ResourceSlice") in {"ResourceSlice", None}:
                yield mapping(one.get("spec"))


def _documents(text: str) -> list[object]:
    """What the text holds; without aliases, of which few bytes can make very much.

    Raises:
        ConfigError: It is neither JSON nor YAML.
    """
    if text.lstrip().startswith("{"):
        return [json_in(text)]
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST or isinstance(event, yaml.AliasEvent):
                raise ConfigError([("text", "has aliases, or is nested too deep")])
        return list(yaml.load_all(text, Loader=_LOADER))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        said = " ".join(str(error).split())
        raise ConfigError([("text", f"is neither JSON nor YAML: {said}")]) from error

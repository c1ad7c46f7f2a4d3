"""Machines from ResourceSlices, as kubectl prints them. Not here: how accelkit makes such."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

import attrs
import yaml

from accelkit.core.errors import ConfigError
from accelkit.core.units import parse_quantity
from accelkit.core.values import FrozenMap
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
_ADDRESSES = ("pciBusID", "pcieBusID", "pciAddress", "pciAddr", "parentPciAddr")
_NAMES = ("productName", "product", "model", "deviceType", "tpuGen", "instanceType")
_IDS = ("pciDeviceId", "pciId")
_MODULES = ("moduleId", "gpuModuleID", "moduleIdx")
_PROFILES = ("profile", "partitionProfile")
_OWNERS = ("parentUUID", "parent", "parentDeviceID")
_WHOLE = re.compile(r"whole|spx(_nps\d)?", re.IGNORECASE)
_NAMED = re.compile(r"gpu-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16})")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_START = re.compile(r"-(\d{1,2})")
_PLACED = re.compile(r"([0-9a-f]{4})-([0-9a-f]{2})-([01][0-9a-f])-([0-7])(?:-(0x[0-9a-f]{4}))?")
"""Names that tell a PCI address, and mostly the device id with it."""
_NUMBERED = ("deviceID", "parentDeviceID")
_CHIP = re.compile(r"\d{12,20}")
"""The number on it, in decimal."""
_HEAD = re.compile(r"^[ \t]*(?:- )?(?:apiVersion|items|kind|spec)[ \t]*:", re.MULTILINE)
_GOES_ON = re.compile(r"\s|-|#|[A-Za-z]\w*[ \t]*:|$")
"""A line of YAML. A prompt is none, nor is the end of a quotation."""
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
    def look(self) -> tuple[str, str]:
        """What its product is called, and its PCI device id."""
        name = self.first(_NAMES)
        return "" if name.lower() == "unknown" else name, self.first(_IDS)

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
    model, product, sure = _model(kind, wholes or parts)
    options = {"driver": version} if (version := _driver(kind, model)) else {}
    verbs: list[Verb] = []
    for index, key in enumerate(order):
        verbs += kind.cut(product, index, tuple(cuts.get(key, ())))
    return Likeness(
        product=product,
        told=Told(units=tuple(units[key] for key in order)),
        options=FrozenMap(options),
        verbs=tuple(verbs),
        warnings=tuple(_warnings(model, product, devices, sure=sure, cut=not cuts or bool(verbs))),
    )


def _model(kind: type[Machine], devices: Sequence[_Published]) -> tuple[_Published, str, bool]:
    """The device that most are like, the product nearest to it, and whether it is that one."""
    times = Counter(device.look for device in devices)
    found = []
    for device in dict(reversed([(one.look, one) for one in devices])).values():
        name, pci = device.look
        memory = None if device.is_part else device.memory
        product, sure = nearest(kind.looks, name=name, memory=memory, pci=_hexadecimal(pci))
        found.append((times[device.look], sure, device, product))
    _, sure, model, product = max(found, key=lambda one: one[:2])
    return model, product, sure


def _driver(kind: type[Machine], model: _Published) -> str | None:
    """The version of the driver, where the machine can be told one."""
    known = "version of" in kind.options.get("driver", "")
    return word_in(model.facts.get("driverVersion", "")) if known else None


def _warnings(
    model: _Published, product: str, devices: list[_Published], *, sure: bool, cut: bool
) -> Iterator[str]:
    if not sure:
        yield f"{model.look[0] or 'the product'} is not simulated: {product} is nearest"
    products = {device.look[0] or device.look[1] for device in devices}
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
    if not uuid and _CHIP.fullmatch(number := device.first(_NUMBERED)):
        uuid = f"GPU-{int(number):016x}"
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
    capacity = mapping(inner.get("capacity")).get("memory")
    told = mapping(capacity).get("value", capacity)  # plain in v1alpha3
    try:
        memory = int(parse_quantity(word(told))) or None
    except ValueError:
        memory = None
    name = word(found.get("name"))
    return _Published(
        name=name,
        facts=_named(name)
        | {
            key.rpartition("/")[2]: _text(value)
            for key, value in mapping(inner.get("attributes")).items()
        },
        memory=memory,
        counted=bool(inner.get("consumesCounters")),
        tainted=bool(inner.get("taints")),
    )


def _named(name: str) -> dict[str, str]:
    """What the name of a device tells."""
    found = _PLACED.fullmatch(name)
    if found is None:
        return {}
    domain, bus, device, function, pci = found.groups("")
    return {"pciAddress": f"{domain}:{bus}:{device}.{function}", "pciId": pci}


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
        listed = mappings(top.get("items")) if "items" in top else [top]
        for one in mappings(document) or listed:
            if one.get("kind", "ResourceSlice") in {"ResourceSlice", None}:
                yield mapping(one.get("spec"))


def _yaml_in(text: str) -> str:
    """*text* until something else comes, such as a prompt."""
    return "".join(takewhile(_GOES_ON.match, text.splitlines(keepends=True)))


def _documents(text: str) -> list[object]:
    """What the text holds; without aliases, of which few bytes can make very much.

    Raises:
        ConfigError: It is neither JSON nor YAML.
    """
    head = _HEAD.search(text)
    if head is None:
        return [json_in(text)]
    text = _yaml_in(text[head.start() :])
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

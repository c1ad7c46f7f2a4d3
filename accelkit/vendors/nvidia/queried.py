"""Machines from what `nvidia-smi -q -x` prints, as people paste it. Not here: the machine.

Source:
    nvsmi_device_v12.dtd, as of driver R535 to R580.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from accelkit import ConfigError, FrozenMap
from accelkit.testing.pasted import (
    Cut,
    Likeness,
    Looks,
    Told,
    Unit,
    Verb,
    address_in,
    mebibytes_in,
    nearest,
    number_in,
    word_in,
)
from accelkit.testing.texts import Element, parse_xml
from accelkit.vendors.nvidia.instances import Instance, fresh, room_at
from accelkit.vendors.nvidia.products import PRODUCTS, MigProfile, Product

NAME = "nvidia-smi -q -x"
LOOKS: Mapping[str, Looks] = {
    name: Looks(names=(one.name,), memory=one.memory, pci=frozenset({one.pci_device}))
    for name, one in PRODUCTS.items()
}
_ERROR = re.compile(r"unknown error|is lost|ERR!|insufficient permissions", re.IGNORECASE)
_ROOT = "nvidia_smi_log"
_ENGINES = tuple(
    f"{name}_count"
    for name in ("multiprocessor", "copy_engine", "decoder", "jpg", "ofa", "encoder")
)
_MOST_MODULES = 1 << 16
_STATE = "clocks, temperatures, power, utilisation, errors, and what firmware there is"


def is_it(text: str) -> bool:
    return f"<{_ROOT}" in text


def read(text: str) -> Likeness:
    """What *text* says of its GPUs.

    Raises:
        ConfigError: It is no whole output, or has no GPU.
    """
    root = _parsed(_cut_out(text))
    gpus = list(root.all("gpu"))
    if not gpus:
        raise ConfigError([("text", f"has no gpu in {_ROOT}")])
    names = Counter(filter(None, map(_name, gpus)))
    first = next(iter(names.most_common(1)), ("", 0))[0]
    model = next(gpu for gpu in gpus if _name(gpu) == first)
    product, sure = nearest(
        LOOKS,
        name=first,
        memory=mebibytes_in(model.word("fb_memory_usage/total")),
        pci=_device(model.word("pci/pci_device_id")),
    )
    cuts = [tuple(_cuts(gpu, PRODUCTS[product])) for gpu in gpus]
    verbs = [verb for index, wanted in enumerate(cuts) for verb in cut(product, index, wanted)]
    modes = [i for i, gpu in enumerate(gpus) if gpu.word("mig_mode/current_mig") == "Enabled"]
    verbs += [("mig", index, "on") for index in modes if not cuts[index]]
    options = {"cluster": cluster} if (cluster := _cluster(model)) else {}
    if driver := word_in(root.word("driver_version")):
        options["driver"] = driver
    return Likeness(
        product=product,
        told=Told(units=tuple(_unit(gpu) for gpu in gpus)),
        options=FrozenMap(options),
        verbs=tuple(verbs),
        warnings=tuple(_warnings(gpus, product, names, sure=sure)),
    )


def _cut_out(text: str) -> str:
    """From the beginning of the XML to its end, without a prompt around it."""
    starts = [at for sign in ("<?xml", "<!DOCTYPE", f"<{_ROOT}") if (at := text.find(sign)) >= 0]
    end = text.rfind(f"</{_ROOT}>")
    if end < 0:
        raise ConfigError([("text", f"ends before </{_ROOT}>")])
    return text[min(starts) : end] + f"</{_ROOT}>"


def _parsed(text: str) -> Element:
    """The XML in *text*; a terminal may have broken its lines anywhere."""
    try:
        return parse_xml(text)
    except ConfigError:
        with suppress(ConfigError):
            return parse_xml("".join(text.splitlines()))
        raise


def _name(gpu: Element) -> str:
    """What its product is called; empty if there is an error instead, as of a lost GPU."""
    name = gpu.word("product_name")
    return "" if _ERROR.search(name) else name


def _device(text: str) -> int | None:
    """The device id of a text such as 233010DE."""
    try:
        return int(text.removeprefix("0x"), 16) >> 16 if len(text) <= 10 else None
    except ValueError:
        return None


def _unit(gpu: Element) -> Unit:
    return Unit(
        address=address_in(gpu.attributes.get("id", "")) or address_in(gpu.word("pci/pci_bus_id")),
        serial=word_in(gpu.word("serial")),
        uuid=word_in(gpu.word("uuid")),
        module=number_in(gpu.word("gpu_module_id"), _MOST_MODULES - 1),
    )


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _cluster(gpu: Element) -> str | None:
    """The NVLink cluster that it is in: one of zeros is none."""
    found = (gpu.word("fabric/clusterUUID") or gpu.word("fabric/cluster_uuid")).lower()
    return found if _is_uuid(found) and found.strip("0-") else None


def _cuts(gpu: Element, product: Product) -> Iterator[Cut]:
    """Its MIG devices, those of one GPU instance together."""
    found: dict[str, list[Element]] = {}
    for device in gpu.at("mig_devices").all("mig_device"):
        found.setdefault(device.word("gpu_instance_id"), []).append(device)
    for devices in found.values():
        if (profile := _profile(devices[0], product)) is not None:
            yield Cut(profile=profile.name, whole=len(devices) == 1)


def _profile(device: Element, product: Product) -> MigProfile | None:
    """The size of a GPU instance: by memory, and then by the engines that are told."""
    memory = mebibytes_in(device.word("fb_memory_usage/total"))
    shared = device.at("device_attributes/shared")
    engines = [number_in(shared.word(name), _MOST_MODULES) for name in _ENGINES]

    def distance(profile: MigProfile) -> tuple[int, int]:
        far = 0 if memory is None else abs(profile.memory_mb - (memory >> 20))
        others = zip(engines, profile.engines, strict=True)
        return far, sum(abs(told - own) for told, own in others if told is not None)

    return min(product.profiles, key=distance, default=None)


def cut(product: str, index: int, cuts: Sequence[Cut]) -> tuple[Verb, ...]:
    """The verbs that cut a GPU; what is not told of where a part lies is where there is room.

    The largest come first, so that all find their places.
    """
    if not cuts:
        return ()
    one = PRODUCTS[product]
    verbs: list[Verb] = [("mig", index, "on")]
    present: list[Instance] = []
    sizes = {cut: one.profile(cut.profile) for cut in cuts}
    for cut_, profile in sorted(
        ((c, sizes[c]) for c in cuts), key=lambda pair: -(pair[1].size if pair[1] else 0)
    ):
        room = room_at(one, present, profile) if profile is not None else []
        start = cut_.start if cut_.start in room else next(iter(room), None)
        # One that has no room is asked for all the same, so that it is said why there is none.
        words = ("create-mig", index, cut_.profile, str(start or 0))
        verbs.append(words if cut_.whole else (*words, "split"))
        if profile is not None and start is not None:
            present.append(fresh(profile, start))
    return tuple(verbs)


def _warnings(
    gpus: Sequence[Element], product: str, names: Counter[str], *, sure: bool
) -> Iterator[str]:
    if not sure:
        name = next(iter(names.most_common(1)), ("the product", 0))[0]
        yield f"{name} is not simulated: {product} is nearest"
    if len(names) > 1:
        yield f"of several products one is taken: {', '.join(sorted(names))}"
    yield f"NUMA nodes, PCIe roots and links are not told: they are those of {product}"
    if any(gpu.at("mig_devices").children for gpu in gpus):
        yield "not told of MIG devices: where they lie, and UUIDs; both are made up"
    if names.total() < len(gpus):
        yield f"not taken over: that {len(gpus) - names.total()} tell no product, as if lost"
    if any(gpu.at("processes").children for gpu in gpus):
        yield "not taken over: processes"
    yield f"not taken over: {_STATE}"

"""What Kubernetes would be told of a host, as a text for people to compare."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import yaml

from accelkit.cli.node import look_at
from accelkit.cli.rendering import classes, document_of, slices
from accelkit.core.kube import Json
from accelkit.core.serde import to_tree

KUBELET = "offers: [{name: all}]"
CLAIMS = "offers: [{name: all, through: dra, extendedResource: accelkit.dev/all}]"
_OWN = {"parent", "uuid", "serial", "numaNode", "pciBusID", "pcieRoot", "pciAddress", "moduleId"}
"""Attributes that tell one device from others of its sort."""
Tree = Mapping[str, object]


def told(host: Path, scratch: Path, *, whole: bool, vendor: str, options: Tree) -> str:
    """Everything, or each sort of device in a line with how many there are."""
    found = []
    wishes = json.dumps([{"name": vendor, "options": dict(options)}]) if options else "[]"
    for text in (KUBELET, CLAIMS):
        policy = scratch / "policy.yaml"
        policy.write_text(f"{text}\nvendors: {wishes}\n")
        found.append(look_at(str(host), policy, "n1", trace=False))
    kubelet, claims = found
    resources = cast("Tree", to_tree(document_of(kubelet, "kubelet")))
    published = slices(claims).objects
    wanted = classes(claims).objects
    if whole:
        return yaml.safe_dump_all([{"kubelet": resources}, *published, *wanted], sort_keys=False)
    return "".join(f"{line}\n" for line in _lines(resources, published, wanted))


def _lines(resources: Tree, published: Iterable[Json], wanted: Iterable[Json]) -> Iterable[str]:
    for name, devices in sorted(resources.items()):
        ids = cast("list[Tree]", devices)
        nodes = Counter(str(device.get("numaNodes")) for device in ids)
        yield f"kubelet {name}: {len(ids)}, by NUMA nodes {_counted(nodes)}"
    specs = [cast("Tree", one["spec"]) for one in published]
    devices = [one for spec in specs for one in cast("list[Tree]", spec.get("devices", []))]
    sorts = Counter(_sort(device) for device in devices)
    for sort, count in sorted(sorts.items()):
        yield f"dra {count} x {sort}"
    for spec in specs:
        sets = cast("list[Tree]", spec.get("sharedCounters", []))
        names = Counter(" ".join(sorted(cast("Tree", one["counters"]))) for one in sets)
        for name, count in sorted(names.items()):
            yield f"dra {count} x counters {name}"
    for one in wanted:
        spec = cast("Tree", one["spec"])
        yield f"class {cast('Tree', one['metadata'])['name']}: {spec.get('extendedResourceName')}"


def _sort(device: Tree) -> str:
    """What a device has in common with others."""
    facts = {
        key: next(iter(cast("Tree", value).values()))
        for key, value in cast("Tree", device.get("attributes", {})).items()
        if key.rpartition("/")[2] not in _OWN
    }
    amounts = {
        key: cast("Tree", value)["value"]
        for key, value in cast("Tree", device.get("capacity", {})).items()
    }
    words = (f"{key}={value!s}" for key, value in sorted({**facts, **amounts}.items()))
    counted = sum(
        len(cast("Tree", one["counters"]))
        for one in cast("list[Tree]", device.get("consumesCounters", []))
    )
    return " ".join(words) + (f" (takes {counted} counters)" if counted else "")


def _counted(found: Counter[str]) -> str:
    return ", ".join(f"{key} {count}x" for key, count in sorted(found.items()))

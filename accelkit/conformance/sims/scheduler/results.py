"""What is written into a claim when it gets its devices. Not here: the search for them."""

import random
import uuid
from collections.abc import Mapping, Sequence

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.values import part, parts, text, texts
from accelkit.conformance.sims.scheduler.allocator import Choice
from accelkit.conformance.sims.scheduler.capacity import written
from accelkit.conformance.sims.scheduler.pools import Json, capacities


def allocation(
    claim: Json,
    choices: Sequence[Choice],
    classes: Mapping[str, Json],
    node: str,
    rng: random.Random,
) -> Object:
    """``status.allocation`` of *claim*, but for its time."""
    results = [_result(choice, rng) for choice in choices]
    config = _config(claim, choices, classes)
    devices: Object = {"results": results, **({"config": config} if config else {})}
    selector = _node_selector(choices, node)
    return {"devices": devices, **({"nodeSelector": selector} if selector else {})}


def _result(choice: Choice, rng: random.Random) -> Object:
    driver, pool, name = choice.device.id
    made: Object = {"request": choice.request, "driver": driver, "pool": pool, "device": name}
    if choice.admin:
        made["adminAccess"] = True
    if "tolerations" in choice.wanted:
        made["tolerations"] = choice.wanted["tolerations"]
    for key in ("bindingConditions", "bindingFailureConditions"):
        if key in choice.device.item:
            made[key] = choice.device.item[key]
    if choice.device.shareable:
        made["shareID"] = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        consumed = {
            key: written(choice.taken[key], text(found, "value"))
            for key, found in capacities(choice.device).items()
        }
        made |= {"consumedCapacity": consumed} if consumed else {}
    return made


def _config(claim: Json, choices: Sequence[Choice], classes: Mapping[str, Json]) -> list[Object]:
    """Blocks of the classes, then those of the claim; for all requests where none is named."""
    names = list(dict.fromkeys(choice.request for choice in choices))
    by_class: dict[str, list[str]] = {}
    for choice in choices:
        requests = by_class.setdefault(text(choice.wanted, "deviceClassName"), [])
        if choice.request not in requests:
            requests.append(choice.request)
    made = [
        {"source": "FromClass", **_requests(requests, names), "opaque": block["opaque"]}
        for name, requests in by_class.items()
        for block in parts(classes[name], "spec", "config")
    ]
    for block in parts(claim, "spec", "devices", "config"):
        wanted = texts(block, "requests")
        if not wanted or any(_named(name, wanted) for name in names):
            made.append(
                {"source": "FromClaim", **_requests(wanted, names), "opaque": block["opaque"]}
            )
    return made


def _requests(wanted: list[str], names: list[str]) -> Object:
    everything = all(_named(name, wanted) for name in names)
    return {} if everything or not wanted else {"requests": wanted}


def _named(name: str, wanted: Sequence[str]) -> bool:
    return name in wanted or name.partition("/")[0] in wanted


def _node_selector(choices: Sequence[Choice], node: str) -> Object:
    """Where the devices can be used: on one node, on those of a selector, or anywhere."""
    fields: list[Object] = []
    expressions: list[Object] = []
    for choice in choices:
        placed = choice.device.placed
        if "nodeName" in placed or choice.device.item.get("bindsToNode") is True:
            only = {"key": "metadata.name", "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        for term in parts(part(placed, "nodeSelector"), "nodeSelectorTerms"):
            fields += [r for r in parts(term, "matchFields") if r not in fields]
            expressions += [r for r in parts(term, "matchExpressions") if r not in expressions]
    if not fields and not expressions:
        return {}
    made: Object = {"matchExpressions": expressions} if expressions else {}
    return {"nodeSelectorTerms": [{**made, **({"matchFields": fields} if fields else {})}]}

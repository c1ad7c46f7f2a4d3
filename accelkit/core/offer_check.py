"""What is wrong with offers that are spelt right. Not here: the rest of a policy."""

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from accelkit.core.backend import BackendFactory
from accelkit.core.limits import SHARES_LIMIT, resource_name_problem
from accelkit.core.not_yet import TEXT
from accelkit.core.policy import Divide, Inject, Offer, Sharing
from accelkit.core.serde.keys import child, did_you_mean
from accelkit.core.values import Enforcement, is_dns_label

Found: TypeAlias = Iterator[tuple[str, str]]
"""(path, text) for each problem."""

OFFER_NAME_LIMIT = 40
OFFERS_LIMIT = 256
"""Each is looked at for each device at every change, and may be a resource with its own socket."""
DRA = "dra"
IN_TREE = frozenset({DRA, "kubelet"})
FUTURE_BACKENDS = frozenset({"extended"})
"""Backends that accelkit will have; anything else that is not installed is a mistake."""
CLAIM_KEYS = ("enforce", "timeslice")
_PLACEHOLDERS = ("domain", "kind", "profile")


def offer_problems(offers: Iterable[Offer], backends: Mapping[str, BackendFactory] | None) -> Found:
    """What is wrong with *offers*; *backends* are those that are installed, if that is known."""
    offers = tuple(offers)
    if len(offers) > OFFERS_LIMIT:
        yield "$.offers", f"expected at most {OFFERS_LIMIT}, found {len(offers)}"
        return
    yield from _same_resource(offers)
    for n, offer in enumerate(offers):
        path = child("$.offers", n)
        if not is_dns_label(offer.name, OFFER_NAME_LIMIT):
            expected = f"expected a DNS label of at most {OFFER_NAME_LIMIT} characters"
            yield f"{path}.name", f"{expected}, found {offer.name!r}"
        yield from _through(offer.through, f"{path}.through", backends)
        yield from _resource(offer.resource, f"{path}.resource")
        if offer.through == DRA:
            if offer.resource:
                yield f"{path}.resource", f"means nothing through {offer.through}"
            if offer.inject is not Inject.DIRECT:
                yield f"{path}.inject", f"means nothing through {offer.through}"
        elif offer.extended_resource:
            yield f"{path}.extendedResource", "means something only through dra"
        yield from _sharing(offer, f"{path}.sharing")


def _through(name: str, path: str, backends: Mapping[str, BackendFactory] | None) -> Found:
    installed = IN_TREE if backends is None else set(backends)
    if name in installed:
        return
    if name in FUTURE_BACKENDS:
        yield path, TEXT
    elif backends is not None:
        hint = did_you_mean(name, installed) or f"; there is {listed(installed)}"
        yield path, f"no backend {name!r} is installed{hint}"


def _resource(template: str, path: str) -> Found:
    if not template:
        return
    try:
        pieces = [*string.Formatter().parse(template)]
    except ValueError as error:
        yield path, f"{template!r} is not a template: {error}"
        return
    rendered = ""
    for text, placeholder, spec, conversion in pieces:
        rendered += text
        if placeholder is None:
            continue
        if spec or conversion:
            yield path, f"{{{placeholder}}} takes no format"
            return
        if placeholder not in _PLACEHOLDERS:
            hint = did_you_mean(placeholder, _PLACEHOLDERS)
            words = " ".join(f"{{{p}}}" for p in _PLACEHOLDERS)
            yield path, f"unknown placeholder {{{placeholder}}}{hint}; there are {words}"
            return
        rendered += "x.example" if placeholder == "domain" else "x"
    if problem := resource_name_problem(rendered):
        yield path, problem


def _same_resource(offers: Iterable[Offer]) -> Found:
    first: dict[str, str] = {}
    for n, offer in enumerate(offers):
        path = f"{child('$.offers', n)}.resource"
        if offer.resource and "{" not in offer.resource:
            other = first.setdefault(offer.resource, path)
            if other != path:
                yield path, f"{offer.resource} is the name at {other} already"


def _sharing(offer: Offer, path: str) -> Found:
    sharing = offer.sharing
    if not 1 <= sharing.shares <= SHARES_LIMIT:
        yield f"{path}.shares", f"expected 1 to {SHARES_LIMIT}, found {sharing.shares}"
    if sharing.unit < 1:
        yield f"{path}.unit", "must be at least 1"
    for n, key in enumerate(sharing.claims_may_ask):
        if key not in CLAIM_KEYS:
            yield child(f"{path}.claimsMayAsk", n), f"expected one of {listed(CLAIM_KEYS)}"
    if offer.through == "kubelet":
        yield from _kubelet_sharing(sharing, path)
    if offer.extended_resource and sharing.divide is Divide.REQUESTED:
        yield f"{path}.divide", "requested: an extended resource would always ask for everything"
    if sharing.enforce is Enforcement.MPS and offer.select.partition:
        yield f"{path}.enforce", "mps is not offered on partitions"


def _kubelet_sharing(sharing: Sharing, path: str) -> Found:
    if sharing.divide is Divide.REQUESTED:
        yield f"{path}.divide", "requested: pods have no way to ask through kubelet"
    if sharing.enforce is Enforcement.CGROUP:
        yield f"{path}.enforce", "cgroup needs to know the pod, which only dra does"
    if sharing.claims_may_ask:
        yield f"{path}.claimsMayAsk", "there are no claims through kubelet"


def repeated(path: str, names: list[str]) -> Found:
    times = Counter(names)
    for n, name in enumerate(names):
        if times[name] > 1 and names.index(name) < n:
            yield child(path, n), f"{name!r} is at {child(path, names.index(name))} already"


def listed(words: Iterable[str]) -> str:
    """*words* in a sentence."""
    return ", ".join(sorted(words)) or "none"

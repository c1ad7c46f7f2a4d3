"""What is wrong with offers that are spelt right. Not here: the rest of a policy."""

import string
from collections import Counter
from collections.abc import Iterable, Mapping

from accelkit.core.backend import BackendFactory
from accelkit.core.limits import resource_name_problem
from accelkit.core.policy import Inject, Offer
from accelkit.core.serde.keys import child, did_you_mean
from accelkit.core.sharing_check import Found, sharing_problems
from accelkit.core.values import is_dns_label

OFFER_NAME_LIMIT = 40
OFFERS_LIMIT = 256
"""Each is looked at for each device at every change, and may be a resource with its own socket."""
DRA = "dra"
_PLACEHOLDERS = ("domain", "kind", "profile")
_EXTENDED_PLACEHOLDERS = ("profile",)


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
        yield from _template(offer.resource, _PLACEHOLDERS, f"{path}.resource")
        extended = f"{path}.extendedResource"
        yield from _template(offer.extended_resource, _EXTENDED_PLACEHOLDERS, extended)
        if offer.through == DRA:
            if offer.resource:
                yield f"{path}.resource", f"means nothing through {offer.through}"
            if offer.inject is not Inject.DIRECT:
                yield f"{path}.inject", f"means nothing through {offer.through}"
        elif offer.extended_resource:
            yield extended, "means something only through dra"
        yield from sharing_problems(offer, f"{path}.sharing")


def _through(name: str, path: str, backends: Mapping[str, BackendFactory] | None) -> Found:
    if backends is not None and name not in backends:
        hint = did_you_mean(name, backends) or f"; there is {listed(backends)}"
        yield path, f"no backend {name!r} is installed{hint}"


def _template(template: str, known: tuple[str, ...], path: str) -> Found:
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
        if placeholder not in known:
            hint = did_you_mean(placeholder, known)
            words = " ".join(f"{{{p}}}" for p in known)
            yield path, f"unknown placeholder {{{placeholder}}}{hint}; there are {words}"
            return
        rendered += "x.example" if placeholder == "domain" else "x"
    if problem := resource_name_problem(rendered):
        yield path, problem


def _same_resource(offers: Iterable[Offer]) -> Found:
    """A name that is not different for each profile belongs to one offer."""
    first: dict[tuple[str, str], str] = {}
    for n, offer in enumerate(offers):
        names = {"resource": offer.resource, "extendedResource": offer.extended_resource}
        for key, name in names.items():
            path = f"{child('$.offers', n)}.{key}"
            if name and "{" not in name:
                other = first.setdefault((key, name), path)
                if other != path:
                    yield path, f"{name} is the name at {other} already"


def repeated(path: str, names: list[str]) -> Found:
    times = Counter(names)
    for n, name in enumerate(names):
        if times[name] > 1 and names.index(name) < n:
            yield child(path, n), f"{name!r} is at {child(path, names.index(name))} already"


def listed(words: Iterable[str]) -> str:
    """*words* in a sentence."""
    return ", ".join(sorted(words)) or "none"

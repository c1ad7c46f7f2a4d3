"""The device classes that an extended resource needs, from a view. Pure.

Not here: making them, which is an administrator's act.
"""

from collections.abc import Iterator

import attrs

from accelkit.core.kube import CLASSES, Json
from accelkit.core.model import Device
from accelkit.core.offers import WHOLE, extended_of, profile_in_names
from accelkit.core.policy import DraPolicy, Offer
from accelkit.core.values import FrozenMap, dns_label, freeze
from accelkit.core.view import View

THROUGH = "dra"
OR = " || "
_PER_PROFILE = "{profile}"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class DeviceClass:
    """A class that maps a resource name to devices of one offer."""

    name: str
    resource: str
    """The extended resource's name."""
    offer: str
    profile: str | None = None
    """None: of any profile."""
    drivers: tuple[str, ...]
    """Those whose devices the offer has on this node, sorted."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Which devices it has, an expression for each driver."""
        return tuple(self._of(driver) for driver in self.drivers)

    @property
    def expression(self) -> str:
        """Which devices it has, in the Common Expression Language."""
        if len(self.terms) == 1:
            return self.terms[0]
        return OR.join(f"({term})" for term in self.terms)

    def _of(self, driver: str) -> str:
        ours = f'device.attributes["{driver}"]'
        term = f'device.driver == "{driver}" && {ours}.offer == "{self.offer}"'
        return term if self.profile is None else f'{term} && {ours}.profile == "{self.profile}"'

    @property
    def spec(self) -> Json:
        """As the API server has it."""
        return {
            "extendedResourceName": self.resource,
            "selectors": [{"cel": {"expression": self.expression}}],
        }


def render(view: View, policy: DraPolicy) -> FrozenMap[str, DeviceClass]:
    """The classes that the offers of *view* need, by name.

    An offer whose ``extendedResource`` names ``{profile}`` has one for each profile that it has on
    this node, all others have one.
    """
    found: dict[str, DeviceClass] = {}
    for device, offer in _offered(view):
        one = _class_of(policy, device, offer)
        before = found.get(one.name)
        if before is not None:
            one = attrs.evolve(one, drivers=tuple(sorted({*before.drivers, *one.drivers})))
        found[one.name] = one
    return FrozenMap(found)


def _offered(view: View) -> Iterator[tuple[Device, Offer]]:
    for device in view.offered.values():
        given = view.assignments[device.id]
        terms = None if given.leaving else given.terms
        if terms is not None and terms.through == THROUGH and terms.extended_resource:
            yield device, terms


def _class_of(policy: DraPolicy, device: Device, offer: Offer) -> DeviceClass:
    profile = device.profile or WHOLE if _PER_PROFILE in offer.extended_resource else None
    label = ".".join(dns_label(part) for part in profile_in_names(device).split("."))
    return DeviceClass(
        name=offer.name if profile is None else f"{offer.name}-{label}",
        resource=extended_of(offer, device),
        offer=offer.name,
        profile=profile,
        drivers=(policy.driver_of(device.id.vendor),),
    )


def class_object(one: DeviceClass) -> Json:
    """*one* as an object to apply."""
    return {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.kind,
        "metadata": {"name": one.name},
        "spec": one.spec,
    }

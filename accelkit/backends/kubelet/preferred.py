"""Which devices of a resource go well together. Pure. Not here: the call that asks."""

from collections.abc import Collection, Iterable, Sequence

import attrs

from accelkit.backends.kubelet.document import Entry
from accelkit.core.model import DeviceId, Locality
from accelkit.core.policy import Offer
from accelkit.core.preference import Legality, Topology, prefer
from accelkit.core.topology import legality_of, topology_of, unit_of
from accelkit.core.view import View


@attrs.frozen(kw_only=True, eq=False)
class Preference:
    """What a choice among the devices of a resource is made by; made when the view changes."""

    view: View
    offer: Offer
    topology: Topology
    legal: Legality | None

    def fits(self, view: View, offer: Offer) -> bool:
        """Whether it is still true for *view*: health and holders make no difference to it."""
        old = self.view
        return (
            self.offer == offer
            and old.assignments == view.assignments
            and _places(old) == _places(view)
            and old.snapshot.links == view.snapshot.links
            and old.snapshot.groups == view.snapshot.groups
        )


def _places(view: View) -> list[tuple[DeviceId, DeviceId, Locality]]:
    return [(device.id, device.root, device.locality) for device in view.snapshot.devices]


def preference_of(
    view: View, entries: Iterable[Entry], before: Preference | None
) -> Preference | None:
    """How to choose among *entries*; None: there is nothing to choose from."""
    offer = next((entry.terms for entry in entries if entry.terms and not entry.why), None)
    if offer is None:
        return before
    if before is not None and before.fits(view, offer):
        return before
    topology = topology_of(view, offer)
    return Preference(
        view=view, offer=offer, topology=topology, legal=legality_of(view, offer, topology)
    )


def choose(
    preference: Preference | None, available: Sequence[str], must: Sequence[str], size: int
) -> tuple[str, ...]:
    """The *size* ids of *available* that go best together, those of *must* among them."""
    if preference is None:
        return lowest(available, must, size)
    unit = unit_of(preference.view, preference.offer, [*available, *must])
    choice = prefer(preference.topology, available, must, size, unit=unit, legal=preference.legal)
    return choice.ids


def lowest(available: Collection[str], must: Collection[str], size: int) -> tuple[str, ...]:
    """Those of *must*, then the first of *available*: for when nothing is known."""
    return tuple(dict.fromkeys((*sorted(must), *sorted(available))))[: max(0, size)]

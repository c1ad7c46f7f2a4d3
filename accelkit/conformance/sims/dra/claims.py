"""The claims that a simulated kubelet has prepared, for which pods. Not here: when it does.

Source:
    kubernetes v1.37.2, pkg/kubelet/cm/dra/manager.go; seen on 1.34 to 1.37.
"""

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field, frozen

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.api.values import parts, text
from accelkit.conformance.sims.dra.drivers import DriverFault, Drivers
from accelkit.conformance.sims.dra.events import (
    PrepareAnswered,
    PrepareAsked,
    PreparedDevice,
    UnprepareAnswered,
    UnprepareAsked,
)
from accelkit.conformance.sims.events import Journal
from accelkit.core.allocation import ClaimRef
from accelkit.core.kube import CLAIMS

Json = Mapping[str, object]
_OF_TEMPLATE = "resource.kubernetes.io/pod-claim-name"


class NotPrepared(Exception):
    """A pod's claims cannot be had now; the text is that of its event."""


@frozen
class PodId:
    """A pod as claims know it."""

    uid: str
    namespace: str
    name: str


@define
class Known:
    """A claim of this node. It outlives the kubelet, but for `prepared`."""

    ref: ClaimRef
    drivers: tuple[str, ...]
    pods: set[str] = field(factory=set)
    """Uids."""
    devices: dict[str, tuple[PreparedDevice, ...]] = field(factory=dict)
    """By driver; what drivers answered last."""
    prepared: bool = False
    """In this life of the kubelet."""


class Claims:
    """Every claim that drivers were asked for and that is not given back.

    Args:
        api: Where claims are.
        journal: Gets the events.
    """

    def __init__(self, api: ApiSim, journal: Journal) -> None:
        self._api = api
        self._journal = journal
        self.known: dict[str, Known] = {}
        """By uid."""

    def restart(self) -> None:
        """A kubelet that starts anew does not know what is prepared."""
        for one in self.known.values():
            one.prepared = False

    async def prepare(self, pod: PodId, names: Iterable[str], drivers: Drivers) -> list[Known]:
        """Let every claim of a pod be prepared, by one call for each driver.

        Raises:
            NotPrepared: Something is missing.
        """
        wanted = [self._wanted(pod, self._read(pod.namespace, name)) for name in names]
        for one in wanted:
            if missing := sorted(set(one.drivers) - drivers.names):
                raise NotPrepared(
                    f"prepare dynamic resources: DRA driver {missing[0]} is not registered"
                )
        for one in wanted:
            self.known.setdefault(one.ref.uid, one).pods.add(pod.uid)
        asked = [self.known[one.ref.uid] for one in wanted]
        fresh = [one for one in asked if not one.prepared]
        for driver in dict.fromkeys(name for one in fresh for name in one.drivers):
            await self._ask(pod, driver, [c for c in fresh if driver in c.drivers], drivers)
        for one in fresh:
            one.prepared = True
        return asked

    def _read(self, namespace: str, name: str) -> Json:
        if not reachable(self._api):
            raise NotPrepared(f"fetch ResourceClaim {name}: connection refused")
        if not self._api.has(CLAIMS, name, namespace):
            raise NotPrepared(f'fetch ResourceClaim {name}: resourceclaims "{name}" not found')
        return self._api.get(CLAIMS, name, namespace)

    def _wanted(self, pod: PodId, claim: Json) -> Known:
        ref = ref_of(claim)
        made_for = text(claim, "metadata", "annotations", _OF_TEMPLATE)
        owners = {text(one, "uid") for one in parts(claim, "metadata", "ownerReferences")}
        if made_for and pod.uid not in owners:
            raise NotPrepared(f"ResourceClaim {ref.name} is not owned by pod {pod.name}")
        reserved = {text(one, "uid") for one in parts(claim, "status", "reservedFor")}
        if pod.uid not in reserved:
            raise NotPrepared(f"pod {pod.name} is not allowed to use ResourceClaim {ref.name}")
        for other in self.known.values():
            same = (other.ref.namespace, other.ref.name) == (ref.namespace, ref.name)
            if same and other.ref.uid != ref.uid:
                raise NotPrepared(f"old ResourceClaim {ref.name} with same name is still in use")
        results = parts(claim, "status", "allocation", "devices", "results")
        return Known(ref, tuple(dict.fromkeys(text(one, "driver") for one in results)))

    async def _ask(
        self, pod: PodId, driver: str, claims: Sequence[Known], drivers: Drivers
    ) -> None:
        one = drivers.instance(driver)
        if one is None:
            raise NotPrepared(f"DRA driver {driver} is not registered")
        refs = tuple(claim.ref for claim in claims)
        self._journal.note(PrepareAsked(pod.name, driver, one.path, refs))
        devices: Mapping[str, tuple[PreparedDevice, ...]] = {}
        try:
            answered = await drivers.prepare(one, refs)
            devices, error = answered.devices, self._first(answered.errors)
        except DriverFault as fault:
            error = f"prepare dynamic resources: {fault}"
        self._journal.note(PrepareAnswered(pod.name, driver, one.path, devices, error))
        if error:
            raise NotPrepared(error)
        for claim in claims:
            claim.devices[driver] = devices[claim.ref.uid]

    def _first(self, errors: Mapping[str, str]) -> str:
        for uid, error in errors.items():
            known = self.known.get(uid)
            name = known.ref.name if known else uid
            return (
                "prepare dynamic resources: NodePrepareResources failed for ResourceClaim "
                f"{name}: {error}"
            )
        return ""

    async def unprepare(self, pods: Iterable[str], drivers: Drivers) -> None:
        """Take *pods* from their claims, and give back those that are nobody's then.

        Raises:
            DriverFault: Some could not be given back; to be tried again.
        """
        gone = set(pods)
        mine = [one for one in self.known.values() if one.pods & gone]
        last = [one for one in mine if one.pods <= gone]
        for driver in dict.fromkeys(name for one in last for name in one.drivers):
            await self._give_back(driver, [c for c in last if driver in c.drivers], drivers)
        for one in last:
            self.known.pop(one.ref.uid, None)
        for one in mine:
            one.pods -= gone

    async def _give_back(self, driver: str, claims: Sequence[Known], drivers: Drivers) -> None:
        one = drivers.instance(driver)
        if one is None:
            raise DriverFault(f"DRA driver {driver} is not registered")
        refs = tuple(claim.ref for claim in claims)
        self._journal.note(UnprepareAsked(driver, one.path, refs))
        try:
            errors = (await drivers.unprepare(one, refs)).errors
            fault = "; ".join(f"NodeUnprepareResources failed: {text}" for text in errors.values())
        except DriverFault as error:
            fault = str(error)
        self._journal.note(UnprepareAnswered(driver, one.path, refs, fault))
        if fault:
            raise DriverFault(fault)


def ref_of(claim: Json) -> ClaimRef:
    return ClaimRef(
        uid=text(claim, "metadata", "uid"),
        namespace=text(claim, "metadata", "namespace"),
        name=text(claim, "metadata", "name"),
    )


async def until_reachable(api: ApiSim, look_s: float) -> None:
    """Return when the API server takes connections, looking every *look_s* seconds."""
    while not reachable(api):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(look_s)


def reachable(api: ApiSim) -> bool:
    """Whether the API server takes connections."""
    with socket.socket() as probe:
        return bool(api.port) and probe.connect_ex(("127.0.0.1", api.port)) == 0

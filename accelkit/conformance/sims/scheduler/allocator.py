"""The search for devices on one node: the first that fit, in the order of lists.

Not here: which node, and what is written.

Source:
    k8s.io/dynamic-resource-allocation v0.37.2,
    structured/internal/incubating/allocator_incubating.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from attrs import define, field, frozen

from accelkit.conformance.sims.api.values import number, part, parts, text
from accelkit.conformance.sims.scheduler import capacity, cel, constraints, wants
from accelkit.conformance.sims.scheduler.held import Held
from accelkit.conformance.sims.scheduler.pools import (
    Counters,
    Device,
    DeviceId,
    Json,
    Pool,
    asked_capacities,
    capacities,
)

RESULTS = 32
"""Devices of a claim."""
_STEPS = 20_000
"""Tries, instead of the ten seconds that a real scheduler gives itself."""


class Unusable(Exception):
    """A pool contradicts itself, and nothing else fits; the text is the scheduler's."""


class Broken(Exception):
    """The search itself failed: no node is tried any more; the text is the scheduler's."""


@frozen
class Choice:
    """A device for a request."""

    request: str
    """With the alternative, as ``main/sub``."""
    wanted: Json = field(repr=False)
    device: Device
    taken: Mapping[str, Fraction] = field(repr=False)

    @property
    def admin(self) -> bool:
        return self.wanted.get("adminAccess") is True


@define
class Search:
    """One search: for all claims of a pod together."""

    claims: Sequence[Json]
    """Those that have no devices yet."""
    pools: Sequence[Pool]
    held: Held
    classes: Mapping[str, Json]
    """All of them, by name."""
    chosen: list[list[Choice]] = field(factory=list)
    """For each claim."""
    _candidates: list[Device] = field(factory=list)
    """Every device that can be had at all, in the order in which they are tried."""
    _pool_of: dict[DeviceId, Pool] = field(factory=dict)
    _left: dict[tuple[str, str], Counters] = field(factory=dict)
    """What claims leave of each pool's counters."""
    _suitable: dict[tuple[DeviceId, str, tuple[str, ...]], bool] = field(factory=dict)
    _steps: int = 0

    def run(self) -> bool:
        """Whether there are devices for all; they are in `chosen` then.

        Raises:
            Unusable: There are none, and a pool is invalid.
            Broken: A selector cannot be evaluated, or all of a pool are wanted that is not whole.
            UnsupportedCel: A selector is not simulated.
        """
        self.chosen = [[] for _ in self.claims]
        for pool in self.pools:
            if pool.usable:
                self._candidates += pool.devices
                self._pool_of |= {device.id: pool for device in pool.devices}
                self._left[pool.driver, pool.name] = _left(pool, self.held)
        for index in range(len(self.claims)):
            self._check(index)
        if self._claim(0):
            return True
        if any(pool.invalid for pool in self.pools):
            raise Unusable("invalid resource pools were encountered")
        return False

    def _check(self, claim: int) -> None:
        """Whether the claim can be had as a whole at all."""
        least = 0
        for request in wants.requests(self.claims[claim]):
            asked = wants.alternatives(request)
            more = min(self._count(claim, name, wanted) for name, wanted in asked)
            if more > RESULTS - least:
                raise Broken(
                    f"claim {wants.full_name(self.claims[claim])}, request {text(request, 'name')}:"
                    f" adding {more} devices exceeds the claim limit of {RESULTS}, "
                    f"with {least} already accounted for"
                )
            least += more

    def _count(self, claim: int, request: str, wanted: Json) -> int:
        if text(wanted, "allocationMode") != "All":
            return number(wanted, "count")
        for pool in self.pools:
            if not pool.usable:
                state = "invalid" if pool.invalid else "being updated"
                whose = f"claim {wants.full_name(self.claims[claim])}"
                raise Broken(
                    f"{whose}, request {request.rpartition('/')[2]}: asks for all devices, "
                    f"but resource pool {pool.driver}/{pool.name} is currently {state}"
                )
        return len(self._every(claim, wanted))

    def _every(self, claim: int, wanted: Json) -> list[Device]:
        """All devices for a request, whether they can be had or not."""
        return [
            device
            for device in self._candidates
            if self._suits(claim, wanted, device) and wants.able(wanted, device)
        ]

    def _claim(self, index: int) -> bool:
        return index == len(self.claims) or self._request(index, 0)

    def _request(self, claim: int, index: int) -> bool:
        requests = wants.requests(self.claims[claim])
        if index == len(requests):
            return self._claim(claim + 1)
        return any(
            self._devices(claim, index, name, wanted)
            for name, wanted in wants.alternatives(requests[index])
        )

    def _devices(self, claim: int, request: int, name: str, wanted: Json) -> bool:
        """Devices for a request, and for all that come after it."""
        if text(wanted, "allocationMode") == "All":
            every = self._every(claim, wanted)
            return bool(every) and self._all(claim, request, (name, wanted), every)
        return self._some(claim, request, (name, wanted), 0, number(wanted, "count"))

    def _all(
        self, claim: int, request: int, asked: tuple[str, Json], devices: Sequence[Device]
    ) -> bool:
        before = len(self.chosen[claim])
        for device in devices:
            choice = self._choice(claim, asked, device)
            if choice is None:
                del self.chosen[claim][before:]
                return False
            self.chosen[claim].append(choice)
        if self._request(claim, request + 1):
            return True
        del self.chosen[claim][before:]
        return False

    def _some(
        self, claim: int, request: int, asked: tuple[str, Json], start: int, missing: int
    ) -> bool:
        if not missing:
            return self._request(claim, request + 1)
        for index in range(start, len(self._candidates)):
            choice = self._choice(claim, asked, self._candidates[index])
            if choice is None:
                continue
            self.chosen[claim].append(choice)
            if self._some(claim, request, asked, index + 1, missing - 1):
                return True
            self.chosen[claim].pop()
        return False

    def _suits(self, claim: int, wanted: Json, device: Device) -> bool:
        """Whether the class and the request select the device."""
        name = text(wanted, "deviceClassName")
        own = cel.selectors(wanted)
        key = device.id, name, own
        if key not in self._suitable:
            of_class = cel.selectors(part(self.classes[name], "spec"))
            whole = f"claim {wants.full_name(self.claims[claim])}"
            self._suitable[key] = _selected(f"class {name}", of_class, device) and _selected(
                whole, own, device
            )
        return self._suitable[key]

    def _choice(self, claim: int, asked: tuple[str, Json], device: Device) -> Choice | None:
        """The device for the request, if it is to be had beside all that is chosen."""
        self._steps += 1
        if self._steps > _STEPS:
            raise Broken("timed out trying to allocate devices")
        name, wanted = asked
        if len(self.chosen[claim]) == RESULTS or self._taken(claim, wanted, device):
            return None
        if not self._suits(claim, wanted, device):
            return None
        taken = self._shared(wanted, device)
        if taken is None or not self._counted(device) or wants.tainted(wanted, device):
            return None
        others = [(choice.request, choice.device) for choice in self.chosen[claim]]
        rules = parts(self.claims[claim], "spec", "devices", "constraints")
        if not constraints.hold(rules, others, (name, device)):
            return None
        return Choice(name, wanted, device, taken)

    def _all_chosen(self) -> Iterator[Choice]:
        return (choice for choices in self.chosen for choice in choices)

    def _taken(self, claim: int, wanted: Json, device: Device) -> bool:
        """Whether somebody has the whole device; for admins, whether this claim has it."""
        admin = wanted.get("adminAccess") is True
        if not admin and device.id in self.held.whole:
            return True
        rivals = self.chosen[claim] if admin else self._all_chosen()
        return not device.shareable and any(c.device.id == device.id for c in rivals)

    def _shared(self, wanted: Json, device: Device) -> Mapping[str, Fraction] | None:
        """What is taken of the device's capacities; None: there is not so much."""
        taken = capacity.consumed(asked_capacities(wanted), capacities(device))
        if taken is None:
            return None
        used = dict(self.held.shared.get(device.id, {}))
        for choice in self._all_chosen():
            if choice.device.id == device.id and device.shareable:
                for key, value in choice.taken.items():
                    used[key] = used.get(key, Fraction(0)) + value
        return taken if capacity.fits(taken, used, capacities(device)) else None

    def _counted(self, device: Device) -> bool:
        """Whether the pool has the counters; a device with shares out has paid for itself."""
        mine = {choice.device.id for choice in self._all_chosen()}
        if device.shareable and (device.id in self.held.shared or device.id in mine):
            return True
        if not device.counters:
            return True
        pool = self._pool_of[device.id]
        left = dict(self._left[pool.driver, pool.name])
        for other in (*self._paying(pool), device):
            for counter, value in other.counters.items():
                left[counter] -= value
        # One counter that is overdrawn keeps every device of the pool that has counters.
        return all(value >= 0 for value in left.values())

    def _paying(self, pool: Pool) -> list[Device]:
        """Devices of *pool* that are chosen now; one with shares pays once, if none were out."""
        found: dict[DeviceId, Device] = {}
        many: list[Device] = []
        for device in (choice.device for choice in self._all_chosen()):
            if self._pool_of[device.id] is not pool:
                continue
            if not device.shareable:
                many.append(device)
            elif device.id not in self.held.shared:
                found[device.id] = device
        return [*many, *found.values()]


def _left(pool: Pool, held: Held) -> Counters:
    """The counters of *pool* without those of devices that are held, and still listed."""
    left = dict(pool.counters)
    for device in (*pool.devices, *pool.elsewhere):
        if held.takes_counters(device.id):
            for counter, value in device.counters.items():
                left[counter] -= value
    return left


def _selected(whose: str, expressions: Sequence[str], device: Device) -> bool:
    for index, expression in enumerate(expressions):
        try:
            if not cel.matches(expression, device):
                return False
        except cel.CelError as error:
            where = f"{whose}: selector #{index} on device {'/'.join(device.id)}"
            raise Broken(f"{where}: CEL runtime error: {error}") from None
    return True

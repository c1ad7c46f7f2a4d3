"""Which plugins are connected and which devices they listed, as a kubelet keeps it.

No sockets and no clock: whoever calls says what happened and what time it is.
Two generations differ. Up to 1.36 clients and endpoints are kept by resource name, so the end
of any of them disconnects whichever is registered; since 1.37 the socket path is part of the key.
Source: kubernetes pkg/kubelet/cm/devicemanager (manager.go, plugin/v1beta1), seen on
1.34.4, 1.35.4, 1.36.3 and 1.37.2.
"""

import random
from collections.abc import Iterable

from attrs import define, field, frozen

from accelkit.conformance.sims.events import ListedDevice, Options


@frozen(eq=False)
class Endpoint:
    """One connection to one plugin."""

    resource: str
    path: str
    options: Options = Options()


@define
class Listing:
    """What is known of one resource's devices."""

    healthy: set[str] = field(factory=set)
    unhealthy: set[str] = field(factory=set)
    known: dict[str, ListedDevice] = field(factory=dict)
    """The last list; the end of a stream makes devices unhealthy but leaves it."""


class AlreadyConnected(Exception):
    """Since 1.37: that path is in use, or was when the kubelet lost track of it."""


@define
class Devices:
    """The whole of it.

    Args:
        per_socket: Whether endpoints are kept by socket path too, as since 1.37.
        grace_s: How long capacity stays after the last endpoint of a resource is gone.
        rng: Decides what a kubelet leaves to the order of a map.
    """

    per_socket: bool
    grace_s: float
    rng: random.Random
    listings: dict[str, Listing] = field(factory=dict)
    gone: set[str] = field(factory=set)
    """Resources whose grace is over: the name stays in the status, with 0."""
    _clients: dict[tuple[str, str], Endpoint] = field(factory=dict)
    _store: dict[str, dict[str, Endpoint]] = field(factory=dict)
    _serving: dict[str, Endpoint | None] = field(factory=dict)
    """Who answers Allocate; None after a restart, before anyone registered."""
    _stopped: dict[str, float] = field(factory=dict)

    def connect(self, endpoint: Endpoint) -> None:
        """Let *endpoint* serve its resource from now on.

        Raises:
            AlreadyConnected: Its path is known; the client that had it is forgotten.
        """
        resource, path = endpoint.resource, endpoint.path
        if self.per_socket:
            known = self._store.setdefault(resource, {})
            if path in known:
                self._clients.pop((resource, path), None)
                raise AlreadyConnected(path)
            known[path] = endpoint
        self._clients[self._key(resource, path)] = endpoint
        self._serving[resource] = endpoint
        self._stopped.pop(resource, None)
        self.gone.discard(resource)
        self.listings.setdefault(resource, Listing())

    def end(self, resource: str, path: str, now: float) -> tuple[Endpoint, ...]:
        """Note that a stream ended, or that a registration was taken back.

        Returns:
            The connections that the kubelet closes for it: the one meant since 1.37, whichever
            is registered under the name up to 1.36; empty if it had forgotten the client.
        """
        client = self._clients.pop(self._key(resource, path), None)
        if client is None:
            return ()
        store = self._store.get(resource, {})
        store.pop(client.path, None)
        if store:
            # Any of those that are left, even if the one that ended did not serve.
            self._serving[resource] = self.rng.choice(list(store.values()))
            return (client,)
        listing = self.listings[resource]
        listing.unhealthy |= listing.healthy
        listing.healthy.clear()
        self._stopped[resource] = now
        return (client,)

    def listed(self, resource: str, devices: Iterable[ListedDevice]) -> None:
        """Take a list, whoever sent it; it replaces the one before."""
        devices = tuple(devices)
        self.listings[resource] = Listing(
            {device.id for device in devices if device.healthy},
            {device.id for device in devices if not device.healthy},
            {device.id: device for device in devices},
        )
        self.gone.discard(resource)

    def serving(self, resource: str) -> Endpoint | None:
        """Who answers Allocate; None if that one is stopped or never came."""
        return None if resource in self._stopped else self._serving.get(resource)

    def options(self, resource: str) -> Options:
        """What the one who answers Allocate can do, or could when it stopped."""
        endpoint = self._serving.get(resource)
        return Options() if endpoint is None else endpoint.options

    def has_endpoint(self, resource: str, now: float) -> bool:
        """Whether a container with such devices can be started at all."""
        self._expire(now)
        return resource in self._serving

    def amounts(self, now: float) -> dict[str, tuple[int, int]]:
        """Capacity and allocatable of every resource that ever was, in order of names."""
        self._expire(now)
        amounts = dict.fromkeys(self.gone, (0, 0))
        for name, listing in self.listings.items():
            healthy = len(listing.healthy)
            amounts[name] = (healthy + len(listing.unhealthy), healthy)
        return dict(sorted(amounts.items()))

    def restart(self, now: float) -> None:
        """Forget what a kubelet forgets: everything but the names."""
        for name in self.listings:
            self._stopped[name] = now
            self.listings[name] = Listing()
        self._clients.clear()
        self._store.clear()
        self._serving = dict.fromkeys(self.listings)

    def _key(self, resource: str, path: str) -> tuple[str, str]:
        return resource, path if self.per_socket else ""

    def _expire(self, now: float) -> None:
        for name, since in list(self._stopped.items()):
            if now - since >= self.grace_s:
                self._serving.pop(name, None)
                self.listings.pop(name, None)
                del self._stopped[name]
                self.gone.add(name)


def quantity(amount: int) -> str:
    """Write *amount* as the API server does: ``5k`` for 5000, ``1500`` as it is.

    Source: k8s.io/apimachinery pkg/api/resource, canonical form of a DecimalSI quantity.
    """
    for suffix in ("", "k", "M", "G"):
        if amount % 1000 or not amount:
            return f"{amount}{suffix}"
        amount //= 1000
    return f"{amount}T"

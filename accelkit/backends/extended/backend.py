"""Watches the classes that extended resources need. Not here: making them, and the devices."""

import asyncio
from contextlib import aclosing
from typing import ClassVar

from accelkit.backends.extended.document import THROUGH, DeviceClass, render
from accelkit.backends.extended.judging import problems_of
from accelkit.backends.leading import while_leading
from accelkit.core.backend import BackendStatus, NodePort
from accelkit.core.errors import BackendError, ConfigError
from accelkit.core.kube import CLASSES, Json
from accelkit.core.policy import DraPolicy, Policy
from accelkit.core.values import FrozenMap
from accelkit.core.view import View

NAME = "extended"
UNREAD = "classes-unknown"


class ExtendedBackend:
    """Says which classes the offers need, and tells what is wrong with those that are there.

    Args:
        policy: What drivers are called.
    """

    name: ClassVar[str] = NAME

    def __init__(self, policy: DraPolicy) -> None:
        self.policy = policy

    def render(self, view: View) -> FrozenMap[str, DeviceClass]:
        """The classes by name."""
        return render(view, self.policy)

    async def serve(self, node: NodePort) -> None:
        """Compare while this instance leads, until cancelled.

        Raises:
            ConfigError: There is no API access.
        """
        if node.kube is None:
            raise ConfigError([("$.kube.config", "no API server: classes cannot be watched")])
        # Nothing is registered or published here: what is wrong with classes is a problem.
        node.report(BackendStatus(backend=NAME, registered=True, published=True))
        while True:
            await node.leading.wait()
            watch = _Watch(self.policy, node)
            try:
                await while_leading(node, watch.run())
            finally:
                watch.solve_all()


class _Watch:
    """One term of leading."""

    def __init__(self, policy: DraPolicy, node: NodePort) -> None:
        self._policy = policy
        self._node = node
        self._classes: tuple[Json, ...] | None = None
        self._told: dict[tuple[str, str], tuple[str, str]] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._look())

    def solve_all(self) -> None:
        for code, subject in self._told:
            self._node.solved(code, subject)
        self._told = {}

    async def _follow(self) -> None:
        from accelkit.backends.kube.follow import follow  # noqa: PLC0415 - loads the transport

        assert self._node.kube is not None
        states = follow(self._node.kube, CLASSES, cached=True, told=self._heard)
        async with aclosing(states):
            async for classes in states:
                self._classes = tuple(classes.values())
                self._compare(self._node.view())

    async def _look(self) -> None:
        async for view in self._node.views():
            self._compare(view)

    def _heard(self, error: BackendError | None) -> None:
        if error is None:
            self._node.solved(UNREAD, NAME)
        else:
            remedy = error.remedy or "let the agent list and watch deviceclasses"
            self._node.problem(UNREAD, NAME, f"classes cannot be read: {error}", remedy)

    def _compare(self, view: View) -> None:
        if self._classes is None:
            return
        found = {
            (p.code, p.subject or ""): (p.reason, p.remedy)
            for p in problems_of(render(view, self._policy).values(), self._classes)
        }
        for (code, subject), said in found.items():
            if self._told.get((code, subject)) != said:
                self._node.problem(code, subject, *said)
        for code, subject in self._told.keys() - found.keys():
            self._node.solved(code, subject)
        self._told = found


def create(policy: Policy) -> ExtendedBackend:
    """The backend that *policy* describes."""
    return ExtendedBackend(policy.backends.dra)


def wanted(policy: Policy) -> bool:
    """Whether classes are to be watched."""
    named = any(o.extended_resource and o.through == THROUGH for o in policy.offers)
    return named and policy.backends.extended.check and policy.kube.config != "none"


def check(policy: Policy) -> tuple[tuple[str, str], ...]:
    """What of *policy* goes through here, which nothing can."""
    return tuple(
        (f"$.offers[{n}].through", "write dra, and the resource name as extendedResource")
        for n, offer in enumerate(policy.offers)
        if offer.through == NAME
    )

"""One process that is an agent of toys, with the policy in a file: what tests start and kill."""

import asyncio
import sys
import time
from pathlib import Path

import attrs

from accelkit.agent import process, running
from accelkit.agent.agent import Parts
from accelkit.agent.logs import configure
from accelkit.agent.reload import read_policy_file
from accelkit.core.backend import BackendFactory, NodePort
from accelkit.core.model import Holding
from accelkit.core.vendor import Vendor
from accelkit.core.view import View
from tests.agent import toys

VENDORS: tuple[type[toys.Toy], ...] = (toys.Toy, toys.Hanging, toys.Listening)


async def broken(_view: View) -> tuple[Holding, ...]:
    """A bug in a loop of our own."""
    raise ZeroDivisionError


async def stubborn(_view: View) -> tuple[Holding, ...]:
    """A loop of ours that cannot be cancelled."""
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            continue


class Blocking(toys.ToyBackend):
    """Holds up the loop when it should end."""

    async def serve(self, node: NodePort) -> None:
        try:
            await super().serve(node)
        finally:
            time.sleep(1000)  # noqa: ASYNC251 - that is what it is for


class Staying(toys.ToyBackend):
    """Does not end when it should."""

    async def serve(self, node: NodePort) -> None:
        try:
            await super().serve(node)
        finally:
            await asyncio.sleep(1000)


def with_fault(made: Parts, fault: str) -> Parts:
    """An agent that does not end as it should, or not at all."""
    match fault:
        case "--break":
            return attrs.evolve(made, holdings=broken)
        case "--stubborn":
            process.LAST_S = 2.0
            process.HUNG_S = 20.0  # the loop is busy at most, not hung
            return attrs.evolve(made, holdings=stubborn)
        case "--block":
            process.LAST_S = 2.0
            factory = BackendFactory(name="kubelet", create=Blocking)
        case "--stay":
            running.END_S = 1.0
            factory = BackendFactory(name="kubelet", create=Staying)
        case _:
            raise AssertionError(fault)
    return attrs.evolve(made, backends={"kubelet": factory})


def main(tmp_path: Path, *words: str) -> None:
    """Run the vendors that *words* name with the policy in *tmp_path*."""
    file = tmp_path / "policy.yaml"
    wanted = read_policy_file(file)
    configure(wanted.logging)
    vendors: tuple[Vendor, ...] = tuple(kind() for kind in VENDORS if kind.name in words)
    made = toys.parts(tmp_path, *vendors, wanted=wanted)
    made = attrs.evolve(made, policy_file=file, read_policy=lambda: read_policy_file(file))
    for fault in (word for word in words if word.startswith("--")):
        made = with_fault(made, fault)
    process.run(made)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

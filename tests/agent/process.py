"""One process that is an agent of toys, with the policy in a file: what tests start and kill."""

import sys
from pathlib import Path

import attrs

from accelkit.agent.logs import configure
from accelkit.agent.process import run
from accelkit.agent.reload import read_policy_file
from accelkit.core.model import Holding
from accelkit.core.vendor import Vendor
from accelkit.core.view import View
from tests.agent import toys

VENDORS: tuple[type[toys.Toy], ...] = (toys.Toy, toys.Hanging, toys.Listening)


async def broken(_view: View) -> tuple[Holding, ...]:
    """A bug in a loop of our own."""
    raise ZeroDivisionError


def main(tmp_path: Path, *words: str) -> None:
    """Run the vendors that *words* name with the policy in *tmp_path*."""
    file = tmp_path / "policy.yaml"
    wanted = read_policy_file(file)
    configure(wanted.logging)
    vendors: tuple[Vendor, ...] = tuple(kind() for kind in VENDORS if kind.name in words)
    made = toys.parts(tmp_path, *vendors, wanted=wanted)
    made = attrs.evolve(made, policy_file=file, read_policy=lambda: read_policy_file(file))
    if "--break" in words:
        made = attrs.evolve(made, holdings=broken)
    run(made)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

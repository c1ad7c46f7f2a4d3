"""The real agent, whose vendor of TPUs lies in the words of a file of the machine.

``no device`` or ``twice``; see `told`. Without such a file, or where it is empty, it is honest.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import attrs

from accelkit import Device, Host, SourceError, Unreadable
from accelkit.agent.process import run
from accelkit.cli.agent import compose
from accelkit.vendors.tpu.vendor import Tpu
from tests.node.makers import LIE

Found = Device | Unreadable


class Liar(Tpu):
    """Tells of TPUs what is not so."""

    def discover(self, host: Host) -> Iterator[Found]:
        try:
            words = host.read(f"/{LIE}").strip()
        except SourceError:
            words = ""
        yield from told(words, tuple(super().discover(host)))


def told(words: str, found: Sequence[Found]) -> Iterator[Found]:
    """What is told instead of *found*."""
    yield from found
    if words == "no device":
        yield cast("Device", "tpu-0000-43-00")
    elif words == "twice":
        first, second, *_ = found
        assert isinstance(first, Device)
        assert isinstance(second, Device)
        yield attrs.evolve(second, id=first.id)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--host", required=True)
    asked = parser.parse_args()
    parts = compose(asked.policy, asked.node, asked.host)
    vendors = tuple(Liar(one.chosen) if isinstance(one, Tpu) else one for one in parts.vendors)
    run(attrs.evolve(parts, vendors=vendors))


if __name__ == "__main__":
    main()

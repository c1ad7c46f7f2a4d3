"""Where chips hang: no file tells, neuron-ls does."""

import json
from typing import Self

import attrs
import pytest

from accelkit import Finished, SourceError
from accelkit.testing.machine_host import MachineHost
from accelkit.vendors.neuron import places
from accelkit.vendors.neuron.vendor import Neuron, NeuronOptions
from tests.vendors.neuron.bench import Bench, Make

HERE = ["0000:03:00.0", "0000:04:00.0"]


class Telling(MachineHost):
    """A machine whose neuron-ls answers something else."""

    answer = Finished(code=0, out="[]", err="")
    asked = 0

    def under(self, root: str) -> Self:
        raise AssertionError(root)

    def run(self, argv: object, timeout_s: float) -> Finished:  # noqa: ARG002 - as the door has it
        self.asked += 1
        return self.answer


@attrs.define
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def telling(made: Bench, answer: object, code: int = 0) -> Telling:
    host = Telling(made.directory)
    out = answer if isinstance(answer, str) else json.dumps(answer)
    host.answer = Finished(code=code, out=out, err="it says why")
    made.host = host
    return host


def entry(number: object, bdf: object) -> dict[str, object]:
    return {"neuron_device": number, "bdf": bdf}


def addresses(made: Bench) -> list[str | None]:
    return [chip.locality.pci_address for chip in made.chips()]


def test_neuron_ls_tells_where_each_chip_hangs(bench: Make) -> None:
    made = bench("trn1", 2)

    assert addresses(made) == HERE
    assert [chip.locality.numa_node for chip in made.chips()] == [0, 1]
    made.do("reboot")
    assert addresses(made) == HERE[::-1]


def test_neuron_ls_is_asked_once_for_the_same_chips(bench: Make) -> None:
    made = bench("inf2", 2)
    host = telling(made, [entry(0, "03:00.0"), entry(1, "04:00.0")])
    for _ in range(3):
        assert addresses(made) == HERE

    assert host.asked == 1
    made.do("replace neuron-1")
    assert addresses(made) == HERE
    assert host.asked == 2


def test_address_may_have_its_domain(bench: Make) -> None:
    made = bench("inf2", 2)
    telling(made, [entry(0, "0000:04:00.0"), entry(1, "0000:03:00.0")])

    assert addresses(made) == HERE[::-1]


def test_only_chip_is_the_only_function_without_asking(bench: Make) -> None:
    made = bench("trn2", 1)
    host = telling(made, "")

    assert addresses(made) == [HERE[0]]
    assert host.asked == 0


def test_without_neuron_ls_only_what_all_functions_share_is_known(bench: Make) -> None:
    """A wrong NUMA node is worse than none."""
    apart = bench("inf2", 2, {"tools": "no"})
    together = bench("inf2", 2, {"tools": "no"})
    together.put(
        "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0/numa_node",
        "0\n",
    )

    assert [c.locality.numa_node for c in apart.chips()] == [None, None]
    assert [c.locality.numa_node for c in together.chips()] == [0, 0]
    assert addresses(together) == [None, None]


def test_operator_may_forbid_the_program(bench: Make) -> None:
    made = bench("inf2", 2)
    made.vendor = Neuron(NeuronOptions(neuron_ls=""))
    host = telling(made, [entry(0, "03:00.0"), entry(1, "04:00.0")])

    assert addresses(made) == [None, None]
    assert host.asked == 0


def test_program_that_failed_is_asked_again_later(bench: Make) -> None:
    made, clock = bench("inf2", 2), Clock()
    made.vendor._places.clock = clock
    host = telling(made, "", code=1)
    assert addresses(made) == [None, None]
    assert addresses(made) == [None, None]
    assert host.asked == 1
    clock.now += places.AGAIN_S
    host.answer = Finished(
        code=0, out=json.dumps([entry(0, "03:00.0"), entry(1, "04:00.0")]), err=""
    )

    assert addresses(made) == HERE
    assert host.asked == 2


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{",
        "[" * 100_000,
        "null",
        "{}",
        "[1]",
        [],
        [entry(0, "03:00.0"), entry(1, "03:00.0")],
        [entry("0", "03:00.0")],
        [entry(True, "03:00.0")],
        [entry(0, 3)],
        [entry(0, "../../etc")],
        [entry(0, "99:00.0")],
        "\x00",
    ],
)
def test_nonsense_is_no_place(bench: Make, answer: object) -> None:
    made = bench("inf2", 2)
    telling(made, answer)

    assert addresses(made) == [None, None]
    with pytest.raises(SourceError):
        places.ask(made.host, "/any", HERE)


def test_addresses_that_only_differ_in_their_domain_are_not_guessed(bench: Make) -> None:
    made = bench("inf2", 1)
    telling(made, [entry(0, "03:00.0")])

    with pytest.raises(SourceError):
        places.ask(made.host, "/any", ["0000:03:00.0", "0001:03:00.0"])

import os
from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.gaudi.machine import GaudiMachine
from tests.vendors.gaudi.bench import Make


@pytest.mark.parametrize(
    "verb",
    [
        "remove",
        "remove gaudi-7",
        "bind gaudi-0",
        "status gaudi-0",
        "status gaudi-0 tired",
        "hold gaudi-0",
        "hold gaudi-0 somebody",
        "module gaudi-0",
        "module gaudi-0 first",
        "link gaudi-0",
        "link gaudi-0 wide",
        "rubbish gaudi-0 nothing",
        "port gaudi-0",
        "port gaudi-0 3 down",
        "port gaudi-0 0 away",
        "port gaudi-0 0",
        "reset gaudi-0 hard",
        "unload now",
    ],
)
def test_misused_verb_is_refused_with_its_usage(bench: Make, verb: str) -> None:
    made = bench("gaudi3", 2)
    before = made.discover()

    with pytest.raises(ConfigError) as caught:
        set_state(made.directory, verb.split())
    assert caught.value.remedy == f"write: {GaudiMachine.verbs[verb.split(maxsplit=1)[0]]}"
    assert made.discover() == before


def test_card_that_is_not_operational_cannot_be_opened(bench: Make) -> None:
    made = bench(count=1)
    made.do("status gaudi-0 in reset")

    with pytest.raises(ConfigError, match="not permitted"):
        made.do("hold gaudi-0 7")


def test_each_verb_has_an_opposite(bench: Make) -> None:
    made = bench(count=2)
    before = made.discover()
    made.do("bind gaudi-0 none", "link gaudi-1 8", "no-nodes", "no-verbs", "unload")
    made.do("load", "verbs", "nodes", "restore gaudi-0", "restore gaudi-1")

    assert made.discover() == before


def test_card_can_be_opened_again_when_it_is_free(bench: Make) -> None:
    made = bench(count=1)
    made.do("hold gaudi-0 7", "free gaudi-0", "hold gaudi-0 8")

    assert [h.holder.uid for h in made.vendor.holders(made.host, made.devices())] == ["8"]


def test_device_files_have_the_numbers_of_the_kernel(bench: Make) -> None:
    made = bench(count=2)
    paths = ("/dev/accel/accel1", "/dev/accel/accel_controlD1", "/dev/infiniband/uverbs1")
    stats = [made.host.stat(path) for path in paths]

    assert [(s.kind, s.major, s.minor) for s in stats if s is not None] == [
        ("c", 261, 1),
        ("c", 508, 1),
        ("c", 231, 193),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are made by root only")
def test_real_device_files_can_be_made(tmp_path: Path) -> None:
    simulate("gaudi", "gaudi2", 1, str(tmp_path), device_nodes=True)

    assert (tmp_path / "dev/accel/accel0").is_char_device()


def test_seed_decides_the_map_of_modules(bench: Make) -> None:
    assert bench(seed=0).modules() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert bench(seed=1).modules() == bench(seed=1).modules() != bench(seed=2).modules()


def test_cards_beyond_a_board_are_on_the_next_one(bench: Make) -> None:
    made = bench(count=12)

    assert sorted(map(str, made.modules())) == sorted([*"01234567", *"0123"])


def test_cards_of_a_mixed_machine_have_numbers_of_their_own(tmp_path: Path, bench: Make) -> None:
    simulate("sim", "basic", 2, str(tmp_path))
    simulate("gaudi", "gaudi2", 2, str(tmp_path))
    alone = bench("gaudi2", 2)
    alone.directory = str(tmp_path)
    alone.host = type(alone.host)(str(tmp_path))  # type: ignore[call-arg]  # of a machine

    assert [d.handle for d in alone.devices()] == ["accel2", "accel3"]

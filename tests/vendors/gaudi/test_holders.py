import pytest

from accelkit import Holder, HolderKind, Holding
from accelkit.core.errors import ConfigError
from tests.vendors.gaudi.bench import Make


def test_process_that_has_a_card_open_is_its_holder(bench: Make) -> None:
    made = bench(count=2)
    devices = made.devices()
    made.do("hold gaudi-1 4711")

    assert list(made.vendor.holders(made.host, devices)) == [
        Holding(
            device=devices[1].id,
            through="process",
            holder=Holder(kind=HolderKind.FOREIGN, uid="4711"),
        )
    ]


def test_second_process_cannot_open_the_card(bench: Make) -> None:
    made = bench(count=2)
    made.do("hold gaudi-1 4711")

    with pytest.raises(ConfigError, match="busy"):
        made.do("hold gaudi-1 4712")


def test_holder_ends_with_a_hard_reset(bench: Make) -> None:
    made = bench(count=1)
    devices = made.devices()
    made.do("hold gaudi-0 4711", "reset gaudi-0")

    assert list(made.vendor.holders(made.host, devices)) == []


def test_holder_is_found_with_an_old_driver_too(bench: Make) -> None:
    made = bench("gaudi", 2, machine={"layout": "hl"})
    devices = made.devices()
    made.do("hold gaudi-0 7", "hold gaudi-1 7")

    assert [(h.device, h.holder.uid) for h in made.vendor.holders(made.host, devices)] == [
        (devices[0].id, "7"),
        (devices[1].id, "7"),
    ]

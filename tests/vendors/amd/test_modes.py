import pytest

from accelkit import Device, Host, ModeBusy, NeedsReset, PartitionError, Placement, SourceError
from accelkit.core.host import Door
from accelkit.vendors.amd import modes
from tests.vendors.amd.bench import Bench, Make


def set_to(made: Bench, device: Device, mode: str) -> None:
    made.vendor.set_mode(made.host, device, mode)


def quickly(made: Bench, host: Host, device: Device, mode: str) -> None:
    """With less patience."""
    modes.set_mode(host, device, mode, held=lambda: (), look=made.devices, patience_s=0.1)


@pytest.mark.parametrize(
    "product,mode,count", [("mi300x", "cpx-nps1", 8), ("mi300a", "tpx-nps1", 3)]
)
def test_mode_is_set_and_its_partitions_are_there(
    bench: Make, product: str, mode: str, count: int
) -> None:
    made = bench(product, 2)
    first, second = made.devices()
    set_to(made, first, mode)

    assert made.wholes()[0].mode == mode
    assert len(made.parts()) == count
    assert made.wholes()[1] == second
    set_to(made, made.wholes()[0], "spx-nps1")
    assert made.devices() == (first, second)


def test_mode_that_is_there_is_set_again_without_a_write(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("hold gpu-0 4711")

    set_to(made, made.devices()[0], "spx-nps1")


def test_mode_stays_while_a_process_uses_the_gpu(bench: Make) -> None:
    made = bench("mi300x", 2)
    first = made.devices()[0]
    made.do("hold gpu-0 4711")

    with pytest.raises(ModeBusy, match="process 4711"):
        set_to(made, first, "cpx-nps1")
    assert made.devices()[0] == first
    made.do("free gpu-0")
    set_to(made, first, "cpx-nps1")


def test_mode_stays_while_a_process_uses_any_gpu(bench: Make) -> None:
    """The driver refuses while anybody has /dev/kfd open: exporters of metrics do."""
    made = bench("mi300x", 2)
    first = made.devices()[0]
    made.do("hold gpu-1 4712")

    with pytest.raises(ModeBusy, match="process 4712") as caught:
        set_to(made, first, "cpx-nps1")
    assert "exporters" in caught.value.remedy
    assert made.devices()[0] == first


def test_mode_stays_while_a_process_uses_a_partition(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("mode gpu-0 CPX", "hold gpu-0 4711 5")

    with pytest.raises(ModeBusy, match="process 4711"):
        set_to(made, made.wholes()[0], "dpx-nps1")
    assert len(made.parts()) == 8


def test_memory_mode_needs_the_driver_anew_and_is_not_asked_for(bench: Make) -> None:
    made = bench("mi300x", 1)
    first = made.devices()[0]

    with pytest.raises(NeedsReset) as caught:
        set_to(made, first, "cpx-nps4")
    assert "write NPS4 to current_memory_partition of every GPU" in caught.value.remedy
    made.do("reboot")
    assert made.devices() == (first,)


def test_memory_mode_that_somebody_asked_for_comes_with_the_next_boot(bench: Make) -> None:
    made = bench("mi300x", 2)
    first = made.devices()[0]
    made.host.write(made.function(first, "current_memory_partition"), "NPS4")
    before = made.wholes()[0].mode
    made.do("reboot")

    assert before == "spx-nps1"
    assert {d.mode for d in made.wholes()} == {"cpx-nps4"}
    set_to(made, made.wholes()[0], "qpx-nps4")
    assert len(made.parts()) == 4 + 8


@pytest.mark.parametrize("product", ["mi300x", "mi210"])
def test_mode_that_there_is_not_is_refused(bench: Make, product: str) -> None:
    made = bench(product, 1)

    with pytest.raises(PartitionError, match="no mode tpx-nps1"):
        set_to(made, made.devices()[0], "tpx-nps1")


def test_mode_that_the_driver_does_not_take_is_refused_in_its_words(bench: Make) -> None:
    made = bench("mi300x", 1)
    (device,) = made.devices()
    made.put(made.function(device, "available_compute_partition"), "SPX, TPX\n")

    with pytest.raises(PartitionError, match="the driver does not take it"):
        set_to(made, made.devices()[0], "tpx-nps1")


class Deaf(Door):
    """Writes change nothing."""

    def write(self, path: str, text: str) -> None:
        del path, text


class Broken(Door):
    def write(self, path: str, text: str) -> None:
        raise SourceError(f"{path}: cannot write it: {text}: Input/output error")


def test_mode_that_does_not_come_is_told(bench: Make) -> None:
    made = bench("mi300x", 1)
    (device,) = made.devices()

    with pytest.raises(PartitionError, match=r"is in mode spx-nps1 0\.1 s after"):
        quickly(made, Deaf(made.host), device, "cpx-nps1")
    with pytest.raises(PartitionError, match="it failed"):
        quickly(made, Broken(made.host), device, "cpx-nps1")


def test_gpu_that_vanishes_while_its_mode_is_set_is_told(bench: Make) -> None:
    made = bench("mi300x", 1)
    (device,) = made.devices()

    def blind() -> tuple[Device, ...]:
        raise SourceError("KFD is made anew")

    with pytest.raises(PartitionError, match="is not there"):
        modes.set_mode(made.host, device, "cpx-nps1", held=lambda: (), look=blind, patience_s=0.1)


def test_mode_is_reached_though_a_partition_never_comes(bench: Make) -> None:
    made = bench("mi300x", 1)
    made.do("minors 7")
    quickly(made, made.host, made.devices()[0], "cpx-nps1")

    assert len(made.parts()) == 7


def test_partitions_are_neither_made_nor_unmade_by_themselves(bench: Make) -> None:
    made = bench("mi300x", 1)
    (whole,) = made.devices()
    place = Placement(profile="dpx_nps1", start=4, size=4)
    with pytest.raises(PartitionError) as caught:
        made.vendor.create(made.host, whole, place)
    assert caught.value.remedy == "set mode dpx-nps1, which has all of them"
    with pytest.raises(PartitionError, match="cannot be made"):
        made.vendor.create(made.host, whole, Placement(profile="none", start=0, size=1))
    made.do("mode gpu-0 DPX")
    part = made.vendor.create(made.host, whole, place)

    assert part == made.parts()[1]
    with pytest.raises(PartitionError, match="cannot be unmade"):
        made.vendor.destroy(made.host, part)
    made.do("mode gpu-0 SPX")
    made.vendor.destroy(made.host, part)


def test_holders_of_a_gpu_and_of_a_partition_are_told(bench: Make) -> None:
    made = bench("mi300x", 2)
    made.do("mode gpu-1 DPX", "hold gpu-0 4711", "hold gpu-1 4712 1")
    devices = made.devices()
    held = [(h.device, h.holder.uid) for h in made.vendor.holders(made.host, devices)]
    whole = next(d for d in devices if d.usable and d.parent is None)

    assert held == [(whole.id, "4711"), (made.parts()[1].id, "4712")]


def test_nobody_is_known_where_the_kernel_does_not_list_users() -> None:
    class Dark(Door):
        def names(self, path: str) -> tuple[str, ...]:
            raise SourceError(path)

    assert modes.kfd_users(Dark(None)) == ()  # type: ignore[arg-type]  # nothing is asked of it

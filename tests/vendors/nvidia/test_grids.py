"""Whatever is made and unmade on whatever grid, nothing contradicts anything."""

from collections import Counter

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from accelkit import Device, PartitionError, Placement, PlaceOccupied, Profile
from accelkit.core.model import contradictions
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.nvidia.products import PRODUCTS
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.nvidia.bench import Bench, Make

GRIDS = ["a30", "a100-40", "h100", "rtx-pro-6000"]


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bench]:
    """A GPU in MIG mode of every grid, with nothing on it, and destroyed parts go at once."""
    made = {}
    for product in GRIDS:
        directory = str(tmp_path_factory.mktemp(product))
        simulate("nvidia", product, 1, directory)
        made[product] = Bench(directory, MachineHost(directory), Nvidia(NvidiaOptions()))
        made[product].do("mig gpu-0 on", "lag gpu-0 0s")
    return made


def placements(parent: Device) -> list[Placement]:
    return [
        Placement(profile=p.name, start=start, size=p.size)
        for p in parent.profiles
        for start in p.starts
    ]


@attrs.define
class Model:
    """What must be on the GPU, and what it has room for."""

    parent: Device
    parts: dict[Placement, Device]

    def profile(self, placement: Placement) -> Profile:
        return next(p for p in self.parent.profiles if p.name == placement.profile)

    def overlaps(self, placement: Placement) -> bool:
        return any(set(placement.slots) & set(other.slots) for other in self.parts)

    def fits(self, placement: Placement) -> bool:
        wanted = self.profile(placement)
        alike = sum(p.profile == placement.profile for p in self.parts)
        used = Counter(wanted.counters)
        for other in self.parts:
            used.update(self.profile(other).counters)
        enough = all(amount <= self.parent.counters[key] for key, amount in used.items())
        return enough and alike < (wanted.limit or alike + 1)


def _create(bench: Bench, model: Model, placement: Placement) -> None:
    try:
        made = bench.vendor.create(bench.host, model.parent, placement)
    except PlaceOccupied:
        assert model.overlaps(placement)
    except PartitionError:
        assert not model.overlaps(placement)
        assert not model.fits(placement)
    else:
        if placement in model.parts:
            assert made == model.parts[placement]
        else:
            assert not model.overlaps(placement)
            assert model.fits(placement)
        model.parts[placement] = made


def _destroy(bench: Bench, model: Model, placement: Placement) -> None:
    part = model.parts.pop(placement, None) or bench.vendor.partition(
        model.parent, model.profile(placement), placement.start, kind="mig"
    )
    bench.vendor.destroy(bench.host, part)


@pytest.mark.parametrize("product", GRIDS)
@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_what_is_found_is_what_was_made_whatever_is_made_and_unmade(
    benches: dict[str, Bench], product: str, data: st.DataObject
) -> None:
    bench = benches[product]
    (parent,) = bench.devices()
    model = Model(parent, {})
    places = st.sampled_from(placements(parent))
    for make, placement in data.draw(
        st.lists(st.tuples(st.integers(0, 2).map(bool), places), max_size=14)
    ):
        (_create if make else _destroy)(bench, model, placement)
        found = bench.devices()

        assert set(found) == {parent, *model.parts.values()}
        assert contradictions(found, (), ()) == ()
    for placement in list(model.parts):
        _destroy(bench, model, placement)

    assert bench.devices() == (parent,)


@pytest.mark.parametrize("product", GRIDS)
def test_every_place_of_a_grid_can_be_had(benches: dict[str, Bench], product: str) -> None:
    bench = benches[product]
    (parent,) = bench.devices()
    for placement in placements(parent):
        made = bench.vendor.create(bench.host, parent, placement)
        found = bench.devices()
        bench.vendor.destroy(bench.host, made)

        assert {d.id: d for d in found}[made.id] == made
        assert made.usable
    assert bench.devices() == (parent,)


@pytest.mark.parametrize(
    "product,count,starts",
    [
        ("a30", 4, [0, 1, 2, 3]),
        ("a100-40", 7, [0, 1, 2, 3, 4, 5, 6]),
        ("a100-80", 7, [0, 1, 2, 3, 4, 5, 6]),
        ("h100", 7, [0, 1, 2, 3, 4, 5, 6]),
        ("rtx-pro-6000", 4, [0, 3, 6, 9]),
    ],
)
def test_gpu_is_full_with_as_many_of_the_smallest_as_its_grid_has(
    bench: Make, product: str, count: int, starts: list[int]
) -> None:
    made = bench(product, 1)
    made.do("mig gpu-0 on")
    (parent,) = made.devices()
    smallest = parent.profiles[0]
    for start in starts:
        place = Placement(profile=smallest.name, start=start, size=smallest.size)
        made.vendor.create(made.host, parent, place)
    parts = [d for d in made.devices() if d.parent is not None]

    assert smallest.starts == tuple(starts)
    assert len(parts) == len({d.handle for d in parts}) == count == smallest.limit
    assert contradictions((parent, *parts), (), ()) == ()


def test_media_engines_are_had_by_one_alone(bench: Make) -> None:
    made = bench("rtx-pro-6000", 1)
    made.do("mig gpu-0 on")
    (parent,) = made.devices()
    third = {"size": 3}
    made.vendor.create(made.host, parent, Placement(profile="1g.24gb+me.all", start=0, **third))

    with pytest.raises(PartitionError, match="insufficient resources"):
        made.vendor.create(made.host, parent, Placement(profile="1g.24gb", start=3, **third))
    made.vendor.create(made.host, parent, Placement(profile="1g.24gb-me", start=3, **third))
    assert [d.profile for d in made.devices()] == [None, "1g.24gb+me.all", "1g.24gb-me"]


@pytest.mark.parametrize("product", [n for n, p in PRODUCTS.items() if p.profiles])
def test_profiles_of_each_product_have_names_and_slugs_of_their_own(
    bench: Make, product: str
) -> None:
    (device,) = bench(product, 1).devices()

    assert len({p.slug for p in device.profiles}) == len(device.profiles)
    assert contradictions((device,), (), ()) == ()


def test_whole_gpu_is_the_same_before_and_after_it_was_cut(bench: Make) -> None:
    made = bench("h100", 1)
    before = made.devices()
    made.vendor.set_mode(made.host, before[0], "mig")
    part = made.vendor.create(made.host, before[0], Placement(profile="7g.80gb", start=0, size=8))
    made.vendor.destroy(made.host, part)
    made.vendor.set_mode(made.host, before[0], "whole")

    assert made.devices() == before


def test_another_process_sees_what_was_made(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on")
    (parent,) = made.devices()
    part = made.vendor.create(made.host, parent, Placement(profile="1g.10gb", start=3, size=1))
    other = Nvidia(NvidiaOptions())

    assert part in list(other.discover(MachineHost(made.directory)))
    set_state(made.directory, ["destroy-mig", "gpu-0", "3"])
    assert made.devices() == (parent,)

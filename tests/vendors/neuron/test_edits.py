"""What containers get: device files, the size of logical cores, and one range of cores."""

from itertools import combinations

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from accelkit import (
    ConfigRefused,
    Device,
    Edits,
    FrozenMap,
    IllegalSet,
    MissingParts,
    Mount,
    SourceError,
)
from accelkit.core.errors import AllocationError, ConfigError
from accelkit.core.policy_check import options_of
from accelkit.core.reading import grant_edits
from accelkit.core.serde import from_tree
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.neuron import facts
from accelkit.vendors.neuron.edits import NeuronClaim, visible_cores
from accelkit.vendors.neuron.vendor import Neuron, NeuronOptions
from tests.vendors.neuron.bench import Bench, Make, grant

VISIBLE = "NEURON_RT_VISIBLE_CORES"


def visible(made: Bench, *devices: Device, config: object | None = None) -> str:
    edits = grant_edits(made.vendor, made.host, grant(*devices, config=config))
    return edits.whole.env[VISIBLE]


def test_chip_comes_with_its_file_and_all_its_cores(bench: Make) -> None:
    made = bench("inf2", 2)
    chip = made.chips()[1]
    edits = made.vendor.edits(made.host, grant(chip))

    assert [node.path for node in edits.each[chip.id].nodes] == ["/dev/neuron1"]
    assert edits.each[chip.id].env == {}
    assert edits.whole.env == {VISIBLE: "0-1"}


def test_container_is_told_the_size_of_logical_cores(bench: Make) -> None:
    """Tools in it look into the file, the runtime into the variable."""
    made = bench("trn2", 1)
    (chip,) = made.chips()
    edits = made.vendor.edits(made.host, grant(chip)).each[chip.id]

    assert edits.env == {"NEURON_LOGICAL_NC_CONFIG": "2"}
    assert edits.mounts == (
        Mount(host_path=facts.LNC_FILE, container_path="/opt/aws/neuron/logical_nc_config"),
    )


def test_file_that_is_not_there_is_not_mounted(bench: Make) -> None:
    made = bench("trn2", 1)
    made.do("no-lnc-file")
    (chip,) = made.chips()
    edits = made.vendor.edits(made.host, grant(chip)).each[chip.id]

    assert chip.mode == "lnc2"
    assert (edits.env["NEURON_LOGICAL_NC_CONFIG"], edits.mounts) == ("2", ())


@pytest.mark.parametrize(
    "product, count, cores",
    [("trn2", 1, "0-3"), ("trn2", 16, "0-63"), ("trn1", 4, "0-7"), ("inf2", 12, "0-23")],
)
def test_several_chips_are_one_range_of_cores(
    bench: Make, product: str, count: int, cores: str
) -> None:
    made = bench(product, count)

    assert visible(made, *made.chips()) == cores


def test_cores_are_numbered_over_the_chips_that_the_container_has(bench: Make) -> None:
    """Not over those of the host: other chips are not to be seen there."""
    made = bench("trn2", 16)
    core = [c for c in made.cores() if c.handle == "neuron7"][2]
    edits = made.vendor.edits(made.host, grant(core))

    assert [node.path for node in edits.each[core.id].nodes] == ["/dev/neuron7"]
    assert edits.whole.env == {VISIBLE: "2"}


def test_cores_side_by_side_are_a_range(bench: Make) -> None:
    made = bench("trn2", 1)
    made.do("lnc 1")
    cores = made.cores()

    assert visible(made, *cores[2:6]) == "2-5"
    assert visible(made, cores[7]) == "7"


def test_cores_apart_cannot_be_told_and_are_refused(bench: Make) -> None:
    made = bench("trn2", 1)
    one, _, other, _ = made.cores()

    with pytest.raises(IllegalSet, match="0,2"):
        made.vendor.edits(made.host, grant(one, other))


def test_chip_with_less_cores_than_one_of_its_logical_ones_is_refused(bench: Make) -> None:
    """A driver that says nonsense of its cores broke the claim by an IndexError."""
    (chip,) = bench("trn2", 1).chips()
    few = attrs.evolve(chip, attributes=FrozenMap({**chip.attributes, "coreCount": 1}))

    with pytest.raises(IllegalSet, match="these are none"):
        visible_cores([few], {few.id: 2})


def test_last_core_of_a_chip_and_the_first_of_the_next_are_a_range(bench: Make) -> None:
    made = bench("inf2", 2)
    cores = made.cores()

    assert visible(made, cores[1], cores[2]) == "1-2"


def test_set_of_nothing_gets_nothing(bench: Make) -> None:
    made = bench("inf2", 1)

    assert made.vendor.edits(made.host, grant()) == Edits()


def test_edits_of_a_union_are_the_union(bench: Make) -> None:
    made = bench("trn2", 4)
    chips = made.chips()
    alone = {c.id: made.vendor.edits(made.host, grant(c)).each[c.id] for c in chips}

    assert made.vendor.edits(made.host, grant(*chips)).each == alone


def test_missing_file_of_a_chip_is_a_missing_part(bench: Make) -> None:
    made = bench("inf2", 1)
    made.do("no-node neuron-0")

    with pytest.raises(MissingParts, match="/dev/neuron0"):
        made.vendor.edits(made.host, grant(*made.chips()))


def test_file_that_another_chip_has_meanwhile_is_not_handed_out(bench: Make) -> None:
    made = bench("inf2", 2)
    before = made.chips()
    made.do("reboot")

    with pytest.raises(MissingParts, match="another chip"):
        made.vendor.edits(made.host, grant(before[0]))


def test_chip_that_does_not_say_who_it_is_is_not_handed_out(bench: Make) -> None:
    made = bench("inf2", 1)
    chips = made.chips()
    made.do("lose neuron-0")

    with pytest.raises(SourceError, match="serial number"):
        made.vendor.edits(made.host, grant(*chips))


def test_claim_may_ask_for_logical_cores_of_another_size_on_whole_chips(bench: Make) -> None:
    made = bench("trn2", 1)
    config = from_tree(NeuronClaim, {"logicalNeuronCore": 1}, "$.vendor")
    chips = made.chips()
    edits = made.vendor.edits(made.host, grant(*chips, config=config))

    assert config == NeuronClaim(logical_neuron_core=1)
    assert edits.whole.env == {VISIBLE: "0-7"}
    assert edits.each[chips[0].id].env == {"NEURON_LOGICAL_NC_CONFIG": "1"}
    assert edits.each[chips[0].id].mounts == ()


def test_claim_that_asks_for_the_size_that_there_is_changes_nothing(bench: Make) -> None:
    made = bench("trn2", 1)
    (chip,) = made.chips()

    assert visible(made, chip, config=NeuronClaim(logical_neuron_core=2)) == "0-3"
    assert visible(made, made.cores()[1], config=NeuronClaim(logical_neuron_core=2)) == "1"


@pytest.mark.parametrize("product, size", [("trn2", 3), ("trn2", 0), ("inf2", 2)])
def test_size_that_chips_do_not_have_is_refused(bench: Make, product: str, size: int) -> None:
    made = bench(product, 1)

    with pytest.raises(ConfigRefused):
        visible(made, *made.chips(), config=NeuronClaim(logical_neuron_core=size))


def test_core_cannot_be_of_another_size_than_it_is(bench: Make) -> None:
    made = bench("trn2", 1)

    with pytest.raises(ConfigRefused, match="cannot be one of 1"):
        visible(made, made.cores()[0], config=NeuronClaim(logical_neuron_core=1))


def test_chips_with_logical_cores_of_different_sizes_are_refused(bench: Make) -> None:
    made = bench("trn2", 2)
    one, other = made.chips()
    older = {k: v for k, v in other.attributes.items() if k != "logicalNeuronCore"}

    with pytest.raises(IllegalSet, match="different sizes"):
        made.vendor.edits(made.host, grant(one, attrs.evolve(other, attributes=FrozenMap(older))))


def test_operator_may_forbid_neuron_ls() -> None:
    options = options_of(Neuron, {"neuronLs": ""})

    assert options == NeuronOptions(neuron_ls="")


@pytest.mark.parametrize("path", ["neuron-ls", "/opt/../neuron-ls", "/a\0b"])
def test_program_that_cannot_be_on_the_host_is_refused_before_it_is_looked_for(path: str) -> None:
    with pytest.raises(ConfigError, match="neuronLs must be an absolute path"):
        options_of(Neuron, {"neuronLs": path})


@pytest.fixture(scope="module")
def cores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Device, ...]:
    directory = str(tmp_path_factory.mktemp("machine"))
    simulate("neuron", "trn2", 3, directory)
    found = Neuron(NeuronOptions()).discover(MachineHost(directory))
    return tuple(d for d in found if isinstance(d, Device) and d.parent is not None)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_every_answer_is_one_ascending_range_of_as_many_cores(
    cores: tuple[Device, ...], data: st.DataObject
) -> None:
    """Lists with gaps made the runtime fail: "Neuron cores are not contiguous"."""
    some = data.draw(st.sets(st.sampled_from(cores), min_size=1))
    try:
        told = visible_cores(some, dict.fromkeys((core.id for core in some), 2))
    except AllocationError:
        return
    first, _, last = told.partition("-")

    assert int(last or first) - int(first) + 1 == len(some)


def test_every_legal_set_can_be_told(bench: Make) -> None:
    made = bench("trn2", 4)
    by_id = {device.id: device for device in made.devices()}

    for group in made.groups():
        assert visible(made, *(by_id[member] for member in group.members))


def test_pairs_of_cores_that_can_be_told_are_legal_unless_they_are_of_two_chips(
    bench: Make,
) -> None:
    made = bench("trn2", 2)
    legal = made.sets("cores")
    for one, other in combinations(made.cores(), 2):
        try:
            visible(made, one, other)
        except IllegalSet:
            assert frozenset({one.id, other.id}) not in legal
            continue
        assert (frozenset({one.id, other.id}) in legal) == (one.parent == other.parent)

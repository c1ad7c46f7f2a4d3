"""Machines are made like what people paste: outputs of makers' tools, and ResourceSlices."""

import json
from pathlib import Path

import attrs
import pytest
import yaml
from hypothesis import given, strategies as st

from accelkit.cli.main import main
from accelkit.core.errors import ConfigError, PluginContractError
from accelkit.core.host import ReadOnly
from accelkit.core.model import Device, VendorReport
from accelkit.core.policy_check import options_of
from accelkit.core.reading import read_inventory
from accelkit.core.registry import load_plugins
from accelkit.core.values import FrozenMap
from accelkit.testing.like import read_likeness, simulate_like
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.machines import Part
from accelkit.testing.pasted import LIKE, check_units
from accelkit.testing.record import MOST_UNITS
from accelkit.testing.shared import machine_class, machines
from accelkit.testing.simulate import simulate
from accelkit.testing.texts import MOST_BYTES, decoded
from accelkit.testing.trees import gather

DATA = Path(__file__).parent / "pasted"
EXAMPLES = {
    "nvidia-smi-h100.xml": "nvidia",
    "amd-smi-mi300x.txt": "amd",
    "amd-smi-dpx.json": "amd",
    "rocm-smi-mi250x.txt": "amd",
    "neuron-ls-trn1.json": "neuron",
    "hl-smi-gaudi2.txt": "gaudi",
    "hl-smi-gaudi3.csv": "gaudi",
    "slices-a100.yaml": "nvidia",
}
MAKERS = ("amd", "gaudi", "intel", "neuron", "nvidia", "tpu")


def example(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


@attrs.frozen
class Made:
    """A machine, as its vendor sees it."""

    part: Part
    report: VendorReport
    warnings: tuple[str, ...]

    @property
    def wholes(self) -> list[Device]:
        return sorted(
            (d for d in self.report.devices if d.parent is None),
            key=lambda d: d.locality.pci_address or "",
        )

    def values(self, key: str) -> list[object]:
        return [device.attributes.get(key) for device in self.wholes]


def seen(vendor: str, folder: Path) -> VendorReport:
    kind = load_plugins().vendors[vendor]
    return read_inventory(kind(options_of(kind, {})), ReadOnly(MachineHost(str(folder))))


def made(vendor: str, text: str, folder: Path, product: str | None = None) -> Made:
    part, warnings = simulate_like(vendor, text, str(folder), product=product)
    return Made(part, seen(vendor, folder), warnings)


def test_gpus_of_a_query_have_their_names_addresses_and_partitions(tmp_path: Path) -> None:
    node = made("nvidia", example("nvidia-smi-h100.xml"), tmp_path)

    assert node.values("uuid") == [
        "GPU-5d0bb1a0-3f4e-7a52-9c11-e07f6a4d2b18",
        "GPU-c2e8f6d4-81aa-0b37-44f9-1d5e90b7a3c6",
    ]
    assert node.values("serial") == ["1654922000113", "1654922000287"]
    assert node.values("moduleId") == [4, 2]
    assert str(node.values("driverVersion")[0]).startswith("570.133.20")
    assert [d.locality.pci_address for d in node.wholes] == ["0000:1b:00.0", "0000:43:00.0"]
    parts = sorted(d.placement.profile for d in node.report.devices if d.placement is not None)
    assert parts == ["1g.10gb", "1g.10gb", "3g.40gb"]
    assert any("processes" in warning for warning in node.warnings)


def test_query_may_have_a_prompt_around_it_and_another_product(tmp_path: Path) -> None:
    text = f"$ nvidia-smi -q -x\n{example('nvidia-smi-h100.xml')}$ exit\n"

    node = made("nvidia", text, tmp_path, product="l4")

    assert {d.product for d in node.wholes} == {"NVIDIA L4"}
    assert "not taken over: mig gpu-0 on: needs on or off, and a product that has it" in (
        node.warnings
    )


@pytest.mark.parametrize(
    "name, told, product",
    [
        ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe is not simulated: h100 is nearest", "h100"),
        ("Tesla T4", "Tesla T4 is not simulated: dgx1 is nearest", "dgx1"),
    ],
)
def test_product_that_is_not_simulated_becomes_the_nearest(
    tmp_path: Path, name: str, told: str, product: str
) -> None:
    text = example("nvidia-smi-h100.xml").replace("NVIDIA H100 80GB HBM3", name)
    text = text.replace("233010DE", "FFFF10DE")

    node = made("nvidia", text, tmp_path)

    assert node.part.product == product
    assert told in node.warnings


@pytest.mark.parametrize(
    "name, count, product, links",
    [
        ("amd-smi-mi300x.txt", 8, "mi300x", 56),
        ("amd-smi-dpx.json", 2, "mi300x", 2),
        ("rocm-smi-mi250x.txt", 8, "mi250x", 24),
    ],
)
def test_gpus_of_amd_are_linked_as_they_are_told(
    tmp_path: Path, name: str, count: int, product: str, links: int
) -> None:
    node = made("amd", example(name), tmp_path)

    assert (node.part.product, len(node.wholes)) == (product, count)
    assert len(node.part.told.links or ()) == links


def test_partitions_that_have_functions_of_their_own_are_a_mode(tmp_path: Path) -> None:
    node = made("amd", example("amd-smi-dpx.json"), tmp_path)

    assert [d.locality.pci_address for d in node.wholes] == ["0001:01:00.0", "0001:02:00.0"]
    assert len([d for d in node.report.devices if d.parent is not None]) == 4


def test_numa_nodes_are_there_however_many_are_told(tmp_path: Path) -> None:
    node = made("amd", example("rocm-smi-mi250x.txt"), tmp_path)

    assert [d.locality.numa_node for d in node.wholes] == [3, 3, 2, 2, 1, 1, 0, 0]
    assert MachineHost(str(tmp_path)).read("/sys/devices/system/node/online") == "0-3"


def test_chips_of_neuron_are_where_they_are_told(tmp_path: Path) -> None:
    node = made("neuron", example("neuron-ls-trn1.json"), tmp_path)
    told = {e["neuron_device"]: e for e in json.loads(example("neuron-ls-trn1.json"))}

    assert node.part.product == "trn1"
    places = {d.handle: d.locality for d in node.report.devices if d.parent is None}
    assert len(places) == len(told)
    addresses = sorted(str(place.pci_address) for place in places.values())
    assert addresses == sorted(f"0000:{entry['bdf']}" for entry in told.values())
    files = MachineHost(str(tmp_path))
    folder = "/sys/devices/virtual/neuron_device"
    for number, entry in told.items():
        beside = files.read(f"{folder}/neuron{number}/connected_devices")
        assert beside == ", ".join(map(str, entry["connected_to"]))


def test_joined_cores_of_trainium2_stay_joined(tmp_path: Path) -> None:
    chip = {"neuron_device": 0, "bdf": "33:00.0", "nc_count": 8, "memory_size": 96 << 30}
    text = json.dumps([{**chip, "logical_neuroncore_config": 1, "connected_to": None}])

    node = made("neuron", text, tmp_path)

    assert (node.part.product, node.values("logicalNeuronCore")) == ("trn2", [1])
    assert "the instance is not told: by its memory and links it is trn2" in node.warnings


@pytest.mark.parametrize("name, modules", [("hl-smi-gaudi2.txt", 8), ("hl-smi-gaudi3.csv", 8)])
def test_cards_of_gaudi_are_where_they_are_told(tmp_path: Path, name: str, modules: int) -> None:
    node = made("gaudi", example(name), tmp_path)

    assert len(node.wholes) == modules
    assert {d.product for d in node.wholes} == {"Gaudi2" if "2" in name else "Gaudi3"}


def test_modules_of_gaudi_are_those_of_the_query_with_or_without_its_heading(
    tmp_path: Path,
) -> None:
    text = example("hl-smi-gaudi3.csv")
    headless = "".join(text.splitlines(keepends=True)[1:])

    full = made("gaudi", text, tmp_path / "full")
    bare = made("gaudi", headless, tmp_path / "bare")

    assert full.values("moduleId") == [3, 1, 0, 2, 7, 5, 4, 6]
    assert bare.values("moduleId") == full.values("moduleId")
    assert bare.part.product == "gaudi3"


def test_slices_of_the_makers_driver_are_read_with_partitions(tmp_path: Path) -> None:
    node = made("nvidia", example("slices-a100.yaml"), tmp_path)

    assert node.values("uuid") == [
        "GPU-0f3c9d82-6b1e-4e77-a5d0-92b8c7714e0d",
        "GPU-7be21c45-d8f0-49a3-b6c1-5e0f3a9d8271",
    ]
    assert [d.locality.pcie_root for d in node.wholes] == ["pci0000:4a", "pci0000:80"]
    placed = [d.placement for d in node.report.devices if d.placement is not None]
    assert [(place.profile, place.start) for place in placed] == [("3g.20gb", 4)]
    assert "not taken over: devices of the drivers dra.net" in node.warnings


@pytest.mark.parametrize("profile, count", [("vf-of-2", 2), ("vf-of-3", 3), ("vf-of-99", 0)])
def test_virtual_functions_are_as_many_as_their_profile_tells(
    tmp_path: Path, profile: str, count: int
) -> None:
    """They were not taken over."""
    facts = {
        "parent": {"string": "0000-03-00-0-0xe211"},
        "profile": {"string": profile},
        "pciId": {"string": "0xe211"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:03:00.0"},
    }

    node = made("intel", slice_of("intel.accelkit.dev", attributes=facts), tmp_path)

    parts = [d.profile for d in node.report.devices if d.parent is not None]
    assert parts == [profile] * count
    assert ("not taken over: partitions that there are" in node.warnings) == (not count)


POLICY = "offers: [{name: all, through: dra}]"


@pytest.mark.slow
@pytest.mark.parametrize("vendor", MAKERS)
def test_slices_that_were_published_make_the_machine_again(
    tmp_path: Path, vendor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(vendor, machine_class(vendor).products[-1], 4, str(tmp_path / "one"), seed=5)
    (tmp_path / "policy.yaml").write_text(POLICY)
    words = ["render", "dra", "--policy", str(tmp_path / "policy.yaml"), "--node", "n1"]
    main([*words, "--host", str(tmp_path / "one")])
    published = capsys.readouterr().out

    node = made(vendor, published, tmp_path / "two")

    def told(report: VendorReport) -> object:
        return sorted((d.id, d.product, d.locality, d.capacity) for d in report.devices)

    assert told(node.report) == told(seen(vendor, tmp_path / "one"))


def slice_of(driver: str, *, node: str = "n1", **device: object) -> str:
    spec = {"driver": driver, "nodeName": node, "devices": [{"name": "gpu-0", **device}]}
    return json.dumps({"kind": "ResourceSlice", "spec": spec})


def test_one_node_of_several_is_taken_and_said(tmp_path: Path) -> None:
    both = [json.loads(slice_of("gpu.intel.com", node=name)) for name in ("b", "a")]

    node = made("intel", yaml.safe_dump_all(both), tmp_path)

    assert (len(node.wholes), node.warnings[0]) == (1, "of 2 nodes a is taken")


def test_partitions_that_could_be_made_and_taints_are_not_taken_over(tmp_path: Path) -> None:
    attributes = {"type": {"string": "mig"}, "parentUUID": {"string": "GPU-1"}}
    text = slice_of(
        "gpu.nvidia.com",
        attributes=attributes,
        consumesCounters=[{"counterSet": "gpu-0"}],
        taints=[{"key": "x"}],
    )

    node = made("nvidia", text, tmp_path)

    assert len(node.report.devices) == 1
    assert {"not taken over: partitions that could be made", "not taken over: taints"} <= {
        *node.warnings
    }


@pytest.mark.parametrize(
    "vendor, text, said",
    [
        ("nvidia", "hello", "text: is none of what a machine of nvidia can be made like"),
        ("sim", example("hl-smi-gaudi2.txt"), "is none of what a machine of sim can be made like"),
        ("nvidia", "<nvidia_smi_log><gpu>", "ends before </nvidia_smi_log>"),
        ("nvidia", "<nvidia_smi_log></nvidia_smi_log>", "has no gpu in nvidia_smi_log"),
        ("nvidia", "<nvidia_smi_log><a></nvidia_smi_log>", "is no well-formed XML: mismatched tag"),
        (
            "nvidia",
            '<!DOCTYPE x [<!ENTITY a "b">]><nvidia_smi_log>&a;</nvidia_smi_log>',
            "declares a document type of its own",
        ),
        (
            "nvidia",
            f"<nvidia_smi_log>{'<a>' * 99}{'</a>' * 99}</nvidia_smi_log>",
            "has more than 64 elements within each other",
        ),
        ("nvidia", slice_of("gpu.amd.com"), "has devices of gpu.amd.com alone, and none of nvidia"),
        ("nvidia", "kind: ResourceSlice\ndevices: [", "is neither JSON nor YAML"),
        ("nvidia", "kind: ResourceSlice\ndevices: [&a 1, *a]", "has aliases, or is nested too"),
        ("nvidia", f"kind: ResourceSlice\ndevices: {'[' * 99}{']' * 99}", "nested too deep"),
        ("nvidia", "kind: ResourceSlice\ndevices: []", "has no devices, and none of nvidia"),
        ("neuron", '[{"neuron_device": 1}, {"neuron_device": 1}]', "'1' is no number, or is there"),
        ("neuron", '[{"neuron_device": ', "is no whole JSON"),
        ("neuron", '{"neuron_device": 1}', "has no chip"),
        ("amd", "LINK TYPE TABLE:\n", "has no table with the title LINK TYPE"),
        (
            "amd",
            "LINK TYPE TABLE:\n 0000:01:00.0\n",
            "column 0000:01:00.0: is missing",
        ),
        (
            "amd",
            "X TABLE:\n0000:01:00.0\n0000:01:00.0 0\n0000:01:00.0 0",
            "is there twice",
        ),
        ("amd", '[{"bdf": "x", "link_type": 1}]', "bdf 'x': is no PCI address"),
        ("gaudi", "HL-SMI\n", "has no card"),
        (
            "gaudi",
            "index, bus_id\n0, 0000:01:00.0\n1, 0000:01:00.0\n",
            "several devices have",
        ),
    ],
)
def test_what_is_no_such_text_is_refused_in_words(
    tmp_path: Path, vendor: str, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        simulate_like(vendor, text, str(tmp_path / "machine"))

    assert said in str(caught.value)
    assert not (tmp_path / "machine").exists()


def test_two_parts_at_one_place_are_refused(tmp_path: Path) -> None:
    simulate("sim", "basic", 1, str(tmp_path))
    text = "index, bus_id\n0, 0000:03:00.0\n"

    with pytest.raises(ConfigError, match="the machine shows two different things there"):
        simulate_like("gaudi", text, str(tmp_path))


@pytest.mark.parametrize(
    "option",
    ["", "[]", '{"units": [], "links": null}', '{"units": [{"numa": "x"}], "links": null}',
     '{"units": [{"address": "x"}], "links": null}', '{"units": [{}], "links": [[0, 9]]}'],
)  # fmt: skip
def test_option_that_no_text_made_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(ConfigError, match="is not what is made of a text"):
        simulate("sim", "basic", 1, str(tmp_path / "machine"), options={LIKE: option})


@pytest.mark.parametrize("found", [b"\xff\xfe\x00", b"\x80", b"a" * (MOST_BYTES + 1)])
def test_bytes_that_are_no_text_are_refused(found: bytes) -> None:
    with pytest.raises(ConfigError, match="text: is"):
        decoded(found)


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, str]:
    """An example in which something is missing, twice, or nonsense; and its vendor."""
    name = draw(st.sampled_from(sorted(EXAMPLES)))
    text = example(name)
    junk = st.sampled_from(["9" * 5000, "-1", "1e999", "null", "[]", "{}", "\0", "é", "&a;", '"'])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + draw(st.sampled_from([3, 40, 4000])))))
        text = text[:at] + draw(st.one_of(junk, st.text(max_size=8))) + text[end:]
    return EXAMPLES[name], text


@pytest.mark.slow
@given(spoilt())
def test_spoilt_text_is_read_or_refused(case: tuple[str, str]) -> None:
    vendor, text = case
    try:
        found = read_likeness(machine_class(vendor), text)
        check_units(found.told.units, MOST_UNITS)
        part = Part(
            vendor=vendor,
            product=found.product,
            count=len(found.told.units),
            options=FrozenMap({**found.options, LIKE: found.told.dump()}),
        )
        tree = gather(machines((part,))[0].tree({}))
    except (ConfigError, PluginContractError):
        return

    assert tree

"""Texts as they reach us: with prompts, colours and broken lines around what a tool printed."""

import json
from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError
from accelkit.testing.like import read_likeness
from accelkit.testing.pasted import Likeness
from accelkit.testing.shared import machine_class
from accelkit.testing.texts import json_in, plain
from tests.testing.test_like import EXAMPLES, example, made, slice_of

PROMPT = "\x1b]0;root@node: ~\x07\x1b[01;32mroot@node\x1b[00m:\x1b[01;34m~\x1b[00m# "


def likeness(vendor: str, text: str) -> Likeness:
    return read_likeness(machine_class(vendor), text)


@pytest.mark.parametrize("prompt", ["[me@node-1 ~]$ ", PROMPT, "root@node:/tmp# ", "$ "])
@pytest.mark.parametrize("name", EXAMPLES)
def test_prompt_before_and_after_changes_nothing(name: str, prompt: str) -> None:
    """``[me@node ~]$`` was taken for the beginning of JSON, and YAML could have no prompt."""
    text, vendor = example(name), EXAMPLES[name]

    around = likeness(vendor, f"{prompt}tool --all -x\r\n{text}{prompt}\n")

    assert around == likeness(vendor, text)


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[4mGPU0\x1b[0m",
        "[4mGPU0[0m",
        "\x1b[1;31mGPU0\x1b[m",
        "\x1b(BGPU0",
        "\x1b]0;me\x1b\\GPU0",
    ],
)
def test_colours_and_titles_of_terminals_are_no_text(text: str) -> None:
    """Web forms leave all of a colour but its escape."""
    assert plain(text) == "GPU0"


def test_command_that_was_typed_is_no_heading(tmp_path: Path) -> None:
    """The columns of the query made it one, and the heading a third card."""
    text = (
        "[me@node ~]# hl-smi -Q index,bus_id,module_id,memory.used -f csv\n"
        "index, bus_id, module_id, memory.used [MiB]\n"
        "0, 0000:b3:00.0, 2, 768 MiB\n1, 0000:b4:00.0, 6, 768 MiB\n"
    )

    node = made("gaudi", text, tmp_path)

    assert node.values("moduleId") == [2, 6]


def test_query_without_addresses_is_read(tmp_path: Path) -> None:
    text = "index, name, memory.total [MiB]\n0, HL-225, 98304 MiB\n1, HL-225, 98304 MiB\n"

    node = made("gaudi", text, tmp_path)

    assert (node.part.product, len(node.wholes)) == ("gaudi2", 2)


def test_columns_that_are_for_root_only_are_not_told() -> None:
    """hl-smi shows N/A there."""
    text = "index, name, module_id, bus_id, memory.total [MiB]\n"
    text += "".join(f"{n}, N/A, N/A, 0000:3{n}:00.0, N/A\n" for n in range(2))
    found = likeness("gaudi", text)

    assert any("the product is not told" in warning for warning in found.warnings)
    assert any("ask as root" in warning for warning in found.warnings)


def test_table_of_whoever_is_not_root_is_whole() -> None:
    text = example("hl-smi-gaudi2.txt").replace("768MiB /  98304MiB", "   N/A /  N/A     ")
    found = likeness("gaudi", text)

    assert (found.product, len(found.told.units)) == ("gaudi2", 8)


def test_place_that_is_not_told_is_none_that_another_card_has(tmp_path: Path) -> None:
    text = "index, bus_id, module_id\n0, 0000:b3:00.0, 4\n1, 0000:b4:00.0, N/A\n"
    text += "2, 0000:b5:00.0, 0\n"
    node = made("gaudi", text, tmp_path)

    assert node.values("moduleId")[::2] == [4, 0]
    assert len({*node.values("moduleId")}) == 3


def test_chips_that_are_missing_between_others_are_told_of() -> None:
    """Numbers of a simulated machine have no gaps, and what runs together goes by numbers."""
    listed: list[dict[str, object]] = [
        {"neuron_device": chip, "bdf": f"a{chip}:00.0", "connected_to": [], "memory_size": 32 << 30}
        for chip in (0, 1, 3)
    ]
    found = likeness("neuron", json.dumps(listed))
    whole = likeness("neuron", json.dumps(listed[:2]))

    assert any("counted anew" in warning for warning in found.warnings)
    assert not any("counted anew" in warning for warning in whole.warnings)


@pytest.mark.parametrize("left", [99, 12, 8, 3, 0])
def test_table_of_cards_that_is_cut_off_is_refused(left: int) -> None:
    """It was read as a machine with fewer cards."""
    text = example("hl-smi-gaudi2.txt")
    last = text.rindex("HL-225")

    with pytest.raises(ConfigError, match="card 7: is cut off"):
        likeness("gaudi", text[: last + left])


def test_rows_that_a_terminal_broke_between_words_are_joined() -> None:
    text = example("amd-smi-mi300x.txt")
    broken = "".join(
        line[:80].rpartition(" ")[0] + "\n" + line[:80].rpartition(" ")[2] + line[80:]
        if len(line) > 100
        else line
        for line in text.splitlines(keepends=True)
    )

    assert likeness("amd", broken) == likeness("amd", text)


def test_query_that_a_terminal_broke_anywhere_is_joined() -> None:
    text = example("nvidia-smi-h100.xml")
    lines = (line[i : i + 40] for line in text.splitlines() for i in range(0, len(line), 40))

    assert likeness("nvidia", "\n".join(lines)) == likeness("nvidia", text)


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.99])
@pytest.mark.parametrize("name", [n for n in EXAMPLES if n.endswith(("xml", "json"))])
def test_output_that_is_cut_off_is_no_smaller_machine(name: str, cut: float) -> None:
    text = example(name)

    with pytest.raises(ConfigError):
        likeness(EXAMPLES[name], text[: int(len(text) * cut)])


def test_names_that_several_devices_share_are_made_up_and_said(tmp_path: Path) -> None:
    """Virtual machines show zeros, and people hide what they paste: that was refused."""
    text = example("nvidia-smi-h100.xml")
    for serial in ("1654922000113", "1654922000287"):
        text = text.replace(serial, "REDACTED")
    first = "GPU-5d0bb1a0-3f4e-7a52-9c11-e07f6a4d2b18"
    text = text.replace("GPU-c2f8f6d4-81aa-0b37-44f9-1d5e90b7a3c6", first)

    node = made("nvidia", text, tmp_path)

    assert len({*node.values("serial"), *node.values("uuid")} - {"REDACTED"}) == 4
    assert "several devices have the serial number REDACTED: others are made up" in node.warnings


def test_serial_number_of_zeros_is_none(tmp_path: Path) -> None:
    text = example("nvidia-smi-h100.xml").replace("1654922000113", "0000000000000")

    assert made("nvidia", text, tmp_path).values("serial")[0] != "0000000000000"


def test_gpu_that_tells_an_error_instead_of_its_name_is_of_the_product_of_the_others(
    tmp_path: Path,
) -> None:
    text = example("nvidia-smi-h100.xml")
    lost = text.replace("NVIDIA H100 80GB HBM3", "[Unknown Error]", 1)

    node = made("nvidia", lost, tmp_path)

    assert {d.product for d in node.wholes} == {"NVIDIA H100 80GB HBM3"}
    assert "not taken over: that 1 tell no product, as if lost" in node.warnings
    assert not any("several products" in warning for warning in node.warnings)


@pytest.mark.parametrize(
    "chips, beside, product",
    [(6, (1, 5), "inf2"), (16, (1, 4, 12, 15), "trn1"), (1, (), "trn1")],
)
def test_chips_with_as_much_memory_differ_by_their_links(
    chips: int, beside: tuple[int, ...], product: str
) -> None:
    listed = [
        {
            "neuron_device": chip,
            "bdf": f"{chip + 16:02x}:1e.0",
            "connected_to": [(chip + step) % chips for step in beside] or None,
            "nc_count": 2,
            "memory_size": 32 << 30,
        }
        for chip in range(chips)
    ]

    assert likeness("neuron", json.dumps(listed)).product == product


@pytest.mark.parametrize(
    "kinds, product",
    [
        (["0X", "X0"], "mi300x"),
        (["0XPP", "X0PP", "PP0X", "PPX0"], "mi210"),
        (["0XP", "X0X", "PX0"], "mi250x"),
        (["0P", "P0"], "rx7900"),
    ],
)
def test_links_of_gpus_tell_what_they_may_be(kinds: list[str], product: str) -> None:
    words = {"0": "0", "X": "XGMI", "P": "PCIE"}
    names = [f"GPU{n}" for n in range(len(kinds))]
    rows = [" ".join([n, *(words[k] for k in row)]) for n, row in zip(names, kinds, strict=True)]
    text = "\n".join(["=== Link Type between two GPUs ===", " ".join(names), *rows])

    assert likeness("amd", text).product == product


def test_address_and_chip_of_a_slice_may_be_in_the_name_alone(tmp_path: Path) -> None:
    spec = {
        "driver": "gaudi.intel.com",
        "devices": [
            {
                "name": f"0000-{bus}-00-0-0x1020",
                "attributes": {"resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{root}"}},
            }
            for bus, root in (("a0", "01"), ("b0", "02"))
        ],
    }

    node = made("gaudi", json.dumps({"kind": "ResourceSlice", "spec": spec}), tmp_path)

    assert node.part.product == "gaudi2"
    assert [(d.locality.pci_address, d.locality.pcie_root) for d in node.wholes] == [
        ("0000:a0:00.0", "pci0000:01"),
        ("0000:b0:00.0", "pci0000:02"),
    ]


def test_slice_tells_the_driver_and_addresses_in_the_words_of_its_time(tmp_path: Path) -> None:
    text = slice_of(
        "gpu.nvidia.com",
        attributes={
            "pcieBusID": {"string": "0001:00:00.0"},
            "productName": {"string": "NVIDIA L4"},
            "driverVersion": {"version": "570.124.6"},
        },
    )

    node = made("nvidia", text, tmp_path)

    assert [d.locality.pci_address for d in node.wholes] == ["0001:00:00.0"]
    assert [str(version) for version in node.values("driverVersion")] == ["570.124.6"]


def test_root_is_told_without_an_address(tmp_path: Path) -> None:
    attributes = {"resource.kubernetes.io/pcieRoot": {"string": "pci0019:00"}}

    node = made("nvidia", slice_of("gpu.nvidia.com", attributes=attributes), tmp_path)

    assert [d.locality.pcie_root for d in node.wholes] == ["pci0019:00"]


def test_number_on_the_chip_names_a_gpu_of_amd(tmp_path: Path) -> None:
    number = 0x62128D7C58C2ECA3

    node = made(
        "amd",
        slice_of("gpu.amd.com", attributes={"deviceID": {"string": str(number)}}),
        tmp_path,
    )

    assert node.values("uuid") == [f"GPU-{number:016x}"]


def test_product_of_a_slice_is_the_one_that_is_known(tmp_path: Path) -> None:
    """A display of the processor came first, and all became like it."""
    devices = [
        {
            "name": f"0000-{bus}-00-0-{pci}",
            "attributes": {"model": {"string": "Unknown"}, "pciId": {"string": pci}},
            "capacity": {"memory": memory},
        }
        for bus, pci, memory in (("00", "0x7d67", "0"), ("04", "0xe211", "24480Mi"))
    ]
    spec = {"driver": "gpu.intel.com", "devices": devices}

    node = made("intel", json.dumps({"kind": "ResourceSlice", "spec": spec}), tmp_path)

    assert node.part.product == "arc-pro-b60"
    assert "of several products one is taken: 0x7d67, 0xe211" in node.warnings


def test_json_is_what_follows_a_prompt_and_not_the_prompt() -> None:
    assert json_in('[me@node ~]$ tool -j\n[\n {"a": [1]}]\n[me@node ~]$ ') == [{"a": [1]}]

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from accelkit.core.errors import AccessDenied, ModelError, NotThere, SourceError
from accelkit.core.host import READ_LIMIT, Door
from accelkit.core.model import DeviceId, Link, Locality
from accelkit.core.pci import (
    PciFunction,
    char_major,
    cpu_nodes,
    near_nodes,
    numa_of,
    pci_functions,
    pcie_root,
    quantity,
    switch_links,
)
from accelkit.core.real_host import RealHost
from accelkit.core.values import LinkKind
from accelkit.core.vendor import PciMatch

NVIDIA = PciMatch(vendor=0x10DE)


def put(root: Path, path: str, text: str | bytes = "") -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def put_function(root: Path, address: str, **files: str) -> None:
    """A function of NVIDIA below the host bridge pci0000:40, unless *files* say otherwise."""
    folder = f"/sys/devices/pci0000:40/0000:40:01.0/{address}"
    texts = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "numa_node": "1", **files}
    for name, text in texts.items():
        put(root, f"{folder}/{name}", f"{text}\n")
    link = root / f"sys/bus/pci/devices/{address}"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../../devices/pci0000:40/0000:40:01.0/{address}")


def put_nodes(root: Path, *nodes: tuple[int, str, str]) -> None:
    for number, cpus, distance in nodes:
        put(root, f"/sys/devices/system/node/node{number}/cpulist", f"{cpus}\n")
        put(root, f"/sys/devices/system/node/node{number}/distance", f"{distance}\n")


@pytest.fixture
def host(tmp_path: Path) -> RealHost:
    put_nodes(tmp_path, (0, "0-7", "10 21"), (1, "8-15", "21 10"))
    return RealHost(str(tmp_path))


def test_functions_come_by_address(tmp_path: Path, host: RealHost) -> None:
    for address in ("0000:c1:00.0", "0000:41:00.0", "10000:01:00.0"):
        put_function(tmp_path, address)

    found = pci_functions(host, [NVIDIA])

    assert [f.address for f in found] == ["0000:41:00.0", "0000:c1:00.0", "10000:01:00.0"]
    assert found[0].has("class")
    assert not found[0].has("serial")
    assert found[0].read("device") == "0x2330"
    with pytest.raises(NotThere):
        found[0].read("serial")


@pytest.mark.parametrize(
    "match,matches",
    [
        (PciMatch(vendor=0x10DE), True),
        (PciMatch(vendor=0x1002), False),
        (PciMatch(vendor=0x10DE, devices=(0x2330,)), True),
        (PciMatch(vendor=0x10DE, devices=(0x2331,)), False),
        (PciMatch(vendor=0x10DE, classes=(0x0300, 0x0302)), True),
        (PciMatch(vendor=0x10DE, classes=(0x0300,)), False),
    ],
)
def test_a_match_names_vendor_device_and_class(
    tmp_path: Path, host: RealHost, match: PciMatch, matches: bool
) -> None:
    put_function(tmp_path, "0000:41:00.0")

    assert bool(pci_functions(host, [match])) is matches
    assert pci_functions(host, []) == ()


def test_functions_that_answer_nonsense_or_go_are_left_out(tmp_path: Path, host: RealHost) -> None:
    put_function(tmp_path, "0000:41:00.0")
    put_function(tmp_path, "0000:42:00.0", vendor="nonsense")
    (tmp_path / "sys/bus/pci/devices/0000:43:00.0").symlink_to("/gone")
    (tmp_path / "sys/bus/pci/devices/not-an-address").mkdir()

    assert [f.address for f in pci_functions(host, [NVIDIA])] == ["0000:41:00.0"]


def test_a_host_without_pci_has_no_functions(tmp_path: Path) -> None:
    assert pci_functions(RealHost(str(tmp_path)), [NVIDIA]) == ()


def test_locality_is_where_a_function_hangs(tmp_path: Path, host: RealHost) -> None:
    put_function(tmp_path, "0000:41:00.0")

    assert pci_functions(host, [NVIDIA])[0].locality == Locality(
        pci_address="0000:41:00.0", pcie_root="pci0000:40", numa_node=1, near_nodes=(1,)
    )


@pytest.mark.parametrize("text", ["-1", "7", "", "nonsense"])
def test_a_node_that_is_unknown_or_has_no_cpus_is_none(
    tmp_path: Path, host: RealHost, text: str
) -> None:
    put_nodes(tmp_path, (7, "", "10"))
    put_function(tmp_path, "0000:41:00.0", numa_node=text)

    assert numa_of(host, "0000:41:00.0") is None
    assert pci_functions(host, [NVIDIA])[0].locality.near_nodes == ()
    assert cpu_nodes(host) == (0, 1)


def test_a_function_that_is_gone_has_no_place(host: RealHost) -> None:
    assert numa_of(host, "0000:99:00.0") is None
    assert pcie_root(host, "0000:99:00.0") is None


def test_nodes_as_near_as_the_own_one_follow_it(tmp_path: Path) -> None:
    put_nodes(
        tmp_path,
        (0, "0-3", "10 10 21 10"),
        (1, "4-7", "10 10 21 21"),
        (2, "8-11", "21 21 10 21"),
        (4, "", "10 21 21 10"),
    )
    host = RealHost(str(tmp_path))

    assert near_nodes(host, 1) == (1, 0)
    assert near_nodes(host, 2) == (2,)
    assert near_nodes(host, 0) == (0, 1)


@pytest.mark.parametrize("distance", ["", "10", "10 21 30"])
def test_distances_that_do_not_fit_are_not_used(tmp_path: Path, distance: str) -> None:
    put_nodes(tmp_path, (0, "0-3", distance), (1, "4-7", "21 10"))

    assert near_nodes(RealHost(str(tmp_path)), 0) == (0,)


def test_a_host_without_nodes_has_none(tmp_path: Path) -> None:
    assert cpu_nodes(RealHost(str(tmp_path))) == ()
    assert near_nodes(RealHost(str(tmp_path)), 0) == (0,)


def test_majors_are_those_of_character_devices(tmp_path: Path) -> None:
    put(
        tmp_path,
        "/proc/devices",
        "Character devices:\n  1 mem\n195 nvidia\n195 nvidia-modeset\n  x odd\n\n"
        "Block devices:\n  7 loop\n",
    )
    host = RealHost(str(tmp_path))

    assert [char_major(host, name) for name in ("mem", "nvidia-modeset", "odd", "loop")] == [
        1,
        195,
        None,
        None,
    ]


def test_a_list_without_block_devices_is_read_to_its_end(tmp_path: Path) -> None:
    put(tmp_path, "/proc/devices", "Character devices:\n  1 mem\n")

    assert char_major(RealHost(str(tmp_path)), "nvidia") is None


def test_this_machine_answers() -> None:
    host = RealHost()

    assert char_major(host, "mem") == 1
    assert all(node >= 0 for node in cpu_nodes(host))


@given(vendor=st.text(max_size=12), node=st.text(max_size=12))
def test_whatever_sysfs_says_reading_it_does_not_fail(
    tmp_path_factory: pytest.TempPathFactory, vendor: str, node: str
) -> None:
    root = tmp_path_factory.mktemp("root")
    put_function(root, "0000:41:00.0", vendor=vendor, numa_node=node)
    host = RealHost(str(root))

    assert len(pci_functions(host, [NVIDIA])) <= 1
    assert numa_of(host, "0000:41:00.0") is None


def test_quantities_are_whole_base_units() -> None:
    assert [quantity(text) for text in ("0", "512", "5k", "1Ki", "1.5Gi", "2e3")] == [
        0,
        512,
        5000,
        1024,
        3 << 29,
        2000,
    ]


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5", "1 Gi", "\N{ARABIC-INDIC DIGIT ONE}", "9E"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    if text == "9E":
        text = "9.9E"
    with pytest.raises(ModelError, match="is not a quantity") as caught:
        quantity(text)

    assert caught.value.remedy


@given(st.text(max_size=24))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        amount = quantity(text)
    except ModelError:
        amount = 0

    assert 0 <= amount < 1 << 63


@given(st.integers(0, (1 << 63) - 1))
def test_a_whole_number_is_itself(amount: int) -> None:
    assert quantity(str(amount)) == amount


def test_driver_of_a_function_is_where_its_link_leads(tmp_path: Path, host: RealHost) -> None:
    put_function(tmp_path, "0000:41:00.0")
    put_function(tmp_path, "0000:42:00.0")
    folder = tmp_path / "sys/bus/pci/drivers/nvidia"
    folder.mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:41:00.0/driver").symlink_to("/sys/bus/pci/drivers/nvidia")

    assert [f.driver for f in pci_functions(host, [NVIDIA])] == ["nvidia", None]


# Switches.

ACME = 0x1DEA


def put_below(root: Path, address: str, *bridges: str) -> tuple[str, DeviceId]:
    folder = "/".join(("/sys/devices/pci0000:40", *bridges, address))
    put(root, f"{folder}/vendor", "0x1dea\n")
    link = root / f"sys/bus/pci/devices/{address}"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(folder)
    return address, DeviceId(vendor="acme", name=address.replace(":", "-").replace(".", "-"))


def put_bridge(root: Path, address: str, maker: str) -> None:
    put(root, f"/sys/bus/pci/devices/{address}/vendor", maker)


PORT, UP = "0000:40:01.0", "0000:41:00.0"


def kinds(root: Path, *ways: tuple[str, ...]) -> list[tuple[int, int, LinkKind]]:
    """Kinds of links between devices below bridges, by the positions of the devices."""
    places = dict(put_below(root, f"0000:5{n}:00.0", *way) for n, way in enumerate(ways))
    ids = [*places.values()]
    links: list[Link] = [*switch_links(RealHost(str(root)), places, maker=ACME)]
    return [(ids.index(link.a), ids.index(link.b), link.kind) for link in links]


def test_devices_below_one_switch_are_linked(tmp_path: Path) -> None:
    found = kinds(
        tmp_path,
        (PORT, UP, "0000:42:00.0"),
        (PORT, UP, "0000:42:01.0"),
        (PORT, UP, "0000:42:02.0", "0000:43:00.0", "0000:44:00.0"),
        ("0000:40:02.0", "0000:61:00.0"),
        (),
    )

    assert found == [
        (0, 1, LinkKind.SWITCH),
        (0, 2, LinkKind.BRIDGE),
        (1, 2, LinkKind.BRIDGE),
    ]


def test_bridges_of_a_board_are_not_on_the_way(tmp_path: Path) -> None:
    """Else two boards below one switch would look as if there were three."""
    put_bridge(tmp_path, PORT, "0x1dea")
    for board in ("3", "4"):
        put_bridge(tmp_path, f"0000:4{board}:00.0", "0x1dea")
        put_bridge(tmp_path, f"0000:4{board}:01.0", "0x1dea")
    found = kinds(
        tmp_path,
        (PORT, UP, "0000:42:00.0", "0000:43:00.0", "0000:43:01.0"),
        (PORT, UP, "0000:42:01.0", "0000:44:00.0", "0000:44:01.0"),
        (PORT,),
    )

    assert (0, 1, LinkKind.SWITCH) in found
    assert len(found) == 3


def test_bridges_that_say_nonsense_are_not_a_boards(tmp_path: Path) -> None:
    put_bridge(tmp_path, "0000:42:00.0", "soon")

    assert kinds(tmp_path, (PORT, UP, "0000:42:00.0"), (PORT, UP, "0000:42:01.0")) == [
        (0, 1, LinkKind.SWITCH)
    ]


def test_device_that_is_gone_has_no_links(tmp_path: Path) -> None:
    places = dict([put_below(tmp_path, "0000:50:00.0", PORT)])
    places["0000:51:00.0"] = DeviceId(vendor="acme", name="gone")

    assert [*switch_links(RealHost(str(tmp_path)), places, maker=ACME)] == []


def test_errors_of_a_link_are_told_as_far_as_the_kernel_does(
    tmp_path: Path, host: RealHost
) -> None:
    put_function(
        tmp_path,
        "0000:41:00.0",
        aer_dev_correctable="RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3",
        aer_dev_fatal="TOTAL_ERR_FATAL many",
    )
    (function,) = pci_functions(host, [NVIDIA])

    assert function.errors() == {"correctable": 3}


def test_numa_facts_that_may_not_be_read_are_as_if_they_were_not_told(tmp_path: Path) -> None:
    class Closed(Door):
        def read(self, path: str, limit: int = READ_LIMIT) -> str:
            raise AccessDenied(f"{path}: no byte of {limit}")

    folder = tmp_path / "sys/devices/system/node/node0"
    folder.mkdir(parents=True)
    (folder / "cpulist").write_text("0-3")
    host = Closed(RealHost(str(tmp_path)))

    assert (cpu_nodes(host), near_nodes(host, 0)) == ((), (0,))
    assert numa_of(host, "0000:41:00.0") is None


def test_place_that_may_not_be_looked_at_is_not_told_and_costs_nothing_else(
    tmp_path: Path,
) -> None:
    class Closed(Door):
        def names(self, path: str) -> tuple[str, ...]:
            raise SourceError(f"{path}: cannot list it")

        def resolve(self, path: str) -> str:
            raise SourceError(f"{path}: cannot resolve it")

    put_function(tmp_path, "0000:41:00.0")
    function = PciFunction(address="0000:41:00.0", host=Closed(RealHost(str(tmp_path))))
    places = {
        "0000:41:00.0": DeviceId(vendor="v", name="a"),
        "0000:42:00.0": DeviceId(vendor="v", name="b"),
    }

    assert function.locality.pcie_root is None
    assert cpu_nodes(function.host) == ()
    assert list(switch_links(function.host, places, maker=0x10DE)) == []


@pytest.mark.parametrize(
    "text", ["", "nonsense", "0x", "0X2330", "2330", "0x" + "9" * 70, "0x٢", "-0x1", "0x1\x1f2"]
)
def test_what_is_no_id_is_told(tmp_path: Path, host: RealHost, text: str) -> None:
    put_function(tmp_path, "0000:41:00.0", device=text)
    function = PciFunction(address="0000:41:00.0", host=host)

    with pytest.raises(SourceError, match=r"device: .* is no id"):
        function.id("device")

    assert function.id("vendor") == 0x10DE
    assert pci_functions(host, [NVIDIA]) == ()


def test_white_space_around_an_id_is_none_of_it(tmp_path: Path, host: RealHost) -> None:
    put_function(tmp_path, "0000:41:00.0", device=" 0x2330\x1f")

    assert PciFunction(address="0000:41:00.0", host=host).id("device") == 0x2330

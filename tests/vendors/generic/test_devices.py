"""Which devices rules make, what they are called, and how they are."""

from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError, MissingParts
from accelkit.core.model import Condition, Device, DeviceId, DeviceNode, Locality, Unreadable
from accelkit.core.real_host import RealHost
from accelkit.core.values import FrozenMap, Severity
from accelkit.core.vendor import Signals
from accelkit.testing.faults import Fault
from accelkit.testing.simulate import set_faults, set_state
from tests.vendors.generic.rules import (
    STICK,
    devices,
    grant,
    machine,
    opened,
    vendor_of,
)


def test_without_rules_nothing_is_offered() -> None:
    vendor = vendor_of()

    assert list(vendor.discover(RealHost())) == []
    assert vendor.signals == Signals()


def test_a_node_that_exists_is_a_device(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 2))
    vendor = vendor_of({"name": "widget", "match": {"path": "/dev/widget*"}, "permissions": "r"})

    assert list(vendor.discover(host)) == [
        Device(
            id=DeviceId(vendor="generic", name=f"dev-widget{i}"),
            kind="widget",
            nodes=(DeviceNode(path=f"/dev/widget{i}", permissions="r"),),
            attributes=FrozenMap({"path": f"/dev/widget{i}"}),
            aliases=frozenset({f"/dev/widget{i}"}),
        )
        for i in range(2)
    ]


def test_a_device_comes_and_goes_with_its_node(tmp_path: Path) -> None:
    directory = machine(tmp_path, "widget", 1)
    host, vendor = opened(directory), vendor_of({"name": "w", "match": {"path": "/dev/widget0"}})
    device = devices(vendor, host)[0]
    healthy = list(vendor.conditions(host, device, ()))

    set_state(directory, ["lose", "widget-0"])

    assert healthy == []
    assert devices(vendor, host) == []
    assert list(vendor.conditions(host, device, ())) == [
        Condition(code="node-missing", severity=Severity.FATAL)
    ]
    with pytest.raises(MissingParts, match="generic/dev-widget0: /dev/widget0 is not there"):
        vendor.edits(host, grant(device))
    set_state(directory, ["restore", "widget-0"])
    assert devices(vendor, host) == [device]


def test_what_is_no_device_node_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/plain").write_text("")
    (tmp_path / "dev/folder").mkdir()
    (tmp_path / "dev/broken").symlink_to("nowhere")
    (tmp_path / "dev/round").symlink_to("round")
    vendor = vendor_of({"name": "all", "match": {"path": "/dev/*"}})

    assert devices(vendor, RealHost(str(tmp_path))) == []


def test_a_star_stays_within_one_folder_and_misses_hidden_names(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "stick", 1))

    assert devices(vendor_of({"name": "all", "match": {"path": "/dev/*"}}), host) == devices(
        vendor_of({"name": "all", "match": {"path": "/dev/tty?SB[0-9]"}}), host
    )
    assert devices(vendor_of({"name": "all", "match": {"path": "/*/bus/usb/*/*"}}), host) != []


def test_a_link_leads_to_the_node_that_is_meant(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "stick", 1))
    vendor = vendor_of({"name": "tty", "match": {"path": "/dev/serial/by-path/*"}})

    (device,) = devices(vendor, host)

    path = "/dev/serial/by-path/pci-0000:f0:14.0-usb-0:1:1.0-port0"
    assert device.nodes == (DeviceNode(path=path, host_path="/dev/ttyUSB0"),)
    assert len(device.id.name) == 40


def test_a_pci_function_is_named_by_its_address(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "card", 2))
    vendor = vendor_of(
        {
            "name": "card",
            "match": {"pci": {"vendor": 0x1DEA, "device": 1, "class": 0x1200}},
            "nodes": ["/dev/card/{address}"],
        }
    )

    assert list(vendor.discover(host))[1] == Device(
        id=DeviceId(vendor="generic", name="0000-04-00-0"),
        kind="card",
        product="1dea-0001",
        locality=Locality(
            pci_address="0000:04:00.0", pcie_root="pci0000:00", numa_node=1, near_nodes=(1,)
        ),
        nodes=(DeviceNode(path="/dev/card/0000:04:00.0"),),
        aliases=frozenset({"0000:04:00.0"}),
    )
    assert devices(vendor_of({"name": "x", "match": {"pci": {"vendor": 0x1DEB}}}), host) == []


def test_a_function_whose_node_is_missing_is_there_but_sick(tmp_path: Path) -> None:
    directory = machine(tmp_path, "card", 1)
    host = opened(directory)
    vendor = vendor_of(
        {
            "name": "card",
            "match": {"pci": {"vendor": 0x1DEA}},
            "nodes": ["/dev/card/{address}"],
        }
    )

    set_state(directory, ["close", "card-0"])

    (device,) = devices(vendor, host)
    assert device.nodes == ()
    (condition,) = vendor.conditions(host, device, ())
    assert condition.message == "/dev/card/0000:03:00.0 is not there"
    with pytest.raises(MissingParts):
        vendor.edits(host, grant(device))


def test_a_usb_device_is_named_by_its_serial_number_or_its_port(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "stick", 2))
    vendor = vendor_of(
        {
            "name": "stick",
            "match": STICK,
            "nodes": ["/dev/serial/by-path/*-usb-0:{port}:*"],
        }
    )

    first, second = devices(vendor, host)

    assert [d.id.name for d in (first, second)] == ["f000000", "1-2"]
    assert first.product == "0403-6001"
    assert first.attributes == {"port": "1-1", "serial": "F000000"}
    assert second.attributes == {"port": "1-2"}
    assert [n.on_host for n in second.nodes] == ["/dev/bus/usb/001/003", "/dev/ttyUSB1"]


@pytest.mark.parametrize(
    "rule,names",
    [
        ({"vendor": "0403", "product": "6001"}, ["f000000", "1-2"]),
        ({"vendor": "04aF"}, []),
        ({"vendor": "0403", "product": "6002"}, []),
        ({"vendor": "0404"}, []),
        ({"vendor": "0403", "serial": "F*"}, ["f000000"]),
        ({"vendor": "0403", "serial": "G*"}, []),
    ],
)
def test_usb_rules_select(tmp_path: Path, rule: dict[str, object], names: list[str]) -> None:
    host = opened(machine(tmp_path, "stick", 2))

    found = devices(vendor_of({"name": "stick", "match": {"usb": rule}}), host)

    assert [device.id.name for device in found] == names


def test_devices_with_one_serial_number_are_told_apart_by_port(tmp_path: Path) -> None:
    directory = machine(tmp_path, "stick", 2)
    for port in ("1-1", "1-2"):
        Path(directory, f"sys/bus/usb/devices/{port}/serial").write_text("0001\n")

    found = devices(vendor_of({"name": "stick", "match": STICK}), opened(directory))

    assert [device.id.name for device in found] == ["1-1", "1-2"]


def test_interfaces_and_odd_usb_entries_are_left_out(tmp_path: Path) -> None:
    directory = machine(tmp_path, "stick", 1)
    Path(directory, "sys/bus/usb/devices/1-1:1.0").mkdir()
    odd = Path(directory, "sys/bus/usb/devices/1-9")
    odd.mkdir()
    for name, text in {"idVendor": "0403", "idProduct": "6001", "busnum": "x"}.items():
        (odd / name).write_text(text)

    found = devices(vendor_of({"name": "stick", "match": STICK}), opened(directory))

    assert [device.id.name for device in found] == ["f000000"]


def test_a_function_that_goes_while_it_is_read_has_no_product(tmp_path: Path) -> None:
    directory = machine(tmp_path, "card", 1)
    read = "/sys/bus/pci/devices/*/device"
    set_faults(directory, [Fault(read=read, first=2, do="lose card-0")])

    (device,) = devices(
        vendor_of({"name": "c", "match": {"pci": {"vendor": 0x1DEA}}}), opened(directory)
    )

    assert (device.product, device.locality.numa_node) == (None, None)


def test_a_usb_device_whose_node_is_missing_is_there_but_sick(tmp_path: Path) -> None:
    directory = machine(tmp_path, "stick", 1)
    host, vendor = opened(directory), vendor_of({"name": "stick", "match": STICK})

    set_state(directory, ["close", "stick-0"])

    (device,) = devices(vendor, host)
    (condition,) = vendor.conditions(host, device, ())
    assert condition.message == "/dev/bus/usb/001/002 is not there"
    with pytest.raises(MissingParts):
        vendor.edits(host, grant(device))


def test_a_group_is_one_device(tmp_path: Path) -> None:
    directory = machine(tmp_path, "card", 3)
    host = opened(directory)
    vendor = vendor_of(
        {
            "name": "cards",
            "match": {"pci": {"vendor": 0x1DEA}},
            "nodes": ["/dev/card/{address}"],
            "group": True,
        }
    )

    (device,) = devices(vendor, host)

    assert device.id.name == "cards"
    assert len(device.nodes) == len(device.aliases) == 3
    assert device.locality == Locality()
    for unit in ("card-0", "card-1", "card-2"):
        set_state(directory, ["lose", unit])
    assert devices(vendor, host) == []


def test_a_rule_takes_what_any_of_its_matches_finds_once(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 3))
    several = [{"path": "/dev/widget2"}, {"path": "/dev/widget[02]"}]

    each = devices(vendor_of({"name": "w", "match": several}), host)
    whole = devices(vendor_of({"name": "w", "match": several, "group": True}), host)

    assert [d.id.name for d in each] == ["dev-widget2", "dev-widget0"]
    assert [sorted(d.aliases) for d in whole] == [["/dev/widget0", "/dev/widget2"]]
    assert whole[0].attributes == {}


def test_usb_devices_of_several_makers_can_be_one_device(tmp_path: Path) -> None:
    directory = machine(tmp_path, "stick", 3)
    Path(directory, "sys/bus/usb/devices/1-2/idVendor").write_text("1a86\n")
    Path(directory, "sys/bus/usb/devices/1-2/idProduct").write_text("7523\n")
    match = [{"usb": {"vendor": "1A86", "product": "7523"}}, {"usb": {"vendor": "0403"}}]

    (device,) = devices(
        vendor_of({"name": "pair", "match": match, "group": True}), opened(directory)
    )

    assert device.aliases == {"1-1", "1-2", "1-3"}
    assert [n.path for n in device.nodes] == [f"/dev/bus/usb/001/00{n}" for n in (2, 3, 4)]


def test_a_device_belongs_to_the_first_rule_that_matches(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 2))
    vendor = vendor_of(
        {"name": "first", "match": {"path": "/dev/widget0"}},
        {"name": "rest", "match": {"path": "/dev/widget*"}},
    )

    assert [(d.id.name, d.kind) for d in devices(vendor, host)] == [
        ("dev-widget0", "first"),
        ("dev-widget1", "rest"),
    ]


def test_node_that_several_links_lead_to_is_had_once(tmp_path: Path) -> None:
    """Newer udev makes two links by path for each USB device: two pods got one of them."""
    directory = machine(tmp_path, "stick", 2)
    folder = Path(directory, "dev/serial/by-path")
    for link in sorted(folder.iterdir()):
        (folder / link.name.replace("-usb-", "-usbv2-")).symlink_to(link.readlink())
    links = {"name": "link", "match": {"path": "/dev/serial/by-path/*"}}
    nodes = {"name": "node", "match": {"path": "/dev/ttyUSB*"}}
    host = opened(directory)

    assert [d.nodes[0].on_host for d in devices(vendor_of(links, nodes), host)] == [
        "/dev/ttyUSB0",
        "/dev/ttyUSB1",
    ]
    assert {d.kind for d in devices(vendor_of(nodes, links), host)} == {"node"}
    (finding,) = vendor_of(nodes, links).diagnose(host)
    assert finding.proof == "what it matches belongs to node, which comes before it"


def test_a_name_that_is_taken_is_said(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "stick", 2))
    vendor = vendor_of(
        {"name": "dev-ttyusb0", "match": {"path": "/dev/ttyUSB*"}, "group": True},
        {"name": "one", "match": {"path": "/dev/ttyUSB0"}},
    )

    assert [found for found in vendor.discover(host) if isinstance(found, Unreadable)] == [
        Unreadable(
            subject="/dev/ttyUSB0",
            code="name-taken",
            reason="generic/dev-ttyusb0 is /dev/ttyUSB0, /dev/ttyUSB1 already",
            remedy="let one rule match one of them, or make them a group",
        )
    ]


@pytest.mark.parametrize("words", [["close"], ["close", "widget-9"], ["lose", "widget-0", "now"]])
def test_verbs_with_wrong_arguments_are_refused(tmp_path: Path, words: list[str]) -> None:
    directory = machine(tmp_path, "widget", 1)

    with pytest.raises(ConfigError):
        set_state(directory, words)

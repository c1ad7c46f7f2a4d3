import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from accelkit.core.allocation import ContainerEdits, Grant, Granted, Mount
from accelkit.core.errors import ConfigError, IllegalSet, MissingParts
from accelkit.core.host import Host, ReadOnly
from accelkit.core.model import Condition, Device, DeviceId, DeviceNode, Locality, Unreadable
from accelkit.core.real_host import RealHost
from accelkit.core.serde import from_tree
from accelkit.core.values import FrozenMap, Severity
from accelkit.core.vendor import Signals
from accelkit.testing.faults import Fault
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_faults, set_state, simulate
from accelkit.vendors.generic.options import GenericOptions
from accelkit.vendors.generic.vendor import Generic

STICK = {"usb": {"vendor": "0403"}}
PAIRED = {"path": "/dev/b*", "limit": 1}


def vendor_of(*rules: Mapping[str, object]) -> Generic:
    return Generic(from_tree(GenericOptions, {"devices": list(rules)}))


def machine(directory: Path, product: str, count: int) -> str:
    simulate("generic", product, count, str(directory / "machine"))
    return str(directory / "machine")


def opened(directory: str) -> Host:
    return ReadOnly(MachineHost(directory))


def devices(vendor: Generic, host: Host) -> list[Device]:
    return [found for found in vendor.discover(host) if isinstance(found, Device)]


def grant(*granted: Device) -> Grant:
    return Grant(owner="pod", granted=tuple(Granted(device=device) for device in granted))


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


def test_optional_nodes_may_be_absent_and_may_go(tmp_path: Path) -> None:
    directory = machine(tmp_path, "widget", 2)
    host = opened(directory)
    others = {"path": "/dev/widget[1-9]", "optional": True}
    vendor = vendor_of({"name": "w", "match": {"path": "/dev/widget0"}, "nodes": [others]})
    device = devices(vendor, host)[0]

    set_state(directory, ["lose", "widget-1"])

    assert [node.path for node in device.nodes] == ["/dev/widget0", "/dev/widget1"]
    assert list(vendor.conditions(host, device, ())) == []
    edits = vendor.edits(host, grant(device)).each[device.id]
    assert [node.path for node in edits.nodes] == ["/dev/widget0"]
    assert [node.path for node in devices(vendor, host)[0].nodes] == ["/dev/widget0"]


def test_containers_get_nodes_mounts_and_variables(tmp_path: Path) -> None:
    directory = machine(tmp_path, "widget", 1)
    Path(directory, "opt/lib").mkdir(parents=True)
    Path(directory, "opt/data").mkdir()
    host = opened(directory)
    vendor = vendor_of(
        {
            "name": "w",
            "match": {"path": "/dev/widget0"},
            "env": {"WIDGET": "1"},
            "mounts": [
                {"hostPath": "/opt/lib"},
                {"hostPath": "/opt/data", "containerPath": "/data", "readOnly": False},
            ],
        }
    )
    device = devices(vendor, host)[0]

    assert vendor.edits(host, grant(device)).each[device.id] == ContainerEdits(
        nodes=(DeviceNode(path="/dev/widget0"),),
        env=FrozenMap({"WIDGET": "1"}),
        mounts=(
            Mount(host_path="/opt/lib", container_path="/opt/lib"),
            Mount(
                host_path="/opt/data",
                container_path="/data",
                options=("rw", "nosuid", "nodev", "bind"),
            ),
        ),
    )
    Path(directory, "opt/lib").rmdir()
    with pytest.raises(MissingParts, match="/opt/lib is not there"):
        vendor.edits(host, grant(device))


def nodes_of(vendor: Generic, host: Host) -> dict[str, list[tuple[str, str]]]:
    """Nodes of each device: where a container and where the host has them."""
    return {d.id.name: [(n.path, n.on_host) for n in d.nodes] for d in devices(vendor, host)}


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


def test_containers_can_find_a_node_elsewhere(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 2))

    one = vendor_of({"name": "w", "match": {"path": "/dev/widget1", "containerPath": "/dev/w"}})
    folder = vendor_of({"name": "w", "match": {"path": "/dev/widget*", "containerPath": "/dev/w/"}})

    assert nodes_of(one, host) == {"dev-widget1": [("/dev/w", "/dev/widget1")]}
    assert nodes_of(folder, host) == {
        f"dev-widget{i}": [(f"/dev/w/widget{i}", f"/dev/widget{i}")] for i in range(2)
    }


def test_a_set_whose_files_want_one_place_is_refused(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 2))
    vendor = vendor_of({"name": "w", "match": {"path": "/dev/widget*", "containerPath": "/dev/w"}})
    first, second = devices(vendor, host)

    assert vendor.edits(host, grant(second)).each[second.id].nodes[0].path == "/dev/w"
    with pytest.raises(IllegalSet, match="/dev/widget0 and /dev/widget1 cannot both be /dev/w"):
        vendor.edits(host, grant(first, second))


def test_further_nodes_have_places_and_permissions_of_their_own(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 3))
    control = {"path": "/dev/widget0", "containerPath": "/dev/control", "permissions": "r"}
    rest = {"path": "/dev/widget[12]", "containerPath": "/dev/rest/"}
    vendor = vendor_of(
        {"name": "w", "match": {"path": "/dev/widget1"}, "nodes": [control, rest]},
    )

    (device,) = devices(vendor, host)

    assert device.nodes == (
        DeviceNode(path="/dev/control", host_path="/dev/widget0", permissions="r"),
        DeviceNode(path="/dev/rest/widget1", host_path="/dev/widget1"),
        DeviceNode(path="/dev/rest/widget2", host_path="/dev/widget2"),
        DeviceNode(path="/dev/widget1"),
    )


@pytest.mark.parametrize(
    "limit,pairs",
    [(1, {1: 3, 2: 4}), (2, {0: 3, 1: 4, 2: 3}), (9, {0: 3, 1: 4, 2: 3})],
)
def test_files_with_a_limit_are_shared_out_in_order(
    tmp_path: Path, limit: int, pairs: dict[int, int]
) -> None:
    """What comes first of few goes to whom comes first; who gets nothing is not offered."""
    host = opened(machine(tmp_path, "widget", 5))
    match = {"path": f"/dev/widget[{min(pairs)}-2]"}
    shared = {"path": "/dev/widget[34]", "containerPath": "/dev/other", "limit": limit}

    found = nodes_of(vendor_of({"name": "w", "match": match, "nodes": [shared]}), host)

    assert found == {
        f"dev-widget{one}": [
            ("/dev/other", f"/dev/widget{other}"),
            (f"/dev/widget{one}", f"/dev/widget{one}"),
        ]
        for one, other in pairs.items()
    }


def test_who_gets_none_of_what_has_a_limit_is_not_offered_unless_that_is_optional(
    tmp_path: Path,
) -> None:
    host = opened(machine(tmp_path, "widget", 3))
    match = {"path": "/dev/widget[01]"}
    other = {"path": "/dev/widget2", "limit": 1}

    needed = nodes_of(vendor_of({"name": "w", "match": match, "nodes": [other]}), host)
    wished = nodes_of(
        vendor_of({"name": "w", "match": match, "nodes": [{**other, "optional": True}]}), host
    )

    assert [*needed] == ["dev-widget0"]
    assert [len(nodes) for nodes in wished.values()] == [2, 1]


def test_files_are_devices_that_are_mounted(tmp_path: Path) -> None:
    directory = machine(tmp_path, "widget", 1)
    for name in ("a", "b"):
        Path(directory, "run/rooms", name).mkdir(parents=True)
    Path(directory, "run/rooms/c").write_text("")
    host = opened(directory)
    room = {"file": "/run/rooms/*", "containerPath": "/room", "readOnly": False}
    vendor = vendor_of({"name": "room", "match": room})

    first, second, third = devices(vendor, host)

    assert [d.id.name for d in (first, second, third)] == [
        "run-rooms-a",
        "run-rooms-b",
        "run-rooms-c",
    ]
    assert vendor.edits(host, grant(second)).each[second.id] == ContainerEdits(
        mounts=(
            Mount(
                host_path="/run/rooms/b",
                container_path="/room",
                options=("rw", "nosuid", "nodev", "bind"),
            ),
        )
    )
    with pytest.raises(IllegalSet, match="/run/rooms/a and /run/rooms/b cannot both be /room"):
        vendor.edits(host, grant(first, second))
    Path(directory, "run/rooms/b").rmdir()
    (condition,) = vendor.conditions(host, second, ())
    assert condition.message == "/run/rooms/b is not there"
    assert devices(vendor_of({"name": "x", "match": {"file": "/dev/widget*"}}), host) == []


def test_mounts_may_be_several_may_be_absent_and_may_be_shared_out(tmp_path: Path) -> None:
    directory = machine(tmp_path, "widget", 2)
    for name in ("one", "two"):
        Path(directory, "opt", name).mkdir(parents=True)
    host = opened(directory)
    vendor = vendor_of(
        {
            "name": "w",
            "match": {"path": "/dev/widget*"},
            "mounts": [
                {"hostPath": "/opt/*", "containerPath": "/all/"},
                {"hostPath": "/nowhere", "optional": True},
                {"hostPath": "/opt/*", "containerPath": "/own", "limit": 1},
            ],
        }
    )
    each = [vendor.edits(host, grant(d)).each[d.id].mounts for d in devices(vendor, host)]

    assert [[(m.host_path, m.container_path) for m in mounts] for mounts in each] == [
        [("/opt/one", "/all/one"), ("/opt/two", "/all/two"), (f"/opt/{own}", "/own")]
        for own in ("one", "two")
    ]


def test_a_device_whose_mount_is_gone_is_sick(tmp_path: Path) -> None:
    directory = machine(tmp_path, "widget", 1)
    host = opened(directory)
    vendor = vendor_of(
        {
            "name": "w",
            "match": {"path": "/dev/widget0"},
            "mounts": [{"hostPath": "/opt/lib"}, {"hostPath": "/opt/more", "optional": True}],
        }
    )

    (condition,) = vendor.conditions(host, devices(vendor, host)[0], ())

    assert condition.message == "/opt/lib is not there"


def test_between_two_looks_what_has_a_limit_may_go(tmp_path: Path) -> None:
    directory = machine(tmp_path, "card", 2)
    for name in ("one", "two"):
        Path(directory, "opt", name).mkdir(parents=True)
    host = opened(directory)
    share = {"hostPath": "/opt/*", "containerPath": "/own", "limit": 1}
    vendor = vendor_of({"name": "c", "match": {"pci": {"vendor": 0x1DEA}}, "mounts": [share]})
    first, second = devices(vendor, host)

    Path(directory, "opt/one").rmdir()

    assert vendor.edits(host, grant(first)).each[first.id].mounts[0].host_path == "/opt/two"
    with pytest.raises(MissingParts, match=r"others have all that /opt/\* is"):
        vendor.edits(host, grant(second))
    set_state(directory, ["lose", "card-1"])
    with pytest.raises(MissingParts, match=r"0000:04:00.0 is not there"):
        vendor.edits(host, grant(second))


@pytest.mark.parametrize("product", ["widget", "card", "stick"])
def test_many_devices_are_found_soon(tmp_path: Path, product: str) -> None:
    """Within 50 ms of work; on a simulated machine, where each look costs more, within thrice."""
    host = opened(machine(tmp_path, product, 128))
    rules = {
        "widget": {"match": {"path": "/dev/widget*"}, "nodes": ["/dev/widget0"]},
        "card": {"match": {"pci": {"vendor": 0x1DEA}}, "nodes": ["/dev/card/{address}"]},
        "stick": {"match": STICK, "nodes": ["/dev/serial/by-path/*-usb-0:{port}:*"]},
    }
    vendor = vendor_of({"name": "many", **rules[product]})
    took = []
    for _ in range(3):
        began = time.process_time()
        assert len(devices(vendor, host)) == 128
        took.append(time.process_time() - began)

    assert min(took) < 0.15


def test_a_device_whose_rule_is_gone_has_no_edits_and_no_conditions(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 1))
    device = devices(vendor_of({"name": "w", "match": {"path": "/dev/widget0"}}), host)[0]
    other = vendor_of()

    assert list(other.conditions(host, device, ())) == []
    with pytest.raises(MissingParts, match="its rule is gone"):
        other.edits(host, grant(device))


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


def test_what_the_rules_name_is_watched() -> None:
    vendor = vendor_of(
        {
            "name": "a",
            "match": [{"path": "/dev/a*"}, {"path": "/dev/b*"}],
            "nodes": ["/dev/c", {"path": "/dev/d", "optional": True}],
            "mounts": [{"hostPath": "/run/e"}],
        },
        {"name": "f", "match": {"file": "/run/f*"}},
        {"name": "p", "match": {"pci": {"vendor": 1}}, "nodes": ["/dev/{address}"]},
        {"name": "u", "match": STICK},
    )

    assert vendor.signals == Signals(
        uevents=("pci", "usb"),
        files=("/dev/a*", "/dev/b*", "/dev/c", "/dev/d", "/run/e", "/run/f*"),
    )


def test_the_fuse_and_tun_devices_of_this_machine_can_be_offered() -> None:
    host = ReadOnly(RealHost())
    vendor = vendor_of(
        {"name": "null", "match": {"path": "/dev/null"}},
        {"name": "fuse", "match": {"path": "/dev/fuse"}},
        {"name": "tun", "match": {"path": "/dev/net/tun"}},
        {"name": "loop", "match": {"path": "/dev/loop[0-9]*"}},
    )

    found = devices(vendor, host)

    assert found[0].id.name == "dev-null"
    expected = {"/dev/null", "/dev/fuse", "/dev/net/tun"}
    assert {n.path for d in found for n in d.nodes if d.kind != "loop"} == {
        path for path in expected if Path(path).exists()
    }
    assert all(node.kind == "b" for d in found if d.kind == "loop" for node in d.nodes)
    assert [list(vendor.conditions(host, d, ())) for d in found] == [[]] * len(found)
    assert set(vendor.edits(host, grant(*found)).each) == {d.id for d in found}


@pytest.mark.parametrize(
    "rule,text",
    [
        ({"name": "Fuse", "match": {"path": "/dev/a"}}, "name must be a DNS label"),
        ({"name": "", "match": {"path": "/dev/a"}}, "name must be a DNS label"),
        ({"name": "a" * 41, "match": {"path": "/dev/a"}}, "name must be a DNS label"),
        ({"name": "a"}, "missing"),
        ({"name": "a", "match": {}}, "exactly one of path, file, pci and usb"),
        ({"name": "a", "match": {"path": "/dev/a", **STICK}}, "exactly one of"),
        ({"name": "a", "match": {"path": "dev/a"}}, "must be an absolute path"),
        ({"name": "a", "match": {"path": "/dev/../a"}}, "must be an absolute path"),
        ({"name": "a", "match": {"path": "/dev/a\0"}}, "must be an absolute path"),
        ({"name": "a", "match": {"path": "/dev/{bus}"}}, "{bus} is not known; a path has none"),
        (
            {"name": "a", "match": STICK, "nodes": ["/dev/{address}"]},
            "{address} is not known; a path has {bus} and {port}",
        ),
        ({"name": "a", "match": {"pci": {"vendor": 70000}}}, "vendor must be from 0x0000"),
        ({"name": "a", "match": {"pci": {"vendor": 1, "class": -1}}}, "class must be from"),
        ({"name": "a", "match": {"usb": {"vendor": "403"}}}, "vendor must be four hexadecimal"),
        ({"name": "a", "match": {"usb": {"vendor": "0403", "product": "6OO1"}}}, "product must"),
        ({"name": "a", "match": {"path": "/a"}, "permissions": "rx"}, "permissions must be some"),
        ({"name": "a", "match": {"path": "/a"}, "permissions": ""}, "permissions must be some"),
        ({"name": "a", "match": {"path": "/a"}, "env": {"A=B": "1"}}, "is not the name of a"),
        ({"name": "a", "match": {"path": "/a"}, "mounts": [{"hostPath": "x"}]}, "absolute path"),
        ({"name": "a", "match": {"path": "/a"}, "node": []}, "unknown key"),
        ({"name": "a", "match": []}, "by one of path, file, pci and usb, not by none"),
        ({"name": "a", "match": [{"path": "/a"}, STICK]}, "not path, usb"),
        ({"name": "a", "match": {"file": "a"}}, "must be an absolute path"),
        ({"name": "a", "match": {"path": "/a", "containerPath": "a"}}, "must be an absolute path"),
        ({"name": "a", "match": {**STICK, "containerPath": "/a"}}, "goes with path or file"),
        ({"name": "a", "match": {"path": "/a", "readOnly": False}}, "readOnly goes with file"),
        ({"name": "a", "match": {"path": "/a"}, "nodes": [{"path": "/b", "limits": 1}]}, "unknown"),
        (
            {"name": "a", "match": {"path": "/a"}, "nodes": [{"path": "/b", "permissions": "x"}]},
            "permissions must be some",
        ),
        (
            {"name": "a", "match": {"path": "/a"}, "nodes": [{"path": "/b", "limit": 0}]},
            "limit must be at least 1",
        ),
        (
            {
                "name": "a",
                "match": {"path": "/a"},
                "mounts": [{"hostPath": "/b*", "containerPath": "/c"}],
            },
            "let it end in /",
        ),
        (
            {"name": "a", "match": {"path": "/a"}, "group": True, "nodes": [PAIRED]},
            "leave it out with group",
        ),
        (
            {"name": "a", "match": STICK, "mounts": [{"hostPath": "/run/{port}", "limit": 1}]},
            "leave it out with placeholders",
        ),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_its_place(rule: object, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_tree(GenericOptions, {"devices": [rule]}, "$.options")

    (problem,) = caught.value.problems
    assert problem[0].startswith("$.options.devices[0]")
    assert text in problem[1]


def test_two_rules_of_one_name_are_refused() -> None:
    rule = {"name": "a", "match": {"path": "/dev/a"}}

    with pytest.raises(ConfigError, match="two rules have the name a"):
        from_tree(GenericOptions, {"devices": [rule, rule]})


@pytest.mark.parametrize("words", [["close"], ["close", "widget-9"], ["lose", "widget-0", "now"]])
def test_verbs_with_wrong_arguments_are_refused(tmp_path: Path, words: list[str]) -> None:
    directory = machine(tmp_path, "widget", 1)

    with pytest.raises(ConfigError):
        set_state(directory, words)

"""What containers get of devices by rules."""

from pathlib import Path

import pytest

from accelkit.core.allocation import ContainerEdits, Mount
from accelkit.core.errors import IllegalSet, MissingParts
from accelkit.core.host import ReadOnly
from accelkit.core.model import DeviceNode
from accelkit.core.real_host import RealHost
from accelkit.core.values import FrozenMap
from accelkit.testing.simulate import set_state
from tests.vendors.generic.rules import (
    devices,
    grant,
    machine,
    nodes_of,
    opened,
    vendor_of,
)


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


def test_a_device_whose_own_files_want_one_place_says_what_helps(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 2))
    further = [{"path": "/dev/widget1", "containerPath": "/dev/widget0"}]
    vendor = vendor_of({"name": "w", "match": {"path": "/dev/widget0"}, "nodes": further})

    with pytest.raises(IllegalSet, match="cannot both be /dev/widget0") as caught:
        vendor.edits(host, grant(*devices(vendor, host)))

    assert caught.value.remedy.endswith("let their rules name two places")


def test_a_set_whose_rules_give_a_variable_two_values_is_refused(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 3))
    vendor = vendor_of(
        {"name": "a", "match": {"path": "/dev/widget0"}, "env": {"MODE": "1", "SIZE": "3"}},
        {"name": "b", "match": {"path": "/dev/widget1"}, "env": {"MODE": "2"}},
        {"name": "c", "match": {"path": "/dev/widget2"}, "env": {"SIZE": "3"}},
    )
    one, other, third = devices(vendor, host)

    assert len(vendor.edits(host, grant(one, third)).each) == 2
    with pytest.raises(IllegalSet, match="MODE cannot be both '1' and '2' in a container"):
        vendor.edits(host, grant(one, other))


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


def test_a_device_whose_rule_is_gone_has_no_edits_and_no_conditions(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "widget", 1))
    device = devices(vendor_of({"name": "w", "match": {"path": "/dev/widget0"}}), host)[0]
    other = vendor_of()

    assert list(other.conditions(host, device, ())) == []
    with pytest.raises(MissingParts, match="its rule is gone"):
        other.edits(host, grant(device))


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

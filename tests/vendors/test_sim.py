import os
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from accelkit.core.allocation import ContainerEdits, Edits, Grant, Granted
from accelkit.core.errors import ConfigError, MissingParts, SourceError
from accelkit.core.host import ReadOnly
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    DeviceNode,
    Event,
    Evidence,
    Group,
    Holder,
    Holding,
    Link,
    Locality,
    Snapshot,
    Unreadable,
)
from accelkit.core.real_host import RealHost
from accelkit.core.values import (
    AttributeValue,
    FrozenMap,
    GroupRule,
    HolderKind,
    LinkKind,
    Severity,
    Version,
)
from accelkit.core.vendor import NoOptions
from accelkit.testing.faults import Fault
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_faults, set_state, simulate
from accelkit.vendors.sim.machine import SimMachine, SimSetMachine
from accelkit.vendors.sim.vendor import Sim, SimSet

GIB = 1 << 30


class Node:
    """A machine of one sim vendor, and that vendor."""

    def __init__(self, directory: Path, product: str, count: int, vendor: type[Sim] = Sim) -> None:
        self.directory = str(directory / "machine")
        simulate(vendor.name, product, count, self.directory)
        self.host = ReadOnly(MachineHost(self.directory))
        self.vendor = vendor(NoOptions())

    def set(self, *words: str) -> None:
        set_state(self.directory, words)

    def found(self) -> list[Device | Unreadable]:
        return list(self.vendor.discover(self.host))

    def devices(self) -> tuple[Device, ...]:
        return tuple(device for device in self.found() if isinstance(device, Device))

    def conditions(self, *evidence: Evidence) -> list[Condition]:
        return list(self.vendor.conditions(self.host, self.devices()[0], evidence))


@pytest.fixture
def basic(tmp_path: Path) -> Node:
    return Node(tmp_path, "basic", 2)


def grant(*devices: Device) -> Grant:
    return Grant(owner="pod", granted=tuple(Granted(device=device) for device in devices))


def sim_id(number: int, vendor: str = "sim") -> DeviceId:
    return DeviceId(vendor=vendor, name=f"s00-{number:04}")


def test_devices_say_all_that_the_machine_shows(basic: Node) -> None:
    shown: dict[str, AttributeValue] = {"firmware": Version(1, 2, 3), "place": 1}

    assert basic.found()[1] == Device(
        id=sim_id(1),
        kind="accel",
        product="basic",
        locality=Locality(
            pci_address="0000:04:00.0", pcie_root="pci0000:00", numa_node=1, near_nodes=(1,)
        ),
        nodes=(DeviceNode(path="/dev/sim1"),),
        attributes=FrozenMap(shown),
        capacity=FrozenMap({"memory": 16 * GIB}),
        aliases=frozenset({"0000:04:00.0"}),
    )


@pytest.mark.parametrize("product", SimMachine.products)
def test_every_product_makes_a_sound_snapshot(tmp_path: Path, product: str) -> None:
    node = Node(tmp_path, product, 8)
    devices = node.devices()

    snapshot = Snapshot(
        devices=devices,
        links=tuple(node.vendor.links(node.host, devices)),
        groups=tuple(node.vendor.groups(devices)),
    )

    assert len([d for d in snapshot.devices if d.parent is None]) == 8
    assert all(type(v) is Sim.attributes[k] for d in devices for k, v in d.attributes.items())


def test_a_real_host_has_no_simulated_accelerators() -> None:
    assert list(Sim(NoOptions()).discover(RealHost())) == []


def test_a_lost_device_is_absent_until_it_is_restored(basic: Node) -> None:
    basic.set("lose", "accel-0")
    lost = basic.devices()
    basic.set("restore", "accel-0")

    assert [d.id for d in lost] == [sim_id(1)]
    assert [d.id for d in basic.devices()] == [sim_id(0), sim_id(1)]


def test_without_driver_devices_are_unreadable(basic: Node) -> None:
    basic.set("unload")

    assert [f.code for f in basic.found() if isinstance(f, Unreadable)] == ["driver-not-ready"] * 2
    assert basic.vendor.software(basic.host) == {}
    basic.set("load")
    assert basic.vendor.software(basic.host) == {"driver": "1.0"}


def test_rubbish_makes_one_device_unreadable(basic: Node) -> None:
    for name in ("memory_bytes", "minor", "place", "halves"):
        basic.set("rubbish", "accel-0", name)
        unreadable, device = basic.found()
        basic.set("heal", "accel-0")

        assert isinstance(unreadable, Unreadable)
        assert (unreadable.subject, unreadable.code) == ("0000:03:00.0", "unreadable")
        assert isinstance(device, Device)


def test_faults_are_conditions_until_they_are_healed(basic: Node) -> None:
    basic.set("fault", "accel-0", "ecc-uncorrected")
    basic.set("fault", "accel-0", "hot", "DEGRADED")
    sick = basic.conditions()
    basic.set("heal", "accel-0")

    assert sick == [
        Condition(code="ecc-uncorrected", severity=Severity.FATAL),
        Condition(code="hot", severity=Severity.DEGRADED),
    ]
    assert basic.conditions() == []


def test_faults_that_make_no_sense_are_unknown(basic: Node) -> None:
    basic.set("rubbish", "accel-0", "faults")

    with pytest.raises(SourceError, match="has no code and severity"):
        basic.conditions()


def test_events_are_heard_once(basic: Node) -> None:
    basic.set("event", "accel-0", "before")
    first = list(basic.vendor.listen(basic.host, 0))
    late = threading.Timer(0.1, basic.set, ("event", "accel-1", "glitch"))
    late.start()
    heard = list(basic.vendor.listen(basic.host, 15))
    late.join()

    assert first == []
    assert heard == [
        Event(
            subject="0000:04:00.0", code="glitch", source="queue", data=FrozenMap({"number": "2"})
        )
    ]
    assert list(basic.vendor.listen(basic.host, 0)) == []


def test_evidence_is_a_condition_until_the_device_is_healed(basic: Node) -> None:
    basic.set("event", "accel-0", "glitch")
    now = datetime.now(UTC)
    told = Evidence(
        vendor="sim",
        subject="0000:03:00.0",
        code="glitch",
        source="queue",
        count=1,
        first=now,
        last=now,
        data=FrozenMap({"number": "1"}),
    )

    before = basic.conditions(told)
    basic.set("heal", "accel-0")

    assert before == [Condition(code="glitch", severity=Severity.DEGRADED)]
    assert basic.conditions(told) == []


def test_a_fabric_links_all_and_has_boards(tmp_path: Path) -> None:
    node = Node(tmp_path, "fabric", 6)
    devices = node.devices()

    links = set(node.vendor.links(node.host, devices))

    assert len(links) == 15
    assert Link.between(sim_id(0), sim_id(5), LinkKind.FABRIC, count=6) in links
    assert list(node.vendor.groups(devices)) == [
        Group(kind="board", name="board-0", members=tuple(sim_id(i) for i in range(4))),
        Group(kind="board", name="board-1", members=(sim_id(4), sim_id(5))),
    ]


def test_a_ring_links_neighbours(tmp_path: Path) -> None:
    node = Node(tmp_path, "ring", 4)

    links = {(x.a.name, x.b.name) for x in node.vendor.links(node.host, node.devices())}

    assert links == {
        ("s00-0000", "s00-0001"),
        ("s00-0001", "s00-0002"),
        ("s00-0002", "s00-0003"),
        ("s00-0000", "s00-0003"),
    }


def test_a_cube_may_be_used_in_whole_blocks_only(tmp_path: Path) -> None:
    node = Node(tmp_path, "cube", 4)
    node.set("lose", "accel-3")

    blocks = list(node.vendor.groups(node.devices()))

    assert {block.rule for block in blocks} == {GroupRule.LAW}
    assert [block.name for block in blocks] == ["1-0", "1-1", "1-2", "2-0"]


def test_devices_that_are_gone_have_no_links(tmp_path: Path) -> None:
    node = Node(tmp_path, "ring", 3)
    first, second, _ = node.devices()

    assert list(node.vendor.links(node.host, (first, second))) == [
        Link.between(first.id, second.id, LinkKind.DIRECT, count=2)
    ]


@pytest.mark.parametrize("memory", ["0", "-1", str(1 << 63)])
def test_memory_out_of_range_is_unreadable(basic: Node, memory: str) -> None:
    function = "sys/bus/pci/devices/0000:03:00.0/memory_bytes"
    Path(basic.directory, function).write_text(memory)

    (unreadable,) = [found for found in basic.found() if isinstance(found, Unreadable)]
    assert unreadable.reason == f"nonsense: memory_bytes {memory}"


def test_halves_are_partitions_at_their_places(tmp_path: Path) -> None:
    node = Node(tmp_path, "split", 1)

    whole, first, second = node.devices()

    assert (whole.usable, whole.slots) == (False, 2)
    assert [part.id.name for part in (first, second)] == ["s00-0000-half-0", "s00-0000-half-1"]
    assert first.capacity["memory"] == 8 * GIB


def test_holders_are_foreign_processes(basic: Node) -> None:
    basic.set("hold", "accel-1", "4711")
    held = list(basic.vendor.holders(basic.host, basic.devices()))
    basic.set("free", "accel-1")

    holder = Holder(kind=HolderKind.FOREIGN, uid="4711")
    assert held == [Holding(device=sim_id(1), through="process", holder=holder)]
    assert list(basic.vendor.holders(basic.host, basic.devices())) == []


def test_edits_are_nodes_and_a_joined_list(basic: Node) -> None:
    devices = basic.devices()

    together = basic.vendor.edits(basic.host, grant(*devices))

    alone = [basic.vendor.edits(basic.host, grant(device)).each for device in devices]
    assert together == Edits(each=FrozenMap({**alone[0], **alone[1]}))
    assert together.each[sim_id(0)] == ContainerEdits(
        nodes=(DeviceNode(path="/dev/sim0"),), joined=FrozenMap({"SIM_DEVICES": "s00-0000"})
    )


def test_edits_of_a_device_without_node_are_missing_parts(basic: Node) -> None:
    device = basic.devices()[0]
    basic.set("lose", "accel-0")

    with pytest.raises(MissingParts, match="sim/s00-0000: /dev/sim0 is not there"):
        basic.vendor.edits(basic.host, grant(device))


def test_a_set_is_described_as_a_whole_in_grant_order(tmp_path: Path) -> None:
    node = Node(tmp_path, "cube", 2, SimSet)
    first, second = node.devices()

    edits = node.vendor.edits(node.host, grant(second, first))

    assert edits.whole == ContainerEdits(
        env=FrozenMap({"SIM_SET": "s00-0000,s00-0001", "SIM_SET_SIZE": "2"})
    )
    assert SimSet.sets
    assert SimSetMachine.products[0] == "cube"


@pytest.mark.parametrize("call", ["discover", "edits", "conditions", "links", "holders", "listen"])
def test_a_call_that_is_told_to_misbehaves_until_it_is_calmed(basic: Node, call: str) -> None:
    devices = basic.devices()

    def ask() -> None:
        host = basic.host
        calls: dict[str, Callable[[], Iterable[object]]] = {
            "discover": lambda: basic.vendor.discover(host),
            "edits": lambda: [basic.vendor.edits(host, grant(*devices))],
            "conditions": lambda: basic.vendor.conditions(host, devices[0], ()),
            "links": lambda: basic.vendor.links(host, devices),
            "holders": lambda: basic.vendor.holders(host, devices),
            "listen": lambda: basic.vendor.listen(host, 0),
        }
        list(calls[call]())

    basic.set("raise", call)
    with pytest.raises(RuntimeError, match="told to raise"):
        ask()
    basic.set("error", call)
    with pytest.raises(SourceError, match="told to fail"):
        ask()
    basic.set("hang", call, "1h")
    hung = threading.Thread(target=ask)
    hung.start()
    hung.join(0.2)
    still = hung.is_alive()
    basic.set("calm")
    hung.join(15)

    assert still
    assert not hung.is_alive()


def test_a_hang_ends_by_itself(basic: Node) -> None:
    basic.set("hang", "discover", "50ms")

    assert len(basic.found()) == 2


def test_the_library_can_be_made_to_fail(basic: Node) -> None:
    set_faults(basic.directory, [Fault(call="simDriverVersion", do="error 9")])

    with pytest.raises(SourceError, match="simDriverVersion answered 9"):
        basic.vendor.software(basic.host)


def test_the_driver_version_is_an_option(tmp_path: Path) -> None:
    directory = str(tmp_path / "machine")
    simulate("sim", None, 1, directory, options={"driver": "2.5"})
    host = MachineHost(directory)

    assert Sim(NoOptions()).software(host) == {"driver": "2.5"}
    simulate("simset", None, 1, directory, options={"driver": "9" * 40})
    with pytest.raises(SourceError, match="answered 7"):
        SimSet(NoOptions()).software(host)


@pytest.mark.parametrize(
    "words",
    [
        ("fault", "accel-0"),
        ("fault", "accel-0", "x", "BAD"),
        ("hold", "accel-0", "me"),
        ("rubbish", "accel-0", "no-such-file"),
        ("lose", "accel-0", "now"),
        ("event", "accel-0"),
        ("hang", "discover"),
        ("hang", "sleep", "1s"),
        ("hang", "discover", "soon"),
        ("raise", "close"),
        ("load", "it"),
    ],
)
def test_verbs_with_wrong_arguments_are_refused(basic: Node, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        basic.set(*words)

    assert "\n" not in str(caught.value)
    assert len(basic.devices()) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_real_nodes_serve_containers(tmp_path: Path) -> None:
    directory = str(tmp_path / "machine")
    simulate("sim", None, 1, directory, device_nodes=True)
    host = MachineHost(directory)

    node = Path(host.outside("/dev/sim0"))

    assert node.is_char_device()
    assert node.read_bytes() == b""

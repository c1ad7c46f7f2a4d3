"""Whatever the files hold, nothing of the plugin breaks: it says what it could not know."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import attrs
import pytest
from hypothesis import Phase, given, settings, strategies as st

from accelkit import AccessDenied, Device, NotThere, SourceError, Unreadable
from accelkit.core.host import READ_LIMIT, Door, Host
from accelkit.core.reading import read_inventory
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.amd.vendor import Amd
from tests.vendors.amd.bench import Make, evidence

BUGS = {"plugin-bug", "plugin-contract"}
NODES = "/sys/devices/virtual/kfd/kfd/topology/nodes"
VERSIONS = ("version", "srcversion")


@attrs.frozen
class Read:
    """A machine, what is there, and what is looked at to know it."""

    directory: str
    known: tuple[Device, ...]
    paths: tuple[str, ...]

    def lying(self, lies: dict[str, "Answer"]) -> "Liar":
        return Liar(MachineHost(self.directory), lies)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    made = str(tmp_path_factory.mktemp("machine"))
    simulate("amd", "mi300a", 2, made)
    set_state(made, ["mode", "gpu-0", "TPX"])
    noted = Noted(MachineHost(made))
    known = read_inventory(Amd(Amd.options()), noted).devices
    use_all_of(noted, known)
    # The core looks at NUMA nodes, too, and not through the plugin.
    paths = (p for p in noted.files | noted.folders if not p.startswith("/sys/devices/system/node"))
    return Read(made, known, tuple(sorted(paths)))


class Noted(Door):
    """Keeps what is read and listed."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.files: set[str] = set()
        self.folders: set[str] = set()

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        self.files.add(path)
        return super().read(path, limit)

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        self.files.add(path)
        return super().read_bytes(path, limit)

    def names(self, path: str) -> tuple[str, ...]:
        self.folders.add(path)
        return super().names(path)


Answer = Callable[[], str]


class Liar(Door):
    """Some files hold what they should not, or cannot be read."""

    def __init__(self, host: Host, lies: dict[str, Answer]) -> None:
        super().__init__(host)
        self.lies = lies

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        lie = self.lies.get(path)
        return super().read(path, limit) if lie is None else lie()[:limit]

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        lie = self.lies.get(path)
        if lie is None:
            return super().read_bytes(path, limit)
        return lie().encode("utf-8", "replace")[:limit]

    def names(self, path: str) -> tuple[str, ...]:
        lie = self.lies.get(path)
        return super().names(path) if lie is None else tuple(lie().split())

    def resolve(self, path: str) -> str:
        lie = self.lies.get(path)
        return super().resolve(path) if lie is None else lie()


def denied() -> str:
    raise AccessDenied("this process may not read it")


def gone() -> str:
    raise NotThere("there is no such file")


def looping() -> str:
    raise SourceError("cannot read it: Too many levels of symbolic links")


def telling(text: str) -> Answer:
    return lambda: text


WORDS = (
    *("unique_id", "location_id", "domain", "drm_render_minor", "simd_count", "simd_per_cu"),
    *("num_xcc", "gfx_target_version", "cpu_cores_count", "hive_id", "heap_type"),
    *("size_in_bytes", "type", "node_to", "min_bandwidth", "max_bandwidth", "ue:", "ce:"),
)
NUMBERS = st.sampled_from(
    ["0", "-1", "1", "9" * 19, "9" * 40, "1e9", "0x10", "٣", "18446744073709551615"]
)
TEXTS = st.one_of(
    st.text(max_size=60),
    NUMBERS,
    st.lists(
        st.tuples(
            st.sampled_from(WORDS),
            NUMBERS,
        ).map(" ".join),
        max_size=12,
    ).map("\n".join),
    st.sampled_from(["SPX", "CPX\n", "TPX, CPX", "UNKNOWN", "NPS4", "NPS9", "x" * 5000]),
)
ANSWERS = st.one_of(st.sampled_from([denied, gone, looping]), TEXTS.map(telling))


def use_all_of(host: Host, known: tuple[Device, ...]) -> None:
    """Call everything; only errors of sources may come out, and only plausible devices."""
    vendor = Amd(Amd.options())
    report = read_inventory(vendor, host)
    assert [p.reason for p in report.problems if p.code in BUGS] == []
    answers: list[Callable[[], Iterable[object]]] = [
        partial(vendor.links, host, known),
        partial(vendor.holders, host, known),
        partial(vendor.diagnose, host),
        partial(vendor.samples, host, known),
        *(partial(vendor.conditions, host, device, evidence()) for device in known),
    ]
    for answer in answers:
        with suppress(SourceError):
            list(answer())


FAST = settings(
    max_examples=40, deadline=None, phases=set(Phase) - {Phase.explain}
)  # explaining watches every line


@pytest.mark.slow
@pytest.mark.timeout(300)
@FAST
@given(data=st.data())
def test_any_rubbish_in_any_file_is_only_a_problem(read: Read, data: st.DataObject) -> None:
    lying = data.draw(st.sets(st.sampled_from(read.paths), min_size=1, max_size=6))

    use_all_of(read.lying({path: data.draw(ANSWERS) for path in sorted(lying)}), read.known)


@pytest.mark.slow
@pytest.mark.timeout(300)
@FAST
@given(answer=ANSWERS, name=st.sampled_from(["properties", "device", "current_compute_partition"]))
def test_the_same_rubbish_in_every_file_of_a_name_is_only_a_problem(
    read: Read, answer: Answer, name: str
) -> None:
    lies = {path: answer for path in read.paths if path.endswith(f"/{name}")}

    use_all_of(read.lying(lies), read.known)


@pytest.mark.parametrize(
    "name,text",
    [
        ("current_compute_partition", "HPX"),
        ("current_memory_partition", "NPS9"),
        ("current_compute_partition", "DPX"),
    ],
)
def test_mode_that_nobody_knows_or_that_does_not_fit_costs_one_gpu(
    bench: Make, name: str, text: str
) -> None:
    made = bench("mi300x", 2)
    first = made.devices()[0]
    made.put(made.function(first, name), text)
    found = made.discover()

    if text == "DPX":  # its second half is missing
        assert [c for _, c in made.wrong()] == ["partition-missing"]
    else:
        assert made.wrong() == [(first.locality.pci_address, "unreadable")]
    assert sum(isinstance(d, Device) and d.usable and d.parent is None for d in found) == 1


@pytest.mark.parametrize(
    "line",
    [
        "simd_count 99999999999",
        "num_xcc 99",
        "drm_render_minor 4711",
        "location_id 99",
        "domain 7",
        "gfx_target_version 0",
    ],
)
def test_gpu_whose_node_says_nonsense_is_told_and_the_other_stays(bench: Make, line: str) -> None:
    made = bench("mi210", 2)
    name = line.partition(" ")[0]
    path = f"{NODES}/2/properties"
    kept = [text for text in made.host.read(path).splitlines() if text.partition(" ")[0] != name]
    made.put(path, "\n".join([*kept, line]))

    assert len(made.devices()) == 1
    assert len(made.wrong()) == 1


def test_gpu_whose_render_node_is_not_there_yet_is_told_so(bench: Make) -> None:
    """While a driver is loaded, KFD may have a GPU before it has a device file."""
    made = bench("mi210", 1)
    (device,) = made.devices()
    host = Liar(made.host, {made.function(device, "drm"): telling("card1")})
    (problem,) = made.vendor.discover(host)

    assert isinstance(problem, Unreadable)
    assert problem.reason == "KFD names the minor 128, and no render node has it"
    assert "it may come" in problem.remedy


def test_gpu_that_may_not_be_seen_is_told_with_the_reason(bench: Make) -> None:
    """KFD hides GPUs whose device files the reader's cgroup forbids."""
    made = bench("mi210", 2)
    host = Liar(made.host, {f"{NODES}/2/properties": denied})
    found = list(made.vendor.discover(host))
    (hidden,) = (one for one in found if isinstance(one, Unreadable))

    assert hidden.code == "access-denied"
    assert "device files" in hidden.remedy


def test_partition_that_may_not_be_seen_is_told_with_the_reason(bench: Make) -> None:
    """It was said to lack a device number, which sends people to look for one."""
    made = bench("mi300x", 1)
    made.do("mode gpu-0 DPX")
    host = Liar(made.host, {f"{NODES}/3/properties": denied})
    (hidden,) = (u for u in made.vendor.discover(host) if isinstance(u, Unreadable))

    assert hidden.code == "partition-missing"
    assert hidden.reason == "partition 1 of 2: this process may not read it"
    assert "device files" in hidden.remedy


@pytest.mark.parametrize("name", ["drm", "driver"])
@pytest.mark.parametrize("lie", [denied, looping])
def test_gpu_whose_folder_cannot_be_looked_into_costs_no_other(
    bench: Make, name: str, lie: Answer
) -> None:
    made = bench("mi300x", 2)
    first, second = made.devices()
    host = Liar(made.host, {made.function(first, name): lie})
    found = list(made.vendor.discover(host))

    assert [one for one in found if isinstance(one, Device)] == [second]
    assert [one.subject for one in found if isinstance(one, Unreadable)] == [
        first.locality.pci_address
    ]


def test_version_of_the_driver_that_may_not_be_read_is_left_out(bench: Make) -> None:
    made = bench("mi210", 1)
    host = Liar(made.host, {f"/sys/module/amdgpu/{name}": denied for name in VERSIONS})
    (device,) = made.vendor.discover(host)

    assert isinstance(device, Device)
    assert {"driverVersion", "driverSrcVersion"}.isdisjoint(device.attributes)


@pytest.mark.parametrize("lie", [denied, looping])
def test_memory_that_cannot_be_read_is_left_out(bench: Make, lie: Answer) -> None:
    """The whole GPU was unreadable for it."""
    made = bench("rx7900", 1)
    made.do("hide gpu-0 mem_info_vram_total")
    host = Liar(made.host, {f"{NODES}/2/mem_banks/0/properties": lie})
    (device,) = made.vendor.discover(host)

    assert isinstance(device, Device)
    assert device.capacity == {"computeUnits": 96}


def test_gpu_that_goes_while_it_is_looked_at_is_not_there(bench: Make) -> None:
    made = bench("mi210", 2)
    first, second = made.devices()
    for name in (made.function(first, "device"), f"{NODES}/2/properties"):
        host = Liar(made.host, {name: gone})
        assert [d for d in made.vendor.discover(host) if isinstance(d, Device)] == [second]


def test_platform_folder_that_cannot_be_listed_is_an_error_of_the_source(bench: Make) -> None:
    made = bench("mi210", 1)
    host = Liar(made.host, {"/sys/devices/platform": denied})

    with pytest.raises(AccessDenied):
        list(made.vendor.discover(host))


def test_loops_of_links_are_survived(bench: Make) -> None:
    made = bench("mi210", 1)
    (device,) = made.devices()
    file = Path(made.directory + made.host.resolve(made.function(device, "product_name")))
    file.unlink()
    file.symlink_to(file.name)

    assert [d.id for d in made.devices()] == [device.id]

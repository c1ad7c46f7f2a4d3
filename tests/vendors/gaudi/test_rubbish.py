"""Whatever files hold, nothing of the plugin breaks: it says what it could not know."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accelkit import Device, Host, MissingParts, SourceError, Stat
from accelkit.core.errors import AccessDenied, NotThere
from accelkit.core.host import READ_LIMIT, Door
from accelkit.core.model import contradictions
from accelkit.core.reading import read_inventory
from accelkit.core.real_host import RealHost
from accelkit.core.vendor import NoOptions, Signal
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.gaudi.vendor import Gaudi
from tests.vendors.gaudi.bench import Make
from tests.vendors.gaudi.doors import Vanishing
from tests.vendors.opened import grant

FUNCTION = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0"
NODES = "/sys/devices/system/node"
BUGS = {"plugin-bug", "plugin-contract"}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("machine"))
    simulate("gaudi", "gaudi2", 2, made)
    set_state(made, ["hold", "gaudi-1", "7"])
    return made


def use_all_of(host: Host, known: tuple[Device, ...]) -> None:
    """Call everything; only errors of sources may come out, and only plausible devices."""
    vendor = Gaudi(NoOptions())
    report = read_inventory(vendor, host)
    assert [p.reason for p in report.problems if p.code in BUGS] == []
    assert [*contradictions(report.devices, report.links, report.groups)] == []
    devices = (*report.devices, *known)
    calls: list[Callable[[], object]] = [
        lambda: list(vendor.diagnose(host)),
        lambda: list(vendor.holders(host, devices)),
        lambda: list(vendor.samples(host, devices)),
        lambda: vendor.edits(host, grant(*devices)),
        *(lambda d=d: list(vendor.conditions(host, d, ())) for d in devices),
    ]
    for call in calls:
        with suppress(SourceError, MissingParts):
            call()


class Noise(Door):
    """Answers of which some are noise, or no answers."""

    def __init__(self, host: Host, texts: list[str | SourceError | None]) -> None:
        super().__init__(host)
        self._texts = texts
        self._count = 0

    def _next(self, path: str) -> str | SourceError | None:
        if path.startswith(NODES):  # which everybody reads, and not only the plugin
            return None
        self._count += 1
        return self._texts[self._count % len(self._texts)]

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        said = self._next(path)
        if isinstance(said, SourceError):
            raise said
        return super().read(path, limit) if said is None else said[:limit]

    def names(self, path: str) -> tuple[str, ...]:
        said = self._next(path)
        if isinstance(said, SourceError):
            raise said
        return (*super().names(path), *(said.split("/") if said else ()))

    def stat(self, path: str) -> Stat | None:
        said = self._next(path)
        if isinstance(said, SourceError):
            raise said
        return super().stat(path)


TEXTS = (
    "9" * 400, "-1", "nan", "0x", "\x00", "accel0/accel1/accel99999", "uverbs\u0663", "hl1/hl0",
    "In reset", "GAUDI3 HL-338", "../..", "\ufffd", "1.2.3.4-\u00e9",
)  # fmt: skip
NOISE = st.one_of(
    st.none(),
    st.text(max_size=40),
    st.sampled_from(TEXTS),
    st.builds(SourceError, st.just("Input/output error")),
    st.builds(AccessDenied, st.just("Permission denied")),
    st.builds(NotThere, st.just("No such file")),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(NOISE, min_size=1, max_size=60))
def test_noise_in_any_answer_breaks_nothing(
    machine: str, texts: list[str | SourceError | None]
) -> None:
    host = MachineHost(machine)
    known = tuple(d for d in Gaudi(NoOptions()).discover(host) if isinstance(d, Device))

    use_all_of(Noise(host, texts), known)


def _replaced(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _loop(path: Path) -> None:
    _replaced(path)
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    _replaced(path)
    path.mkdir()


def _bytes(content: bytes) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        _replaced(path)
        path.write_bytes(content)

    return spoil


def _pipe(path: Path) -> None:
    _replaced(path)
    os.mkfifo(path)


@pytest.mark.parametrize(
    "spoil",
    [
        _replaced,
        _loop,
        _folder,
        _pipe,
        _bytes(b""),
        _bytes(b"\xff\xfe\x00"),
        _bytes(b"7" * 3_000_000),
    ],
    ids=["missing", "loop", "folder", "pipe", "empty", "binary", "huge"],
)
@pytest.mark.parametrize(
    "name",
    [
        "accel", "accel/accel0", "module_id", "status", "device_type", "driver_ver", "fw_os_ver",
        "hard_reset_cnt", "pci_addr", "hwmon", "hwmon/hwmon0", "hwmon/hwmon0/temp1_input",
        "infiniband_verbs", "net", "net/ens0d0/operstate", "numa_node",
        "current_link_width", "driver",
    ],
)  # fmt: skip
def test_spoilt_file_harms_one_card_at_most(
    bench: Make, name: str, spoil: Callable[[Path], None]
) -> None:
    """Those of the driver and of its subsystems; what every PCI function has is the kernel's."""
    made = bench("gaudi2", 2)
    known = made.devices()
    spoil(Path(f"{made.directory}{FUNCTION}/{name}"))
    host = RealHost(made.directory)
    # Without the machine its plain files are no device nodes: a door puts that right.
    door = _Nodes(host, made.host)

    use_all_of(door, known)
    found = [d for d in made.vendor.discover(door) if isinstance(d, Device)]
    assert known[1] in found


class _Nodes(Door):
    """Files as they lie there, nodes as the machine says."""

    def __init__(self, host: Host, machine: Host) -> None:
        super().__init__(host)
        self._machine = machine

    def stat(self, path: str) -> Stat | None:
        return self._machine.stat(path) if path.startswith("/dev/") else super().stat(path)


def test_files_that_vanish_between_list_and_read_break_nothing(machine: str) -> None:
    host = MachineHost(machine)
    known = tuple(d for d in Gaudi(NoOptions()).discover(host) if isinstance(d, Device))

    use_all_of(Vanishing(host), known)


@given(text=st.text(max_size=300), head=st.sampled_from(["", "habanalabs ", "accel accel0: "]))
def test_any_line_is_understood_or_ignored(text: str, head: str) -> None:
    events = list(Gaudi(NoOptions()).interpret(Signal(source="kernel", text=head + text)))

    assert len(events) <= 1


def test_long_line_is_read_in_no_time() -> None:
    """A pattern that goes back and forth would hold up everything on a long line."""
    text = "habanalabs 0000:03:00.0: ECC error detected." + " critical" * 20_000 + "HBM(1)" * 9_000

    (event,) = Gaudi(NoOptions()).interpret(Signal(source="kernel", text=text))
    assert event.code == "memory-error"

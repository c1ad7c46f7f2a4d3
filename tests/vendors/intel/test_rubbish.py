"""Whatever is in its files, the plugin says what it could not know, and breaks nothing."""

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from accelkit import (
    AccelkitError,
    AccessDenied,
    Device,
    FrozenMap,
    Host,
    NotThere,
    PartitionError,
    Signal,
    SourceError,
    Stat,
    Unreadable,
)
from accelkit.core.host import READ_LIMIT, Door
from accelkit.core.model import contradictions
from accelkit.core.reading import read_inventory
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import set_state, simulate
from accelkit.vendors.intel import sriov
from accelkit.vendors.intel.vendor import Intel, IntelOptions
from tests.vendors.intel.bench import Make, grant

NOISE = (
    *(b"", b"\0", b"\xff\xfe\xff", b"-1", b"0", b"9" * 30, b"9" * 5000, b"0x", b"nan", b"1e9"),
    *("½٣".encode(), b"../../etc/passwd", b"a b c\n" * 9, b"4\n4\n", b"x" * 100_000),
)
FILES = (
    *("device", "class", "resource", "config", "numa_node", "sriov_totalvfs", "sriov_numvfs"),
    *("gpu_health", "vram_quota", "lmem_quota", "lmem_total_bytes", "osrelease", "version"),
    *("temp2_input", "reason_thermal", "energy1_input", "act_freq", "sriov_drivers_autoprobe"),
)


class Noisy(Door):
    """Files of some names hold something else, are gone, or may not be read."""

    def __init__(self, host: Host, what: Mapping[str, bytes | type[SourceError]]) -> None:
        super().__init__(host)
        self._what = what

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        found = self._what.get(path.rpartition("/")[2])
        if isinstance(found, bytes):
            return found[:limit]
        if found is not None:
            raise found(path)
        return super().read_bytes(path, limit)

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        if path.rpartition("/")[2] not in self._what:
            return super().read(path, limit)
        return self.read_bytes(path, limit).decode(errors="replace").removesuffix("\n")


class Vanishing(Door):
    """From one look on, something is gone, or nobody may look at it."""

    def __init__(self, host: Host, rng: random.Random, share: float) -> None:
        super().__init__(host)
        self._rng, self._share = rng, share

    def _fail(self, path: str) -> None:
        if path.startswith("/sys/devices/system/"):  # of NUMA nodes, which the core reads itself
            return
        if self._rng.random() < self._share:
            raise self._rng.choice([NotThere, AccessDenied, SourceError])(path)

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        self._fail(path)
        return super().read_bytes(path, limit)

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        self._fail(path)
        return super().read(path, limit)

    def resolve(self, path: str) -> str:
        self._fail(path)
        return super().resolve(path)

    def names(self, path: str) -> tuple[str, ...]:
        return () if self._rng.random() < self._share else super().names(path)

    def stat(self, path: str) -> Stat | None:
        return None if self._rng.random() < self._share else super().stat(path)

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("machine"))
    simulate("intel", "arc-pro-b60", 2, made)
    for verb in ("vfs gpu-0 2", "hold gpu-0 4711"):
        set_state(made, verb.split())
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("machine"))
    simulate("intel", "arc-pro-b60", 1, made)
    return made


def use_all_of(host: Host, known: tuple[Device, ...]) -> None:
    """Call everything; only errors of sources may come out, and only plausible devices."""
    vendor = Intel(IntelOptions())
    report = read_inventory(vendor, host)
    assert {p.code for p in report.problems}.isdisjoint({"plugin-bug", "plugin-contract"})
    assert contradictions(report.devices, report.links, ()) == ()
    calls: list[Callable[[], Iterable[object]]] = [
        partial(vendor.links, host, known),
        partial(vendor.holders, host, known),
        partial(vendor.diagnose, host),
        partial(vendor.samples, host, known),
        *(partial(vendor.conditions, host, device, ()) for device in known),
    ]
    for call in calls:
        with suppress(SourceError):
            list(call())
    for device in known:
        with suppress(AccelkitError):
            vendor.edits(host, grant(device))


def devices_of(directory: str) -> tuple[Device, ...]:
    return read_inventory(Intel(IntelOptions()), MachineHost(directory)).devices


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    what=st.dictionaries(
        st.sampled_from(FILES),
        st.sampled_from([*NOISE, AccessDenied, NotThere, SourceError]) | st.binary(max_size=40),
        min_size=1,
        max_size=4,
    )
)
def test_rubbish_in_files_is_only_an_error_of_the_source(
    directory: str, what: dict[str, bytes | type[SourceError]]
) -> None:
    use_all_of(Noisy(MachineHost(directory), what), devices_of(directory))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.01, 0.1, 0.5, 1.0]))
def test_files_that_vanish_between_two_looks_are_only_errors_of_the_source(
    directory: str, seed: int, share: float
) -> None:
    rng = random.Random(seed)
    use_all_of(Vanishing(MachineHost(directory), rng, share), devices_of(directory))


@pytest.mark.parametrize("file", FILES[:8])
@pytest.mark.parametrize("noise", [b"", b"9" * 5000, b"\xff\0", AccessDenied])
def test_one_bad_file_of_one_gpu_leaves_the_other_alone(
    directory: str, file: str, noise: bytes | type[SourceError]
) -> None:
    class OfOne(Noisy):
        def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
            theirs = "0000:03:00.0" not in path
            return self._host.read_bytes(path, limit) if theirs else super().read_bytes(path, limit)

        def read(self, path: str, limit: int = READ_LIMIT) -> str:
            theirs = "0000:03:00.0" not in path
            return self._host.read(path, limit) if theirs else super().read(path, limit)

    host = OfOne(MachineHost(directory), {file: noise})
    if noise is AccessDenied and file in {"device", "class"}:
        return  # whoever may not list functions knows nothing at all
    found = read_inventory(Intel(IntelOptions()), host)

    assert found.answered
    assert "0000-04-00-0-0xe211" in {d.id.name for d in found.devices}


@pytest.mark.parametrize("error", [AccessDenied, SourceError])
def test_gpu_of_which_less_can_be_read_is_there_all_the_same(
    directory: str, error: type[SourceError]
) -> None:
    known = devices_of(directory)
    names = ("numa_node", "osrelease", "version", "vram_quota", "resource", "lmem_total_bytes")
    host = Noisy(MachineHost(directory), dict.fromkeys(names, error))
    report = read_inventory(Intel(IntelOptions()), host)

    assert [d.id for d in report.devices] == [d.id for d in known]
    assert report.problems == ()


def test_right_that_is_missing_is_told_as_that(directory: str) -> None:
    """A GPU was called unreadable, and one whose device files were closed not offered."""
    host = Noisy(MachineHost(directory), {"sriov_numvfs": AccessDenied})
    vendor = Intel(IntelOptions())
    found = [one for one in vendor.discover(host) if isinstance(one, Unreadable)]
    findings = [one for one in vendor.diagnose(host) if "not everything" in one.symptom]

    assert [(one.subject, one.code) for one in found] == [
        ("0000:03:00.0", "access-denied"),
        ("0000:04:00.0", "access-denied"),
    ]
    assert {one.suspect for one in findings} == {"the agent's rights"}


def test_sensor_without_data_leaves_all_else_known(directory: str) -> None:
    """Drivers answer ENODATA then, and the health of the GPU was unknown for it."""
    vendor, known = Intel(IntelOptions()), devices_of(directory)
    names = ("temp2_input", "energy1_input", "act_freq", "status", "reason_thermal")
    host = Noisy(MachineHost(directory), dict.fromkeys(names, SourceError))
    told = {s.metric for s in vendor.samples(host, known)}

    assert [c.code for d in known for c in vendor.conditions(host, d, ())] == []
    assert told == {"hw_memory_size_bytes", "hw_temperature_celsius", "hw_power_limit_watts"}


def test_links_that_lead_to_each_other_are_survived(bench: Make) -> None:
    made = bench("arc-pro-b60", 2)
    made.do("vfs gpu-0 2")
    folder: Path = made.sysfs()
    for name in ("driver", "virtfn0", "physfn"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(name)
    found = read_inventory(made.vendor, made.host)

    assert found.answered
    assert [d.id.name for d in found.devices] == ["0000-04-00-0-0xe211"]


@given(
    text=st.text(max_size=80),
    fields=st.dictionaries(
        st.sampled_from(["ACTION", "SUBSYSTEM", "WEDGED", "DEVPATH", "DRIVER", "SEQNUM"]),
        st.sampled_from(["change", "drm", "pci", "bind", "xe", "rebind", "9" * 99, "\0", "½"]),
    ),
    source=st.sampled_from(["uevent", "kernel", "other"]),
)
def test_signals_of_any_text_are_understood_or_ignored(
    text: str, fields: dict[str, str], source: str
) -> None:
    signal = Signal(source=source, text=text, fields=FrozenMap(fields))

    assert len(list(Intel(IntelOptions()).interpret(signal))) <= 1


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    what=st.dictionaries(
        st.sampled_from(["sriov_totalvfs", "sriov_numvfs", "sriov_drivers_autoprobe"]),
        st.sampled_from(NOISE),
        min_size=1,
    ),
    mode=st.sampled_from(["whole", "vfs-1", "vfs-2", "\0"]),
)
def test_rubbish_while_a_mode_is_set_is_a_known_error(
    whole: str, what: dict[str, bytes], mode: str
) -> None:
    host = MachineHost(whole)
    (device,) = (d for d in devices_of(whole) if d.parent is None)

    with suppress(SourceError, PartitionError):
        sriov.set_mode(Noisy(host, what), device, mode, 0.0)
    assert read_inventory(Intel(IntelOptions()), host).problems == ()

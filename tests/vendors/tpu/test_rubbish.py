"""Whatever the host answers, nothing of the plugin breaks: it says what it could not know."""

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from accelkit import AccessDenied, Device, Host, NotThere, SourceError
from accelkit.core.errors import AllocationError
from accelkit.core.host import READ_LIMIT, Door, Stat
from accelkit.core.model import contradictions
from accelkit.core.reading import grant_edits, read_inventory
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.tpu.vendor import Tpu, TpuOptions
from tests.vendors.opened import grant
from tests.vendors.tpu.bench import Bench, Make

TEXTS = (
    *("", "\0", "-1", "0", "9" * 5000, "0x", "0x76", "0x5e", "nan", "٢", "\ufffd\ufffd", " \n "),
    *("TOPOLOGY: '2x4'", "TOPOLOGY: '9x9x9x9'", "TOPOLOGY=2x2\nCHIPS_PER_HOST_BOUNDS=0,0,0"),
    *("x" * 70_000, "DEAD", "../../../etc/passwd", "16\n16", "WORKER_ID: '9999999999'"),
)
PATHS = ("/", "/dev/null", "/sys/kernel/iommu_groups/x", "/a/..", "/sys/bus/pci/drivers/é\0", "/7")
ERRORS = (NotThere, AccessDenied, SourceError)


class Fickle(Door):
    """Some looks at the host fail, and some answer anything."""

    def __init__(self, host: Host, rng: random.Random, share: float) -> None:
        super().__init__(host)
        self._rng, self._share = rng, share

    def _lies(self, path: str) -> bool:
        # What all vendors ask is not this one's to answer for.
        if path.startswith("/sys/devices/system") or self._rng.random() >= self._share:
            return False
        if self._rng.random() < 0.4:
            raise self._rng.choice(ERRORS)("made to fail")
        return True

    def read(self, path: str, limit: int = READ_LIMIT) -> str:
        return self._rng.choice(TEXTS) if self._lies(path) else super().read(path, limit)

    def names(self, path: str) -> tuple[str, ...]:
        found = super().names(path)
        if not self._lies(path):
            return found
        odd = ("0000:zz:00.0", "0", "accel", "accel0", "007", "²", "..", "9" * 30, "noiommu-0")
        return tuple(self._rng.sample((*found, *odd), k=min(3, len(found) + len(odd))))

    def resolve(self, path: str) -> str:
        return self._rng.choice(PATHS) if self._lies(path) else super().resolve(path)

    def exists(self, path: str) -> bool:
        return self._lies(path) ^ super().exists(path)

    def stat(self, path: str) -> Stat | None:
        lie = self._rng.choice((None, Stat(kind="d"), Stat(kind="c"), Stat(kind="f")))
        return lie if self._lies(path) else super().stat(path)


@pytest.fixture(scope="module", params=["v5e", "7x", "v4"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("machine"))
    simulate("tpu", request.param, 2, made)
    return made


def use_all_of(host: Host, known: tuple[Device, ...]) -> None:
    """Call everything; only errors of sources may come out, and only plausible devices."""
    vendor = Tpu(TpuOptions())
    report = read_inventory(vendor, host)
    assert {p.code for p in report.problems}.isdisjoint({"plugin-bug", "plugin-contract"})
    assert contradictions(report.devices, report.links, report.groups) == ()
    answers: list[Callable[[], Iterable[object]]] = [
        partial(vendor.holders, host, known),
        partial(vendor.diagnose, host),
        *(partial(vendor.conditions, host, device, ()) for device in known),
    ]
    for answer in answers:
        with suppress(SourceError):
            list(answer())
    for devices in (known, known[:1], report.devices):
        with suppress(SourceError, AllocationError):
            grant_edits(vendor, host, grant(*devices))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32), share=st.sampled_from([0.02, 0.1, 0.4, 1.0]))
def test_host_that_answers_anything_breaks_nothing(directory: str, seed: int, share: float) -> None:
    honest = MachineHost(directory)
    known = read_inventory(Tpu(TpuOptions()), honest).devices
    rng = random.Random(seed)

    use_all_of(Fickle(honest, rng, share), known)


@settings(max_examples=15, deadline=None)
@given(text=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_in_the_file_of_the_slice_are_read(directory: str, text: bytes) -> None:
    honest = MachineHost(directory)
    known = read_inventory(Tpu(TpuOptions()), honest).devices
    path = Path(directory + "/etc/tpu/tpu-env")
    before = path.read_bytes()
    try:
        path.write_bytes(text)
        use_all_of(honest, known)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("product", ["v5e", "v4"])
@pytest.mark.parametrize("name", ["driver", "iommu_group", "accel", "numa_node", "device"])
def test_links_that_lead_to_each_other_cost_one_chip(bench: Make, product: str, name: str) -> None:
    made = bench(product, 4)
    path = made.path(f"/sys/bus/pci/devices/0000:04:00.0/{name}")
    folder = path.parent.resolve()
    _remove(made, folder / name)
    (folder / name).symlink_to("loop")
    (folder / "loop").symlink_to(name)

    report = read_inventory(made.vendor, made.host)

    assert {p.code for p in report.problems}.isdisjoint({"plugin-bug", "plugin-contract"})
    assert len(report.devices) >= 3 or not report.answered


def _remove(made: Bench, path: Path) -> None:
    assert str(path).startswith(made.directory)
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name("moved"))
    else:
        path.unlink(missing_ok=True)


def test_function_that_went_while_it_was_listed_is_none(bench: Make) -> None:
    made = bench("v5e", 4)
    link = made.path("/sys/bus/pci/devices/0000:04:00.0")
    target = link.resolve()
    target.rename(target.with_name("gone"))

    assert len(made.devices()) == 3

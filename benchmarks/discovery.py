"""What vendors need to find many devices in the files of simulated machines; in process.

The files are read as those of a real host; plain ones stand for device nodes.
"""

import gc
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import attrs

from accelkit.core.model import VendorReport
from accelkit.core.policy_check import options_of
from accelkit.core.reading import read_inventory
from accelkit.core.real_host import RealHost
from accelkit.testing.shared import vendor_class
from accelkit.testing.simulate import set_state, simulate
from benchmarks.many import timed
from benchmarks.rows import Row

BUDGET_MS = 50.0
GPUS, VFS = 16, 24
WIDGETS: Mapping[str, object] = {
    "devices": [{"name": "widget", "match": {"path": "/dev/widget*"}}],
}
CARDS: Mapping[str, object] = {
    "devices": [
        {"name": "card", "match": {"pci": {"vendor": 0x1DEA}}, "nodes": ["/dev/card/{address}"]}
    ],
}
STICKS: Mapping[str, object] = {
    "devices": [
        {
            "name": "stick",
            "match": {"usb": {"vendor": "0403"}},
            "nodes": ["/dev/serial/by-path/*-usb-0:{port}:*"],
        }
    ],
}
RULES = {"widget": WIDGETS, "card": CARDS, "stick": STICKS}


@attrs.frozen(kw_only=True)
class Case:
    """A machine, and how many devices it has."""

    what: str
    vendor: str
    product: str
    units: int
    verbs: tuple[str, ...] = ()
    options: Mapping[str, object] = attrs.Factory(dict)
    found: Callable[[VendorReport], int]
    count: int
    budget: float | None = BUDGET_MS


def parts(report: VendorReport) -> int:
    return sum(device.parent is not None for device in report.devices)


def wholes(report: VendorReport) -> int:
    return sum(device.parent is None for device in report.devices)


CASES = (
    Case(
        what="64 partitions of 8 AMD GPUs",
        vendor="amd",
        product="mi300x",
        units=8,
        verbs=("mode CPX",),
        found=parts,
        count=64,
    ),
    *(
        Case(
            what=f"128 generic {product}s",
            vendor="generic",
            product=product,
            units=128,
            options=rules,
            found=wholes,
            count=128,
        )
        for product, rules in RULES.items()
    ),
    Case(
        what="128 cores of 16 Neuron chips",
        vendor="neuron",
        product="trn2",
        units=16,
        verbs=("lnc 1",),
        found=parts,
        count=128,
    ),
    Case(
        what=f"{GPUS * VFS} virtual functions of {GPUS} Intel GPUs",
        vendor="intel",
        product="arc-pro-b60",
        units=GPUS,
        verbs=tuple(f"vfs gpu-{gpu} {VFS}" for gpu in range(GPUS)),
        found=parts,
        count=GPUS * VFS,
        budget=None,
    ),
)


def measure(rounds: int) -> Iterator[Row]:
    gc.collect()
    gc.freeze()  # as the agent does after its start
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="ak-") as folder:
            yield _of(case, folder, rounds)
    gc.unfreeze()


def _of(case: Case, folder: str, rounds: int) -> Row:
    simulate(case.vendor, case.product, case.units, folder, device_nodes=_may_make_nodes(folder))
    for verb in case.verbs:
        set_state(folder, verb.split())
    kind = vendor_class(case.vendor)
    vendor, host = kind(options_of(kind, case.options)), RealHost(folder)
    look = partial(read_inventory, vendor, host)
    found = case.found(look())
    assert found == case.count, f"{case.what}: found {found}"
    values = [timed(look)[0] for _ in range(rounds)]
    return Row(what=f"find {case.what}", values=values, budget=case.budget)


def _may_make_nodes(folder: str) -> bool:
    return Path(folder).stat().st_uid == 0

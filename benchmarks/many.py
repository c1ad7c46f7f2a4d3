"""A thousand devices: from what vendors say to the bytes of lists. In process, without gRPC."""

import gc
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import attrs

from accelkit.backends.kubelet.document import catalog_of, fit
from accelkit.backends.kubelet.plugin import Plugin
from accelkit.backends.kubelet.preferred import preference_of
from accelkit.core.allocation import ContainerEdits
from accelkit.core.changes import diff
from accelkit.core.host import Host
from accelkit.core.model import DeviceId, VendorReport
from accelkit.core.policy import Offer, Paths, Policy
from accelkit.core.reading import HealthReading, device_edits, read_conditions, read_inventory
from accelkit.core.snapshot import assemble, build_view
from accelkit.core.vendor import NoOptions, Vendor
from accelkit.core.view import View
from accelkit.testing.hosts import open_host
from accelkit.testing.node_port import NodePortDouble
from accelkit.testing.simulate import simulate
from accelkit.vendors.sim.vendor import Sim, SimSet
from benchmarks.rows import Row

T = TypeVar("T")
UNITS = 256
"""Of each of two vendors; one vendor's are cut in halves."""
DEVICES = UNITS + 3 * UNITS
POLICY = Policy()
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class Read:
    """What all vendors said."""

    reports: tuple[VendorReport, ...]
    readings: tuple[HealthReading, ...]
    edits: Mapping[DeviceId, ContainerEdits]


def measure(rounds: int) -> Iterator[Row]:
    vendors: tuple[Vendor, ...] = (Sim(NoOptions()), SimSet(NoOptions()))
    with tempfile.TemporaryDirectory(prefix="ak-") as directory:
        simulate("sim", "split", UNITS, directory)
        simulate("simset", "basic", UNITS, directory)
        host = open_host(directory)
        took_s, read = timed(partial(read_all, vendors, host))
    problems = [problem for report in read.reports for problem in report.problems]
    assert sum(len(report.devices) for report in read.reports) == DEVICES, problems
    domains = {vendor.name: vendor.domain for vendor in vendors}
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for what, took in steps(read, domains):
            found.setdefault(what, []).append(took)
    yield Row(
        what=f"{DEVICES} devices: read",
        values=[took_s],
        note="from files of a simulated machine: inventory, health, edits",
    )
    for what, values in found.items():
        budget = 100 if what == LISTED else None
        yield Row(what=f"{DEVICES} devices: {what}", values=values, budget=budget)


LISTED = "reports → lists, in all"


def steps(read: Read, domains: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """What is done with the first reports, then with the same again; each with milliseconds."""
    view_ms, view = timed(partial(viewed, read, domains, None))
    lists_ms, plugins = timed(partial(listed, view, {}))
    yield "reports → view", view_ms
    yield "view → lists", lists_ms
    yield LISTED, view_ms + lists_ms
    yield "view → preferences, after the lists", timed(partial(considered, view))[0]
    again_ms, again = timed(partial(viewed, read, domains, view))
    yield "the same reports → view", again_ms
    yield "the same view → lists", timed(partial(listed, again, plugins))[0]
    yield "changes told", timed(partial(diff, View(), view))[0]


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Milliseconds that *work* took, and its answer; without what else the machine did."""
    gc.collect()
    begun = time.thread_time()
    answer = work()
    return (time.thread_time() - begun) * 1000, answer


def read_all(vendors: Iterable[Vendor], host: Host) -> Read:
    vendors = tuple(vendors)
    reports = tuple(read_inventory(vendor, host) for vendor in vendors)
    pairs = tuple(zip(vendors, reports, strict=True))
    readings = tuple(read_conditions(v, host, report.devices, ()) for v, report in pairs)
    offer = Offer(name="all")
    edits = {d.id: device_edits(v, host, d, offer) for v, report in pairs for d in report.devices}
    return Read(reports=reports, readings=readings, edits=edits)


def viewed(read: Read, domains: Mapping[str, str], previous: View | None) -> View:
    snapshot = assemble(
        "bench",
        read.reports,
        read.readings,
        previous=None if previous is None else previous.snapshot,
        held=(),
        now=NOW,
    )
    return build_view(
        snapshot,
        POLICY,
        edits=read.edits,
        domains=domains,
        previous=previous,
        now_s=1.0,
        now=NOW,
    )


def listed(view: View, before: Mapping[str, Plugin]) -> dict[str, Plugin]:
    """Publish *view* as the backend does."""
    plugins = {}
    for resource, entries in fit(catalog_of(view), view).items():
        node = NodePortDouble(paths=Paths(), view=view)
        plugin = before.get(resource) or Plugin(resource, node, lambda _i, _e: True, allocate_s=2)
        plugin.publish(entries)
        plugins[resource] = plugin
    return plugins


def considered(view: View) -> None:
    """Find out how to choose among what is listed."""
    for entries in catalog_of(view).values():
        preference_of(view, entries, None)

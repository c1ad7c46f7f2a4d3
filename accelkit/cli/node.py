"""One look at a whole node, without an agent: the same code that the agent reads with.

Not here: any output, and click, so that it can be used by whoever wants a view.
"""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import attrs

from accelkit.agent.admission import Pending
from accelkit.agent.holders import Holders, HoldingsReader
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.lanes import Observe
from accelkit.agent.problems import Problems
from accelkit.agent.reload import read_policy_file
from accelkit.agent.sources import Source
from accelkit.cli.composing import boot_of, check_installed, choose_vendors
from accelkit.core.clock import RealClock
from accelkit.core.host import Host
from accelkit.core.model import Problem
from accelkit.core.policy import Policy
from accelkit.core.real_host import RealHost
from accelkit.core.registry import LoadFailure, Registry, load_plugins
from accelkit.core.values import freeze
from accelkit.core.vendor import Vendor
from accelkit.core.view import View
from accelkit.testing.hosts import open_host

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class NodeReading:
    """What one look at a node brought."""

    view: View
    """Its problems include those of plugins and of edits."""
    policy: Policy
    registry: Registry
    host: str
    """The path of its host: a root, or a simulated machine."""
    asked: tuple[str, ...] = ()
    """Vendors whose hardware may be there."""
    absent: tuple[str, ...] = ()
    """Vendors whose hardware is not on the PCI bus."""


def read_policy(file: Path | None, registry: Registry) -> Policy:
    """The policy in *file*, or the built-in one, looked at with what is installed.

    Raises:
        ConfigError: It is wrong; everything that is.
    """
    policy = Policy() if file is None else read_policy_file(file)
    check_installed(policy, registry)
    return policy


def look_at(host: str | None, policy: Path | None, node: str, *, trace: bool) -> NodeReading:
    """Read all vendors of the node at *host* once, judged by the policy in a file.

    Args:
        host: A host's root or a simulated machine; None: ``paths.host`` of the policy.
        policy: None: the built-in one.
        node: Its name.
        trace: Log the calls of vendors.

    Raises:
        ConfigError: The policy is wrong, or there is no such host.
    """
    registry = load_plugins()
    wanted = read_policy(policy, registry)
    where = wanted.paths.host if host is None else host
    # Whatever asks the policy where the host is must be told the same.
    wanted = attrs.evolve(wanted, paths=attrs.evolve(wanted.paths, host=where))
    return asyncio.run(read_node(wanted, node, registry, trace=trace))


async def read_node(
    policy: Policy, node: str, registry: Registry, *, trace: bool = False
) -> NodeReading:
    """Read all vendors of *registry* that *policy* wants and whose hardware is there, once.

    Vendors are read beside each other, each within its deadlines: one that hangs costs only its
    own devices, and its thread ends with the process.

    Raises:
        ConfigError: There is no host at ``paths.host`` of *policy*.
    """
    host = open_host(policy.paths.host)
    chosen = choose_vendors(policy, registry, host)
    clock = RealClock()
    scales = {block.name: block.deadline_scale for block in policy.vendors}
    sources = [
        Source(v, host, scales.get(v.name, 1.0), clock, _tracer(v.name, wanted=trace))
        for v in chosen.vendors
    ]
    unknown = Problems(clock.now)
    holders = Holders(_reader(policy, host, chosen.vendors), unknown)
    knowledge = Knowledge(
        node, boot_of(host), policy, sources, Pending(clock), clock, holders=holders
    )
    await asyncio.gather(*(_learn(knowledge, source) for source in sources))
    problems = (*knowledge.problems, *unknown.all, *map(_not_used, chosen.failures))
    for source in sources:
        source.close()
    view = knowledge.store.view
    return NodeReading(
        view=attrs.evolve(view, snapshot=attrs.evolve(view.snapshot, problems=problems)),
        policy=policy,
        registry=registry,
        host=policy.paths.host,
        asked=tuple(source.name for source in sources),
        absent=chosen.absent,
    )


def _reader(policy: Policy, host: Host, vendors: Iterable[Vendor]) -> HoldingsReader | None:
    """Asks the kubelet who holds what; None: this is not a host with a kubelet."""
    socket = Path(policy.paths.pod_resources_socket)
    if not (isinstance(host, RealHost) and socket.is_socket()):
        return None
    from accelkit.backends.holdings import read_holdings  # noqa: PLC0415 - loads gRPC

    drivers = {policy.backends.dra.driver_of(vendor.name): vendor.name for vendor in vendors}
    return partial(read_holdings, socket, drivers=drivers)


async def _learn(knowledge: Knowledge, source: Source) -> None:
    await knowledge.learn(source)
    await source.ask_holders(knowledge.store.view.snapshot.devices)
    knowledge.commit()
    if source.report is not None:
        log.debug(
            "vendor read",
            extra={
                "vendor": source.name,
                "devices": " ".join(d.id.name for d in source.report.devices),
                "problems": " ".join(p.code for p in source.report.problems),
            },
        )


def _tracer(vendor: str, *, wanted: bool) -> Observe:
    def trace(call: str, outcome: str, seconds: float) -> None:
        if wanted:
            took = f"{seconds * 1000:.1f}"
            keys = {"vendor": vendor, "call": call, "outcome": outcome, "took_ms": took}
            log.debug("vendor called", extra=keys)

    return trace


def _not_used(failure: LoadFailure) -> Problem:
    return Problem(
        vendor=failure.plugin,
        code=failure.code,
        reason=f"the plugin is not used: {failure.reason}",
        remedy=failure.remedy,
    )

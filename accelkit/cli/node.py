"""One look at a whole node, without an agent: the same code that the agent reads with.

Not here: any output, and click, so that it can be used by whoever wants a view.
"""

import asyncio
import logging
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import attrs

from accelkit.agent.admission import Pending
from accelkit.agent.calls import Isolated
from accelkit.agent.holders import Holders, HoldingsReader
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.lanes import Observe
from accelkit.agent.problems import Problems
from accelkit.agent.sources import Source
from accelkit.cli.composing import Chosen, at_host, boot_of, choose_vendors
from accelkit.cli.loading import load_installed
from accelkit.cli.policy_files import read_policy
from accelkit.cli.remembered import Remembered, remembered
from accelkit.core.claims import LedgerEntry
from accelkit.core.clock import Clock, RealClock
from accelkit.core.host import Host
from accelkit.core.model import DeviceId, Problem
from accelkit.core.policy import Policy
from accelkit.core.real_host import RealHost
from accelkit.core.registry import LoadFailure, Registry
from accelkit.core.values import freeze
from accelkit.core.vendor import SupportsPartitioning, Vendor
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
    claims: tuple[LedgerEntry, ...] = ()
    """Those that agents of this boot wrote down."""
    made: frozenset[DeviceId] = frozenset()
    """Partitions that accelkit made, for claims or for the policy."""
    makers: frozenset[str] = frozenset()
    """Vendors whose plugins can make partitions."""
    holders_known: bool = True
    """Whether everybody was heard who knows who holds what."""


def look_at(
    host: str | None, policy: Path | None, node: str, *, trace: bool, over: Path | None = None
) -> NodeReading:
    """Read all vendors of the node at *host* once, judged by the policy in a file.

    Args:
        host: A host's root or a simulated machine; None: ``paths.host`` of the policy.
        policy: None: the built-in one.
        node: Its name.
        trace: Log the calls of vendors.
        over: A file whose keys go before those of the policy.

    Raises:
        ConfigError: The policy is wrong, or there is no such host.
    """
    registry = load_installed()
    wanted = at_host(read_policy(policy, registry, over), host)
    # What a plugin prints must not come between the answers, which programs may read.
    with redirect_stdout(sys.stderr):
        return asyncio.run(read_node(wanted, node, registry, trace=trace))


async def read_node(
    policy: Policy, node: str, registry: Registry, *, trace: bool = False
) -> NodeReading:
    """Read all vendors of *registry* that *policy* wants and whose hardware is there, once.

    Vendors are read beside each other, each within its deadlines: one that hangs costs only its
    own devices, and its thread ends with the process. What agents of this boot wrote down, such
    as claims, is believed as an agent believes it that starts.

    Raises:
        ConfigError: There is no host at ``paths.host`` of *policy*.
    """
    opened = await open_node(policy, node, registry, trace=trace)
    opened.close()
    return opened.reading(policy, registry)


@attrs.frozen(kw_only=True)
class Opened:
    """A node that was read, and can be asked more."""

    knowledge: Knowledge
    holders: Holders
    problems: Problems
    chosen: Chosen
    past: Remembered
    clock: Clock
    real: bool
    """Whether it is no simulated machine."""

    def reading(self, policy: Policy, registry: Registry) -> NodeReading:
        """What is known now."""
        knowledge = self.knowledge
        failures = map(_not_used, self.chosen.failures)
        problems = (*knowledge.problems, *self.problems.all, *failures)
        view = knowledge.store.view
        return NodeReading(
            view=attrs.evolve(view, snapshot=attrs.evolve(view.snapshot, problems=problems)),
            policy=policy,
            registry=registry,
            host=policy.paths.host,
            asked=tuple(knowledge.sources),
            absent=self.chosen.absent,
            claims=self.past.entries,
            made=view.made | self.past.made,
            makers=frozenset(
                name
                for name, source in knowledge.sources.items()
                if issubclass(source.kind, SupportsPartitioning)
            ),
            holders_known=self.holders_known(policy),
        )

    def holders_known(self, policy: Policy) -> bool:
        """Whether the kubelet of the host, if it has one, said who holds what."""
        silent = self.real and Path(policy.paths.kubelet).is_dir() and not _asked(policy)
        return self.holders.known and not silent

    def close(self) -> None:
        for source in self.knowledge.sources.values():
            source.close()


async def open_node(
    policy: Policy, node: str, registry: Registry, *, trace: bool = False
) -> Opened:
    """Read a node as *read_node* does; whoever opened it closes it."""
    host = open_host(policy.paths.host)
    chosen = choose_vendors(policy, registry, host)
    clock = RealClock()
    scales = {block.name: block.deadline_scale for block in policy.vendors}
    sources = [
        Source(v, host, scales.get(v.name, 1.0), clock, _tracer(v.name, wanted=trace))
        for v in chosen.vendors
    ]
    boot, problems = boot_of(host), Problems(clock.now)
    holders = Holders(_reader(policy, host, chosen.vendors), problems)
    knowledge = Knowledge(node, boot, policy, sources, Pending(clock), clock, holders=holders)
    past = remembered(policy.paths.run, boot, node, clock, problems)
    knowledge.claimed = lambda: past.claimed
    knowledge.heard.recall(past.told)
    if past.view.devices:
        knowledge.recall(past.view, past.edits)
    await asyncio.gather(*(_learn(knowledge, source) for source in sources))
    await knowledge.ask_holders()
    return Opened(
        knowledge=knowledge,
        holders=holders,
        problems=problems,
        chosen=chosen,
        past=past,
        clock=clock,
        real=isinstance(host, RealHost),
    )


def _reader(
    policy: Policy, host: Host, vendors: Iterable[Vendor | Isolated]
) -> HoldingsReader | None:
    """Asks the kubelet who holds what; None: this is not a host with a kubelet."""
    if not (isinstance(host, RealHost) and _asked(policy)):
        return None
    from accelkit.backends.holdings import read_holdings  # noqa: PLC0415 - loads gRPC

    drivers = {policy.backends.dra.driver_of(vendor.name): vendor.name for vendor in vendors}
    return partial(read_holdings, policy.paths.pod_resources_socket, drivers=drivers)


def _asked(policy: Policy) -> bool:
    """Whether there is a kubelet that can be asked."""
    return Path(policy.paths.pod_resources_socket).is_socket()


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

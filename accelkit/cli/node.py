"""One look at a whole node, without an agent: the same code that the agent reads with.

Not here: any output, and click, so that it can be used by whoever wants a view.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from accelkit.agent.admission import Pending
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.lanes import Observe
from accelkit.agent.reload import read_policy_file
from accelkit.agent.sources import Source
from accelkit.core.clock import RealClock
from accelkit.core.errors import ConfigError, SourceError
from accelkit.core.host import Host
from accelkit.core.model import Problem
from accelkit.core.policy import Policy, VendorPolicy
from accelkit.core.policy_check import check_policy, options_of
from accelkit.core.registry import LoadFailure, Registry, hardware_present, load_plugins
from accelkit.core.values import freeze
from accelkit.core.vendor import Vendor
from accelkit.core.view import View
from accelkit.testing.hosts import open_host
from accelkit.testing.shared import BOOT_ID

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
    check_policy(policy, vendors=registry.vendors, backends=registry.backends)
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
    where = host or wanted.paths.host
    # Whatever asks the policy where the host is must be told the same.
    wanted = attrs.evolve(wanted, paths=attrs.evolve(wanted.paths, host=where))
    return asyncio.run(read_node(wanted, node, registry, trace=trace))


def render(found: NodeReading, backend: str) -> object:
    """What *backend* makes of the view that was *found*.

    Raises:
        ConfigError: No such backend is installed.
    """
    factory = found.registry.backends.get(backend)
    if factory is None:
        known = ", ".join(found.registry.backends) or "none"
        raise ConfigError([("backend", f"{backend!r} is not installed; there are: {known}")])
    return factory.create(found.policy).render(found.view)


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
    clock = RealClock()
    problems: list[Problem] = [_not_loaded(failure) for failure in registry.failures]
    absent: list[str] = []
    sources: list[Source] = []
    for block, kind in _wanted(policy, registry):
        if not hardware_present(kind, host):
            absent.append(block.name)
            continue
        try:
            vendor = kind(options_of(kind, block.options))
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            problems.append(_not_made(block.name, error))
            continue
        scale = block.deadline_scale
        sources.append(Source(vendor, host, scale, clock, _tracer(block.name, wanted=trace)))
    knowledge = Knowledge(node, _boot(host), policy, sources, Pending(clock), clock)
    await asyncio.gather(*(_learn(knowledge, source) for source in sources))
    for source in sources:
        source.close()
    view = knowledge.store.view
    everything = (*knowledge.problems, *problems)
    return NodeReading(
        view=attrs.evolve(view, snapshot=attrs.evolve(view.snapshot, problems=everything)),
        policy=policy,
        registry=registry,
        host=policy.paths.host,
        asked=tuple(source.name for source in sources),
        absent=tuple(absent),
    )


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


def _wanted(policy: Policy, registry: Registry) -> Iterator[tuple[VendorPolicy, type[Vendor]]]:
    blocks: Mapping[str, VendorPolicy] = {block.name: block for block in policy.vendors}
    for name in blocks or registry.vendors:
        block = blocks.get(name, VendorPolicy(name=name))
        if block.enabled:
            yield block, registry.vendors[name]


def _tracer(vendor: str, *, wanted: bool) -> Observe:
    def trace(call: str, outcome: str, seconds: float) -> None:
        if wanted:
            took = f"{seconds * 1000:.1f}"
            keys = {"vendor": vendor, "call": call, "outcome": outcome, "took_ms": took}
            log.debug("vendor called", extra=keys)

    return trace


def _boot(host: Host) -> str:
    try:
        return host.read(BOOT_ID).strip()
    except SourceError:  # a host need not tell
        return ""


def _not_loaded(failure: LoadFailure) -> Problem:
    return Problem(
        subject=failure.plugin, code=failure.code, reason=failure.reason, remedy=failure.remedy
    )


def _not_made(vendor: str, error: Exception) -> Problem:
    return Problem(
        vendor=vendor,
        code="plugin-bug",
        reason=f"it cannot be made: {type(error).__name__}: {error}",
        remedy=f"report it to the author of the plugin for {vendor}",
    )

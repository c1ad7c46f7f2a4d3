"""`accelkit agent`: composes an agent of what is installed, and runs it. Not here: the agent."""

import argparse
import logging
import os
import socket
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from accelkit.agent.agent import Parts
from accelkit.agent.logs import configure
from accelkit.agent.loops import HoldingsReader
from accelkit.agent.process import run
from accelkit.core.clock import RealClock
from accelkit.core.errors import ConfigError, PluginError, SourceError
from accelkit.core.host import Host
from accelkit.core.model import Holding
from accelkit.core.policy import Policy, VendorPolicy
from accelkit.core.policy_check import options_of, policy_problems
from accelkit.core.registry import LoadFailure, Registry, hardware_present, load_plugins
from accelkit.core.vendor import Vendor
from accelkit.core.view import View
from accelkit.testing.hosts import open_host

log = logging.getLogger(__name__)

POLICY = Path("/etc/accelkit/policy.yaml")
"""Read without being asked for, if it is there."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""Linux, Documentation/admin-guide/sysctl/kernel.rst."""


def main(argv: Sequence[str]) -> int:
    """Run the agent that *argv* asks for; comes back only with an error.

    Raises:
        ConfigError: A flag or the policy is wrong; nothing was started.
    """
    asked = _parser().parse_args(argv)
    run(compose(asked.policy, asked.node, asked.host))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="accelkit agent",
        description="Offer this node's accelerators to Kubernetes, until SIGTERM.",
        epilog="SIGHUP reads the policy again, SIGUSR1 logs what runs.",
    )
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help=f"the policy (default: {POLICY} if it exists)"
    )
    parser.add_argument(
        "--node",
        default=os.environ.get("NODE_NAME") or socket.gethostname(),
        metavar="NAME",
        help="the Kubernetes node (default: $NODE_NAME, else the host name)",
    )
    parser.add_argument(
        "--host",
        metavar="DIR",
        help="the host's root or a simulated machine (default: paths.host of the policy)",
    )
    return parser


def compose(file: Path | None, node: str, root: str | None) -> Parts:
    """An agent of everything that is installed, as the policy in *file* says.

    Raises:
        ConfigError: The policy is wrong, or names what is not there.
    """
    if file is None and POLICY.exists():
        file = POLICY
    policy = _read(file)
    configure(policy.logging)
    # Nothing is written while the policy is wrong: its run directory may be what is wrong.
    registry = load_plugins(None if policy_problems(policy) else policy.paths.run)

    def read_policy() -> Policy:
        again = _read(file)
        _check(again, registry)
        return again

    _check(policy, registry)
    host = open_host(root or policy.paths.host)
    failures = [*registry.failures]
    vendors = tuple(_vendors(policy, registry, host, failures))
    for failure in failures:
        log.error(
            "plugin not used",
            extra={
                "plugin": failure.plugin,
                "code": failure.code,
                "reason": failure.reason,
                "traceback": failure.traceback,
            },
        )
    return Parts(
        node=node,
        policy=policy,
        vendors=vendors,
        backends=registry.backends,
        host=host,
        clock=RealClock(),
        version=version("accelkit"),
        boot=_boot(host),
        holdings=_holdings(policy),
        read_policy=read_policy,
        policy_file=file,
        load_failures=tuple(failures),
    )


def _check(policy: Policy, registry: Registry) -> None:
    """Refuse a policy with problems; a plugin that could not be loaded is not the operator's."""
    failed = {failure.plugin for failure in registry.failures}
    vendors, offers = enumerate(policy.vendors), enumerate(policy.offers)
    excused = {
        *(f"$.vendors[{n}].name" for n, block in vendors if block.name in failed),
        *(f"$.offers[{n}].through" for n, offer in offers if offer.through in failed),
    }
    found = policy_problems(policy, vendors=registry.vendors, backends=registry.backends)
    if problems := [problem for problem in found if problem[0] not in excused]:
        raise ConfigError(problems)


def _read(file: Path | None) -> Policy:
    if file is None:
        return Policy()
    from accelkit.agent.reload import read_policy_file  # noqa: PLC0415 - needs yaml

    return read_policy_file(file)


def _vendors(
    policy: Policy, registry: Registry, host: Host, failures: list[LoadFailure]
) -> Iterator[Vendor]:
    """Vendors that the policy wants and whose hardware is there; what is wrong to *failures*."""
    blocks: Mapping[str, VendorPolicy] = {block.name: block for block in policy.vendors}
    for name in blocks or registry.vendors:
        block = blocks.get(name, VendorPolicy(name=name))
        kind = registry.vendors.get(name)
        if kind is None or not block.enabled or not hardware_present(kind, host):
            log.info("vendor not asked", extra={"vendor": name, "enabled": block.enabled})
            continue
        try:
            yield kind(options_of(kind, block.options))
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            failures.append(
                LoadFailure(
                    plugin=name,
                    code=PluginError.code,
                    reason=f"it cannot be made: {type(error).__name__}: {error}",
                    remedy=f"report it to the author of the plugin for {name}",
                    traceback="".join(traceback.format_exception(error)),
                )
            )


def _holdings(policy: Policy) -> HoldingsReader:
    """Asks the kubelet who holds what."""
    path = policy.paths.pod_resources_socket

    async def read(view: View) -> tuple[Holding, ...]:
        # Loads gRPC, which the sockets of probes need not wait for.
        from accelkit.backends.holdings import read_holdings  # noqa: PLC0415 - see above

        return await read_holdings(path, view)

    return read


def _boot(host: Host) -> str:
    try:
        return host.read(BOOT_ID).strip()
    except SourceError:  # a machine need not have one
        return ""

"""`accelkit agent`: composes an agent of what is installed, and runs it. Not here: the agent."""

import argparse
import contextlib
import faulthandler
import logging
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import attrs

from accelkit.agent.agent import GRACE_S, Parts
from accelkit.agent.calls import Isolated
from accelkit.agent.holders import HoldingsReader
from accelkit.agent.logs import configure
from accelkit.agent.process import run
from accelkit.agent.reach import Count
from accelkit.agent.renewal import stamp_of
from accelkit.cli.composing import at_host, boot_of, check_installed, choose_vendors
from accelkit.cli.standing_policy import POLICY, standing_policy
from accelkit.core.clock import RealClock
from accelkit.core.kube import KubePort
from accelkit.core.model import Holding
from accelkit.core.policy import Policy
from accelkit.core.policy_check import LONGEST, policy_problems
from accelkit.core.registry import load_plugins
from accelkit.core.vendor import Vendor
from accelkit.core.view import View
from accelkit.testing.hosts import open_host

log = logging.getLogger(__name__)

LOAD_S = 30.0
"""So long after its start a process that still loads plugins ends, and says where it hangs."""


def main(argv: Sequence[str]) -> int:
    """Run the agent that *argv* asks for; comes back only with an error.

    Raises:
        ConfigError: A flag or the policy is wrong; nothing was started.
    """
    asked = _parser().parse_args(argv)
    # A plugin that hangs would be waited for for ever; twice, and it is skipped.
    heard = sys.__stderr__ or sys.stderr  # a test has put something else there, without a file
    faulthandler.dump_traceback_later(LOAD_S, exit=True, file=heard)
    try:
        parts = compose(asked.policy, asked.node, asked.host)
        parts = attrs.evolve(parts, grace_s=asked.grace)
    finally:
        faulthandler.cancel_dump_traceback_later()
    run(parts)


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
    parser.add_argument(
        "--grace",
        type=_seconds,
        default=GRACE_S,
        metavar="SECONDS",
        help="how long after SIGTERM it is killed: terminationGracePeriodSeconds of its pod"
        " (default: %(default)g)",
    )
    return parser


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (seconds := float(text)) <= LONGEST:
            return seconds
    raise argparse.ArgumentTypeError(f"expected seconds, found {text!r}")


def compose(file: Path | None, node: str, root: str | None) -> Parts:
    """An agent of everything that is installed, as the policy in *file* says.

    Raises:
        ConfigError: The policy is wrong, or names what is not there.
    """
    file = file or standing_policy()
    stamp = stamp_of(file)
    policy = _read(file)
    configure(policy.logging)
    # Nothing is written while the policy is wrong: its run directory may be what is wrong.
    registry = load_plugins(None if policy_problems(policy) else policy.paths.run)

    def read_policy() -> Policy:
        again = _read(file)
        check_installed(again, registry)
        return at_host(again, root)

    check_installed(policy, registry)
    policy = at_host(policy, root)
    host = open_host(policy.paths.host)
    chosen = choose_vendors(policy, registry, host)
    for failure in chosen.failures:
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
        vendors=chosen.vendors,
        backends=registry.backends,
        host=host,
        clock=RealClock(),
        version=version("accelkit"),
        boot=boot_of(host),
        holdings=_holdings(policy, chosen.vendors),
        read_policy=read_policy,
        policy_file=file,
        policy_stamp=stamp,
        load_failures=chosen.failures,
        connect=partial(_connect, policy),
    )


def _read(file: Path | None) -> Policy:
    if file is None:
        return Policy()
    from accelkit.agent.reload import read_policy_file  # noqa: PLC0415 - needs yaml

    return read_policy_file(file)


def _connect(policy: Policy, count: Count) -> KubePort | None:
    """Opens the way to the API server; loaded when somebody asks for it, after the sockets."""
    from accelkit.backends.kube import connect  # noqa: PLC0415 - see above

    return connect(policy.kube, count=count)


def _holdings(policy: Policy, vendors: Iterable[Vendor | Isolated]) -> HoldingsReader:
    """Asks the kubelet who holds what."""
    path = policy.paths.pod_resources_socket
    drivers = {policy.backends.dra.driver_of(vendor.name): vendor.name for vendor in vendors}

    async def read(view: View) -> tuple[Holding, ...]:
        # Loads gRPC, which the sockets of probes need not wait for.
        from accelkit.backends.holdings import read_holdings  # noqa: PLC0415 - see above

        return await read_holdings(path, view, drivers=drivers)

    return read

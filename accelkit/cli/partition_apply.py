"""Devices cut by this process, where no agent does it. Not here: the agent's own cutting."""

from importlib.metadata import version
from pathlib import Path

from accelkit.agent.cutting import Applied, Cutting
from accelkit.agent.cutting_steps import Steps
from accelkit.agent.disk import HostDisk
from accelkit.agent.leader import Lease, prepare_run_directory
from accelkit.agent.ledger import Ledger
from accelkit.agent.memory import NO_BOOT
from accelkit.agent.works import Works
from accelkit.cli.node import Opened, open_node
from accelkit.core.errors import LedgerBusy, TransportError
from accelkit.core.policy import Policy
from accelkit.core.registry import Registry


async def cut(policy: Policy, node: str, registry: Registry, *, trace: bool) -> Applied:
    """Cut devices as *policy* says, in the place of an agent: none can lead meanwhile.

    What is made is written down in the run directory, so that the next agent knows it.

    Raises:
        LedgerBusy: An agent leads.
        TransportError: It cannot be known who holds devices.
        ConfigError: The run directory cannot be used.
    """
    run = Path(policy.paths.run)
    prepare_run_directory(run)
    lease = Lease(run)
    if not lease.check():
        raise LedgerBusy(
            f"an agent leads here, says {run}",
            remedy="let it do that: accelkit partition apply; or name another run directory",
        )
    try:
        opened = await open_node(policy, node, registry, trace=trace)
        try:
            return await _cut(opened, policy, run)
        finally:
            opened.close()
    finally:
        lease.release()


async def _cut(opened: Opened, policy: Policy, run: Path) -> Applied:
    if not opened.holders_known(policy):
        raise TransportError(
            "it cannot be known who holds devices: the kubelet does not answer",
            remedy="start the kubelet",
        )
    knowledge, clock = opened.knowledge, opened.clock
    boot = knowledge.store.view.boot or NO_BOOT
    ledger = Ledger(run, boot, writer=version("accelkit"), clock=clock, disk=HostDisk())
    ledger.open()
    works = Works(knowledge.sources, lambda: knowledge.store.view)
    hands = Steps(works, ledger, run / boot, clock)
    cutting = Cutting(knowledge, opened.holders, hands, opened.problems, clock)
    return await cutting.apply(told=True)

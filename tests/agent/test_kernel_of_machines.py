"""What happens to simulated hardware its kernel tells, too, and that becomes a verdict."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from accelkit.agent.admission import Pending
from accelkit.agent.holders import Holders
from accelkit.agent.kernel import FileEar
from accelkit.agent.knowledge import Knowledge
from accelkit.agent.problems import Problems
from accelkit.agent.sources import Source
from accelkit.core.clock import RealClock
from accelkit.core.policy import Policy
from accelkit.core.values import Health
from accelkit.core.vendor import Signal
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.shared import vendor_class
from accelkit.testing.simulate import set_state, simulate
from tests.agent.signalled import interpreting

CLOCK = RealClock()
PATIENCE_S = 20
LAST = "/the/last"


@attrs.frozen
class Told:
    """A verb of a machine with one device, and what becomes of it."""

    vendor: str
    product: str
    verb: str
    event: str
    condition: str
    health: Health = Health.UNHEALTHY


ALL = (
    Told("nvidia", "h100", "xid gpu-0 79", "xid-79", "xid-79"),
    Told("amd", "mi300x", "ras gpu-0 umc 2", "hardware-error", "hardware-error"),
    Told("intel", "arc-b580", "wedge gpu-0 rebind,bus-reset", "wedged", "wedged"),
    Told(
        "intel", "arc-a770", "wedge gpu-0 none", "hang-recovered", "hang-recovered", Health.HEALTHY
    ),
    *(
        Told("neuron", "trn2", verb, code, code)
        for verb, code in (
            ("ecc neuron-0 sram 1", "sram-uncorrectable-error"),
            ("fail neuron-0 1 hw_dma_abort_error 3", "dma-error"),
            ("fail neuron-0 0 hw_nc_ue_error 1", "nc-uncorrectable-error"),
        )
    ),
)


@pytest.mark.parametrize("told", ALL, ids=lambda told: f"{told.vendor} {told.verb}")
async def test_verb_of_a_machine_is_heard_from_its_kernel_and_becomes_a_verdict(
    tmp_path: Path, told: Told
) -> None:
    directory = str(tmp_path / "machine")
    simulate(told.vendor, told.product, 1, directory)
    knowledge = knowing(directory, told.vendor)
    (source,) = knowledge.sources.values()
    await knowledge.learn(source)

    await hear(directory, knowledge, told.verb)
    await knowledge.examine(source)

    assert told.event in {evidence.code for evidence in knowledge.heard.evidence}
    whole = min(knowledge.store.view.snapshot.devices, key=lambda device: len(device.id.name))
    assert told.condition in {condition.code for condition in whole.conditions}
    assert knowledge.store.view.verdicts[whole.id].health is told.health
    source.close()


async def test_driver_that_takes_a_gpu_over_again_ends_what_its_kernel_told(tmp_path: Path) -> None:
    directory = str(tmp_path / "machine")
    simulate("intel", "arc-b580", 1, directory)
    knowledge = knowing(directory, "intel")
    (source,) = knowledge.sources.values()
    await knowledge.learn(source)

    await hear(directory, knowledge, "wedge gpu-0 rebind", "restore gpu-0")
    await knowledge.examine(source)

    (device,) = knowledge.store.view.snapshot.devices
    assert {"wedged", "driver-bound"} <= {evidence.code for evidence in knowledge.heard.evidence}
    assert device.conditions == ()
    source.close()


async def test_uevent_is_evidence_of_the_vendor_alone_that_has_the_device(tmp_path: Path) -> None:
    """A wedged GPU of Intel was listed as evidence of AMD, too: uevents do not say whose it is."""
    directory = str(tmp_path / "machine")
    simulate("amd", "mi210", 1, directory)
    simulate("intel", "arc-b580", 1, directory)
    knowledge = knowing(directory, "amd", "intel")
    for source in knowledge.sources.values():
        await knowledge.learn(source)

    await hear(directory, knowledge, "wedge gpu-1 rebind")

    assert {e.vendor for e in knowledge.heard.evidence if e.code == "wedged"} == {"intel"}
    for source in knowledge.sources.values():
        source.close()


def knowing(directory: str, *vendors: str) -> Knowledge:
    """What an agent knows of a machine."""
    kinds = [vendor_class(vendor) for vendor in vendors]
    sources = [Source(kind(kind.options()), MachineHost(directory), 1.0, CLOCK) for kind in kinds]
    problems = Problems(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    holders = Holders(None, problems)
    return Knowledge("n1", "boot", Policy(), sources, Pending(CLOCK), CLOCK, holders)


async def hear(directory: str, knowledge: Knowledge, *verbs: str) -> None:
    """Take all that the machine's kernel says while *verbs* happen to it."""
    heard = asyncio.Event()
    async with interpreting(knowledge) as told:

        async def take(signal: Signal) -> None:
            await told(signal)
            if signal.subject == LAST:
                heard.set()

        listening = asyncio.create_task(FileEar(MachineHost(directory), CLOCK).listen(take))
        await asyncio.sleep(0)  # uevents of before it listens are nobody's
        for verb in (*verbs, f"uevent change {LAST} SUBSYSTEM=none"):
            set_state(directory, verb.split())
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

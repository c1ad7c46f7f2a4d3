"""One verdict, whoever asks: the kubelet, slices, health streams, metrics and people."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from accelkit.cli.agent_socket import ask
from accelkit.cli.asking import Agent
from accelkit.cli.play_dra_stage import HASTY
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.dra.side import Cluster
from accelkit.conformance.sims.events import Listed
from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.core.errors import TransportError
from accelkit.core.kube import NODES, SLICES
from accelkit.core.model import DeviceId
from accelkit.core.view import View
from accelkit.testing.simulate import set_state
from tests.cli.conftest import Run
from tests.processes import running

pytestmark = pytest.mark.slow  # an agent with both backends, and simulations of all around it

PATIENCE_S = 60.0
NODE, RELEASE = "n1", "1.37"
DRIVER, RESOURCE = "sim.accelkit.dev", "sim.accelkit.dev/accel"
PLUGGED, CLAIMED = (DeviceId(vendor="sim", name=f"s00-000{n}") for n in range(2))
POLICY = """\
paths: {{host: {root}/basic, kubelet: {root}/kubelet, cdi: {root}/cdi, run: {root}/run}}
vendors: [{{name: sim}}]
offers:
- {{name: plugged, select: {{name: s00-0000}}, through: kubelet}}
- {{name: claimed, through: dra}}
read: {{inventory: 100ms, health: 50ms, debounce: 10ms}}
health: {{recoverAfter: 10m, flap: {{changes: 3, within: 1h, hold: 10m}}}}
kube: {{client: lean, config: {root}/kubeconfig}}
http: {{listen: ""}}
"""


@attrs.frozen
class Node:
    """An agent, and all who ask it."""

    root: Path
    api: ApiSim
    kubelet: KubeletSim

    def view(self) -> View:
        return Agent(str(self.root / "run")).view()

    def metrics(self) -> str:
        return ask(str(self.root / "run"), "/metrics").decode()

    def plugged(self) -> list[bool]:
        """Whether devices of the last list are healthy."""
        lists = self.kubelet.seen(Listed, resource=RESOURCE)
        return [device.healthy for device in lists[-1].devices] if lists else []

    def taints(self) -> list[list[str]]:
        """Of each device that is published."""
        return [
            sorted(f"{taint['key']}:{taint['effect']}" for taint in device.get("taints", ()))
            for one in json.loads(json.dumps(self.api.raws(SLICES)))
            for device in one["spec"].get("devices", ())
        ]

    def streamed(self) -> tuple[str, bytes]:
        """What the health stream says of the device that claims may have."""
        return self.kubelet.dra.health.of(DRIVER, NODE, CLAIMED.name)

    async def let(self, words: str) -> None:
        """Let something happen to both devices, and the agent see it."""
        for unit in ("accel-0", "accel-1"):
            set_state(str(self.root / "basic"), words.format(unit=unit).split())
        ill = words.startswith("fault")
        await until(lambda: self.past_is(ill=ill))

    def past_is(self, *, ill: bool) -> bool:
        pasts = [verdict.past for verdict in self.view().verdicts.values()]
        return len(pasts) == 2 and all(past and past.ill is ill for past in pasts)


@attrs.frozen(kw_only=True)
class Said:
    """What a command says of all devices."""

    code: int
    health: set[str]
    reasons: list[list[str]]


def said(run: Run, command: str, *words: object) -> Said:
    answer = run(command, *words, "-o", "json")
    found = [item["verdict"] for item in json.loads(answer.out)["items"]]
    return Said(
        code=answer.code,
        health={verdict["health"] for verdict in found},
        reasons=[[reason["code"] for reason in verdict["reasons"]] for verdict in found],
    )


async def until(condition: Callable[[], object]) -> None:
    """Wait until *condition*, which may ask the agent, is true."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                if await asyncio.to_thread(condition):
                    return
            except TransportError:
                pass
            await asyncio.sleep(0.02)


@asynccontextmanager
async def node(root: Path) -> AsyncIterator[Node]:
    (root / "policy.yaml").write_text(POLICY.format(root=root))
    (root / "cdi").mkdir()
    async with ApiSim(RELEASE) as api:
        api.write_kubeconfig(root / "kubeconfig")
        api.create(NODES, {"metadata": {"name": NODE}})
        cluster = Cluster(api=api, node=NODE, cdi=(root / "cdi",))
        async with KubeletSim(
            root / "kubelet", release=RELEASE, timing=HASTY, cluster=cluster
        ) as kubelet:
            program = "from accelkit.cli.main import main; raise SystemExit(main())"
            words = ("agent", "--node", NODE, "--policy", str(root / "policy.yaml"))
            async with running(sys.executable, "-c", program, *words):
                yield Node(root, api, kubelet)


@pytest.mark.usefixtures("basic")
async def test_device_that_flaps_is_held_for_everybody_and_freed_for_everybody(
    run: Run, tmp_path: Path
) -> None:
    policy = ("--policy", tmp_path / "policy.yaml")
    good = ("Healthy", b"")
    async with node(tmp_path) as here:
        await until(lambda: here.plugged() == [True] and here.taints() == [[]])
        await until(lambda: here.streamed() == good)

        for words in ("fault {unit} burnt FATAL", "heal {unit}") * 2:
            await here.let(words)

        held = ["accelkit.dev/flapping:NoSchedule", "accelkit.dev/recovering:NoSchedule"]
        await until(lambda: here.plugged() == [False] and here.taints() == [held])
        await until(lambda: b"flapping: " in here.streamed()[1])
        assert here.streamed()[0] == "Unhealthy"
        metrics = await asyncio.to_thread(here.metrics)
        for device in (PLUGGED, CLAIMED):
            assert f'accelkit_device_health{{device="{device}",health="UNHEALTHY"}} 1' in metrics
            code = f'device="{device}",code="flapping",severity="FATAL"'
            assert f"accelkit_device_condition{{{code}}} 1" in metrics
        ill = Said(code=1, health={"UNHEALTHY"}, reasons=[["flapping", "recovering"]] * 2)
        # Who does not ask the agent reads what it has written down, a second later at most.
        await until(lambda: said(run, "devices", *policy) == ill)
        assert await asyncio.to_thread(said, run, "health", *policy) == ill

        for device in (PLUGGED, CLAIMED):
            answer = await asyncio.to_thread(run, "health", "clear", device, *policy)
            assert answer.code == 0
        await until(lambda: here.plugged() == [True] and here.taints() == [[]])
        await until(lambda: here.streamed() == good)

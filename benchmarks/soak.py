"""``./dev soak [SECONDS]``: an agent lives through faults, and is watched for leaks and for harm.

Pods come and go, devices break, vanish and return, the kubelet restarts, the agent is killed.
At rests everything is well again: then every device must be to be had, and nothing may be left.
"""

import argparse
import asyncio
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from typing import TypeAlias

import attrs

from accelkit.conformance.sims.kubelet import KubeletSim
from accelkit.conformance.sims.pods import Phase
from accelkit.conformance.sims.watcher import sockets
from accelkit.testing.simulate import set_state
from benchmarks.node import SIM, TIMING, Place, place, process
from benchmarks.usage import Usage, growth, usage

UNITS = 8
STEP_S = 0.03
STEPS = 25
"""Between two rests."""
PATIENCE_S = 20.0
WARM_RESTS = 3
"""Of an agent's life before what it takes counts: caches fill."""
Told: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""What happened, and what was wrong."""
POLICY = """
vendors: [{name: sim}]
read: {inventory: 1s, health: 500ms, holdings: 500ms, debounce: 50ms}
health: {recoverAfter: 500ms, flap: {changes: 3, within: 2s, hold: 3s}}
logging: {level: warning}
"""


STORIES = {
    "plugin": "devices through the kubelet, on a simulated kubelet",
    "claims": "devices through claims, on a real node",
    "still": "two real nodes on which nothing changes",
}


def main(words: list[str]) -> int:
    """Run as long as asked; 1 if something was found."""
    stories = "; ".join(f"{name}: {what}" for name, what in STORIES.items())
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__, epilog=stories)
    parser.add_argument("seconds", nargs="?", type=float, default=600.0, help="default: 600")
    parser.add_argument("--story", choices=STORIES, default="plugin", help="default: plugin")
    parser.add_argument("--seed", type=int, default=0, help="of what happens when (default: 0)")
    asked = parser.parse_args(words)
    lines, wrong = _told(asked.story, asked.seconds, random.Random(asked.seed))
    for line in (*lines, *(f"WRONG: {text}" for text in wrong)):
        print(line)
    print("something is wrong" if wrong else "nothing wrong")
    return 1 if wrong else 0


def _told(story: str, seconds: float, rng: random.Random) -> Told:
    if story == "plugin":
        with place(POLICY, sim=UNITS) as here:
            soak = Soak(here, rng)
            asyncio.run(soak.run(seconds))
            return soak.summary(), soak.wrong
    # They load the harness of real nodes.
    if story == "claims":
        from benchmarks.soak_claims import run as claims  # noqa: PLC0415 - see above

        return claims(seconds, rng)
    from benchmarks.soak_still import run as still  # noqa: PLC0415 - see above

    return still(seconds)


@attrs.define
class Life:
    """One agent process."""

    process: subprocess.Popen[bytes]
    end: ExitStack
    rests: list[Usage] = attrs.field(factory=list)
    """What it took at each rest."""


class Soak:
    """A node that has a hard time.

    Args:
        here: Its place.
        rng: Decides what happens.
    """

    def __init__(self, here: Place, rng: random.Random) -> None:
        self.wrong: list[str] = []
        """What must not be, a sentence each."""
        self._here = here
        self._rng = rng
        self._kubelet = KubeletSim(here.root / "kubelet", timing=TIMING)
        self._counts: Counter[str] = Counter()
        self._last: list[Usage] = []
        self._admitting: set[asyncio.Task[None]] = set()
        self._kills = True
        self._units = [f"accel-{number}" for number in range(UNITS)]

    async def run(self, seconds: float) -> None:
        """Let things happen for so long; the second half without killing the agent."""
        begun = time.monotonic()
        async with self._kubelet:
            life = self._start()
            try:
                while (spent := time.monotonic() - begun) < seconds and not self.wrong:
                    self._kills = spent < seconds / 2
                    for _ in range(STEPS):
                        life = await self._step(life)
                        self._check_pods()
                    await self._rest(life)
                self._judge(life)
            finally:
                life.end.close()
            if life.process.returncode:
                self.wrong.append(f"the agent ended with {life.process.returncode}")

    def summary(self) -> list[str]:
        """What happened."""
        lines = [f"{count:7} {what}" for what, count in sorted(self._counts.items())]
        if self._last:
            first, last = self._last[0], self._last[-1]
            lines += [
                f"the last agent, over {len(self._last)} rests: {first} at first, {last} at last"
            ]
        return lines

    # What happens.

    async def _step(self, life: Life) -> Life:
        kinds: dict[Callable[[], Coroutine[None, None, None]], int] = {
            self._admit: 40,
            self._remove: 30,
            self._break: 10,
            self._lose: 6,
            self._restart_kubelet: 2,
        }
        await asyncio.sleep(STEP_S)
        luck = self._rng.random()
        if luck < 0.02 and self._kills:
            return await self._kill(life)
        if luck < 0.04:
            life.process.send_signal(signal.SIGHUP)
            self._counts["reloads"] += 1
            return life
        chosen = self._rng.choices([*kinds], [*kinds.values()])[0]
        await chosen()
        return life

    async def _admit(self) -> None:
        self._counts["pods"] += 1
        name = f"pod-{self._counts['pods']}"

        async def admit() -> None:
            pod = await self._kubelet.admit(name, {SIM: self._rng.randint(1, 3)})
            if pod.phase is Phase.FAILED:
                self._counts[f"pods refused: {pod.reason}"] += 1

        task = asyncio.create_task(admit())
        self._admitting.add(task)
        task.add_done_callback(self._admitting.discard)

    async def _remove(self) -> None:
        if names := [pod.name for pod in self._kubelet.pods.values() if pod.phase is Phase.RUNNING]:
            await self._drop(self._rng.choice(names))

    async def _drop(self, name: str) -> None:
        await self._kubelet.remove(name, force=self._rng.random() < 0.3)
        self._counts["pods removed"] += 1

    async def _break(self) -> None:
        self._happen(f"fault {self._rng.choice(self._units)} burnt")
        self._happen(f"event {self._rng.choice(self._units)} look")

    async def _lose(self) -> None:
        self._happen(f"lose {self._rng.choice(self._units)}")

    def _happen(self, words: str) -> None:
        self._counts[words.split(maxsplit=1)[0]] += 1
        set_state(str(self._here.machine), words.split())

    async def _restart_kubelet(self) -> None:
        self._counts["kubelet restarts"] += 1
        await self._kubelet.restart()

    async def _kill(self, life: Life) -> Life:
        self._counts["agents killed"] += 1
        life.process.kill()
        life.process.wait()
        life.end.close()
        return self._start()

    def _start(self) -> Life:
        end = ExitStack()
        return Life(
            end.enter_context(process(self._here.agent, self._here.root / "agent.log")), end
        )

    # What must be.

    def _check_pods(self) -> None:
        """No device is in two pods, and each pod has the devices that it holds."""
        nodes: dict[str, str] = {}
        for pod in self._kubelet.pods.values():
            if pod.phase is not Phase.RUNNING or pod.deleted:
                continue
            for held in pod.container("main").held.values():
                paths = [path for _, path, _ in held.answer.devices]
                if len(paths) != len(held.ids):
                    self.wrong.append(f"{pod.name} holds {sorted(held.ids)} but got {paths}")
                for path in paths:
                    other = nodes.setdefault(path, pod.name)
                    if other != pod.name:
                        self.wrong.append(f"{path} is in {other} and in {pod.name}")

    async def _rest(self, life: Life) -> None:
        """Let everything be well, and see that it is."""
        await asyncio.gather(*self._admitting)
        for pod in [*self._kubelet.pods]:
            await self._drop(pod)
        for unit in self._units:
            self._happen(f"restore {unit}")
            self._happen(f"heal {unit}")
        try:
            await self._kubelet.wait_for(self._all_there, PATIENCE_S)
        except TimeoutError as error:
            code = life.process.poll()
            state = "runs" if code is None else f"ended with {code}"
            self.wrong.append(f"not all devices came back; the agent {state}: {error}")
            return
        self._counts["rests"] += 1
        ours = {*sockets(self._kubelet.registry_dir), *sockets(self._kubelet.plugins_dir)}
        if len(ours - {self._kubelet.socket}) > 1 + self._counts["agents killed"]:
            self.wrong.append(f"sockets are left: {sorted(map(str, ours))}")
        life.rests.append(usage(life.process.pid))

    def _all_there(self) -> bool:
        return self._kubelet.amounts().get(SIM) == (UNITS, UNITS)

    def _judge(self, life: Life) -> None:
        """Compare what the last agent took in the first half of its life and at last."""
        self._last = life.rests[WARM_RESTS:]
        if not self.wrong:
            self.wrong.extend(growth(self._last))

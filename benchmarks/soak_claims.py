"""Everything on a real node is killed at random while pods with claims come and go.

The record of claims, the containers and the GPUs are watched all the time. Agents end between two
effects for claims, at any other time, or because a newer one is there; in the last part of the run
one agent lives on, and what it takes is watched.
"""

import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import attrs

from benchmarks.soak_nodes import nodes
from benchmarks.usage import Usage, growth, usage
from tests.node.agents import Agents
from tests.node.claims import device_class, published
from tests.node.disturbed import (
    EFFECTS,
    PROGRAMS,
    RUN,
    SHARED,
    SHARES,
    Disturbed,
    machine,
    make_templates,
)
from tests.node.observer import Observer
from tests.node.processes import NodeError
from tests.node.traffic import Traffic

AT_ONCE = 8
LAST = 0.25
"""Part of the time in which agents live on."""
KILLS_BETWEEN_RESTS = 20
MOST_BEFORE = 3
"""Effects of a kind after which an agent ends before the next one, at most."""
FUSE_S = 10.0
"""So long it may take to come to it; then it is killed."""
CALM_S = 4.0
"""At most between two kills."""
WARM_LOOKS = 10
"""Of an agent's life before what it takes counts: caches fill."""
LEAST_LOOKS = 240
"""Of an agent that hardly lived nothing is said: it does many things for the first time."""
ENDED = re.compile(r"ends before: (.+)")


def run(seconds: float, rng: random.Random) -> tuple[Sequence[str], Sequence[str]]:
    """Run for so long; what happened, and what was wrong."""
    with nodes(1) as (cluster,), ExitStack() as end:
        device_class(cluster)
        gpus = machine(cluster)
        agents = Agents(cluster)
        end.callback(agents.end)
        traffic = Traffic(cluster, make_templates(cluster), AT_ONCE, rng=rng)
        shares = {SHARED: SHARES}
        observer = end.enter_context(Observer(cluster, gpus, cluster.root / RUN, shares))
        node = Disturbed(cluster, agents, gpus, traffic, observer)
        cluster.wait_for("slices", lambda: published(cluster) >= set(gpus.whole))
        story = Claims(node, observer, rng)
        story.go_on(seconds)
        return story.summary(), story.wrong


@attrs.define
class Claims:
    """A node that has a hard time.

    Args:
        node: The node.
        observer: Watches it.
        rng: Decides what happens.
    """

    _node: Disturbed
    _observer: Observer
    _rng: random.Random
    _counts: Counter[str] = attrs.Factory(Counter)
    _looks: list[Usage] = attrs.Factory(list)
    """What the last agent took, again and again."""
    _texts: list[str] = attrs.Factory(list)

    @property
    def kills(self) -> int:
        return sum(n for what, n in self._counts.items() if what.startswith("killed"))

    @property
    def wrong(self) -> Sequence[str]:
        failed = [f"{name} failed: {why}" for name, why in self._node.traffic.failed.items()]
        return [*self._observer.wrong, *self._node.lost, *failed, *self._texts]

    def summary(self) -> Sequence[str]:
        traffic = self._node.traffic
        lines = [f"{n:7} {what}" for what, n in sorted({**self._counts, **traffic.counts}.items())]
        lines += [
            f"{self.kills:7} kills under {traffic.made} pods, of which {len(traffic.ran)} ran",
            f"slowest pod: {traffic.slowest_s:.1f} s; {self._observer}",
        ]
        if self._looks:
            first, last = self._looks[0], self._looks[-1]
            lines.append(
                f"the last agent, {len(self._looks)} looks: {first} at first, {last} at last"
            )
        return lines

    def go_on(self, seconds: float) -> None:
        """Let things happen for so long."""
        begun = time.monotonic()
        rested = 0
        try:
            while (spent := time.monotonic() - begun) < seconds and not self.wrong:
                last = spent > seconds * (1 - LAST)
                self._disturb(agents=not last)
                self._node.go_on(self._rng.uniform(0, CALM_S))
                if last:
                    self._looks.append(usage(self._node.agent.pid))
                if self.kills >= rested + KILLS_BETWEEN_RESTS:
                    self._rest()
                    rested = self.kills
            self._rest()
        except NodeError as error:
            self._texts.append(str(error))
        if len(self._looks) >= LEAST_LOOKS:
            self._texts.extend(growth(self._looks[WARM_LOOKS:]))

    def _disturb(self, *, agents: bool) -> None:
        kinds: dict[Callable[[], None], int] = {self._kill_program: 4}
        if agents:
            kinds |= {self._end_agent: 12, self._kill_agent: 3, self._replace_agent: 1}
        self._rng.choices([*kinds], [*kinds.values()])[0]()

    def _end_agent(self) -> None:
        """Let an agent end before an effect."""
        node = self._node
        node.agent.end(signal.SIGKILL)
        self._counts["killed agent at any time"] += 1
        agent = node.start(self._rng.choice(EFFECTS), self._rng.randint(0, MOST_BEFORE))
        until = time.monotonic() + FUSE_S
        while agent.runs and time.monotonic() < until:
            node.step()
        agent.end(signal.SIGKILL)
        found = ENDED.search(agent.log.read_text())
        self._counts[f"killed agent before: {found[1]}" if found else "killed agent: idle"] += 1
        node.start()

    def _kill_agent(self) -> None:
        self._node.kill_agent()
        self._counts["killed agent at any time"] += 1

    def _replace_agent(self) -> None:
        self._node.replace_agent()
        self._counts["agents replaced by newer ones"] += 1

    def _kill_program(self) -> None:
        program = self._rng.choice(PROGRAMS)
        self._node.kill(program)
        self._counts[f"killed {program}"] += 1

    def _rest(self) -> None:
        """Let every pod run and end, and see that nothing is left of them."""
        traffic = self._node.traffic
        traffic.settle(180)
        self._node.go_on(0)
        traffic.end(180)
        self._node.wait_undone()
        self._counts["rests"] += 1

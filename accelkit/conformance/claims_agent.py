"""The agent with one plugin, serving claims. Not here: checks."""

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

from accelkit.conformance.agent_driver import AgentDriver
from accelkit.conformance.bench import Scope
from accelkit.conformance.laying import make_machine
from accelkit.conformance.model import Feature, Unanswered
from accelkit.conformance.nursery import PROGRAM
from accelkit.conformance.setups import UNITS, Setup, Site
from accelkit.conformance.subjects import Blocks, Cut, PluginSubject
from accelkit.core.kube import Json
from accelkit.testing.hosts import open_host
from accelkit.testing.simulate import set_state

_EARLIEST = "recorded/claim-1.0.json"
"""A record as the first version wrote it, with an item in each list."""
_PCI = "/sys/bus/pci/devices"
_RENDER_S = 60.0


class ClaimsAgent(AgentDriver):
    """``accelkit agent`` with the subject's plugin alone, offering its devices to claims.

    Args:
        subject: The plugin.
        scope: Ends what is started.
        directory: Machine, policy, run directory and log are made in it.
    """

    def __init__(self, subject: PluginSubject, scope: Scope, directory: Path) -> None:
        self._setup = Setup()
        self._site: Site | None = None
        super().__init__(subject, scope, directory)

    def _make_machine(self) -> None:
        """It is made when it is known how many devices it shall have."""

    def furnish(self, site: Site, setup: Setup) -> None:
        self._site, self._setup, self._node = site, setup, site.node
        if Path(self.machine).exists():
            return
        how = (self._subject.claimed if setup.cut else None) or Cut()
        make_machine(self._subject, how, setup.units, self.machine, self._scope.later)

    def twin(self) -> "ClaimsAgent":
        made = ClaimsAgent(self._subject, self._scope, self.home)
        made.log = self.home / "twin.log"
        assert self._site is not None
        made.furnish(self._site, self._setup)
        return made

    def _policy(self, kubelet: Path) -> dict[str, object]:
        assert self._site is not None
        policy = super()._policy(kubelet)
        period = "200ms" if self._setup.units <= UNITS else "2s"  # to read many takes its time
        policy |= {
            "read": {
                "inventory": period,
                "health": period,
                "holdings": "200ms",
                "reconcile": "1s",
            },
            "offers": [self._offer()],
            "kube": {"config": str(self._site.kubeconfig)},
            "backends": {"dra": {"metadata": self._setup.metadata}},
        }
        if self._setup.cut:
            policy["partitioning"] = [{"how": "dynamic"}]
        return policy

    def _offer(self) -> dict[str, object]:
        setup = self._setup
        offer: dict[str, object] = {"name": f"mark-{setup.mark}", "through": setup.through}
        if setup.resource:
            key = "resource" if setup.through == "kubelet" else "extendedResource"
            offer[key] = setup.resource
        if setup.shares > 1:
            offer["sharing"] = {"shares": setup.shares}
        return offer

    def blocks(self) -> Blocks:
        assert self._subject.blocks is not None
        return self._subject.blocks

    def set_to(self) -> str:
        host = open_host(self.machine)
        name = self.blocks().file
        found = {unit: host.read(f"{_PCI}/{unit}/{name}").strip() for unit in host.names(_PCI)}
        return ", ".join(f"{unit} {text}" for unit, text in sorted(found.items()) if text)

    def stick(self) -> None:
        self._say(Feature.STICK, undo=False)

    def loosen(self) -> None:
        self._say(Feature.STICK, undo=True)

    def _say(self, feature: Feature, *, undo: bool) -> None:
        words = self._subject.words_for(feature)
        assert words is not None
        set_state(self.machine, words[undo].split())

    def records(self) -> Path:
        return self.home / "run"

    def earlier(self, record: Json) -> Json:
        """What version 1.0 has no word for is left out."""
        like = json.loads(resources.files(__package__).joinpath(_EARLIEST).read_text("utf-8"))
        shaped = _shaped(record, like)
        assert isinstance(shaped, dict)
        return {**shaped, "format": like["format"], "writer": like["writer"]}

    def classes(self) -> tuple[Json, ...]:
        """What ``accelkit render extended`` prints for the policy that is served."""
        words = [sys.executable, "-c", PROGRAM, "render", "extended", "-o", "json"]
        words += ["--policy", str(self.home / "policy.json")]
        words += ["--host", self.machine, "--node", self._node]
        ran = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=self._scope.patience(_RENDER_S),
            check=False,
        )
        if ran.returncode:
            raise Unanswered(f"no classes are rendered: {ran.stderr.strip()[-300:]}")
        items: list[Json] = json.loads(ran.stdout)["items"]
        return tuple(items)


def _shaped(tree: object, like: object) -> object:
    """*tree* with the keys that *like* has in the same place; all of them where that has none."""
    if isinstance(tree, list) and isinstance(like, list):
        return [_shaped(item, like[0]) for item in tree]
    if isinstance(tree, dict) and isinstance(like, dict) and like:
        return {key: _shaped(value, like[key]) for key, value in tree.items() if key in like}
    return tree

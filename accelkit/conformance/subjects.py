"""What can be checked: a plugin, or whatever serves the kubelet over sockets. Not here: checks."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias

import attrs

from accelkit.conformance.footprint import Footprint
from accelkit.conformance.model import Feature, Level
from accelkit.conformance.setups import MANY, Setup, Site
from accelkit.core.allocation import CLAIM_CONFIG
from accelkit.core.kube import Json
from accelkit.core.model import Device
from accelkit.core.policy import API_VERSION
from accelkit.core.policy_check import options_of
from accelkit.core.registry import load_plugins
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import Vendor, abilities
from accelkit.testing.faults import Fault
from accelkit.testing.machines import Machine
from accelkit.testing.shared import machine_class

Words: TypeAlias = tuple[str, str]
"""What to say to a machine, and what to say to undo it; ``{unit}`` stands for a unit."""

WORDS: Mapping[Feature, tuple[Words, ...]] = {
    Feature.REMOVE: (("remove {unit}", "restore {unit}"), ("lose {unit}", "restore {unit}")),
    Feature.SPOIL: (("rubbish {unit}", ""),),
    Feature.UNLOAD: (("unload", "load"),),
    Feature.FAULT: (("fault {unit} conformance FATAL", "heal {unit}"),),
    Feature.FLAW: (("fault {unit} conformance DEGRADED", "heal {unit}"),),
    Feature.EVENT: (("event {unit} first", "event {unit} second"),),
    Feature.HANG: (("hang discover 60s", "calm discover"),),
    Feature.STICK: (("error revert", "calm revert"),),
}
"""By what they do: the first whose verbs a machine has. Of EVENT both happen, one is no undoing."""


@attrs.frozen(kw_only=True)
class Cut:
    """How a machine with partitions is made."""

    product: str | None = None
    """Instead of the subject's."""
    words: tuple[tuple[str, ...], ...] = ()
    """Verbs for the fresh machine, as in ``("mig", "gpu-0", "on")``."""


@attrs.frozen(kw_only=True)
class Blocks:
    """Two blocks of configuration that set one thing, each to something else."""

    first: Json = attrs.field(hash=False)
    second: Json = attrs.field(hash=False)
    file: str
    """The name of a file of the machine, beside other files of a device, that shows what is set."""


@attrs.frozen(kw_only=True)
class PluginSubject:
    """A vendor plugin: in process, and behind the agent.

    The plugin has to be installed (an editable installation will do) for its own machine to be
    found, and for the agent.
    """

    kind: ClassVar[str] = "plugin"
    vendor: type[Vendor]
    options: FrozenMap[str, object] = attrs.field(default=FrozenMap(), converter=FrozenMap)
    """The operator's block, as the policy file writes it."""
    product: str | None = None
    """Of the machine; None: its first."""
    machine: str | None = None
    """The vendor whose machine the plugin is shown; None: its own."""
    host: str | None = None
    """A host to read instead of fresh machines: a machine that is there, or a host's root. What
    needs a machine that can be changed is not applicable then."""
    cut: Cut | None = None
    claimed: Cut | None = None
    """A machine whose devices are cut as claims need them."""
    blocks: Blocks | None = None
    many: int = MANY
    """Units of a machine with many; fewer where reading so many takes longer than it may."""
    words: FrozenMap[Feature, Words] = attrs.field(default=FrozenMap(), converter=FrozenMap)
    """For a machine whose verbs are other ones."""
    faults: tuple[Fault, ...] = ()
    """What somebody lets happen to each of its machines, besides what checks do."""
    by_place: bool = False
    """Devices are known by where they are, so that new hardware in an old place is the same."""
    found: dict[object, object] = attrs.field(factory=dict, eq=False, repr=False, init=False)
    """What checks found out about it, for the next one."""

    @property
    def name(self) -> str:
        return self.vendor.name

    @property
    def simulated(self) -> type[Machine] | None:
        """The class of its machines; None: it has none."""
        if self.host is not None:
            return None
        if self.machine is not None:
            return machine_class(self.machine)
        return None if self.vendor.machine is None else machine_class(self.vendor.name)

    def make(self) -> Vendor:
        """Build the plugin as the agent does."""
        return self.vendor(options_of(self.vendor, dict(self.options)))

    def features(self, level: Level) -> frozenset[Feature]:
        """What can be done with it at *level*."""
        machine = self.simulated
        found: set[Feature] = set()
        if self.vendor.hardware or self.vendor.native:
            found.add(Feature.HARDWARE)
        if not self.by_place:
            found.add(Feature.SERIALS)
        if machine is not None:
            found |= {Feature.MACHINE} | {f for f in WORDS if self.words_for(f)}
            if self.cut is not None:
                found.add(Feature.CUT)
        return frozenset(found if level is Level.L1 else found | self._served(found))

    def _served(self, own: set[Feature]) -> frozenset[Feature]:
        """What the agent lets one do over its sockets."""
        installed = load_plugins()
        through = {"kubelet", "dra"} & installed.backends.keys()
        if (
            Feature.MACHINE not in own
            or installed.vendors.get(self.name) is not self.vendor
            or not through
        ):
            return frozenset()
        found = {
            Feature.RESTART,
            Feature.STOP,
            Feature.TOLD,
            Feature.PROBES,
            Feature.RENEW,
            Feature.PROCESS,
            Feature.DEADLY,
            Feature.LOG,
        }
        found |= {Feature.SOCKETS} if "kubelet" in through else set()
        found |= self._claimed() if "dra" in through else set()
        if len(through) == len(("kubelet", "dra")):
            found.add(Feature.SWITCH)
        if NEIGHBOUR in installed.vendors and self.name != NEIGHBOUR:
            found.add(Feature.NEIGHBOUR)
        if Feature.REMOVE in own:
            found |= {Feature.WITHDRAW, Feature.EMPTY}
        if self.machine is None:  # where nodes alone make a device, one without is none
            found.add(Feature.BREAK)
        return frozenset(found)

    def _claimed(self) -> set[Feature]:
        """What goes with claims."""
        found = {
            Feature.DRIVER,
            Feature.CDI,
            Feature.TWIN,
            Feature.REDRAW,
            Feature.MANY,
            Feature.NODES,
            Feature.EXTENDED,
            Feature.RECORDS,
        }
        also = {
            Feature.CONFIG: self.blocks is not None,
            Feature.SETS: self.vendor.sets,
        }
        return found | {feature for feature, is_there in also.items() if is_there}

    def words_for(self, feature: Feature) -> Words | None:
        """What to say to the subject's machine for *feature*; None: it cannot be done."""
        machine = self.simulated
        if machine is None or feature in self.words:
            return self.words.get(feature)
        if self.machine is not None and feature is not Feature.REMOVE:
            return None  # of somebody else's machine only what everyone sees: devices come and go
        pairs = WORDS[feature]
        if feature is Feature.SPOIL and "remove" in machine.verbs:
            # Such a machine tells a device that is gone from one that does not answer.
            pairs = (*pairs, ("lose {unit}", ""))
        return next((p for p in pairs if all(_knows(machine, t.split()) for t in p if t)), None)

    def abilities(self) -> tuple[str, ...]:
        return abilities(self.vendor)


def _knows(machine: type[Machine], words: list[str]) -> bool:
    """Whether one may say so many *words* to *machine*, as the usage of the verb has it."""
    usage = machine.verbs.get(words[0], "").split()
    needed = [word for word in usage if not word.startswith("[")]
    return bool(usage) and len(needed) <= len(words) <= len(usage)


CLAIM_BLOCK: Json = {"apiVersion": API_VERSION, "kind": CLAIM_CONFIG}
"""A block of configuration of a claim; ``vendor`` is to be added."""


def told(vendor: type[Vendor]) -> PluginSubject:
    """The plugin as its simulated machine tells that it is to be checked."""
    subject = PluginSubject(vendor=vendor)
    machine = subject.simulated
    if machine is None:
        return subject
    cut = Cut(product=machine.products[0], words=machine.parted) if machine.parted else None
    blocks = None
    if machine.blocks is not None:
        first, second = ({**CLAIM_BLOCK, "vendor": block} for block in machine.blocks)
        blocks = Blocks(first=first, second=second, file=machine.shows)
    return attrs.evolve(subject, cut=cut, blocks=blocks)


class Driver(Protocol):
    """A process, or what stands for it, that serves device plugin sockets below a directory."""

    @property
    def features(self) -> frozenset[Feature]:
        """Which of the methods below *kill* work: each names the feature that it needs."""
        ...

    def start(self, kubelet: Path) -> None:
        """Begin to serve below *kubelet*, which stands for /var/lib/kubelet; return at once."""
        ...

    def kill(self) -> None:
        """End it at once, and undo all else; may be called twice, and when nothing runs."""
        ...

    def said(self) -> str:
        """The end of what it logged, each line after "; "; empty: nothing is known."""
        ...

    def ended(self) -> bool:
        """Whether it was started, and has ended by itself: nothing is to be waited for."""
        ...

    def stop(self) -> None:
        """Ask it to end, and come back when it has (STOP).

        Raises:
            Unanswered: It did not end in time.
        """
        ...

    def restart(self) -> None:
        """Let it end and start again (RESTART)."""
        ...

    def break_device(self) -> None:
        """Let one device, the same each time, become unhealthy (BREAK)."""
        ...

    def mend_device(self) -> None:
        """Undo *break_device* (BREAK)."""
        ...

    def withdraw_device(self) -> None:
        """Let one device vanish from the machine (WITHDRAW)."""
        ...

    def withdraw_all(self) -> None:
        """Let every device vanish from the machine (EMPTY)."""
        ...

    def bring_back(self) -> None:
        """Undo *withdraw_all* (EMPTY)."""
        ...

    def renew(self, *, valid: bool) -> None:
        """Let it read its configuration again, and come back when it has (RENEW).

        Args:
            valid: It says what it said, for devices, in other words; else it is rubbish.

        Raises:
            Unanswered: It does not read it.
        """
        ...

    def afresh(self) -> None:
        """Let it load everything itself at the next *start*, as on a node (PROCESS)."""
        ...

    def footprint(self) -> Footprint:
        """What its process has right now (PROCESS).

        Raises:
            OSError: It has ended.
        """
        ...

    def endanger(self) -> None:
        """Give it a plugin that kills whoever loads it; called before *start* (DEADLY).

        Whoever starts it starts it again when it has ended, as a kubelet does.
        """
        ...

    def logged(self) -> list[Json]:
        """Every line that it has logged since it was started first, as keys and values (LOG)."""
        ...

    def hang(self) -> None:
        """Let whatever stands behind it not answer any more (HANG)."""
        ...

    def disturb_neighbour(self) -> None:
        """Let another plugin of it fail again and again; called before *start* (NEIGHBOUR)."""
        ...

    def devices(self) -> tuple[Device, ...]:
        """What is there, by somebody's word who is not the list itself (TOLD)."""
        ...

    def probe(self, path: str) -> tuple[int, str]:
        """Status and text of an HTTP path: /metrics, /livez, /readyz (PROBES).

        Raises:
            OSError: Nothing answers there.
        """
        ...


class ClaimsDriver(Driver, Protocol):
    """One that serves claims, too (DRIVER): it is told where it runs before *start*."""

    @property
    def cdi(self) -> Path | None:
        """Where it writes CDI files (CDI); None: it is not known."""
        ...

    def furnish(self, site: Site, setup: Setup) -> None:
        """Run there from the next *start* on, and as *setup* wishes, as far as it can be told.

        Devices that were made for a check stay if it is called again.
        """
        ...

    def twin(self) -> "ClaimsDriver":
        """Another instance of it, not started yet, with the same devices and records (TWIN)."""
        ...

    def blocks(self) -> Blocks:
        """What users can configure (CONFIG)."""
        ...

    def set_to(self) -> str:
        """What configuration has set, as the hardware shows it; empty: it shows nothing."""
        ...

    def stick(self) -> None:
        """Let releases of claims with the first block fail from now on (STICK)."""
        ...

    def loosen(self) -> None:
        """Undo *stick* (STICK)."""
        ...

    def records(self) -> Path:
        """Where it writes down what claims have, in a file of JSON for each, named after its uid.

        Each says of which ``format`` it is, as in ``1.0``: major version, minor version (RECORDS).
        """
        ...

    def earlier(self, record: Json) -> Json:
        """*record*, read from such a file, as the oldest version wrote it that is still read."""
        ...

    def classes(self) -> tuple[Json, ...]:
        """The device classes that offer its devices under resource names (EXTENDED)."""
        ...


@attrs.frozen(kw_only=True)
class DriverSubject:
    """Any device plugin or DRA driver, whatever it is written in."""

    kind: ClassVar[str] = "driver"
    resource: str = ""
    """The name that a device plugin registers."""
    dra: str = ""
    """The name of a DRA driver."""
    driver: Driver
    directory: Path | None = None
    """Where the driver looks for the kubelet; None: it is told when it is started."""
    cdi: Path | None = None
    """Where it writes CDI files; None: it is not known."""

    @property
    def name(self) -> str:
        return self.resource or self.dra

    def features(self, level: Level) -> frozenset[Feature]:
        if level is Level.L1:
            return frozenset()
        there = {
            Feature.CDI: self.cdi is not None,
            Feature.SOCKETS: bool(self.resource),
            Feature.DRIVER: bool(self.dra),
        }
        return self.driver.features | {feature for feature, is_there in there.items() if is_there}

    def abilities(self) -> tuple[str, ...]:
        return ()


NEIGHBOUR = "simset"
"""The plugin that is made to fail beside the one that is looked at."""

Subject: TypeAlias = PluginSubject | DriverSubject

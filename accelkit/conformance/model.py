"""What a check is, what it may need, and how it can end. Not here: any check, and who runs them."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Generic, TypeVar

import attrs

from accelkit.conformance.setups import Setup

B_contra = TypeVar("B_contra", contravariant=True)


class Level(StrEnum):
    """Where a check runs."""

    L1 = "L1"
    """In process: a plugin on a simulated machine."""
    L2 = "L2"
    """Over sockets: a driver, a simulated kubelet and a simulated API server."""


class Arena(StrEnum):
    """What a check works with."""

    PROCESS = "process"
    SOCKETS = "sockets"
    """A driver with a simulated kubelet."""
    CLAIMS = "claims"
    """The same with an API server and a scheduler."""


class Verdict(StrEnum):
    """How a check ended."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    NOT_APPLICABLE = "not-applicable"
    """The subject does not declare what the check is about."""
    WAIVED = "waived"
    """It failed, and somebody wrote down why that is bearable until when."""
    UNSTABLE = "unstable"
    """It passed sometimes."""


class Badge(StrEnum):
    """A named set of checks, granted when every applicable must check of it passed."""

    CORE = "core"
    HEALTH = "health"
    TOPOLOGY = "topology"
    PARTITIONING = "partitioning"
    SHARING = "sharing"
    DEVICE_PLUGIN = "device-plugin"
    DRA = "dra"
    EXTENDED = "extended"
    AGENT = "agent"


OF_ABILITIES = frozenset({Badge.HEALTH, Badge.TOPOLOGY, Badge.PARTITIONING})
"""Badges of what some subjects can do: what applies to everybody earns none of them."""


class Feature(StrEnum):
    """What a subject must offer for a check to be possible, beyond the abilities of its class."""

    MACHINE = "machine"
    REMOVE = "remove"
    SPOIL = "spoil"
    UNLOAD = "unload"
    FAULT = "fault"
    FLAW = "flaw"
    EVENT = "event"
    SERIALS = "serials"
    HARDWARE = "hardware"
    CUT = "cut"
    SOCKETS = "sockets"
    RESTART = "restart"
    STOP = "stop"
    BREAK = "break-device"
    WITHDRAW = "withdraw-device"
    HANG = "hang"
    TOLD = "told"
    PROBES = "probes"
    NEIGHBOUR = "neighbour"
    CDI = "cdi"
    DRIVER = "driver"
    TWIN = "twin"
    REDRAW = "redraw"
    MANY = "many"
    RICH = "rich"
    CONFIG = "config"
    STICK = "stick"
    SETS = "sets"
    NODES = "nodes"
    EXTENDED = "extended"
    SWITCH = "switch"
    RECORDS = "records"
    EMPTY = "empty"
    RENEW = "renew"
    PROCESS = "process"
    DEADLY = "deadly"
    LOG = "log"


WHY_NOT: dict[Feature, str] = {
    Feature.MACHINE: "there is no simulated machine to change",
    Feature.REMOVE: "the machine has neither `remove` nor `lose`, with `restore`",
    Feature.SPOIL: "the machine cannot make one device unreadable (`rubbish UNIT`)",
    Feature.UNLOAD: "the machine cannot take the driver away (`unload`, `load`)",
    Feature.FAULT: "the machine has no `fault UNIT CODE SEVERITY` with `heal UNIT`",
    Feature.FLAW: "the machine has no fault that is not fatal (`fault UNIT CODE DEGRADED`)",
    Feature.EVENT: "the machine has no `event UNIT CODE`",
    Feature.SERIALS: "devices are known by their place",
    Feature.HARDWARE: "the plugin names no hardware of its own",
    Feature.CUT: "nothing says how a machine with partitions is made",
    Feature.SOCKETS: "nothing serves a socket: the agent does for plugins that are installed",
    Feature.RESTART: "the driver cannot be started anew from here",
    Feature.STOP: "the driver cannot be ended from here",
    Feature.BREAK: "there is no way to break a device from here",
    Feature.WITHDRAW: "there is no way to take a device away from here",
    Feature.HANG: "there is no way to let the hardware hang from here",
    Feature.TOLD: "nobody says what the devices are, but the driver itself",
    Feature.PROBES: "there is no address of probes and metrics",
    Feature.NEIGHBOUR: "there is no second plugin beside this one",
    Feature.CDI: "nobody says where CDI files are written",
    Feature.DRIVER: "nothing serves claims: the agent does for plugins that are installed",
    Feature.TWIN: "a second instance cannot be started beside the first from here",
    Feature.REDRAW: "the driver cannot be told from here to publish its devices otherwise",
    Feature.MANY: "there is no way to give it many devices from here",
    Feature.RICH: "there is no way to give devices more attributes than they may have from here",
    Feature.CONFIG: "nobody says what users can configure in a claim",
    Feature.STICK: "nothing lets a release fail from here",
    Feature.SETS: "its containers need not be told which devices go together",
    Feature.NODES: "the name of its node cannot be chosen from here",
    Feature.EXTENDED: "nothing offers its devices under a resource name from here",
    Feature.SWITCH: "it does not serve a device plugin as well",
    Feature.RECORDS: "nobody says where it writes down what claims have",
    Feature.EMPTY: "there is no way to take all devices away from here",
    Feature.RENEW: "its configuration cannot be changed from here while it runs",
    Feature.PROCESS: "nobody says which process it is",
    Feature.DEADLY: "there is no way to give it a plugin that kills its process from here",
    Feature.LOG: "nobody says what it logs",
}
"""Why a check without the feature is not applicable."""


@attrs.frozen(kw_only=True)
class Check(Generic[B_contra]):
    """One rule, and how it is looked at."""

    id: str
    """Permanent, never given to another rule; its page is docs/conformance/<id>.md."""
    claim: str
    """One sentence in present tense."""
    level: Level
    arena: Arena = Arena.PROCESS
    must: bool = True
    """A should check never costs a badge."""
    needs: tuple[type | Feature, ...] = ()
    """Abilities and features; without one of them the check is not applicable."""
    badges: frozenset[Badge] = frozenset()
    setup: Setup = Setup()
    """With claims: how the driver runs first. Checks that have the same one share what runs."""
    body: Callable[[B_contra], Iterator[str]]
    """Yields one sentence for each thing that is wrong; what it raises is one more."""

    @property
    def of_ability(self) -> bool:
        """Whether it looks at something that not every subject can do."""
        return any(isinstance(need, type) for need in self.needs)


class Inapplicable(Exception):
    """A check finds out on its way that the subject does not do at all what it looks at.

    Args:
        text: What it does not do.
    """


class Unanswered(Exception):
    """A check cannot go on, because the subject did not do what every check begins with.

    Args:
        text: The finding.
    """

"""What the releases of Kubernetes keep, drop and limit in their resource API. Not here: a server.

Source:
    Seen on servers of 1.34.4, 1.35.4, 1.36.3 and 1.37.2 with default gates and with all of them on.
"""

from collections.abc import Mapping

from attrs import evolve, frozen

RELEASES = ("1.34", "1.35", "1.36", "1.37")
PATCHES = {"1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.2"}
"""The versions that were looked at."""

TAINTS = "DRADeviceTaints"
RULES = "DRADeviceTaintRules"
COUNTERS = "DRAPartitionableDevices"
SHARES = "DRAConsumableCapacity"
BINDING = "DRADeviceBindingConditions"
DEVICE_STATUS = "DRAResourceClaimDeviceStatus"
EXTENDED = "DRAExtendedResource"
ADMIN = "DRAAdminAccess"
ALTERNATIVES = "DRAPrioritizedList"
GRANULAR = "DRAResourceClaimGranularStatusAuthorization"
FRACTIONS = "DRAFractionalCapacityRange"
LISTS = "DRAListTypeAttributes"
ALLOCATABLE = "DRANodeAllocatableResources"
SKIPPING = "DRAOptionalNodeOperations"
PARTITION_TYPE = "DRAPartitionableDevicesType"
COMPATIBILITY = "DRADeviceCompatibilityGroups"
DERIVED = "DRADerivedAttributes"

_ON, _OFF, _NONE = True, False, None
_DEFAULTS: Mapping[str, tuple[bool | None, bool | None, bool | None, bool | None]] = {
    # gate: by default in 1.34, 1.35, 1.36 and 1.37; none: there is no such gate
    TAINTS: (_OFF, _OFF, _ON, _ON),
    RULES: (_NONE, _OFF, _OFF, _ON),
    COUNTERS: (_OFF, _OFF, _ON, _ON),
    SHARES: (_OFF, _OFF, _ON, _ON),
    BINDING: (_OFF, _OFF, _ON, _ON),
    DEVICE_STATUS: (_ON, _ON, _ON, _ON),
    EXTENDED: (_OFF, _OFF, _ON, _ON),
    ADMIN: (_ON, _ON, _ON, _ON),
    ALTERNATIVES: (_ON, _ON, _ON, _ON),
    GRANULAR: (_NONE, _NONE, _ON, _ON),
    FRACTIONS: (_NONE, _NONE, _NONE, _OFF),
    LISTS: (_NONE, _NONE, _OFF, _OFF),
    ALLOCATABLE: (_NONE, _NONE, _OFF, _OFF),
    SKIPPING: (_NONE, _NONE, _NONE, _OFF),
    PARTITION_TYPE: (_NONE, _NONE, _NONE, _OFF),
    COMPATIBILITY: (_NONE, _NONE, _NONE, _OFF),
    DERIVED: (_NONE, _NONE, _NONE, _OFF),
}

_REQUESTS = ("requests[].exactly", "requests[].firstAvailable[]")
_RESULTS = "allocation.devices.results[]"


def _of_requests(field: str) -> tuple[str, ...]:
    return tuple(f"claim:{request}.{field}" for request in _REQUESTS)


_DROPPED: Mapping[str, tuple[str, ...]] = {
    # What a server drops while the gate is off. "slice:" is a path in a slice's spec, "claim:" in
    # the devices of a claim's or a template's spec, "status:" in a claim's status, "class:" in a
    # class's spec; [] stands for each item, {} for each value.
    TAINTS: ("slice:devices[].taints", *_of_requests("tolerations")),
    COUNTERS: (
        "slice:sharedCounters",
        "slice:perDeviceNodeSelection",
        "slice:devices[].consumesCounters",
        "slice:devices[].nodeName",
        "slice:devices[].nodeSelector",
        "slice:devices[].allNodes",
    ),
    SHARES: (
        "slice:devices[].allowMultipleAllocations",
        "slice:devices[].capacity{}.requestPolicy",
        "claim:constraints[].distinctAttribute",
        *_of_requests("capacity"),
        f"status:{_RESULTS}.shareID",
        f"status:{_RESULTS}.consumedCapacity",
        "status:devices[].shareID",
    ),
    BINDING: (
        "slice:devices[].bindingConditions",
        "slice:devices[].bindingFailureConditions",
        "slice:devices[].bindsToNode",
        f"status:{_RESULTS}.bindingConditions",
        f"status:{_RESULTS}.bindingFailureConditions",
    ),
    DEVICE_STATUS: ("status:devices",),
    EXTENDED: ("class:extendedResourceName",),
    ADMIN: ("claim:requests[].exactly.adminAccess", f"status:{_RESULTS}.adminAccess"),
    ALTERNATIVES: ("claim:requests[].firstAvailable",),
    LISTS: (
        "slice:devices[].attributes{}.ints",
        "slice:devices[].attributes{}.bools",
        "slice:devices[].attributes{}.strings",
        "slice:devices[].attributes{}.versions",
    ),
    ALLOCATABLE: (
        "slice:devices[].nodeAllocatableResources",
        "slice:devices[].nodeAllocatableResourceMappings",
    ),
    SKIPPING: ("slice:skipNodeOperations", f"status:{_RESULTS}.skipNodeOperations"),
    PARTITION_TYPE: ("slice:partitionTypeAttribute",),
    COMPATIBILITY: ("slice:devices[].consumesCounters[].compatibilityGroups",),
    DERIVED: _of_requests("derivedAttributes"),
}
# 1.34 keeps these of a claim although their gates are off.
_KEPT_BY_134 = {*_of_requests("tolerations"), "claim:constraints[].distinctAttribute"}

_UNKNOWN: Mapping[str, tuple[str, ...]] = {
    # Fields that a release does not know, by the release that brought them.
    "1.36": ("DeviceAttribute.ints", "DeviceAttribute.bools", "DeviceAttribute.strings",
             "DeviceAttribute.versions", "Device.nodeAllocatableResourceMappings"),
    "1.37": ("ResourceSliceSpec.skipNodeOperations", "ResourceSliceSpec.partitionTypeAttribute",
             "Device.nodeAllocatableResources", "DeviceCounterConsumption.compatibilityGroups",
             "ExactDeviceRequest.derivedAttributes", "DeviceSubRequest.derivedAttributes",
             "DeviceRequestAllocationResult.skipNodeOperations"),
}  # fmt: skip
_REMOVED: Mapping[str, tuple[str, ...]] = {
    "1.37": ("Device.nodeAllocatableResourceMappings",),
}
_RULES_SERVED = {"1.34": "v1alpha3", "1.35": "v1alpha3", "1.36": "v1beta2", "1.37": "v1"}
"""The version in which taint rules are served, where their gate is on."""


@frozen(kw_only=True)
class Limits:
    """What a server refuses in a slice; the defaults are those of 1.35 and later."""

    taints: int = 16
    """Of a device."""
    effects: tuple[str, ...] = ("NoExecute", "NoSchedule", "None")
    devices: int = 128
    advanced_devices: int = 64
    """Devices, if one of them has a taint, consumes counters or has an attribute that is a list."""
    counters_apart: bool = True
    """No counter sets beside devices in a slice; else a set must be where it is used."""
    values: int | None = 48
    """Attribute values of a device, counted over lists."""
    steps_checked: bool = True
    """Whether a step must be positive and bounds be 64-bit integers; else 0 is divided by."""


_LIMITS: Mapping[str, Limits] = {
    "1.34": Limits(
        taints=4,
        effects=("NoExecute", "NoSchedule"),
        advanced_devices=128,
        counters_apart=False,
        values=None,
        steps_checked=False,
    ),
    "1.35": Limits(values=None, steps_checked=False),
    "1.36": Limits(steps_checked=False),
    "1.37": Limits(),
}


@frozen
class Dialect:
    """A server's API as its release and its gates make it."""

    release: str
    gates: Mapping[str, bool]
    """Every gate that the release has."""

    @classmethod
    def of(cls, release: str, gates: Mapping[str, bool]) -> "Dialect":
        """The dialect of *release* with its default gates, but for *gates*.

        Raises:
            ValueError: There is no such release or gate; a server would not start.
        """
        if release not in RELEASES:
            raise ValueError(f"release {release!r} is not simulated: give one of {RELEASES}")
        at = RELEASES.index(release)
        known = {
            gate: default for gate, row in _DEFAULTS.items() if (default := row[at]) is not None
        }
        if strangers := sorted(gates.keys() - known):
            raise ValueError(f"{release} has no gate {', '.join(strangers)}: leave it out")
        return cls(release, {**known, **gates})

    def on(self, gate: str) -> bool:
        return self.gates.get(gate, False)

    @property
    def version(self) -> str:
        """As in ``/version``."""
        return PATCHES[self.release]

    @property
    def limits(self) -> Limits:
        return _LIMITS[self.release]

    @property
    def rules_version(self) -> str | None:
        """The API version of taint rules; None: they are not served."""
        gate = TAINTS if self.release == "1.34" else RULES
        return _RULES_SERVED[self.release] if self.on(gate) else None

    @property
    def lists_are_null(self) -> bool:
        """Whether a slice without devices says ``devices: null``."""
        return self.release == "1.34"

    @property
    def one_of(self) -> tuple[str, ...]:
        """The fields of which an attribute has one."""
        scalars = ("int", "bool", "string", "version")
        return scalars if self.release in {"1.34", "1.35"} else (*scalars, *_LIST_FIELDS)

    def dropped(self, where: str) -> Mapping[str, tuple[str, ...]]:
        """Paths that are dropped, by the gate that is off.

        Args:
            where: ``slice``, ``claim``, ``status`` or ``class``.
        """
        kept = _KEPT_BY_134 if self.release == "1.34" else set()
        off = (gate for gate in _DROPPED if not self._effective(gate))
        paths = {
            gate: tuple(
                path.partition(":")[2]
                for path in _DROPPED[gate]
                if path.startswith(f"{where}:") and path not in kept
            )
            for gate in off
        }
        return {gate: found for gate, found in paths.items() if found}

    def _effective(self, gate: str) -> bool:
        return self.on(gate) and (gate != BINDING or self.on(DEVICE_STATUS))

    def knows(self, struct: str, field: str) -> bool:
        """Whether the release has the field at all."""
        name, mine = f"{struct}.{field}", RELEASES.index(self.release)
        later = any(name in _UNKNOWN[r] for r in _UNKNOWN if RELEASES.index(r) > mine)
        gone = any(name in _REMOVED[r] for r in _REMOVED if RELEASES.index(r) <= mine)
        return not later and not gone


_LIST_FIELDS = ("ints", "bools", "strings", "versions")


def everything_on(release: str) -> Dialect:
    """The dialect of *release* with every gate on."""
    plain = Dialect.of(release, {})
    return evolve(plain, gates=dict.fromkeys(plain.gates, True))

"""The policy file as values, with every default. Not here: how it is read and checked."""

from collections.abc import Mapping
from enum import StrEnum

import attrs

from accelkit.core import units
from accelkit.core.values import Enforcement, FrozenMap, Severity, freeze

Bytes = units.Bytes
Seconds = units.Seconds

ONE_OR_MORE = {"lenient": True}
"""Metadata of fields where one alternative may stand without its list."""


class Isolation(StrEnum):
    AUTO = "auto"
    THREAD = "thread"
    PROCESS = "process"


class Inject(StrEnum):
    DIRECT = "direct"
    CDI = "cdi"


class Divide(StrEnum):
    NONE = "none"
    EQUAL = "equal"
    REQUESTED = "requested"


class Timeslice(StrEnum):
    DEFAULT = "default"
    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"


class Place(StrEnum):
    """Which shares go together."""

    PACKED = "packed"
    DISTRIBUTED = "distributed"
    SPREAD = "spread"


class Register(StrEnum):
    """How a device plugin makes itself known."""

    AUTO = "auto"
    WATCHER = "watcher"
    SOCKET = "socket"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Range:
    """Amounts from *at_least* to *at_most*, both included; None: no bound."""

    at_least: Bytes | None = None
    at_most: Bytes | None = None


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Selection:
    """Which devices, as data: all keys must match, lists are alternatives, strings are globs."""

    vendor: tuple[str, ...] = attrs.field(default=(), metadata=ONE_OR_MORE)
    kind: tuple[str, ...] = attrs.field(default=(), metadata=ONE_OR_MORE)
    product: tuple[str, ...] = attrs.field(default=(), metadata=ONE_OR_MORE)
    name: tuple[str, ...] = attrs.field(default=(), metadata=ONE_OR_MORE)
    pci: tuple[str, ...] = attrs.field(default=(), metadata=ONE_OR_MORE)
    """PCI address: dddd:bb:dd.f in lower case."""
    profile: tuple[str, ...] = attrs.field(default=(), metadata=ONE_OR_MORE)
    """Of a partition; a whole device has none."""
    partition: bool | None = None
    memory: Range | None = None
    attributes: FrozenMap[str, tuple[str, ...]] = attrs.field(
        default=FrozenMap(), metadata=ONE_OR_MORE
    )
    """Attribute id to what its text may be: true, 90 and 580.65.6 are compared as written."""
    node: tuple[str, ...] = attrs.field(default=(), metadata=ONE_OR_MORE)
    """Name of the Kubernetes node."""
    any: tuple["Selection", ...] = ()
    all: tuple["Selection", ...] = ()
    not_: "Selection | None" = None
    """Written ``not``."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Sharing:
    """How many use a device at once, and what each gets."""

    shares: int = 1
    divide: Divide = Divide.NONE
    enforce: Enforcement = Enforcement.NONE
    unit: Bytes = Bytes(1 << 30)
    timeslice: Timeslice = Timeslice.DEFAULT
    place: Place = Place.DISTRIBUTED
    claims_may_ask: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Offer:
    """Which devices, through which backend, on which terms."""

    name: str
    """DNS label of at most 40 characters."""
    select: Selection = Selection()
    through: str = "kubelet"
    resource: str = ""
    """Template over {domain} {kind} {profile}; empty: the default of *resource_of*."""
    extended_resource: str = ""
    inject: Inject = Inject.DIRECT
    sharing: Sharing = Sharing()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Paths:
    """Where things are; host paths."""

    host: str = "/"
    kubelet: str = "/var/lib/kubelet"
    pod_resources: str = ""
    """Empty: ``<kubelet>/pod-resources/kubelet.sock``."""
    cdi: str = "/var/run/cdi"
    run: str = "/run/accelkit"

    @property
    def pod_resources_socket(self) -> str:
        return self.pod_resources or f"{self.kubelet}/pod-resources/kubelet.sock"

    @property
    def plugins_registry(self) -> str:
        return f"{self.kubelet}/plugins_registry"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class VendorPolicy:
    """One vendor's block; *options* is read as the vendor's own class later."""

    name: str
    enabled: bool = True
    isolation: Isolation = Isolation.AUTO
    deadline_scale: float = 1.0
    options: Mapping[str, object] = attrs.field(factory=dict, hash=False)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Read:
    """Periods of the agent's reads."""

    inventory: Seconds = Seconds(30)
    health: Seconds = Seconds(10)
    holdings: Seconds = Seconds(10)
    telemetry: Seconds = Seconds(15)
    debounce: Seconds = Seconds(0.5)
    reconcile: Seconds = Seconds(600)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Expect:
    """How many devices a node must have to count as ready."""

    select: Selection = Selection()
    count: int


class PartitioningHow(StrEnum):
    NONE = "none"
    LAYOUT = "layout"
    MODE = "mode"
    DYNAMIC = "dynamic"


class Foreign(StrEnum):
    KEEP = "keep"
    DESTROY = "destroy"


class When(StrEnum):
    IDLE = "idle"
    DRAINED = "drained"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Partitioning:
    """How selected devices are cut."""

    select: Selection = Selection()
    how: PartitioningHow = PartitioningHow.NONE
    layout: str = ""
    mode: str = ""
    profiles: tuple[str, ...] = ()
    foreign: Foreign = Foreign.KEEP
    when: When = When.IDLE


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Flap:
    changes: int = 3
    within: Seconds = Seconds(600)
    hold: Seconds = Seconds(1800)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class SeverityOverride:
    vendor: str
    code: str
    severity: Severity


@attrs.frozen(kw_only=True, field_transformer=freeze)
class HealthPolicy:
    grace_for_unknown: Seconds = Seconds(30)
    recover_after: Seconds = Seconds(60)
    flap: Flap = Flap()
    overrides: tuple[SeverityOverride, ...] = ()
    evict: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class KubeletPolicy:
    directory: str = ""
    """Empty: ``<kubelet>/device-plugins``."""
    register: Register = Register.AUTO


@attrs.frozen(kw_only=True, field_transformer=freeze)
class DraPolicy:
    drivers: FrozenMap[str, str] = FrozenMap()
    list_attributes: bool = False
    metadata: bool = False
    status_devices: bool = False

    def driver_of(self, vendor: str) -> str:
        """The name of the driver for devices of *vendor*."""
        return self.drivers.get(vendor, f"{vendor}.accelkit.dev")


@attrs.frozen(kw_only=True, field_transformer=freeze)
class ExtendedPolicy:
    check: bool = True


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Backends:
    kubelet: KubeletPolicy = KubeletPolicy()
    dra: DraPolicy = DraPolicy()
    extended: ExtendedPolicy = ExtendedPolicy()


class KubeClient(StrEnum):
    AUTO = "auto"
    LEAN = "lean"
    OFFICIAL = "official"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Kube:
    client: KubeClient = KubeClient.AUTO
    config: str = "in-cluster"
    """in-cluster, a kubeconfig path, or none."""
    timeout: Seconds = Seconds(10)


class Page(StrEnum):
    LOCAL = "local"
    LISTEN = "listen"
    NONE = "none"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Http:
    listen: str = ":9445"
    """host:port, :port, or empty for none; port 0: any."""
    page: Page = Page.LOCAL


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Labels:
    file: str = "none"
    names: tuple[str, ...] = ("accelkit",)


class TelemetryNames(StrEnum):
    OTEL = "otel"
    DCGM = "dcgm"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Telemetry:
    """Under which names measures are written."""

    names: tuple[TelemetryNames, ...] = (TelemetryNames.OTEL,)


class EventsEnabled(StrEnum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Events:
    enabled: EventsEnabled = EventsEnabled.AUTO
    per_minute: int = 20


class LogFormat(StrEnum):
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Logging:
    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.JSON


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Shutdown:
    wait_for_claims: Seconds = Seconds(0)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Release:
    give_up_after: Seconds = Seconds(600)


DEFAULT_OFFERS = (Offer(name="all"),)
API_VERSION = "accelkit.dev/v1"
KIND = "NodePolicy"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Policy:
    """What the operator wants of a node: the whole file."""

    api_version: str = API_VERSION
    kind: str = KIND
    paths: Paths = Paths()
    vendors: tuple[VendorPolicy, ...] = ()
    """Empty: every installed plugin whose hardware is present."""
    read: Read = Read()
    only: Selection = Selection()
    expect: tuple[Expect, ...] = ()
    layouts: FrozenMap[str, FrozenMap[str, int]] = FrozenMap()
    partitioning: tuple[Partitioning, ...] = ()
    offers: tuple[Offer, ...] = DEFAULT_OFFERS
    health: HealthPolicy = HealthPolicy()
    backends: Backends = Backends()
    kube: Kube = Kube()
    http: Http = Http()
    labels: Labels = Labels()
    telemetry: Telemetry = Telemetry()
    events: Events = Events()
    logging: Logging = Logging()
    shutdown: Shutdown = Shutdown()
    release: Release = Release()

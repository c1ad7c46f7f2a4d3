from accelkit.core.allocation import (
    ContainerEdits as ContainerEdits,
)
from accelkit.core.allocation import (
    Edits as Edits,
)
from accelkit.core.allocation import (
    Finding as Finding,
)
from accelkit.core.allocation import (
    Grant as Grant,
)
from accelkit.core.allocation import (
    Granted as Granted,
)
from accelkit.core.allocation import (
    Hook as Hook,
)
from accelkit.core.allocation import (
    Mount as Mount,
)
from accelkit.core.allocation import (
    Sample as Sample,
)
from accelkit.core.allocation import (
    Setting as Setting,
)
from accelkit.core.errors import (
    AccelkitError as AccelkitError,
)
from accelkit.core.errors import (
    AccessDenied as AccessDenied,
    ConfigError as ConfigError,
)
from accelkit.core.errors import (
    DriverNotReady as DriverNotReady,
)
from accelkit.core.errors import (
    LibraryMissing as LibraryMissing,
)
from accelkit.core.errors import (
    MissingParts as MissingParts,
)
from accelkit.core.errors import (
    ModelError as ModelError,
)
from accelkit.core.errors import (
    NotThere as NotThere,
)
from accelkit.core.errors import (
    SourceError as SourceError,
)
from accelkit.core.errors import (
    SourceTimeout as SourceTimeout,
)
from accelkit.core.errors import (
    StartOver as StartOver,
)
from accelkit.core.hooks import (
    hookimpl as hookimpl,
)
from accelkit.core.host import (
    Finished as Finished,
)
from accelkit.core.host import (
    Host as Host,
)
from accelkit.core.host import (
    Stat as Stat,
)
from accelkit.core.model import (
    Condition as Condition,
)
from accelkit.core.model import (
    Device as Device,
)
from accelkit.core.model import (
    DeviceId as DeviceId,
)
from accelkit.core.model import (
    DeviceNode as DeviceNode,
)
from accelkit.core.model import (
    Event as Event,
)
from accelkit.core.model import (
    Evidence as Evidence,
)
from accelkit.core.model import (
    Group as Group,
)
from accelkit.core.model import (
    Holder as Holder,
)
from accelkit.core.model import (
    Holding as Holding,
)
from accelkit.core.model import (
    Link as Link,
)
from accelkit.core.model import (
    Locality as Locality,
)
from accelkit.core.model import (
    Mode as Mode,
)
from accelkit.core.model import (
    Placement as Placement,
)
from accelkit.core.model import (
    Profile as Profile,
)
from accelkit.core.model import (
    Unreadable as Unreadable,
)
from accelkit.core.pci import (
    PciFunction as PciFunction,
)
from accelkit.core.pci import (
    char_major as char_major,
)
from accelkit.core.pci import (
    cpu_nodes as cpu_nodes,
)
from accelkit.core.pci import (
    numa_of as numa_of,
)
from accelkit.core.pci import (
    pci_functions as pci_functions,
)
from accelkit.core.pci import (
    pcie_root as pcie_root,
)
from accelkit.core.pci import (
    quantity as quantity,
)
from accelkit.core.policy import (
    Sharing as Sharing,
)
from accelkit.core.tables import (
    FunctionTable as FunctionTable,
)
from accelkit.core.values import (
    Enforcement as Enforcement,
)
from accelkit.core.values import (
    FrozenMap as FrozenMap,
)
from accelkit.core.values import (
    GroupRule as GroupRule,
)
from accelkit.core.values import (
    HolderKind as HolderKind,
)
from accelkit.core.values import (
    LinkKind as LinkKind,
)
from accelkit.core.values import (
    Scope as Scope,
)
from accelkit.core.values import (
    Severity as Severity,
)
from accelkit.core.values import (
    Version as Version,
)
from accelkit.core.values import (
    dns_label as dns_label,
)
from accelkit.core.vendor import (
    Access as Access,
)
from accelkit.core.vendor import (
    PciMatch as PciMatch,
)
from accelkit.core.vendor import (
    Signal as Signal,
)
from accelkit.core.vendor import (
    Signals as Signals,
)
from accelkit.core.vendor import (
    SupportsDiagnosis as SupportsDiagnosis,
)
from accelkit.core.vendor import (
    SupportsEvents as SupportsEvents,
)
from accelkit.core.vendor import (
    SupportsGroups as SupportsGroups,
)
from accelkit.core.vendor import (
    SupportsHealth as SupportsHealth,
)
from accelkit.core.vendor import (
    SupportsHolders as SupportsHolders,
)
from accelkit.core.vendor import (
    SupportsLinks as SupportsLinks,
)
from accelkit.core.vendor import (
    SupportsPartitioning as SupportsPartitioning,
)
from accelkit.core.vendor import (
    SupportsPreparation as SupportsPreparation,
)
from accelkit.core.vendor import (
    SupportsSignals as SupportsSignals,
)
from accelkit.core.vendor import (
    SupportsTelemetry as SupportsTelemetry,
)
from accelkit.core.vendor import (
    Vendor as Vendor,
)

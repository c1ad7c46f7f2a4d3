from accelkit.core.allocation import (
    ContainerEdits as ContainerEdits,
    Edits as Edits,
    Finding as Finding,
    Grant as Grant,
    Granted as Granted,
    Hook as Hook,
    Mount as Mount,
    Sample as Sample,
    Setting as Setting,
    equal_share as equal_share,
)
from accelkit.core.device_files import (
    file_finding as file_finding,
)
from accelkit.core.errors import (
    AccelkitError as AccelkitError,
    AccessDenied as AccessDenied,
    ConfigError as ConfigError,
    ConfigRefused as ConfigRefused,
    DriverNotReady as DriverNotReady,
    IllegalSet as IllegalSet,
    LibraryMissing as LibraryMissing,
    MissingParts as MissingParts,
    ModeBusy as ModeBusy,
    ModelError as ModelError,
    NeedsReset as NeedsReset,
    NotThere as NotThere,
    PartitionError as PartitionError,
    PartitionInUse as PartitionInUse,
    PlaceOccupied as PlaceOccupied,
    SourceError as SourceError,
    SourceTimeout as SourceTimeout,
    StartOver as StartOver,
    UnsatisfiableLayout as UnsatisfiableLayout,
)
from accelkit.core.hooks import (
    hookimpl as hookimpl,
)
from accelkit.core.host import (
    Finished as Finished,
    Host as Host,
    Stat as Stat,
)
from accelkit.core.model import (
    Condition as Condition,
    Device as Device,
    DeviceId as DeviceId,
    DeviceNode as DeviceNode,
    Event as Event,
    Evidence as Evidence,
    Group as Group,
    Holder as Holder,
    Holding as Holding,
    Link as Link,
    Locality as Locality,
    Mode as Mode,
    Placement as Placement,
    Profile as Profile,
    Unreadable as Unreadable,
)
from accelkit.core.pci import (
    PciFunction as PciFunction,
    char_major as char_major,
    cpu_nodes as cpu_nodes,
    numa_of as numa_of,
    pci_functions as pci_functions,
    pcie_root as pcie_root,
    quantity as quantity,
    switch_links as switch_links,
)
from accelkit.core.policy import (
    Divide as Divide,
    Sharing as Sharing,
    Timeslice as Timeslice,
)
from accelkit.core.processes import (
    holders_of as holders_of,
)
from accelkit.core.tables import (
    FunctionTable as FunctionTable,
)
from accelkit.core.values import (
    Enforcement as Enforcement,
    FrozenMap as FrozenMap,
    GroupRule as GroupRule,
    HolderKind as HolderKind,
    LinkKind as LinkKind,
    Scope as Scope,
    Severity as Severity,
    Version as Version,
    dns_label as dns_label,
    is_host_path as is_host_path,
)
from accelkit.core.vendor import (
    Access as Access,
    PciMatch as PciMatch,
    Signal as Signal,
    Signals as Signals,
    SupportsDiagnosis as SupportsDiagnosis,
    SupportsEvents as SupportsEvents,
    SupportsGroups as SupportsGroups,
    SupportsHealth as SupportsHealth,
    SupportsHolders as SupportsHolders,
    SupportsLinks as SupportsLinks,
    SupportsPartitioning as SupportsPartitioning,
    SupportsPreparation as SupportsPreparation,
    SupportsSignals as SupportsSignals,
    SupportsTelemetry as SupportsTelemetry,
    Vendor as Vendor,
)

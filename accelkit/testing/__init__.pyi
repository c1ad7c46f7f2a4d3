from accelkit.testing.faults import (
    Fault as Fault,
    duration as duration,
    read_faults as read_faults,
)
from accelkit.testing.hosts import open_host as open_host
from accelkit.testing.machine_host import MachineHost as MachineHost
from accelkit.testing.machines import (
    Entry as Entry,
    File as File,
    Function as Function,
    Json as Json,
    Line as Line,
    Link as Link,
    Live as Live,
    Machine as Machine,
    Node as Node,
    Part as Part,
    State as State,
    pointee as pointee,
)
from accelkit.testing.pasted import (
    Cut as Cut,
    Likeness as Likeness,
    Looks as Looks,
    Output as Output,
    Told as Told,
    Unit as Unit,
    nearest as nearest,
)
from accelkit.testing.record import MOST_UNITS as MOST_UNITS
from accelkit.testing.simulate import play as play, set_faults as set_faults, set_state as set_state
from accelkit.testing.sysfs import (
    CPUS_PER_NODE as CPUS_PER_NODE,
    NUMA_NODES as NUMA_NODES,
    PciPlace as PciPlace,
    extended_minor as extended_minor,
    part_place as part_place,
    pci_function as pci_function,
    pci_place as pci_place,
)

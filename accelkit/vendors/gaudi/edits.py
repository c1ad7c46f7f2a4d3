"""What a container needs: nodes of each card, and words that describe the set. Not here: holders.

Source: Intel resource drivers for Kubernetes 0.11, pkg/gaudi/cdihelpers; the Habana device plugin,
Allocate; Intel Gaudi documentation, "Multiple Dockers Each with a Single Workload".
"""

from accelkit import (
    ContainerEdits,
    Device,
    DeviceNode,
    Edits,
    FrozenMap,
    Grant,
    Hook,
    Host,
    MissingParts,
    Mount,
)
from accelkit.vendors.gaudi import facts
from accelkit.vendors.gaudi.cards import index_of, node_of

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def make_edits(host: Host, grant: Grant) -> Edits:
    """Nodes for each card; for the set its lists, its network addresses and one hook.

    Raises:
        MissingParts: A node is not there, or a card of a set does not tell its module id.
    """
    devices = tuple({g.device.id: g.device for g in grant.granted}.values())
    each = {device.id: ContainerEdits(nodes=_nodes(host, device)) for device in devices}
    if not devices:
        return Edits()
    whole = ContainerEdits(env=_variables(devices), mounts=_mounts(host), hooks=_hooks(host))
    return Edits(each=FrozenMap(each), whole=whole)


def _nodes(host: Host, device: Device) -> tuple[DeviceNode, ...]:
    for node in device.nodes:
        if not host.exists(node.on_host):
            raise MissingParts(
                f"{device.id}: {node.on_host} is not there",
                remedy="wait until the driver has reset the card, or reload habanalabs",
            )
    return device.nodes


def _variables(devices: tuple[Device, ...]) -> FrozenMap[str, str]:
    """The set by the driver's numbers, by its nodes and by its modules, each in the set's order.

    Never "all": a second container that says so takes the network of the first.

    Raises:
        MissingParts: One of several cards does not tell its module id.
    """
    names = [device.handle or "" for device in devices]
    found = {
        "HABANA_VISIBLE_DEVICES": ",".join(str(index_of(name)) for name in names),
        "HL_VISIBLE_DEVICES": ",".join(node_of(name) for name in names),
    }
    modules = [device.attributes.get("moduleId") for device in devices]
    if None not in modules:
        found["HABANA_VISIBLE_MODULES"] = ",".join(str(module) for module in modules)
    elif len(devices) > 1:
        silent = devices[modules.index(None)]
        raise MissingParts(
            f"{silent.id}: the driver does not tell its module id, without which cards do not "
            "find each other",
            remedy="update habanalabs, or ask for one card",
        )
    return FrozenMap(found)


def _mounts(host: Host) -> tuple[Mount, ...]:
    if not host.exists(facts.GAUDINET):
        return ()
    return (Mount(host_path=facts.GAUDINET, container_path=facts.GAUDINET),)


def _hooks(host: Host) -> tuple[Hook, ...]:
    """The program that moves network interfaces; once for the set, or the second call fails."""
    program = hook_program(host)
    if program is None:
        return ()
    folder, _, name = program.rpartition("/")
    return (
        Hook(
            name="createRuntime",
            path=program,
            args=(name, "createRuntime"),
            env=(f"PATH={_PATH}:{folder}",),
        ),
    )


def hook_program(host: Host) -> str | None:
    """Where the host has the maker's hook; None: it has none."""
    return next((path for path in facts.HOOKS if host.exists(path)), None)

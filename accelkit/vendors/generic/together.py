"""What cannot be in one container. Not here: what each device brings."""

from collections.abc import Mapping

from accelkit import ContainerEdits, DeviceId, IllegalSet


def check_places(each: Mapping[DeviceId, ContainerEdits]) -> None:
    """Refuse what cannot be in one container.

    Raises:
        IllegalSet: Two files have one place there.
    """
    there: dict[str, str] = {}
    for edits in each.values():
        held: list[tuple[str, str]] = [(node.path, node.on_host) for node in edits.nodes]
        held += [(mount.container_path, mount.host_path) for mount in edits.mounts]
        for place, path in held:
            if there.setdefault(place, path) != path:
                raise IllegalSet(
                    f"{', '.join(map(str, each))}: {there[place]} and {path} cannot both be "
                    f"{place} in a container",
                    remedy="request them one a container, or let containerPath end in /",
                )


def check_variables(each: Mapping[DeviceId, ContainerEdits]) -> None:
    """Refuse devices of which one would silently lose its variable.

    Raises:
        IllegalSet: Two rules give one variable two values.
    """
    told: dict[str, str] = {}
    for edits in each.values():
        for name, value in edits.env.items():
            if told.setdefault(name, value) != value:
                raise IllegalSet(
                    f"{', '.join(map(str, each))}: {name} cannot be both {told[name]!r} and "
                    f"{value!r} in a container",
                    remedy="request them one a container, or let their rules name two variables",
                )

"""What cannot be in one container. Not here: what each device brings."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from accelkit import ContainerEdits, DeviceId, IllegalSet


def check_places(each: Mapping[DeviceId, ContainerEdits]) -> None:
    """Refuse what cannot be in one container.

    Raises:
        IllegalSet: Two files have one place there.
    """
    if (found := _clash(each, _places)) is not None:
        place, one, other = found
        raise IllegalSet(
            f"{', '.join(map(str, each))}: {one} and {other} cannot both be {place} in a container",
            remedy="let containerPath end in /, or let their rules name two places"
            if len(each) == 1
            else "request them one a container, or let containerPath end in /",
        )


def check_variables(each: Mapping[DeviceId, ContainerEdits]) -> None:
    """Refuse devices of which one would silently lose its variable.

    Raises:
        IllegalSet: Two rules give one variable two values.
    """
    if (found := _clash(each, lambda edits: edits.env.items())) is not None:
        name, one, other = found
        raise IllegalSet(
            f"{', '.join(map(str, each))}: {name} cannot be both {one!r} and {other!r} in a "
            "container",
            remedy="request them one a container, or let their rules name two variables",
        )


def _places(edits: ContainerEdits) -> Iterator[tuple[str, str]]:
    """Where files are in the container, and on the host."""
    yield from ((node.path, node.on_host) for node in edits.nodes)
    yield from ((mount.container_path, mount.host_path) for mount in edits.mounts)


def _clash(
    each: Mapping[DeviceId, ContainerEdits],
    told: Callable[[ContainerEdits], Iterable[tuple[str, str]]],
) -> tuple[str, str, str] | None:
    """The first key that is told with two values, and both of them; None: there is none."""
    known: dict[str, str] = {}
    for edits in each.values():
        for key, value in told(edits):
            if known.setdefault(key, value) != value:
                return key, known[key], value
    return None

"""Looking into objects of the API server: whatever stands there, nothing breaks."""

from collections.abc import Iterator, Mapping

from accelkit.core.kube import Json

_NOTHING: Json = {}


def at(tree: object, *keys: str) -> object:
    """What stands at *keys*, one inside the other; None: nothing does."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def text(tree: object, *keys: str) -> str:
    """The text at *keys*; empty: there is none."""
    found = at(tree, *keys)
    return found if isinstance(found, str) else ""


def mapping(tree: object, *keys: str) -> Json:
    """The mapping at *keys*; empty: there is none."""
    found = at(tree, *keys)
    return found if isinstance(found, Mapping) else _NOTHING


def items(tree: object, *keys: str) -> Iterator[object]:
    """Each item of the list at *keys*."""
    found = at(tree, *keys)
    if isinstance(found, (list, tuple)):
        yield from found


def texts(tree: object, *keys: str) -> tuple[str, ...]:
    """The texts in the list at *keys*."""
    return tuple(item for item in items(tree, *keys) if isinstance(item, str))

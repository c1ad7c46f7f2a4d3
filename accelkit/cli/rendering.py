"""What backends make of a view, as objects to print. Not here: how they are printed."""

import attrs

from accelkit.cli.node import NodeReading
from accelkit.core.errors import ConfigError
from accelkit.core.kube import Json
from accelkit.core.model import Problem
from accelkit.core.values import freeze

LATEST = "1.37"


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Rendered:
    """Objects of Kubernetes, and what keeps devices out of them."""

    objects: tuple[Json, ...] = attrs.field(hash=False)
    problems: tuple[Problem, ...]
    good: bool = True
    """Whether an API server would take them."""


def document_of(found: NodeReading, backend: str) -> object:
    """What *backend* makes of the view that was *found*.

    Raises:
        ConfigError: No such backend is installed.
    """
    factory = found.registry.backends.get(backend)
    if factory is None:
        known = ", ".join(found.registry.backends) or "none"
        raise ConfigError([("backend", f"{backend!r} is not installed; there are: {known}")])
    return factory.create(found.policy).render(found.view)


def slices(found: NodeReading, release: str = LATEST) -> Rendered:
    """The slices of the view that was *found*, for an API server of a *release*.

    Raises:
        ConfigError: The release is not known.
    """
    from accelkit.backends.dra.checking import check_pool  # noqa: PLC0415 - for one command
    from accelkit.backends.dra.dialect import of_release  # noqa: PLC0415 - see above
    from accelkit.backends.dra.document import render  # noqa: PLC0415 - see above
    from accelkit.backends.dra.objects import pool_objects  # noqa: PLC0415 - see above
    from accelkit.backends.dra.slices_driver import INVALID  # noqa: PLC0415 - see above

    document = render(found.view, found.policy.backends.dra, of_release(release))
    refused = tuple(
        Problem(subject=driver, code=INVALID, reason=fault, remedy="report it")
        for driver, pool in document.pools.items()
        for fault in check_pool(pool)
    )
    return Rendered(
        objects=tuple(item for pool in document.pools.values() for item in pool_objects(pool)),
        problems=(*found.view.snapshot.problems, *document.problems, *refused),
        good=not refused,
    )


def classes(found: NodeReading) -> Rendered:
    """The device classes that extended resources of the view that was *found* need."""
    from accelkit.backends.extended.document import class_object, render  # noqa: PLC0415 - for one command

    wanted = render(found.view, found.policy.backends.dra)
    return Rendered(
        objects=tuple(map(class_object, wanted.values())),
        problems=found.view.snapshot.problems,
    )

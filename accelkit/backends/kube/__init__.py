"""The API server: two transports behind one port. Not here: what backends ask it.

Cheap to import: what talks to a server is loaded when something is asked.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from accelkit.core.kube import KubePort
from accelkit.core.policy import Kube

if TYPE_CHECKING:
    from accelkit.backends.kube.transport import Transport

IN_CLUSTER = "in-cluster"
NONE = "none"


def connect(
    kube: Kube,
    *,
    user_agent: str = "",
    count: Callable[[str, str, str], None] = lambda _verb, _resource, _code: None,
) -> KubePort | None:
    """Reach the API server as the policy says; nothing is read or opened before it is asked.

    Args:
        kube: The policy's block.
        user_agent: How requests call their client; empty: ``accelkit/VERSION``.
        count: Told of every request on the loop: its verb, its resource and the code of its
            answer, which is ``error`` where none came.

    Returns:
        The port; None if the policy wants none.
    """
    if kube.config == NONE:
        return None
    from accelkit.backends.kube.objects import Objects  # noqa: PLC0415 - see the module's docstring

    def open_transport() -> "Transport":
        from accelkit.backends.kube.choice import choose  # noqa: PLC0415 - see above

        return choose(kube, user_agent)

    return Objects(open_transport, timeout_s=float(kube.timeout), count=count)

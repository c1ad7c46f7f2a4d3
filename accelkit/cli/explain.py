"""`accelkit explain`: why a claim or a pod has devices, or none. Not here: how that is found."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from accelkit.backends.dra.explain import Explanation
    from accelkit.core.kube import KubePort

TIMEOUT_S = 30.0

_CONFIG = click.option(
    "--kubeconfig",
    metavar="FILE",
    help="How the API server is reached.  [default: $KUBECONFIG, else in-cluster, else"
    " ~/.kube/config]",
)


@click.group("explain")
def command() -> None:
    """Say why a claim or a pod has its devices, or what can be seen of why it has none.

    Read access to the claim or pod and to device classes and slices is enough; claims of other
    namespaces, nodes and events are taken into account where they can be read.
    """


@command.command(
    "claim", short_help="Say it of a claim.", epilog="Example: accelkit explain claim default/train"
)
@click.argument("name", metavar="NAMESPACE/NAME")
@_CONFIG
def claim(*, name: str, kubeconfig: str | None) -> int:
    """Say what CLAIM has, or for each of its requests which devices it can have and why not others.

    Ends with 1 if it is not allocated, or not there.
    """
    from accelkit.backends.dra.explaining import explain_claim_of  # noqa: PLC0415 - help does without

    return _explain(explain_claim_of, name, kubeconfig)


@command.command(
    "pod",
    short_help="Say it of a pod and its claims.",
    epilog="Example: accelkit explain pod default/train-0",
)
@click.argument("name", metavar="NAMESPACE/NAME")
@_CONFIG
def pod(*, name: str, kubeconfig: str | None) -> int:
    """Say the same of every claim of POD, and of the extended resources that it asks for.

    Ends with 1 if it does not run, or is not there.
    """
    from accelkit.backends.dra.explaining import explain_pod_of  # noqa: PLC0415 - help does without

    return _explain(explain_pod_of, name, kubeconfig)


def _explain(
    ask: "Callable[[KubePort, str, str], Awaitable[Explanation]]", name: str, config: str | None
) -> int:
    import asyncio  # noqa: PLC0415 - help does without

    from accelkit.backends.kube import connect  # noqa: PLC0415 - see above
    from accelkit.cli.reading import set_log  # noqa: PLC0415 - see above
    from accelkit.core.policy import Kube, Seconds  # noqa: PLC0415 - see above

    namespace, _, short = name.rpartition("/")
    kube = connect(Kube(config=config or _config(), timeout=Seconds(TIMEOUT_S)))
    assert kube is not None
    set_log(trace=False)

    async def run() -> "Explanation":
        try:
            return await ask(kube, namespace or "default", short)
        finally:
            await kube.close()

    found = asyncio.run(run())
    click.echo(found.verdict)
    for line in found.lines:
        click.echo(f"  {line}")
    return int(not found.good)


def _config() -> str:
    from accelkit.backends.kube import IN_CLUSTER  # noqa: PLC0415 - see _explain

    if given := os.environ.get("KUBECONFIG"):
        return given.partition(os.pathsep)[0]
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return IN_CLUSTER
    return str(Path("~/.kube/config").expanduser())

"""`accelkit doctor`: what is wrong with a node, and what to do. Not here: the rules."""

import asyncio
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, form_option, node_options
from accelkit.cli.showing import Form, document, show_table, show_tree

if TYPE_CHECKING:
    from accelkit.core.allocation import Finding

_WORDS = {True: "yes", False: "perhaps"}


@click.command(
    "doctor",
    epilog="Example: accelkit doctor --host /tmp/node. Ends with 1 if something is surely wrong.",
)
@node_options
@form_option
def command(*, form: Form, **asked: Unpack[Asked]) -> int:
    """Say what keeps devices from being served: symptom, suspect, proof and remedy.

    Vendors look at their drivers, accelkit at the folders that it shares with the kubelet and the
    runtime, unless --host is a simulated machine or a capture. Nothing is changed.
    """
    from accelkit.cli.reading import set_log  # noqa: PLC0415 - help does without

    set_log(trace=asked["trace"])
    with redirect_stdout(sys.stderr):  # what plugins print
        found = asyncio.run(_examine(asked))
    if form is not Form.TABLE:
        from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

        show_tree(document("FindingList", items=to_tree(found)), form)
    elif found:
        rows = ((_WORDS[f.sure], f.symptom, f.suspect, f.proof, f.remedy) for f in found)
        show_table(("SURE", "SYMPTOM", "SUSPECT", "PROOF", "REMEDY"), rows)
    else:
        click.echo("nothing is found to be wrong")
    return int(any(one.sure for one in found))


async def _examine(asked: Asked) -> "tuple[Finding, ...]":
    """Everything that is found, the sure first; what vendors say, before what we see."""
    from accelkit.cli.composing import at_host  # noqa: PLC0415 - help does without
    from accelkit.cli.diagnosing import findings_of, ill_devices, look_around  # noqa: PLC0415 - the same
    from accelkit.cli.loading import load_installed  # noqa: PLC0415 - the same
    from accelkit.cli.node import open_node  # noqa: PLC0415 - the same
    from accelkit.cli.policy_files import read_policy  # noqa: PLC0415 - the same

    registry = load_installed()
    policy = at_host(read_policy(asked["policy"], registry), asked["host"])
    opened = await open_node(policy, asked["node"], registry, trace=asked["trace"])
    try:
        told = [
            finding
            for source in opened.knowledge.sources.values()
            for finding in await source.diagnose()
        ]
        view = opened.reading(policy, registry).view
    finally:
        opened.close()
    ours = look_around(policy) if opened.real else ()
    found = (*told, *findings_of(view.snapshot.problems, told), *ill_devices(view), *ours)
    return tuple(sorted(found, key=lambda one: not one.sure))

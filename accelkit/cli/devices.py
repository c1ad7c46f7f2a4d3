"""`accelkit devices`: what is there, how it is, who has it. Not here: how that is found out."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, form_option, node_options
from accelkit.cli.showing import (
    NONE,
    Form,
    amount,
    counted,
    document,
    show_problems,
    show_table,
    show_tree,
    timeless,
)

if TYPE_CHECKING:
    from accelkit.cli.node import NodeReading
    from accelkit.core.model import Device, DeviceId, Holding, Problem
    from accelkit.core.serde import Tree
    from accelkit.core.view import View

COLUMNS = ("DEVICE", "PRODUCT", "HEALTH", "OFFER", "NUMA", "MEMORY", "HELD BY")
_EMPTY = ("",) * (len(COLUMNS) - 1)
MOST_HOLDERS = 2
"""In a cell; more are counted."""

NOTHING = """\
No accelerators were found on {where}.
  asked:      {asked}
  not there:  {absent}

To offer something that no vendor knows, describe it by rules in a policy, as in
  apiVersion: accelkit.dev/v1
  kind: NodePolicy
  vendors:
  - name: generic
    options: {{devices: [{{name: fuse, match: {{path: /dev/fuse}}}}]}}
and look again with: accelkit devices --policy FILE

To try accelkit without hardware:
  accelkit simulate nvidia --product h100 --count 8 /tmp/node
  accelkit devices --host /tmp/node
"""


@click.command(
    "devices",
    epilog="Example: accelkit devices nvidia/gpu-8f6d… -o yaml. "
    "Ends with 1 if a device is UNHEALTHY, or if DEVICE is not there.",
)
@click.argument("device", required=False)
@node_options
@form_option
def command(*, device: str | None, form: Form, **asked: Unpack[Asked]) -> int:
    """List the accelerators of a host, how they are, and who has them.

    DEVICE is an id, a name or any other id that the device is known by: only it is printed then,
    with its partitions; as YAML or JSON it is the whole value.
    """
    from accelkit.cli.finding import find  # noqa: PLC0415 - help does without
    from accelkit.cli.reading import look  # noqa: PLC0415 - see above

    found = look(asked)
    view = found.view
    agent = _problems_of_agent(asked, view)
    if device is not None:
        one = find(view, device)
        chosen = tuple(d for d in view.snapshot.devices if one.id in {d.id, d.parent})
        if form is not Form.TABLE:
            show_tree(timeless(_item(view, one)), form)
        else:
            _show_rows(view, chosen, few=True)
            _show_details(view, chosen, few=True)
        return _code(view, chosen)
    if form is not Form.TABLE:
        show_tree(_list(view, agent), form)
    elif not view.snapshot.devices:
        _show_nothing(found)
    else:
        _show_rows(view, view.snapshot.devices, few=False)
        _show_details(view, view.snapshot.devices, few=False)
    if form is Form.TABLE:
        _show_problems((*view.snapshot.problems, *agent))
    return _code(view, view.snapshot.devices)


def _code(view: "View", devices: "Iterable[Device]") -> int:
    from accelkit.core.values import Health  # noqa: PLC0415 - see command

    return int(any(view.verdicts[d.id].health is Health.UNHEALTHY for d in devices))


def _list(view: "View", agent: "Iterable[Problem]") -> "Tree":
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    return document(
        "DeviceList",
        node=view.snapshot.node,
        items=[_item(view, device) for device in view.snapshot.devices],
        problems=to_tree((*view.snapshot.problems, *agent)),
    )


def _item(view: "View", device: "Device") -> "dict[str, Tree]":
    """The device, and what the view says of it."""
    import attrs  # noqa: PLC0415 - help does without

    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    tree = to_tree(device)
    assert isinstance(tree, dict)
    return {
        **tree,
        # What damping remembers is in seconds of this boot, and nobody else's.
        "verdict": to_tree(attrs.evolve(view.verdicts[device.id], past=None)),
        "assignment": to_tree(view.assignments[device.id]),
        "holdings": to_tree(tuple(h for h in view.holdings if h.device == device.id)),
    }


def _show_rows(view: "View", devices: "Iterable[Device]", *, few: bool) -> None:
    """The table: whole devices, each before its partitions and what else it could be cut to."""
    from accelkit.cli.finding import in_order  # noqa: PLC0415 - see command
    from accelkit.cli.potential import could_be_made  # noqa: PLC0415 - see command

    several = in_order(devices)
    there = {device.id for device in several}
    parts: dict[DeviceId, list[Device]] = {}
    for device in several:
        if device.parent is not None and device.parent in there:
            parts.setdefault(device.parent, []).append(device)
    holders: dict[DeviceId, list[Holding]] = {}
    for holding in view.holdings:
        holders.setdefault(holding.device, []).append(holding)
    more = could_be_made(view)
    rows = []
    for device in several:
        if device.parent in there:
            continue
        own = sorted(parts.get(device.id, ()), key=lambda d: (d.placement, d.id))
        below = [_row(view, part, holders) for part in own]
        below += [(text, *_EMPTY) for text in _could(more.get(device.id, {}), few=few)]
        rows.append(_row(view, device, holders))
        rows += [(f"├─ {first}", *rest) for first, *rest in below[:-1]]
        rows += [(f"└─ {first}", *rest) for first, *rest in below[-1:]]
    show_table(COLUMNS, rows)


def _could(more: "Mapping[str, int]", *, few: bool) -> "Iterator[str]":
    """What a device could be cut to: of all devices in one word, of *few* each profile."""
    if few:
        yield from (f"+ {profile} at {counted(n, 'place')}" for profile, n in more.items())
    elif more:
        yield f"+ {sum(more.values())} could be made"


def _row(
    view: "View", device: "Device", holders: "Mapping[DeviceId, list[Holding]]"
) -> tuple[str, ...]:
    return (
        str(device.id),
        device.profile or device.product or NONE,
        _health(view, device),
        _offer(view, device),
        NONE if device.locality.numa_node is None else str(device.locality.numa_node),
        amount(device.capacity.get("memory")),
        _held(holders.get(device.id, ())),
    )


def _health(view: "View", device: "Device") -> str:
    from accelkit.core.values import Standing  # noqa: PLC0415 - see command

    health = view.verdicts[device.id].health.value
    present = device.standing is Standing.PRESENT
    return health if present else f"{health} ({device.standing.lower()})"


def _offer(view: "View", device: "Device") -> str:
    given = view.assignments[device.id]
    if given.terms is None:
        return "(stuck)" if device.id in view.stuck else NONE
    shares = f" ×{given.terms.sharing.shares}" if given.terms.sharing.shares > 1 else ""  # noqa: RUF001 - times
    going = " (leaving)" if given.leaving else " (stuck)" if device.id in view.stuck else ""
    return f"{given.terms.name}{shares}{going}"


def _held(holdings: "Iterable[Holding]") -> str:
    names = sorted({_holder(holding) for holding in holdings})
    more = len(names) - MOST_HOLDERS
    return ", ".join(names[:MOST_HOLDERS]) + (f" +{more}" if more > 0 else "") or NONE


def _holder(holding: "Holding") -> str:
    from accelkit.core.values import HolderKind  # noqa: PLC0415 - see command

    holder = holding.holder
    if holder.pod is not None:
        return f"{holder.namespace}/{holder.pod}"
    if holder.claim is not None:
        return f"claim {holder.namespace}/{holder.claim}"
    if holder.kind is HolderKind.CLAIM:  # one whose entry cannot be read
        return f"claim {holder.uid}"
    return f"process {holder.uid}" if holder.uid else holder.kind.lower()


def _show_details(view: "View", devices: "Iterable[Device]", *, few: bool) -> None:
    """Below the table: conditions that people should know of, and why something is not offered."""
    from accelkit.core.values import Severity  # noqa: PLC0415 - see command

    several = tuple(devices)
    rows = [
        (str(d.id), c.code, c.severity.value, c.message or NONE)
        for d in several
        for c in view.verdicts[d.id].reasons
        if few or c.severity is not Severity.INFO
    ]
    if rows:
        click.echo()
        show_table(("DEVICE", "CONDITION", "SEVERITY", "WHAT"), rows)
    whys: dict[str, list[str]] = {}
    cut = {device.parent for device in several}
    for device in several:
        given = view.assignments[device.id]
        # That partitions are offered instead of what they are parts of, the table shows.
        if given.why and (few or device.id not in cut):
            whys.setdefault(given.why, []).append(str(device.id))
    if whys:
        click.echo()
    for why, ids in sorted(whys.items()):
        named = ", ".join(ids) if few or len(ids) <= 3 else counted(len(ids), "device")
        click.echo(f"{named}: {why}")


def _problems_of_agent(asked: Asked, view: "View") -> "tuple[Problem, ...]":
    """What the agent of this node knows beside, such as what its API server does not keep."""
    from accelkit.cli.asking import agent_of  # noqa: PLC0415 - see command
    from accelkit.core.errors import TransportError  # noqa: PLC0415 - see command

    try:
        agent = agent_of(asked)
        told = () if agent is None else agent.problems()
    except TransportError:  # whoever may not ask it still sees devices
        return ()
    return tuple(problem for problem in told if problem not in view.snapshot.problems)


def _show_problems(problems: "tuple[Problem, ...]") -> None:
    if problems:
        click.echo()
    show_problems(problems)


def _show_nothing(found: "NodeReading") -> None:
    """Say what was asked, and what one can do; where vendors failed, their problems say more."""
    where = "this machine" if found.host == "/" else found.host
    if any(problem.vendor for problem in found.view.snapshot.problems):
        click.echo(f"No accelerators are known on {where}: not everything could be read.")
        return
    asked = ", ".join(found.asked) or "no vendor"
    absent = ", ".join(found.absent) or NONE
    click.echo(NOTHING.format(where=where, asked=asked, absent=absent), nl=False)

"""`accelkit health`: why devices are as they are, and that a fault is gone. Asks the agent."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Unpack

import click

from accelkit.cli.options import Asked, form_option, node_options
from accelkit.cli.showing import NONE, Form, counted, show_table, show_tree
from accelkit.core.foreign import printable
from accelkit.core.policy import API_VERSION

if TYPE_CHECKING:
    from accelkit.agent.clearing import Forgotten
    from accelkit.core.model import DeviceId, Evidence
    from accelkit.core.serde import Tree
    from accelkit.core.view import Verdict, View

COLUMNS = ("DEVICE", "STATE", "REASON", "SINCE", "HELD UNTIL", "EVIDENCE")


@click.group(
    "health",
    invoke_without_command=True,
    epilog="Example: accelkit health -o yaml. Ends with 1 if a device is UNHEALTHY.",
)
@node_options
@form_option
@click.pass_context
def command(context: click.Context, /, *, form: Form, **asked: Unpack[Asked]) -> int:
    """Say why devices are as they are, until when they are held down, and what was heard of them.

    The agent of the node is asked.
    """
    if context.invoked_subcommand is not None:
        return 0
    from accelkit.cli.asking import the_agent_of  # noqa: PLC0415 - help does without

    agent = the_agent_of(asked)
    view, evidence = agent.view(), agent.evidence()
    devices = tuple(view.devices)
    if form is Form.TABLE:
        _show(view, evidence, devices)
    else:
        show_tree(_list(view, evidence, devices), form)
    return _code(view, devices)


@command.command(
    "clear",
    short_help="Say that a fault is gone.",
    epilog="Example: accelkit health clear nvidia/gpu-8f6d… xid-79, once the GPU was reset."
    " Ends with 1 if a device that it is about is UNHEALTHY after all.",
)
@click.argument("device", metavar="[VENDOR/]DEVICE")
@click.argument("code", required=False)
@node_options
@form_option
def clear(*, device: str, code: str | None, form: Form, **asked: Unpack[Asked]) -> int:
    """Say that what was wrong with DEVICE is gone: all of it, or CODE alone.

    What was heard of it is forgotten, it is read again, and nothing holds it down any more. What
    its vendor still reads stays. DEVICE may be a vendor: then what is known of that as a whole is
    cleared.
    """
    from accelkit.cli.asking import the_agent_of  # noqa: PLC0415 - help does without

    agent = the_agent_of(asked)
    forgotten = agent.clear(device, code)
    view, evidence = agent.view(), agent.evidence()
    devices = tuple(one for one in forgotten.devices if one in view.devices)
    if form is Form.TABLE:
        _say(forgotten)
        _show(view, evidence, devices)
    else:
        show_tree(_list(view, evidence, devices), form)
    return _code(view, devices)


def _code(view: "View", devices: "Iterable[DeviceId]") -> int:
    from accelkit.core.values import Health  # noqa: PLC0415 - see command

    return int(any(view.verdicts[one].health is Health.UNHEALTHY for one in devices))


def _list(view: "View", evidence: "Iterable[Evidence]", devices: "Collection[DeviceId]") -> "Tree":
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    items: list[Tree] = []
    for device in devices:
        found = _about(view, evidence, device)
        verdict = to_tree(view.verdicts[device])
        assert isinstance(verdict, dict)
        # Seconds of this boot, and what damping remembers in them, say nothing to others.
        told = {key: value for key, value in verdict.items() if key not in {"past", "sinceS"}}
        items.append({"device": str(device), "verdict": told, "evidence": _heard_of(found)})
    others = _others(view, evidence) if len(devices) == len(view.devices) else ()
    kind = {"apiVersion": API_VERSION, "kind": "HealthList"}
    return {**kind, "items": items, "others": _heard_of(others)}


def _heard_of(evidence: "Iterable[Evidence]") -> "Tree":
    import attrs  # noqa: PLC0415 - see command

    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs

    return to_tree(tuple(attrs.evolve(entry, last_s=None) for entry in evidence))


def _say(forgotten: "Forgotten") -> None:
    for entry in forgotten.evidence:
        times = counted(entry.count, "time")
        about = f"{entry.vendor}/{entry.subject}" if entry.subject else entry.vendor
        click.echo(printable(f"forgotten: {entry.code} of {about}, heard {times}"))
    if not forgotten.evidence:
        click.echo("nothing was heard of it that could be forgotten")


def _show(view: "View", evidence: "Iterable[Evidence]", devices: "Collection[DeviceId]") -> None:
    rows = [row for device in devices for row in _rows(view, evidence, device)]
    if len(devices) == len(view.devices):
        for entry in _others(view, evidence):
            about = f"{entry.vendor}/{entry.subject}" if entry.subject else entry.vendor
            rows.append((about, NONE, NONE, NONE, NONE, _heard(entry)))
    if rows:
        show_table(COLUMNS, rows)
    elif not devices and not view.devices:
        click.echo("the agent knows no devices")


def _rows(
    view: "View", evidence: "Iterable[Evidence]", device: "DeviceId"
) -> Iterator[tuple[str, ...]]:
    """One for each reason and each entry of evidence, side by side."""
    verdict = view.verdicts[device]
    reasons = [condition.said for condition in verdict.reasons] or [NONE]
    heard = [_heard(entry) for entry in _about(view, evidence, device)] or [NONE]
    first = (str(device), _state(verdict), _moment(verdict.since), _moment(verdict.until))
    for reason, entry in zip_longest(reasons, heard, fillvalue=""):
        name, state, since, until = first
        yield name, state, reason, since, until, entry
        first = ("", "", "", "")


def _state(verdict: "Verdict") -> str:
    return f"{verdict.health} (too long)" if verdict.overdue else str(verdict.health)


def _heard(entry: "Evidence") -> str:
    times = counted(entry.count, "time")
    return f"{entry.code} by {entry.source}: {times}, last {_moment(entry.last)}"


def _moment(at: datetime | None) -> str:
    return NONE if at is None else at.strftime("%Y-%m-%d %H:%M:%SZ")


def _about(
    view: "View", evidence: "Iterable[Evidence]", device: "DeviceId"
) -> "tuple[Evidence, ...]":
    """What was heard of *device* itself."""
    from accelkit.core.evidence import names_of  # noqa: PLC0415 - see command

    names = names_of(view.devices[device])
    return tuple(e for e in evidence if e.vendor == device.vendor and e.subject in names)


def _others(view: "View", evidence: "Iterable[Evidence]") -> "Iterator[Evidence]":
    """What was heard of vendors as a whole, and of what is no device here."""
    from accelkit.core.evidence import names_of  # noqa: PLC0415 - see command

    known = {(d.id.vendor, name) for d in view.snapshot.devices for name in names_of(d)}
    return (e for e in evidence if (e.vendor, e.subject) not in known)

"""How a choice of devices is told to people. Not here: the choice."""

from collections.abc import Iterator, Mapping

import click

from accelkit.cli.matrix import APART, SELF, WORDS, Pair, closest_links, whole_devices, word_of
from accelkit.cli.picking import Pick
from accelkit.cli.showing import NONE, counted, show_table
from accelkit.core.model import Device, DeviceId, Link
from accelkit.core.values import LinkKind
from accelkit.core.view import View


def show_pick(view: View, answer: Pick) -> None:
    """Print which devices a pod gets, why these, and what others would lose."""
    numbers = {device.id: str(number) for number, device in enumerate(whole_devices(view))}
    best = closest_links(view.snapshot.links)
    click.echo(f"A pod that asks for {answer.size} of {answer.resource} gets")
    devices = [view.devices[answer.devices[name]] for name in answer.ids]
    show_table(
        ("#", "ID", "NUMA", "TO EACH OTHER"),
        (
            (
                numbers[one.root],
                name,
                NONE if one.locality.numa_node is None else str(one.locality.numa_node),
                " ".join(
                    SELF if name == other_name else _word(one, other, best)
                    for other_name, other in zip(answer.ids, devices, strict=True)
                ),
            )
            for name, one in zip(answer.ids, devices, strict=True)
        ),
    )
    click.echo()
    for line in _reasons(answer):
        click.echo(line)
    if answer.alternatives:
        click.echo()
        show_table(
            ("LOSES", "OTHERS LOSE", "INSTEAD"),
            (
                (
                    str(other.loses),
                    str(other.rest_loses),
                    " ".join(_numbered(name, answer.devices, numbers) for name in other.ids),
                )
                for other in answer.alternatives
            ),
        )


def _word(one: Device, other: Device, best: Mapping[Pair, Link]) -> str:
    if one.root == other.root:
        return WORDS[LinkKind.ONDIE][0]
    link = best.get((one.root, other.root))
    return APART if link is None else word_of(link)


def _numbered(name: str, devices: Mapping[str, DeviceId], numbers: Mapping[DeviceId, str]) -> str:
    """The number of a whole device; of anything else its id, which says more."""
    return numbers.get(devices[name], name) if name == devices[name].name else name


def _reasons(answer: Pick) -> Iterator[str]:
    closest = (
        "no other set is closer"
        if answer.exact
        else f"none is closer than {answer.upper}, and perhaps none is that close"
    )
    yield f"closeness {answer.closeness}: {closest} (found by {answer.method})"
    if not answer.legal:
        yield "the vendor cannot run this set: the pod would be refused"
    elif not answer.proposed:
        yield "it is not among the sets that the vendor proposes, none of which is to be had"
    after = ""
    if answer.next_closeness is not None:
        after = f"; the next pod of {answer.size} would get {answer.next_closeness}"
    yield f"left: {counted(len(answer.left), 'id')} of closeness {answer.left_closeness}{after}"
    for name, why in answer.unavailable.items():
        yield f"not to be had: {name}: {why}"
    if answer.others and not answer.alternatives:
        few = answer.compared
        said = "none of them may be used" if few else "too many to compare"
        yield f"instead: {counted(answer.others, 'other set')}, {said}"

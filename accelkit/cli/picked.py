"""How a choice of devices is told to people. Not here: the choice."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from accelkit.cli.deciding import By, Decision
from accelkit.cli.matrix import APART, SELF, WORDS, Pair, closest_links, whole_devices, word_of
from accelkit.cli.picking import Pick
from accelkit.cli.showing import NONE, counted, show_table
from accelkit.core.model import Device, Link
from accelkit.core.values import LinkKind
from accelkit.core.view import View

_WORDS: Mapping[By, str] = {
    By.LINKS: "links",
    By.LINKS_LEFT: "links of what is left",
    By.BUS: "PCIe and NUMA nodes",
    By.BUS_LEFT: "PCIe and NUMA nodes of what is left",
    By.USE: "use of the devices",
    By.USE_LEFT: "use of what is left",
    By.SETS_LEFT: "the vendor's sets that are left whole",
    By.IDS: "ids",
}


def show_pick(view: View, answer: Pick) -> None:
    """Print which devices a pod gets, why these, and what others would lose."""
    order = {device.id: number for number, device in enumerate(whole_devices(view))}
    places = {name: order[view.devices[device].root] for name, device in answer.devices.items()}

    def in_order(ids: Iterable[str]) -> list[str]:
        return sorted(ids, key=lambda name: (places[name], name))

    click.echo(f"A pod that asks for {answer.size} of {answer.resource} gets")
    _show_chosen(view, answer, in_order(answer.ids), places)
    click.echo()
    for line in _reasons(answer):
        click.echo(line)
    if answer.decision.alternatives:
        click.echo()
        show_table(
            ("INSTEAD", "LOSES"),
            (
                (
                    " ".join(_numbered(name, answer, places, view) for name in in_order(other.ids)),
                    f"{other.loses} by {_WORDS[other.by]}"
                    if other.by is not By.IDS
                    else "nothing: the lower ids win",
                )
                for other in answer.decision.alternatives
            ),
        )


def _show_chosen(view: View, answer: Pick, ids: Sequence[str], places: Mapping[str, int]) -> None:
    best = closest_links(view.snapshot.links)
    devices = [view.devices[answer.devices[name]] for name in ids]
    show_table(
        ("#", "ID", "NUMA", "TO EACH OTHER"),
        (
            (
                str(places[name]),
                name,
                NONE if one.locality.numa_node is None else str(one.locality.numa_node),
                " ".join(
                    SELF if name == other_name else _word(one, other, best)
                    for other_name, other in zip(ids, devices, strict=True)
                ),
            )
            for name, one in zip(ids, devices, strict=True)
        ),
    )


def why(decision: Decision) -> tuple[str, ...]:
    """What made the difference, question by question; one that made none is left out.

    The first is always there: whether links decide is what people ask.
    """
    if not decision.compared:
        return ()
    left, lines = decision.usable, []
    if left < decision.sets:
        lines.append(f"{left} of them may be used, or are proposed by the vendor")
    for number, step in enumerate(decision.steps):
        if step.sets < left:
            lines.append(f"by {_WORDS[step.by]}: {step.sets} of {left} are best")
        elif number == 0 and left > 1:
            lines.append(f"by {_WORDS[step.by]}: all are alike")
        left = step.sets
    if left > 1:
        lines.append("by ids: the lowest")
    return tuple(lines)


def _word(one: Device, other: Device, best: Mapping[Pair, Link]) -> str:
    if one.root == other.root:
        return WORDS[LinkKind.ONDIE][0]
    link = best.get((one.root, other.root))
    return APART if link is None else word_of(link)


def _numbered(name: str, answer: Pick, places: Mapping[str, int], view: View) -> str:
    """The number of a whole device; of anything else its id, which says more."""
    device = view.devices[answer.devices[name]]
    return str(places[name]) if (name, device.parent) == (device.id.name, None) else name


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
    for name, reason in answer.unavailable.items():
        yield f"not to be had: {name}: {reason}"
    if answer.decision.sets > 1:
        yield _decided(answer.decision)
        if answer.decision.alternatives:
            yield from (f"  {line}" for line in why(answer.decision))


def _decided(decision: Decision) -> str:
    sets = f"there are {decision.sets} such sets"
    if not decision.compared:
        return f"{sets}, too many to compare"
    return sets if decision.alternatives else f"{sets}; no other may be used"

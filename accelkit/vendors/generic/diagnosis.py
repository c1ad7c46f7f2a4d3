"""Why a rule describes no device, in words. Reads only."""

from collections.abc import Iterable, Iterator

from accelkit import Device, Finding
from accelkit.vendors.generic.files import Files
from accelkit.vendors.generic.finding import Found, find
from accelkit.vendors.generic.options import Match, Rule


def diagnose(files: Files, rules: Iterable[Rule], devices: Iterable[Device]) -> Iterator[Finding]:
    """One finding of each rule of which there is no device.

    None is sure: one policy may be for nodes of several sorts.

    Args:
        files: Of the host.
        rules: The operator's.
        devices: All that the rules describe now.
    """
    used = {device.kind for device in devices}
    owners: dict[str, str] = {}
    for rule in rules:
        found = find(files, rule)
        if rule.name in used:
            owners = {**{one.real: rule.name for one in found if not rule.group}, **owners}
        else:
            proof, remedy = _why(files, rule, found, owners)
            yield Finding(
                symptom=f"no device of the rule {rule.name} is offered",
                suspect="the rule",
                proof=proof,
                remedy=remedy,
            )


def _why(
    files: Files, rule: Rule, found: tuple[Found, ...], owners: dict[str, str]
) -> tuple[str, str]:
    """What is wrong with *rule*, and what helps."""
    first = {owners[one.real] for one in found if one.real in owners}
    if first:
        return (
            f"what it matches belongs to {' and '.join(sorted(first))}, which comes before it",
            "move it up, or let them match less",
        )
    if found:
        scarce = [part.path for part in rule.parts if part.limit and not part.optional]
        return f"no match of {' and '.join(scarce)} is left", "look whether they are there"
    wrong = [told for match in rule.matches if (told := _wrong_sort(files, match)) is not None]
    if wrong:
        return wrong[0]
    return (
        f"nothing is there that fits {' or '.join(map(_shown, rule.matches))}",
        "look whether its driver has made it; on nodes that have none nothing is to be done",
    )


def _wrong_sort(files: Files, match: Match) -> tuple[str, str] | None:
    """What fits a path, and is no device node; or the other way round."""
    if match.path is not None and (others := files.others(match.path)):
        inside = f", or {others[0]}/* by path" if files.is_folder(others[0]) else ""
        return f"{others[0]} is no device node", f"match it by file{inside}"
    if match.file is not None and (nodes := files.nodes(match.file)):
        return f"{nodes[0]} is a device node", "match it by path"
    return None


def _shown(match: Match) -> str:
    if match.pci is not None:
        return f"a PCI function of vendor {match.pci.vendor:#06x}"
    return match.glob or f"a USB device of vendor {match.usb.vendor if match.usb else ''}"

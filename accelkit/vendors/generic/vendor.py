"""Devices by rules: nodes and files that exist, PCI functions, USB devices. Not here: looking."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import ClassVar

from accelkit import (
    Condition,
    ContainerEdits,
    Device,
    Edits,
    Evidence,
    Finding,
    FrozenMap,
    Grant,
    Host,
    Locality,
    MissingParts,
    Mount,
    Severity,
    Signals,
    SupportsDiagnosis,
    SupportsHealth,
    Unreadable,
    Vendor,
)
from accelkit.vendors.generic.diagnosis import diagnose
from accelkit.vendors.generic.files import Files, filled, patterns, placed
from accelkit.vendors.generic.finding import Found, find
from accelkit.vendors.generic.options import GenericOptions, MountRule, NodeRule, Rule
from accelkit.vendors.generic.together import check_places, check_variables


class Generic(Vendor, SupportsHealth, SupportsDiagnosis):
    """Offers what the operator's rules describe; a device is healthy while its files exist."""

    name = "generic"
    domain = "generic.accelkit.dev"
    options = GenericOptions
    attributes: ClassVar[Mapping[str, type]] = {"path": str, "port": str, "serial": str}
    machine = "accelkit.vendors.generic.machine:GenericMachine"

    def __init__(self, options: GenericOptions) -> None:
        super().__init__(options)
        self._rules = {rule.name: rule for rule in options.devices}
        self._names: dict[str, Mapping[tuple[str, str], str]] = {}

    @property
    def signals(self) -> Signals:  # type: ignore[override]  # the options decide
        """Files that the rules name, and the buses that they look at."""
        rules = self._rules.values()
        matches = [match for rule in rules for match in rule.matches]
        paths = {match.glob for match in matches if match.glob is not None}
        paths |= {part.path for rule in rules for part in rule.parts}
        return Signals(
            uevents=tuple(sorted({match.way for match in matches} & {"pci", "usb"})),
            files=tuple(sorted(path for path in paths if "{" not in path)),
        )

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        seen: dict[str, Device] = {}
        taken: set[str] = set()
        for rule in self._rules.values():
            for device in self._devices(Files(host), rule, taken):
                first = seen.setdefault(device.id.name, device)
                if first is device:
                    yield device
                elif first.aliases != device.aliases:
                    yield Unreadable(
                        subject=", ".join(sorted(device.aliases)),
                        code="name-taken",
                        reason=f"{first.id} is {', '.join(sorted(first.aliases))} already",
                        remedy="let one rule match one of them, or make them a group",
                    )

    def _devices(self, files: Files, rule: Rule, taken: set[str]) -> Iterator[Device]:
        """Devices of *rule*, without those of rules before it, whose nodes are *taken*."""
        found = self._find(files, rule)
        if rule.group:
            yield from [self._device(files, rule, rule.name, found, 0)] if found else []
            return
        limited = [part for part in rule.parts if part.limit]
        for turn, one in enumerate(found):
            left = all(part.optional or files.of_turn(part, turn) for part in limited)
            if left and one.real not in taken:
                taken.add(one.real)
                yield self._device(files, rule, one.name, (one,), turn)

    def _find(self, files: Files, rule: Rule) -> tuple[Found, ...]:
        found = find(files, rule, self._names.get(rule.name, {}))
        self._names[rule.name] = {one.plugged: one.name for one in found}
        return found

    def _device(
        self, files: Files, rule: Rule, name: str, found: tuple[Found, ...], turn: int
    ) -> Device:
        places = [one.place for one in found]
        own = (
            files.node(one.node, one.match.container_path, rule.permissions)
            for one in found
            if one.node is not None
        )
        further = (
            files.node(path, part.container_path, part.permissions or rule.permissions)
            for part in rule.further
            for path in _of_part(files, rule, part, places, turn)
        )
        return self.device(
            name,
            kind=rule.name,
            product=found[0].product,
            locality=found[0].locality if len(found) == 1 else Locality(),
            attributes=found[0].attributes if len(found) == 1 else {},
            nodes=(*own, *further),
            aliases=places,
        )

    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        del evidence
        rule = self._rules.get(device.kind)
        if rule is not None and (missing := _missing(Files(host), rule, device)):
            yield Condition(
                code="node-missing",
                severity=Severity.FATAL,
                message=f"{', '.join(missing)} is not there",
            )

    def diagnose(self, host: Host) -> Iterator[Finding]:
        devices = [found for found in self.discover(host) if isinstance(found, Device)]
        return diagnose(Files(host), self._rules.values(), devices)

    def edits(self, host: Host, grant: Grant) -> Edits:
        files = Files(host)
        each = {g.device.id: self._edits(files, g.device) for g in grant.granted}
        check_places(each)
        check_variables(each)
        return Edits(each=FrozenMap(each))

    def _edits(self, files: Files, device: Device) -> ContainerEdits:
        rule = self._rules.get(device.kind)
        if rule is None:
            raise MissingParts(f"{device.id}: its rule is gone")
        if missing := _missing(files, rule, device):
            raise MissingParts(f"{device.id}: {', '.join(missing)} is not there")
        return ContainerEdits(
            nodes=[node for node in device.nodes if files.is_node(node.on_host)],
            env=rule.env,
            mounts=tuple(self._mounts(files, rule, device)),
        )

    def _mounts(self, files: Files, rule: Rule, device: Device) -> Iterator[Mount]:
        places = sorted(device.aliases)
        for match in rule.matches:
            own = (
                [path for path in files.others(match.file) if path in places] if match.file else []
            )
            yield from (_mount(path, match.container_path, match.read_only) for path in own)
        limited = any(part.limit for part in rule.mounts)
        turn = _turn(self._find(files, rule), device) if limited else 0
        for part in rule.mounts:
            paths = _of_part(files, rule, part, places, turn)
            if not (paths or part.optional):
                raise MissingParts(f"{device.id}: others have all that {part.path} is")
            yield from (_mount(path, part.container_path, part.read_only) for path in paths)


def _of_part(
    files: Files, rule: Rule, part: NodeRule | MountRule, places: Iterable[str], turn: int
) -> list[str]:
    """What of *part* a device at *places* has, whose turn it is."""
    if part.limit is not None:
        path = files.of_turn(part, turn)
        return [] if path is None else [path]
    wanted = patterns(rule, [part], places)
    return [path for pattern in wanted for path in files.all_of(part, pattern)]


def _missing(files: Files, rule: Rule, device: Device) -> list[str]:
    """What *device* needs and is not there now."""
    places = sorted(device.aliases)
    optional = [
        placed(part.container_path, path)
        for part in rule.further
        if part.optional
        for path in filled(rule.matches[0], part.path, places)
    ]
    own = [n for n in device.nodes if not any(fnmatchcase(n.path, o) for o in optional)]
    gone = [node.on_host for node in own if not files.is_node(node.on_host)]
    if rule.matches[0].glob is not None:
        gone += [place for place in places if files.look(place) is None]
    for part in rule.parts:
        if not part.optional:
            wanted = patterns(rule, [part], places)
            gone += [pattern for pattern in wanted if not files.all_of(part, pattern)]
    return list(dict.fromkeys(gone))


def _turn(found: tuple[Found, ...], device: Device) -> int:
    """Where *device* comes among those of its rule, from 0 on.

    Raises:
        MissingParts: It is not there any more.
    """
    for turn, one in enumerate(found):
        if one.name == device.id.name:
            return turn
    raise MissingParts(f"{device.id}: {', '.join(sorted(device.aliases))} is not there")


def _mount(path: str, container_path: str, read_only: bool) -> Mount:
    return Mount(
        host_path=path,
        container_path=placed(container_path, path),
        options=("ro" if read_only else "rw", "nosuid", "nodev", "bind"),
    )

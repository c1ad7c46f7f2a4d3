"""Make simulated machines and let things happen to them. Not here: how an agent reads them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from uuid import uuid4

import attrs

from accelkit.core.clock import Clock
from accelkit.core.errors import ConfigError
from accelkit.core.values import FrozenMap
from accelkit.testing.faults import Fault
from accelkit.testing.hosts import LOCK
from accelkit.testing.machines import Machine, Part, State
from accelkit.testing.pasted import Verb
from accelkit.testing.record import MOST_UNITS, NAME, Record
from accelkit.testing.shared import Shared, machine_class, machines, own_state, with_own

ENGINE_VERBS: Mapping[str, str] = {
    "reboot": "reboot",
    "kernel": "kernel TEXT...",
    "uevent": "uevent ACTION DEVPATH KEY=VALUE...",
}
"""Verbs of every machine, each with its usage."""
MOST_LINES = 1000
"""Of the kernel's log, and uevents; older ones are forgotten."""


_DIGITS = 19
"""Of a number that 64 bits hold."""


def simulate(
    vendor: str,
    product: str | None,
    count: int,
    directory: str,
    *,
    seed: int = 0,
    device_nodes: bool = False,
    options: Mapping[str, str] | None = None,
    verbs: Iterable[Verb] = (),
) -> Part:
    """Make a machine in *directory*, or add a part to the machine that is there.

    Args:
        vendor: Name of an installed vendor that brings a machine.
        product: One of its products; None: its first.
        count: Units of the new part.
        directory: Made if it is missing; must be empty or hold a machine.
        seed: Serial numbers and UUIDs are made from it.
        device_nodes: Make real device nodes, which needs root.
        options: What else that vendor's machine can be told.
        verbs: What happens to it at once.

    Returns:
        The new part.

    Raises:
        ConfigError: Something of it cannot be; nothing is changed then.
    """
    part = Part(
        vendor=vendor,
        product=product or machine_class(vendor).products[0],
        count=count,
        seed=seed,
        options=FrozenMap(options or {}),
    )
    if not 1 <= count <= MOST_UNITS:
        raise ConfigError([("count", f"{count} is not from 1 to {MOST_UNITS}")])
    machines((part,))
    _prepare(directory)

    def add(record: Record) -> Record:
        if any(other.vendor == vendor for other in record.parts):
            # Both would have to answer from one library.
            raise ConfigError(
                [(directory, f"has a part of {vendor} already")],
                remedy="take another directory, or remove this one first",
            )
        if record.parts and device_nodes and not record.device_nodes:
            raise ConfigError([(directory, "was made without device nodes")])
        first = sum(other.count for other in record.parts)
        placed = attrs.evolve(part, first=first)
        record = attrs.evolve(record, parts=(*record.parts, placed))
        units = machines((placed,))[0].units()
        for words in verbs:
            named = tuple(units[word] if isinstance(word, int) else word for word in words)
            record = _after(record, named)
        return record

    made = Shared(directory).begin(Record(boot=str(uuid4()), device_nodes=device_nodes), add)
    return made.parts[-1]


def _prepare(directory: str) -> None:
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        used = os.listdir(directory)  # noqa: PTH208 - names, not paths
    except OSError as error:
        raise ConfigError([(directory, f"cannot be used: {error.strerror}")]) from error
    if used and not {NAME, LOCK} & {*used}:  # somebody else may be making it
        raise ConfigError(
            [(directory, "is neither empty nor a simulated machine")],
            remedy="name a new directory",
        )


def set_state(directory: str, words: Sequence[str]) -> None:
    """Let one verb happen to the machine in *directory*, as in ``["lose", "gpu-2"]``.

    Raises:
        ConfigError: No part knows the verb, or its arguments are wrong.
    """
    apply_verb(Shared(directory), tuple(words))


def apply_verb(shared: Shared, words: tuple[str, ...]) -> None:
    """Let one verb happen to *shared*; see *set_state*."""
    shared.change(lambda record: _after(record, words))


def set_faults(directory: str, faults: Iterable[Fault]) -> None:
    """Put the faults of calls and reads in place of those that the machine has.

    Raises:
        ConfigError: A verb of a fault is unknown.
    """
    chosen = tuple(fault for fault in faults if fault.at is None)
    check_faults(directory, chosen)
    Shared(directory).change(lambda record: attrs.evolve(record, faults=chosen))


async def play(directory: str, faults: Iterable[Fault], clock: Clock) -> None:
    """Put the faults of calls and reads in place, then let those with a time happen in order.

    Returns when the last has happened. Times count from this call.

    Raises:
        ConfigError: A verb is unknown, which is said before anything happens.
    """
    script = tuple(faults)
    shared = Shared(directory)
    check_faults(directory, script)
    set_faults(directory, script)
    began = clock.monotonic()
    timed = sorted((fault.at, fault.do, fault) for fault in script if fault.at is not None)
    for at, _, fault in timed:
        if (left := began + at - clock.monotonic()) > 0:
            await clock.sleep(left)
        apply_verb(shared, fault.words)


def check_faults(directory: str, faults: Iterable[Fault]) -> None:
    """Let nothing happen, and tell whether it could.

    Raises:
        ConfigError: The machine in *directory* does not know the verb of a fault, or its unit.
    """
    record = Shared(directory).record()
    for fault in faults:
        if fault.at is not None or fault.words[0] not in {"error", "hang", "crash"}:
            _after(record, fault.words)


def _after(record: Record, words: tuple[str, ...]) -> Record:
    """The record after a verb."""
    if words[:1] == ("reboot",):
        if len(words) > 1:
            raise ConfigError([("reboot", f"takes nothing, not {words[1]}")])
        state: State = {}
        for machine in machines(record.parts):
            state = with_own(machine, state, machine.booted(own_state(machine, record.state)))
        return attrs.evolve(record, boot=str(uuid4()), state=state, kernel=(), uevents=())
    if words[:1] in {("kernel",), ("uevent",)}:
        return _said(record, words[0], words[1:])
    machine, args = _responsible(machines(record.parts), words)
    usage = machine.verbs[words[0]].split()
    if len(args) >= len(usage) and not usage[-1].endswith("..."):
        raise machine.misused(words[0], f"takes no {args[len(usage) - 1]} behind that")
    if any(len(word) > _DIGITS and word.isdecimal() for word in args):
        raise machine.misused(words[0], f"a number has at most {_DIGITS} digits")
    own = machine.verb(own_state(machine, record.state), words[0], args)
    after = attrs.evolve(record, state=with_own(machine, record.state, own))
    for kind, *said in machine.says(deepcopy(own), words[0], args):
        after = _said(after, kind, tuple(said))
    return after


def _said(record: Record, verb: str, words: tuple[str, ...]) -> Record:
    """The record after the kernel has said *words*."""
    fields = words[2:]
    if not words or (verb == "uevent" and (len(words) < 2 or any("=" not in f for f in fields))):
        raise ConfigError([(verb, "misses words")], remedy=f"write: {ENGINE_VERBS[verb]}")
    if verb == "kernel":
        return attrs.evolve(record, kernel=(*record.kernel, " ".join(words))[-MOST_LINES:])
    action, path = words[:2]
    known = (f"ACTION={action}", f"DEVPATH={path}", f"SEQNUM={len(record.uevents) + 1}")
    message = " ".join((f"{action}@{path}", *known, *fields))
    return attrs.evolve(record, uevents=(*record.uevents, message)[-MOST_LINES:])


def _responsible(
    parts: tuple[Machine, ...], words: tuple[str, ...]
) -> tuple[Machine, tuple[str, ...]]:
    """The one part that a verb is for, and the verb's arguments."""
    verb, args = (words[0], words[1:]) if words else ("", ())
    able = [machine for machine in parts if verb in machine.verbs]
    if not able:
        known = sorted({*ENGINE_VERBS.values(), *(u for m in parts for u in m.verbs.values())})
        raise ConfigError(
            [(verb or "verb", "nothing here knows it")], remedy=f"write one of: {'; '.join(known)}"
        )
    for machine in able:
        if args and args[0] == machine.part.vendor:
            return machine, args[1:]
        if args and args[0] in machine.units():
            return machine, args
    if len(able) > 1:
        named = ", ".join(machine.part.vendor for machine in able)
        raise ConfigError(
            [(verb, f"several parts know it: {named}")],
            remedy=f"write the unit or the vendor behind it, as in: {verb} {able[0].part.vendor}",
        )
    return able[0], args

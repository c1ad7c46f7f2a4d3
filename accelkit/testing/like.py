"""Make a simulated machine like one that somebody has. Not here: what each output says."""

from collections.abc import Callable, Iterable

from accelkit.core.errors import ConfigError, PluginContractError
from accelkit.core.values import FrozenMap
from accelkit.testing.machines import Machine, Part, State
from accelkit.testing.pasted import LIKE, Likeness, Verb, check_units, without_twins
from accelkit.testing.record import MOST_UNITS
from accelkit.testing.shared import machine_class, machines
from accelkit.testing.simulate import simulate
from accelkit.testing.slices import SLICES, is_slices, read_slices
from accelkit.testing.texts import plain


def simulate_like(
    vendor: str,
    text: str,
    directory: str,
    *,
    product: str | None = None,
    seed: int = 0,
    device_nodes: bool = False,
) -> tuple[Part, tuple[str, ...]]:
    """Make a machine in *directory* whose devices are as *text* says.

    Args:
        vendor: Name of an installed vendor that brings a machine.
        text: Output of a tool of its maker, or ResourceSlices; prose around it is mostly fine.
        directory: As for *simulate*.
        product: What the devices are; None: what is nearest to what is told.
        seed: What is not told is made from it.
        device_nodes: As for *simulate*.

    Returns:
        The new part, and what could not be taken over.

    Raises:
        ConfigError: The text is none of those, or only begins like one.
    """
    kind = machine_class(vendor)
    found = read_likeness(kind, text)
    check_units(found.told.units, MOST_UNITS)
    part = Part(
        vendor=vendor,
        product=product or found.product,
        count=len(found.told.units),
        options=FrozenMap({**found.options, LIKE: found.told.dump()}),
    )
    able, lacks = _possible(machines((part,))[0], found.verbs)
    try:
        made = simulate(
            vendor,
            part.product,
            part.count,
            directory,
            seed=seed,
            device_nodes=device_nodes,
            options=part.options,
            verbs=able,
        )
    except PluginContractError as error:
        # Two things at one place: of one text, or of two parts.
        remedy = "take another directory, or take what is twice out of the text"
        raise ConfigError([("text", str(error))], remedy=remedy) from error
    return made, (*found.warnings, *lacks)


def _possible(machine: Machine, verbs: Iterable[Verb]) -> tuple[tuple[Verb, ...], tuple[str, ...]]:
    """Those of *verbs* that the product knows, and what is missing without the others."""
    state: State = {}
    able: list[Verb] = []
    lacks: list[str] = []
    for verb in verbs:
        named = [machine.units()[word] if isinstance(word, int) else word for word in verb]
        try:
            state = machine.verb(state, named[0], tuple(named[1:]))
        except ConfigError as error:
            lacks.append(f"not taken over: {' '.join(named)}: {error.problems[0][1]}")
        else:
            able.append(verb)
    return tuple(able), tuple(lacks)


def read_likeness(kind: type[Machine], text: str) -> Likeness:
    """What *text* says, read by whichever reader recognises it.

    Raises:
        ConfigError: None does, or it is broken.
    """
    text = plain(text)
    for output in kind.outputs:
        if output.is_it(text):
            return _read(output.name, lambda output=output: output.read(text))  # type: ignore[misc]  # of this one
    if is_slices(text):
        return _read(SLICES, lambda: read_slices(kind, text))
    accepted = "; ".join((*(output.name for output in kind.outputs), SLICES))
    raise ConfigError(
        [("text", f"is none of what a machine of {kind.vendor} can be made like")],
        remedy=f"give the whole output of one of these: {accepted}",
    )


def _read(name: str, read: Callable[[], Likeness]) -> Likeness:
    try:
        return without_twins(read())
    except ConfigError as error:
        raise ConfigError(error.problems, remedy=f"give the whole output of: {name}") from error

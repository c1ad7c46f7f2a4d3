"""Machines of a run, with faults of a user's choice. Not here: those that checks choose."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from tempfile import TemporaryDirectory

from accelkit.conformance.setups import UNITS
from accelkit.conformance.subjects import Cut, PluginSubject
from accelkit.core.errors import ConfigError
from accelkit.testing.faults import Fault, fault_json, read_faults
from accelkit.testing.simulate import check_faults, set_faults, set_state, simulate

_UNSAID = {"from": 1, "times": 1}


def faults_for(vendor: str, product: str | None, path: str) -> tuple[Fault, ...]:
    """The faults in a file, which can happen to the machines that checks make.

    Args:
        vendor: Whose machine it is.
        product: One of its products; None: the first.
        path: A file as ``accelkit simulate run`` takes it.

    Raises:
        ConfigError: It cannot be read, is malformed, or asks for what the machine does not know.
    """
    faults = read_faults(path)
    if not faults:
        raise ConfigError([(path, "holds no fault")], remedy="leave --faults out")
    problems: list[tuple[str, str]] = []
    remedy = ""
    with TemporaryDirectory(prefix="ak-") as directory:
        simulate(vendor, product, UNITS, directory)
        for index, fault in enumerate(faults):
            try:
                check_faults(directory, [fault])
            except ConfigError as error:
                why = "; ".join(": ".join(problem) for problem in error.problems)
                problems.append((f"{path}[{index}]", why))
                remedy = remedy or error.remedy
    if problems:
        raise ConfigError(problems, remedy=remedy)
    return faults


def make_machine(
    subject: PluginSubject,
    how: Cut,
    count: int,
    directory: str,
    later: Callable[[Callable[[], object]], None],
    *,
    seed: int = 0,
) -> None:
    """Make one of *subject* in *directory*, and let the faults happen to it that its user chose.

    Args:
        subject: Whose hardware it has.
        how: It is cut.
        count: Its units.
        directory: Where it comes to be.
        later: Takes what is to be called when the machine is not wanted any more.
        seed: Of its serial numbers.
    """
    vendor, product = subject.machine or subject.name, how.product or subject.product
    simulate(vendor, product, count, directory, seed=seed)
    for words in how.words:
        set_state(directory, words)
    lay(subject.faults, directory, later)


def lay(
    faults: Iterable[Fault], directory: str, later: Callable[[Callable[[], object]], None]
) -> None:
    """Let *faults* happen to the machine in *directory*, which was made right now.

    Of a smaller machine, or of another product, those are left out that it does not know.

    Args:
        faults: Those with a time happen so long after this.
        directory: Of the machine.
        later: Takes what is to be called when the machine is not wanted any more.
    """
    fit = [fault for fault in faults if _fits(fault, directory)]
    if not fit:
        return
    set_faults(directory, fit)
    timed = sorted((fault.at, fault.words) for fault in fit if fault.at is not None)
    for _, words in (one for one in timed if one[0] <= 0):
        set_state(directory, words)
    if coming := [one for one in timed if one[0] > 0]:
        over = threading.Event()
        later(over.set)
        threading.Thread(
            target=_play, args=(coming, directory, over), name="conformance-faults", daemon=True
        ).start()


def _fits(fault: Fault, directory: str) -> bool:
    try:
        check_faults(directory, [fault])
    except ConfigError:
        return False
    return True


def _play(
    coming: Sequence[tuple[float, tuple[str, ...]]], directory: str, over: threading.Event
) -> None:
    began = time.monotonic()
    for at, words in coming:
        if over.wait(max(0.0, began + at - time.monotonic())):
            return
        with contextlib.suppress(ConfigError, OSError):  # it may vanish right now
            set_state(directory, words)


def fault_text(fault: Fault) -> str:
    """*fault* in a line, as in ``at 3s do lose gpu-2``."""
    said = fault_json(fault).items()
    return " ".join(f"{key} {value}" for key, value in said if _UNSAID.get(key) != value)

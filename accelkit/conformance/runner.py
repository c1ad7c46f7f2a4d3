"""Runs checks on a subject, each by itself. Not here: what the checks look at."""

import contextlib
import sys
import threading
import time
import traceback
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import date
from functools import partial
from typing import cast

import attrs
import grpc.aio

from accelkit.conformance.bench import PluginBench, Scope
from accelkit.conformance.checks import CHECKS, AnyCheck
from accelkit.conformance.claims_bench import ClaimsBench
from accelkit.conformance.laying import fault_text
from accelkit.conformance.model import (
    WHY_NOT,
    Arena,
    Feature,
    Inapplicable,
    Level,
    Unanswered,
    Verdict,
)
from accelkit.conformance.report import BAD, Report, Result, granted
from accelkit.conformance.setups import Setup
from accelkit.conformance.sims.plugins import said
from accelkit.conformance.socket_bench import SocketBench
from accelkit.conformance.stage import Stages
from accelkit.conformance.subjects import DriverSubject, PluginSubject, Subject
from accelkit.conformance.waivers import Waiver
from accelkit.core.errors import ConfigError
from accelkit.core.values import FrozenMap, freeze
from accelkit.core.vendor import ABILITIES

LIMIT_S = {Level.L1: 60.0, Level.L2: 180.0}
"""How long one check may take before it counts as hanging; agents start several times in one."""
_LOOK_S = 0.2
_LEAVE_S = 5.0
"""For a check whose surroundings were taken away: it finds that out."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Select:
    """Which checks: by id (D01), family (D, DP), level (L1) or badge (core)."""

    only: tuple[str, ...] = ()
    """Empty: all."""
    never: tuple[str, ...] = ()

    def takes(self, check: AnyCheck) -> bool:
        words = {check.id, check.id.rstrip("0123456789"), check.level, *check.badges}
        return (not self.only or not words.isdisjoint(self.only)) and words.isdisjoint(self.never)


ALL = Select()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Options:
    """How to run."""

    seed: int = 0
    """Decides whatever checks leave to chance."""
    repeat: int = 1
    """A check whose verdict differs over so many runs is unstable."""
    deadline_scale: float = 1.0
    """Multiplies every patience."""
    fail_fast: bool = False
    """Stop at the first must check that fails."""
    jobs: int = 1
    """So many checks over sockets side by side, where each has a driver of its own."""
    waivers: tuple[Waiver, ...] = ()
    today: date | None = None
    """Whether a waiver has expired; None: the day it is."""


DEFAULTS = Options()


class Interrupted(KeyboardInterrupt):
    """Somebody ended a run half way; nothing of it runs any more.

    Args:
        report: What it had come to.
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


def run(
    subject: Subject,
    *,
    select: Select = ALL,
    options: Options = DEFAULTS,
    heard: Callable[[Result], object] = lambda _: None,
) -> Report:
    """Run the checks that *select* takes on *subject*, one after another.

    Args:
        subject: A plugin or a driver.
        select: Which checks.
        options: How.
        heard: Called with each result as it comes.

    Raises:
        ConfigError: *select* names what there is not, or a subject cannot be set up.
        Interrupted: By Ctrl-C.
    """
    checks = chosen(select)
    results: list[Result] = []
    try:
        with contextlib.closing(_results(checks, subject, options)) as coming:
            for result in coming:
                results.append(result)
                heard(result)
                if options.fail_fast and result.must and result.verdict in BAD:
                    break
    except KeyboardInterrupt:
        raise Interrupted(_report(checks, results, subject, options)) from None
    return _report(checks, results, subject, options)


def _report(
    checks: Sequence[AnyCheck], results: Sequence[Result], subject: Subject, options: Options
) -> Report:
    verdicts = {result.id: result.verdict for result in results}
    features = {level: subject.features(level) for level in Level}
    faults = faults_of(subject)
    lacking = {c.id: Verdict.NOT_APPLICABLE for c in CHECKS if any(why_not(c, subject, features))}
    return Report(
        kind=subject.kind,
        name=subject.name,
        abilities=subject.abilities(),
        product=_product(subject),
        seed=options.seed,
        results=tuple(sorted(results, key=lambda result: result.id)),
        faults=faults,
        badges=FrozenMap({} if faults else granted(CHECKS, {**lacking, **verdicts})),
        not_run=tuple(check.id for check in checks if check.id not in verdicts),
    )


def faults_of(subject: Subject) -> tuple[str, ...]:
    """What happens to its machines besides what checks let happen, a line each."""
    return tuple(map(fault_text, subject.faults)) if isinstance(subject, PluginSubject) else ()


def _product(subject: Subject) -> str:
    """Of the machines that *subject* is looked at on; empty: of its own."""
    if not isinstance(subject, PluginSubject) or subject.simulated is None:
        return ""
    return subject.product or subject.simulated.products[0]


def _results(
    checks: Sequence[AnyCheck], subject: Subject, options: Options
) -> Generator[Result, None, None]:
    """The results of *checks* as they come: those that share what runs one after another."""
    ordered = sorted(checks, key=_place)
    wished = [c.setup for c in ordered if c.arena is Arena.CLAIMS and not any(why_not(c, subject))]
    stages = Stages(subject, options.jobs, wished)
    aside = isinstance(subject, PluginSubject) and options.jobs > 1
    # Checks in process count threads and files: they want the process to themselves.
    alone = [c for c in ordered if c.level is Level.L1 or not aside]
    pool = ThreadPoolExecutor(options.jobs, "conformance-jobs")
    try:
        # In a thread, too: Ctrl-C comes to this one, and would stop a check while it tidies up.
        one = partial(run_check, subject=subject, options=options, stages=stages)
        yield from (pool.submit(one, check).result() for check in alone)
        coming = [pool.submit(one, check) for check in ordered if check not in alone]
        yield from (done.result() for done in as_completed(coming))
    finally:
        stages.end()  # what runs still is no longer waited for
        pool.shutdown(cancel_futures=True)


def _place(check: AnyCheck) -> tuple[object, ...]:
    """Where *check* comes in a run: what most want first, so that the slow ones overlap."""
    return check.level, check.arena, check.setup != Setup(), repr(check.setup), check.id


def chosen(select: Select) -> tuple[AnyCheck, ...]:
    """The checks that *select* takes, in the order of their ids.

    Raises:
        ConfigError: It names what there is not, or leaves nothing to run.
    """
    known = {
        word
        for c in CHECKS
        for word in (c.id, c.id.rstrip("0123456789"), str(c.level), *map(str, c.badges))
    }
    if strange := sorted({*select.only, *select.never} - known):
        raise ConfigError(
            [(word, "is no check, family, level or badge") for word in strange],
            remedy="see: accelkit conformance list",
        )
    taken = tuple(check for check in CHECKS if select.takes(check))
    if not taken:
        raise ConfigError(
            [(" ".join(select.never), "leaves out every check that is asked for")],
            remedy="see: accelkit conformance list",
        )
    return taken


def run_check(
    check: AnyCheck, subject: Subject, options: Options = DEFAULTS, stages: Stages | None = None
) -> Result:
    """Run one check on *subject*; never raises for what the subject does.

    Args:
        check: The check.
        subject: What it looks at.
        options: How.
        stages: What may be running already; None: nothing, and nothing is left running.
    """
    if stages is None:
        stages = Stages(subject, most=0)
    began = time.monotonic()
    lack = tuple(why_not(check, subject))
    if lack:
        verdict, findings = Verdict.NOT_APPLICABLE, lack
    else:
        if check.arena is Arena.CLAIMS:
            stages.begin(check.setup)
        turns = range(max(1, options.repeat))
        runs = [_findings(check, subject, options, stages, turn) for turn in turns]
        verdict, findings = _judged(check, runs, options)
    return Result(
        id=check.id,
        claim=check.claim,
        level=check.level,
        must=check.must,
        badges=check.badges,
        verdict=verdict,
        findings=findings,
        took_s=time.monotonic() - began,
    )


def why_not(
    check: AnyCheck,
    subject: Subject,
    features: Mapping[Level, AbstractSet[Feature]] | None = None,
) -> Iterator[str]:
    """Why *check* does not apply to *subject*; nothing if it does.

    Args:
        check: The check.
        subject: Whom it would look at.
        features: What can be done with it, where that is known already.
    """
    if isinstance(subject, DriverSubject) and check.level is Level.L1:
        yield "it looks into a plugin, and this is a driver"
        return
    there = subject.features(check.level) if features is None else features[check.level]
    for need in check.needs:
        if isinstance(need, Feature):
            if need not in there:
                yield WHY_NOT[need]
        elif not (isinstance(subject, PluginSubject) and issubclass(subject.vendor, need)):
            names = [name for name, ability in ABILITIES.items() if ability is need]
            yield f"the plugin does not declare {' '.join(names)}"


@attrs.define
class Found:
    """What one run of a check came to."""

    findings: list[str] = attrs.Factory(list)
    lack: str = ""
    """Why it does not apply, if that showed on the way."""


def _judged(
    check: AnyCheck, runs: Sequence[Found], options: Options
) -> tuple[Verdict, tuple[str, ...]]:
    if lack := tuple(dict.fromkeys(found.lack for found in runs if found.lack)):
        return Verdict.NOT_APPLICABLE, lack
    findings = tuple(dict.fromkeys(finding for found in runs for finding in found.findings))
    if not findings:
        return Verdict.PASS, ()
    today = options.today or date.today()  # noqa: DTZ011 - a waiver ends with the local day
    waiver = next((w for w in options.waivers if w.id == check.id), None)
    if waiver is not None and today <= waiver.expires:
        return Verdict.WAIVED, (f"until {waiver.expires}: {waiver.reason}", *findings)
    if waiver is not None:
        findings = (*findings, f"it was waived until {waiver.expires}: {waiver.reason}")
    always = all(found.findings for found in runs)
    return (Verdict.FAIL if always else Verdict.UNSTABLE), findings


def _findings(
    check: AnyCheck, subject: Subject, options: Options, stages: Stages, turn: int
) -> Found:
    """What one run of *check* finds; the body runs in a thread that may be left behind."""
    found = Found()
    bench = _bench(check, subject, options.seed + turn, options.deadline_scale, stages)
    body = cast("Callable[[Scope], Iterator[str]]", check.body)
    thread = threading.Thread(
        target=_collect,
        args=(body, bench, found),
        name=f"conformance-{check.id}",
        daemon=True,
    )
    thread.start()
    limit_s = bench.patience(LIMIT_S[check.level])
    try:
        _wait_for(thread, limit_s, stages)
        if thread.is_alive():
            # It may go on, and find that all was taken away.
            found = Found([f"the check has not ended after {limit_s:g} s: {_stands(thread)}"])
        if found.findings and isinstance(bench, ClaimsBench):
            bench.spoil()
    finally:
        if lack := _closed(bench):
            found.findings.append(lack)
    if stages.over:
        thread.join(_LEAVE_S)
    return found


def _wait_for(thread: threading.Thread, limit_s: float, stages: Stages) -> None:
    """Until it has ended, was long enough, or nobody wants to know any more."""
    until = time.monotonic() + limit_s
    while thread.is_alive() and not stages.over and time.monotonic() < until:
        thread.join(min(_LOOK_S, limit_s))


def _closed(bench: Scope) -> str:
    """Take away what *bench* made; returns what is wrong about that."""
    try:
        bench.close()
    except Exception as error:  # noqa: BLE001 - a subject may do anything
        return f"it cannot be cleaned up: {_raised(error)}"
    return ""


def _bench(check: AnyCheck, subject: Subject, seed: int, scale: float, stages: Stages) -> Scope:
    match check.arena:
        case Arena.PROCESS:
            assert isinstance(subject, PluginSubject)
            return PluginBench(subject, seed, scale)
        case Arena.SOCKETS:
            return SocketBench(subject, seed, scale)
        case Arena.CLAIMS:
            return ClaimsBench(subject, seed, scale, stages, check.setup)


def _collect(body: Callable[[Scope], Iterator[str]], bench: Scope, found: Found) -> None:
    try:
        found.findings.extend(body(bench))
    except Unanswered as error:
        found.findings.append(str(error))
    except Inapplicable as error:
        found.lack = str(error)
    except BaseException as error:  # noqa: BLE001 - a subject may raise anything
        found.findings.append(_raised(error))


def _raised(error: BaseException) -> str:
    """*error* in one line, with where it came from."""
    way = _way(traceback.extract_tb(error.__traceback__))
    if isinstance(error, Unanswered):
        return str(error)
    if isinstance(error, grpc.aio.AioRpcError):
        return f"a call fails: {said(error)} (at {way})"
    return " ".join(f"{type(error).__name__}: {error} (at {way})".split())


def _stands(thread: threading.Thread) -> str:
    """Where *thread* stands now."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - CPython's own way to ask
    return "it ended meanwhile" if frame is None else _way(traceback.extract_stack(frame))


def _way(frames: Iterable[traceback.FrameSummary]) -> str:
    last = list(frames)[-3:]
    return ", ".join(f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in last)

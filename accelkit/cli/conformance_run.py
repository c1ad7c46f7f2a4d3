"""`accelkit conformance run`: who is checked and how it is told. Not here: any check."""

import json
import math
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypedDict, TypeVar, Unpack

import attrs
import click

from accelkit.cli.options import form_option
from accelkit.cli.showing import Form, show_tree, styled

if TYPE_CHECKING:
    from accelkit.conformance.report import Report, Result
    from accelkit.conformance.runner import Options, Select
    from accelkit.conformance.subjects import PluginSubject, Subject
    from accelkit.conformance.waivers import Waiver

F = TypeVar("F", bound=Callable[..., object])  # type: ignore[explicit-any]  # commands of any options

_HOOKS = {
    "start": "Runs the driver in the foreground; without it, it runs already.",
    "restart": "Lets the driver end and start again; needless with --start.",
    "break-device": "Lets one device become unhealthy, the same each time.",
    "mend-device": "Undoes --break-device.",
    "withdraw-device": "Lets one device vanish, until the driver starts again.",
    "hang": "Lets whatever is behind the driver not answer any more, until it starts again.",
}
"""Commands that reach somebody else's driver, each with what it does."""


class Whom(TypedDict):
    """Options that say who is checked."""

    vendors: tuple[str, ...]
    product: str | None
    host: str | None
    faults: str | None
    driver: Path | None
    resource: str | None
    dra: str | None
    cdi: Path | None
    start: str
    restart: str
    break_device: str
    mend_device: str
    withdraw_device: str
    hang: str


def _hook_options(command: F) -> F:  # type: ignore[explicit-any]  # see F
    for name, text in reversed(_HOOKS.items()):
        option = click.option(
            f"--{name}", metavar="COMMAND", default="", help=f"With --driver. {text}"
        )
        command = option(command)
    return command


def _number(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is no number")
    return value


@click.command(
    "run",
    epilog="\b\nExamples:\n"
    "  accelkit conformance run sim --only health --only D01\n"
    "  accelkit conformance run nvidia --faults faults.yaml --baseline clean.json\n"
    "  accelkit conformance run --driver /tmp/kubelet --resource acme.com/npu --start '...'\n"
    "  accelkit conformance run --driver /tmp/kubelet --dra npu.acme.com --cdi /tmp/cdi",
)
@click.argument("vendors", nargs=-1, metavar="[VENDOR]...")
@click.option("--product", help="Of the simulated machine.  [default: its first]")
@click.option("--host", metavar="DIR", help="Read this instead of machines made for the run.")
@click.option(
    "--faults",
    type=click.Path(),
    metavar="FILE",
    help="Let this happen to its simulated machine; such a run earns no badges.",
)
@click.option(
    "--driver",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Check a driver of any kind, which looks for the kubelet in DIR.",
)
@click.option("--resource", metavar="NAME", help="With --driver: the resource that it registers.")
@click.option("--dra", metavar="NAME", help="With --driver: its name as a DRA driver.")
@click.option(
    "--cdi",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="With --driver: where it writes CDI files.",
)
@_hook_options
@click.option(
    "--only", multiple=True, metavar="WORD", help="An id, family, level or badge to run; repeat."
)
@click.option("--skip", multiple=True, metavar="WORD", help="The same, not to run; repeat.")
@click.option("--seed", type=int, default=0, help="Decides what checks leave to chance.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Runs of each check.")
@click.option(
    "--deadline-scale",
    type=click.FloatRange(min=0.01, max=100),
    callback=_number,
    default=1.0,
    help="Multiplies every patience.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Checks of a VENDOR over sockets at once.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first must that fails.")
@click.option(
    "--waivers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Failures that are answered for.  [default: conformance.toml, if it is here]",
)
@click.option(
    "--junit",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a report for CI there, too.",
)
@click.option(
    "--markdown",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a summary for people there, too.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A report of before: what failed then is no reason to end with 1.",
)
@form_option
def run(
    *,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    seed: int,
    repeat: int,
    deadline_scale: float,
    jobs: int,
    fail_fast: bool,
    waivers: Path | None,
    junit: Path | None,
    markdown: Path | None,
    baseline: Path | None,
    form: Form,
    **whom: Unpack[Whom],
) -> int:
    """Run the checks on each VENDOR, by default on all that come with accelkit.

    Ends with 1 if a must failed.
    """
    with _interrupted_by_sigterm():
        from accelkit.conformance.comparing import changes, read_report, told  # noqa: PLC0415 - help does without
        from accelkit.conformance.runner import Options, Select, chosen  # noqa: PLC0415 - see above

        options = Options(
            seed=seed,
            repeat=repeat,
            deadline_scale=deadline_scale,
            jobs=jobs,
            fail_fast=fail_fast,
            waivers=_waivers(waivers),
        )
        select = Select(only=only, never=skip)
        chosen(select)  # what is wrong about it is told before anything else
        before = {} if baseline is None else read_report(baseline)
        for path in filter(None, (junit, markdown)):
            _write_to(path, "")  # what cannot be written is better known before the run
        subjects = _subjects(whom, deadline_scale)
        reports, ended = _run_all(subjects, select, options, form)
        _write(reports, form, junit, markdown)
        if ended is not None:
            raise ended
        return int(any(change.worse for change in changes(before, told(reports))))


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let what CI stops take away what it started, as by Ctrl-C."""
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _run_all(
    subjects: "Sequence[Subject]", select: "Select", options: "Options", form: Form
) -> "tuple[list[Report], KeyboardInterrupt | None]":
    """What came of each of *subjects*, and what ended it before all were done."""
    from accelkit.conformance.runner import Interrupted, faults_of, run as run_one  # noqa: PLC0415 - see above

    reports: list[Report] = []
    ended: KeyboardInterrupt | None = None
    out = sys.stdout  # which goes elsewhere while a check loads plugins
    for number, subject in enumerate(subjects, 1):
        if form is Form.TABLE:
            click.echo(f"{subject.kind} {subject.name}, seed {options.seed}", file=out)
            for fault in faults_of(subject):
                click.echo(f"with fault: {fault}", file=out)
        heard = partial(_show_result, out) if form is Form.TABLE else _nothing
        try:
            # What a plugin prints must not get into a document; and threads that load plugins side
            # by side may leave standard output elsewhere.
            with redirect_stdout(out if form is Form.TABLE else sys.stderr):
                reports.append(run_one(subject, select=select, options=options, heard=heard))
        except Interrupted as error:
            reports.append(error.report)
            ended = error
        if form is Form.TABLE:
            _show_end(out, reports[-1])
        if ended is not None:
            names = ", ".join(one.name for one in subjects[number:])
            click.echo(f"interrupted{names and f'; not begun: {names}'}", err=True)
            break
    return reports, ended


def _subjects(whom: Whom, scale: float) -> "Sequence[Subject]":
    """Who is checked.

    Raises:
        ConfigError: There is no such vendor or product, or faults cannot happen to it.
    """
    from accelkit.conformance.intree import IN_TREE, subject_of  # noqa: PLC0415 - help does without
    from accelkit.core.errors import ConfigError  # noqa: PLC0415 - see above
    from accelkit.testing.hosts import open_host  # noqa: PLC0415 - see above

    vendors, product, host = whom["vendors"], whom["product"], whom["host"]
    _refuse_clashes(whom)
    if whom["driver"] is not None:
        return (_driver(whom, scale),)
    if host is not None:
        open_host(host)  # a host that is not there would fail every check
    subjects = [subject_of(name, product=product, host=host) for name in vendors or IN_TREE]
    for subject in subjects:
        if subject.simulated is None and subject.host is None:
            raise ConfigError(
                [(subject.name, "has no simulated machine to run the checks on")],
                remedy="name a host, such as / where its hardware is: --host DIR",
            )
    if whom["faults"] is not None:
        return [_with_faults(subject, whom["faults"]) for subject in subjects]
    return subjects


def _refuse_clashes(whom: Whom) -> None:
    """Tell of options that mean nothing together.

    Raises:
        UsageError: There are some.
    """
    vendors, alone = whom["vendors"], whom["product"] or whom["host"] or whom["faults"]
    hooks = {name: command for name in _HOOKS if (command := whom[name.replace("-", "_")])}  # type: ignore[literal-required]  # of the table
    for name, command in hooks.items():
        try:
            shlex.split(command)
        except ValueError as error:
            raise click.UsageError(f"--{name} {command!r}: {error}") from error
    named = whom["resource"] or whom["dra"]
    if whom["driver"] is not None and whom["faults"]:
        raise click.UsageError(
            "--faults happen to the simulated machine of a VENDOR, and --driver has none: "
            "let its hardware fail by --break-device, --withdraw-device and --hang"
        )
    if whom["driver"] is not None and (vendors or alone or not named):
        raise click.UsageError("--driver goes with --resource or --dra, and without a VENDOR")
    if whom["driver"] is None and (named or whom["cdi"] or hooks):
        raise click.UsageError(
            "--resource, --dra, --cdi and commands mean something only with --driver"
        )
    if whom["driver"] is None and alone and len(vendors) != 1:
        raise click.UsageError("--product, --host and --faults go with one VENDOR")
    if whom["host"] and whom["faults"]:
        raise click.UsageError(
            "--faults happen to machines that are made for the run, and --host names another one: "
            "play them there by accelkit simulate run DIR --faults FILE"
        )


def _with_faults(subject: "PluginSubject", file: str) -> "Subject":
    """*subject* on machines to which the faults in *file* happen.

    Raises:
        ConfigError: They cannot.
    """
    from accelkit.conformance.laying import faults_for  # noqa: PLC0415 - help does without

    faults = faults_for(subject.machine or subject.name, subject.product, file)
    return attrs.evolve(subject, faults=faults)


def _driver(whom: Whom, scale: float) -> "Subject":
    from accelkit.conformance.command_driver import CommandDriver, Hooks  # noqa: PLC0415 - see above
    from accelkit.conformance.subjects import DriverSubject  # noqa: PLC0415 - see above

    hooks = Hooks(
        start=whom["start"],
        restart=whom["restart"],
        break_device=whom["break_device"],
        mend_device=whom["mend_device"],
        withdraw_device=whom["withdraw_device"],
        hang=whom["hang"],
    )
    return DriverSubject(
        resource=whom["resource"] or "",
        dra=whom["dra"] or "",
        driver=CommandDriver(hooks, scale),
        directory=whom["driver"],
        cdi=whom["cdi"],
    )


def _waivers(file: Path | None) -> "tuple[Waiver, ...]":
    from accelkit.conformance.checks import CHECKS  # noqa: PLC0415 - help does without
    from accelkit.conformance.waivers import FILE, read_waivers  # noqa: PLC0415 - see above

    path = file or Path(FILE)
    if file is None and not path.exists():
        return ()
    return read_waivers(path, [check.id for check in CHECKS])


def _nothing(_result: "Result") -> None:
    pass


def _show_result(out: TextIO, result: "Result") -> None:
    from accelkit.conformance.render import line_of  # noqa: PLC0415 - help does without

    verdict = result.verdict.value
    click.echo(line_of(result).replace(verdict, styled(verdict), 1), file=out)


def _show_end(out: TextIO, report: "Report") -> None:
    from accelkit.conformance.render import end_of  # noqa: PLC0415 - help does without

    for line in end_of(report):
        click.echo(line, file=out)
    click.echo(file=out)


def _write(
    reports: "Sequence[Report]", form: Form, junit: Path | None, markdown: Path | None
) -> None:
    from accelkit.conformance.render import (  # noqa: PLC0415 - help does without
        as_json,
        as_junit,
        as_markdown,
    )

    if form is not Form.TABLE:
        show_tree(json.loads(as_json(reports)), form)
    if junit is not None:
        _write_to(junit, as_junit(reports))
    if markdown is not None:
        _write_to(markdown, as_markdown(reports))


def _write_to(path: Path, text: str) -> None:
    from accelkit.core.errors import ConfigError  # noqa: PLC0415 - help does without

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError([(str(path), f"cannot be written: {error.strerror}")]) from error

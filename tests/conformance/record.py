"""Runs the suite over every vendor and product that comes with accelkit, and keeps what came of it.

``python -m tests.conformance.record`` runs what is not kept yet, or did not pass, and writes
docs/reference/conformance.md. Not here: any check.
"""

import argparse
import json
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from accelkit.cli.main import INTERRUPTED
from accelkit.conformance.checks import CHECKS
from accelkit.conformance.intree import IN_TREE, subject_of
from accelkit.conformance.model import Level, Verdict
from accelkit.conformance.render import KUBERNETES
from accelkit.conformance.report import Result, granted
from accelkit.conformance.runner import Options, Select, run, why_not

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
KEPT = FOLDER / "conformance.json"
PAGE = FOLDER / "conformance.md"
PATIENCE = 5.0
"""Machines that do much else at the same time are not what is judged."""

HEAD = """# What passes conformance

Each vendor that comes with accelkit {version}, on every product of its simulated machine, against
the {checks} [checks](../conformance/README.md) of the suite: in process (L1), and behind the agent
(L2), where kubelet and API server are {kubernetes}. Checks have five times the patience of a quiet
machine. No real hardware is looked at.

A badge is granted if all its checks that apply passed; one that is struck out is refused. One of
which checks are not run yet is left out, and so is one of something that the product cannot do.
`accelkit conformance run VENDOR --product PRODUCT` says what came of each check.
`python -m tests.conformance.record` runs whatever is not run yet or did not pass, and writes this
page.

| vendor | product | badges | passed | not applicable | failed | waived | not run yet |
|---|---|---|---|---|---|---|---|"""

Verdicts: TypeAlias = Mapping[str, Verdict]
"""By the id of a check."""
Record: TypeAlias = Mapping[str, Verdicts]
"""By vendor and product, as in nvidia/h100."""


@cache
def subjects() -> tuple[str, ...]:
    """Every product of every vendor's simulated machine."""
    machines = ((name, subject_of(name).simulated) for name in IN_TREE)
    return tuple(f"{name}/{p}" for name, machine in machines if machine for p in machine.products)


def read() -> Record:
    """What is kept; nothing yet: empty."""
    if not KEPT.exists():
        return {}
    kept: Mapping[str, Mapping[str, str]] = json.loads(KEPT.read_text("utf-8"))["results"]
    return {
        subject: {i: Verdict(word) for word, ids in by_verdict.items() for i in ids.split()}
        for subject, by_verdict in kept.items()
    }


def keep(record: Record) -> Record:
    """Write *record* down, without checks and subjects that are no more."""
    known = {check.id for check in CHECKS}
    record = {
        subject: {i: record[subject][i] for i in sorted(known.intersection(record[subject]))}
        for subject in subjects()
        if subject in record
    }
    results = {
        subject: {
            str(verdict): " ".join(i for i, found in verdicts.items() if found is verdict)
            for verdict in Verdict
            if verdict in verdicts.values()
        }
        for subject, verdicts in record.items()
    }
    tree = {"suite": version("accelkit"), "kubernetes": KUBERNETES, "results": results}
    KEPT.write_text(json.dumps(tree, indent=1) + "\n", "utf-8")
    return record


def write(record: Record) -> None:
    """Write *record* down, and tell readers."""
    record = keep(record)
    PAGE.write_text("\n".join(page_of(record)) + "\n", "utf-8")


def missing(record: Record, subject: str) -> tuple[str, ...]:
    """Checks that *subject* has not passed, and that it is not known whether they apply."""
    done = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    verdicts = record.get(subject, {})
    return tuple(check.id for check in CHECKS if verdicts.get(check.id) not in done)


def page_of(record: Record) -> Iterator[str]:
    """The page, line by line."""
    yield HEAD.format(version=version("accelkit"), checks=len(CHECKS), kubernetes=KUBERNETES)
    yield from (_row(subject, record.get(subject, {})) for subject in subjects())
    yield from ("", "## What does not apply", "")
    yield "| because | checks | of |"
    yield "|---|---|---|"
    yield from _lacks()


def _row(subject: str, verdicts: Verdicts) -> str:
    vendor, _, product = subject.partition("/")
    badges = granted(CHECKS, verdicts)
    words = [str(badge) if passed else f"~~{badge}~~" for badge, passed in badges.items()]
    counts = Counter(verdicts.values())
    numbers = (
        counts[Verdict.PASS],
        counts[Verdict.NOT_APPLICABLE],
        counts[Verdict.FAIL] + counts[Verdict.UNSTABLE],
        counts[Verdict.WAIVED],
        len(CHECKS) - len(verdicts),
    )
    return f"| {vendor} | {product} | {', '.join(words)} | {' | '.join(map(str, numbers))} |"


def _lacks() -> Iterator[str]:
    """Why checks do not apply, as it is known before any is run."""
    lacks: dict[str, dict[str, set[str]]] = {}
    for subject in subjects():
        vendor, _, product = subject.partition("/")
        made = subject_of(vendor, product=product)
        features = {level: made.features(level) for level in Level}
        for check in CHECKS:
            for reason in why_not(check, made, features):
                lacks.setdefault(reason, {}).setdefault(subject, set()).add(check.id)
    for reason, found in sorted(lacks.items()):
        ids = sorted(set().union(*found.values()))
        yield f"| {reason} | {', '.join(ids)} | {', '.join(_shortly(found))} |"


def _shortly(found: Iterable[str]) -> Iterator[str]:
    """Vendors of which it is all products, and else each product."""
    there = set(found)
    for name in IN_TREE:
        own = [subject for subject in subjects() if subject.startswith(f"{name}/")]
        yield from [name] if there.issuperset(own) else [s for s in own if s in there]


def renew(record: Record, wanted: Sequence[str], jobs: int) -> Record:
    """*record* with what was missing of *wanted*; each result is kept as it comes."""
    verdicts = {subject: {**found} for subject, found in record.items()}

    def hear(subject: str, result: Result) -> None:
        verdicts.setdefault(subject, {})[result.id] = result.verdict
        keep(verdicts)

    for subject in wanted:
        if not (ids := missing(verdicts, subject)):
            continue
        vendor, _, product = subject.partition("/")
        report = run(
            subject_of(vendor, product=product),
            select=Select(only=ids),
            options=Options(jobs=jobs, deadline_scale=PATIENCE),
            heard=partial(hear, subject),
        )
        print(f"{subject}: {len(ids)} checks run, {len(report.failed)} failed", flush=True)  # noqa: T201 - a command
        for result in report.failed:
            print(f"  {result.id}: {'; '.join(result.findings)}", flush=True)  # noqa: T201 - a command
    return verdicts


def main(words: Sequence[str] | None = None) -> int:
    """Renew the record; ends with 1 if a must failed."""
    parser = argparse.ArgumentParser("python -m tests.conformance.record")
    parser.add_argument("subjects", nargs="*", metavar="VENDOR/PRODUCT", help="default: all")
    parser.add_argument("--anew", action="store_true", help="forget what is kept of them")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    parser.add_argument("--jobs", type=int, default=4, help="checks over sockets at once")
    asked = parser.parse_args(words)
    wanted = tuple(asked.subjects) or subjects()
    if strange := sorted({*wanted} - {*subjects()}):
        parser.error(f"there is no {', '.join(strange)}")
    kept = {s: v for s, v in read().items() if not (asked.anew and s in wanted)}
    record = renew(kept, () if asked.page else wanted, asked.jobs)
    write(record)
    return int(any(Verdict.FAIL in verdicts.values() for verdicts in record.values()))


if __name__ == "__main__":
    # What is ended takes away what it started, as by Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None

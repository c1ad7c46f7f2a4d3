"""Reports as text, JSON, JUnit XML and Markdown. Not here: what is in them."""

import json
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from xml.etree import ElementTree as ET

from accelkit.conformance.model import Verdict
from accelkit.conformance.report import BAD, Report, Result

API_VERSION = "accelkit.dev/v1"
KIND = "ConformanceReport"
KUBERNETES = "simulated 1.37"
"""What checks over sockets run with."""


def as_text(reports: Iterable[Report]) -> str:
    """A line for each check, findings below it, badges and a count at the end."""
    return "\n".join(line for report in reports for line in (*_lines(report), ""))


def line_of(result: Result) -> str:
    """ID, verdict and claim of one result; what was found below it."""
    should = "" if result.must else " (should)"
    head = f"{result.id:5} {result.verdict:14} {result.claim}{should}"
    # Why something does not apply fits behind it, and is not worth lines of its own.
    if result.verdict is Verdict.NOT_APPLICABLE:
        return f"{head} [{'; '.join(result.findings)}]"
    return "\n".join((head, *(f"{'':20} {finding}" for finding in result.findings)))


def _lines(report: Report) -> Iterable[str]:
    product = f" on {report.product}" if report.product else ""
    yield f"{report.kind} {report.name}{product}, seed {report.seed}"
    yield from (f"with fault: {fault}" for fault in report.faults)
    yield "ID    VERDICT        CLAIM"
    yield from (line_of(result) for result in report.results)
    yield from end_of(report)


def end_of(report: Report) -> Iterable[str]:
    """Badges, how many checks ended how, and which were not run."""
    for badge, granted in report.badges.items():
        yield f"badge {badge}: {'granted' if granted else 'refused'}"
    if report.faults:
        yield "no badges: it was run with faults"
    counts = [f"{count} {verdict}" for verdict, count in report.summary.items() if count]
    yield ", ".join(counts) or "no check was run"
    if report.not_run:
        yield f"{len(report.not_run)} not run: {' '.join(report.not_run)}"


def as_json(reports: Iterable[Report]) -> str:
    """One document a report; several are a list."""
    documents = [_document(report) for report in reports]
    found = documents[0] if len(documents) == 1 else documents
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _document(report: Report) -> dict[str, object]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "suite": _version(),
        "seed": report.seed,
        "subject": {
            "kind": report.kind,
            "name": report.name,
            "product": report.product,
            "abilities": list(report.abilities),
        },
        "host": {
            "kernel": platform.release(),
            "python": platform.python_version(),
            "kubernetes": KUBERNETES,
        },
        "faults": list(report.faults),
        "badges": {b: "granted" if granted else "refused" for b, granted in report.badges.items()},
        "checks": [_entry(result) for result in report.results],
        "not_run": list(report.not_run),
        "summary": {str(verdict): count for verdict, count in report.summary.items()},
    }


def _entry(result: Result) -> dict[str, object]:
    return {
        "id": result.id,
        "claim": result.claim,
        "level": result.level,
        "must": result.must,
        "verdict": result.verdict,
        "took_s": round(result.took_s, 3),
        "findings": list(result.findings),
    }


def as_junit(reports: Iterable[Report]) -> str:
    """JUnit XML: a test suite for each report."""
    root = ET.Element("testsuites")
    for report in reports:
        bad = sum(r.must and r.verdict in BAD for r in report.results)
        skipped = sum(_is_skipped(r) for r in report.results)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_suite(report),
            tests=str(len(report.results)),
            failures=str(bad),
            skipped=str(skipped),
            errors="0",
        )
        if report.faults:
            properties = ET.SubElement(suite, "properties")
            for fault in report.faults:
                ET.SubElement(properties, "property", name="fault", value=_plain(fault))
        for result in report.results:
            _case(suite, _suite(report), result)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _is_skipped(result: Result) -> bool:
    return result.verdict in {Verdict.NOT_APPLICABLE, Verdict.WAIVED} or (
        not result.must and result.verdict in BAD
    )


def _suite(report: Report) -> str:
    return _plain(f"accelkit.conformance.{report.name}{' with faults' if report.faults else ''}")


def _case(suite: ET.Element, name: str, result: Result) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        classname=name,
        name=f"{result.id} {result.claim}",
        time=f"{result.took_s:.3f}",
    )
    text = _plain("\n".join(result.findings))
    if _is_skipped(result):
        ET.SubElement(case, "skipped", message=text or str(result.verdict))
    elif result.verdict in BAD:
        ET.SubElement(case, "failure", message=text.partition("\n")[0]).text = text


def _plain(text: str) -> str:
    """*text* without what broken subjects may well say, and XML has no place for."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def as_markdown(reports: Iterable[Report]) -> str:
    """A table with a row for each report, then what failed."""
    reports = list(reports)
    head = ["", "badges", *map(str, Verdict), "not run"]
    lines = [_row(head), _row(["---"] * len(head))]
    for one in reports:
        badges = [str(b) if granted else f"~~{b}~~" for b, granted in one.badges.items()]
        badges += ["none: with faults"] if one.faults else []
        counts = map(str, (*one.summary.values(), len(one.not_run)))
        lines.append(_row([_titled(one), ", ".join(badges), *counts]))
    for one in reports:
        for fault in one.faults:
            lines += ["", f"Fault of {_titled(one)}: `{_plain(fault)}`"]
        for result in one.results:
            if result.verdict in BAD | {Verdict.WAIVED}:
                should = "" if result.must else ", a should"
                title = f"**{result.id}** of {_titled(one)} ({result.verdict}{should})"
                findings = (f"    {line}" for f in result.findings for line in f.split("\n"))
                lines += ["", f"{title}: {result.claim}", "", *map(_plain, findings)]
    return "\n".join((*lines, ""))


def _titled(report: Report) -> str:
    words = (report.kind, report.name, report.product, "with faults" if report.faults else "")
    return " ".join(filter(None, words))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _version() -> str:
    try:
        return version("accelkit")
    except PackageNotFoundError:  # run from a tree that is not installed
        return "unknown"

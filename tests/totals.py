"""``python -m tests.totals FOLDER``: one line about a whole run, from the reports of its stages."""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET


def totals(folder: Path, stages: int) -> str:
    """Count tests that passed and failed.

    A stage without tests counts as one, and so does a failed stage whose tests all passed:
    something failed in it.

    Args:
        folder: ``STAGE.xml`` (JUnit) of each that ran tests, ``STAGE.failed`` of each that failed.
        stages: How many were run.
    """
    passed, failed = 0, 0
    reports = {file.stem: ET.parse(file).getroot() for file in folder.glob("*.xml")}
    with_failures = set()
    for stage, report in reports.items():
        for suite in report.iter("testsuite"):
            bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            passed += int(suite.get("tests", 0)) - bad - int(suite.get("skipped", 0))
            failed += bad
            if bad:
                with_failures.add(stage)
    failed_stages = {file.stem for file in folder.glob("*.failed")}
    failed += len(failed_stages - with_failures)
    passed += stages - len(failed_stages | set(reports))
    return f"{passed} passed, {failed} failed"


if __name__ == "__main__":
    sys.stdout.write(totals(Path(sys.argv[1]), int(sys.argv[2])) + "\n")

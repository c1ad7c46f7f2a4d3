"""What real servers answered to the probes, kept beside this file.

``ACCELKIT_RECORD=1 ACCELKIT_KUBERNETES=1.36 ./dev node tests/node/test_api_sim.py`` writes it anew.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from accelkit.conformance.sims.gates import RELEASES
from tests.conformance.sims.api.asking import Document, Probe, loosely

HERE = Path(__file__).parent / "answers"
NEWEST = RELEASES[-1]
Answers = Mapping[str, list[Document]]


def _file(release: str, *, all_gates: bool) -> Path:
    return HERE / f"{release}{'-all-gates' if all_gates else ''}.json"


def load(release: str, probes: Sequence[Probe], *, all_gates: bool = False) -> Answers:
    """The answers to *probes*; of older releases, and with all gates on, without words."""
    whole: Answers = json.loads(_file(NEWEST, all_gates=False).read_text())
    newest = {probe.name: whole[probe.name] for probe in probes}
    if release == NEWEST and not all_gates:
        return newest
    different: Answers = json.loads(_file(release, all_gates=all_gates).read_text())
    return {name: different.get(name, loosely(answers)) for name, answers in newest.items()}


def save(release: str, answers: Answers, *, all_gates: bool = False) -> None:
    """Keep *answers*: all of the newest release, of others what differs from it."""
    if release != NEWEST or all_gates:
        whole: Answers = json.loads(_file(NEWEST, all_gates=False).read_text())
        newest = {name: loosely(found) for name, found in whole.items()}
        answers = {
            name: loose
            for name, found in answers.items()
            if (loose := loosely(found)) != newest.get(name)
        }
    lines = (
        f"{json.dumps(name)}: {json.dumps(answers[name], ensure_ascii=False)}"
        for name in sorted(answers)
    )
    _file(release, all_gates=all_gates).write_text("{\n" + ",\n".join(lines) + "\n}\n")

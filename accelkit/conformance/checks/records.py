"""CR: what a driver has written down of claims, damaged, of another version, or of idle claims."""

import json
from collections.abc import Iterator
from pathlib import Path

from accelkit.conformance.checks.claims import HOLD_S, exclusive, two_of
from accelkit.conformance.checks.making import with_claims
from accelkit.conformance.claims_bench import ClaimsBench
from accelkit.conformance.model import Badge, Check, Feature, Unanswered
from accelkit.conformance.sims.dra.cdi import Unresolvable
from accelkit.conformance.staged import Offered
from accelkit.core.allocation import ClaimRef

IDLE_S = 3.0
"""More than two rounds in which a driver looks for what nobody needs any more."""
LATER_MINOR, LATER_MAJOR = "1.999", "999.0"
_NEW = "conformance-unknown"


def record_of(bench: ClaimsBench, ref: ClaimRef) -> Path:
    """The file in which a claim that is prepared is written down.

    Raises:
        Unanswered: There is none.
    """
    there = bench.driver.records()
    for path in sorted(there.rglob(f"*{ref.uid}*.json")):
        return path
    raise Unanswered(f"a claim is prepared, and no file below {there} is about it")


def _has(bench: ClaimsBench, device: Offered) -> bool:
    """Whether a claim gets a device that another one has; it waits for nothing after that."""
    rival = bench.claim(device)
    refused = bench.refusal(rival, timeout_s=HOLD_S)
    bench.unprepare(rival)
    return refused is None


def damaged(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    exclusive(devices)
    one, other = two_of(devices)
    bad, good = bench.claim(one), bench.claim(other)
    bench.prepared(bad)
    before = bench.prepared(good)
    path = record_of(bench, bad)
    bench.spoil()
    bench.restart(meanwhile=lambda: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]))
    if bench.prepared(good) != before:
        yield "what is written down of one claim is damaged, and another one is answered otherwise"
    if _has(bench, one):
        yield f"what is written down of a claim is damaged, and its {one.name} is given to another"
    for ref in (bad, good):
        if why := bench.unprepare(ref).get(ref.uid, "there is no answer"):
            yield f"what is written down of a claim is damaged, and one cannot be given back: {why}"
        if bench.files_of(ref):
            yield f"{bench.files_of(ref)[0].name} is left of a claim that was given back"


def of_a_later_version(bench: ClaimsBench) -> Iterator[str]:
    devices = bench.up()
    exclusive(devices)
    one, other = two_of(devices)
    theirs, ours = bench.claim(one), bench.claim(other)
    first, before = bench.prepared(theirs), bench.prepared(ours)
    path = record_of(bench, theirs)
    known = path.read_bytes()
    bench.spoil()
    bench.restart(meanwhile=lambda: rewrite(path, LATER_MAJOR))
    left = path.read_bytes() if path.exists() else b""
    if bench.prepared(ours) != before:
        yield "one claim was prepared by a later version, and another one is answered otherwise"
    if _has(bench, one):
        yield f"a later version has given {one.name} to a claim, and it is given to another one"
    bench.attempt(theirs)
    bench.unprepare(theirs)
    if not path.exists() or path.read_bytes() != left:
        yield "what a later version has written down of a claim is changed or removed"
        return
    bench.restart(meanwhile=lambda: path.write_bytes(known))
    if bench.prepared(theirs) != first:
        yield "when the later version is back, its claim is answered otherwise"


def other_fields(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    before = bench.prepared(ref)
    path = record_of(bench, ref)
    bench.spoil()
    for version in ("", LATER_MINOR):
        bench.restart(meanwhile=lambda version=version: rewrite(path, version))  # type: ignore[misc]  # mypy#7464
        if bench.attempt(ref) != before:
            yield "a field more, or an empty one less, and a claim is answered otherwise"
            return
        try:
            bench.injected(before)
        except Unresolvable as error:
            yield f"a field more, or an empty one less, and no container can be made: {error}"
    if why := bench.unprepare(ref).get(ref.uid, "there is no answer"):
        yield f"a field more, or an empty one less, and a claim cannot be given back: {why}"


def rewrite(path: Path, version: str) -> None:
    """Let a file be as another version writes it: with more, and without what says nothing.

    Args:
        path: Of the file.
        version: Of its format; empty: as it is.
    """
    tree = json.loads(path.read_bytes())
    full = {key: value for key, value in tree.items() if value not in (None, [], {}, "")}
    full |= {_NEW: {"a": [1]}} | ({"format": version} if version else {})
    path.write_text(json.dumps(full))


def of_an_earlier_version(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    before = bench.prepared(ref)
    path = record_of(bench, ref)
    bench.spoil()

    def age() -> None:
        path.write_text(json.dumps(bench.driver.earlier(json.loads(path.read_bytes()))))

    bench.restart(meanwhile=age)
    if bench.attempt(ref) != before:
        yield "an earlier version has prepared a claim, and it is answered otherwise"
    try:
        bench.injected(before)
    except Unresolvable as error:
        yield f"an earlier version has prepared a claim, and no container can be made: {error}"
    if why := bench.unprepare(ref).get(ref.uid, "there is no answer"):
        yield f"an earlier version has prepared a claim, and it cannot be given back: {why}"


def idle(bench: ClaimsBench) -> Iterator[str]:
    ref = bench.claim(bench.up()[0])
    before = bench.prepared(ref)
    bench.restart()
    bench.still(IDLE_S)
    try:
        bench.injected(before)
    except Unresolvable as error:
        yield f"no container has used a claim yet, and now none can be made: {error}"
    if bench.attempt(ref) != before:
        yield "no container has used a claim yet, and it is answered otherwise after a while"


_BADGE = (Badge.AGENT,)
CHECKS: tuple[Check[ClaimsBench], ...] = (
    with_claims(
        "CR03",
        "A record that is damaged costs no other claim anything.",
        damaged,
        Feature.RECORDS,
        Feature.STOP,
        Feature.CDI,
        badges=_BADGE,
    ),
    with_claims(
        "CR04",
        "What an earlier version has written down is read.",
        of_an_earlier_version,
        Feature.RECORDS,
        Feature.STOP,
        Feature.CDI,
        badges=_BADGE,
    ),
    with_claims(
        "CR05",
        "What a later version has written down is left alone.",
        of_a_later_version,
        Feature.RECORDS,
        Feature.STOP,
        badges=_BADGE,
    ),
    with_claims(
        "CR06",
        "Fields more or less in a record change nothing.",
        other_fields,
        Feature.RECORDS,
        Feature.STOP,
        Feature.CDI,
        badges=_BADGE,
    ),
    with_claims(
        "CR11",
        "A claim that no container uses yet stays prepared.",
        idle,
        Feature.RESTART,
        Feature.CDI,
        badges=_BADGE,
        must=False,
    ),
)

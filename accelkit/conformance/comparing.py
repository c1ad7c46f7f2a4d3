"""What changed from one report to another. Not here: how reports come about."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, cast

import attrs

from accelkit.conformance.model import Verdict
from accelkit.conformance.render import KIND, as_json
from accelkit.conformance.report import BAD, Report
from accelkit.core.errors import ConfigError
from accelkit.core.kube import Json

NOT_RUN = "not-run"


@attrs.frozen(kw_only=True)
class Ended:
    """How a check ended, as a report tells it."""

    verdict: Verdict
    must: bool

    @property
    def bad(self) -> bool:
        """Whether a run ends with no for it."""
        return self.must and self.verdict in BAD


Told: TypeAlias = Mapping[tuple[str, str], Ended]
"""By subject and id of a check."""


@attrs.frozen(kw_only=True)
class Change:
    """A check that ended otherwise than before."""

    subject: str
    id: str
    before: str
    """A verdict, or that it was not run."""
    after: str
    worse: bool
    """It makes the answer no, and did not before."""


def read_report(path: Path) -> Told:
    """What is told by a file that ``accelkit conformance run -o json`` printed.

    Raises:
        ConfigError: It cannot be read, or is none.
    """
    try:
        return _told(json.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([(str(path), f"cannot be read: {error}")]) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(
            [(str(path), f"is no {KIND} ({why})")],
            remedy="write one: accelkit conformance run -o json",
        ) from error


def told(reports: Iterable[Report]) -> Told:
    """What *reports* tell."""
    return _told(json.loads(as_json(reports)))


def _told(tree: list[Json] | Json) -> Told:
    found: dict[tuple[str, str], Ended] = {}
    for report in tree if isinstance(tree, list) else [tree]:
        if report["kind"] != KIND:
            raise ValueError(f"its kind is {report['kind']}")
        about = cast("Mapping[str, str]", report["subject"])
        subject = "/".join(filter(None, (about["name"], about["product"])))
        if faults := cast("list[str]", report.get("faults", [])):
            subject += f" with faults: {'; '.join(faults)}"
        for check in cast("list[Json]", report["checks"]):
            ended = Ended(verdict=Verdict(str(check["verdict"])), must=check["must"] is True)
            found[subject, str(check["id"])] = ended
    return found


def changes(old: Told, new: Told) -> Iterator[Change]:
    """What ended otherwise in *new* than in *old*, in order."""
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        worse = after is not None and after.bad and not (before is not None and before.bad)
        words = [NOT_RUN if one is None else str(one.verdict) for one in (before, after)]
        if words[0] != words[1] or worse:
            yield Change(subject=key[0], id=key[1], before=words[0], after=words[1], worse=worse)

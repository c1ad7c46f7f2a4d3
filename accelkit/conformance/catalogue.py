"""What there is to know about checks, for people. Not here: running them."""

import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import attrs

from accelkit.conformance.checks import CHECKS, AnyCheck
from accelkit.conformance.model import WHY_NOT, Feature
from accelkit.core.errors import ConfigError
from accelkit.core.vendor import ABILITIES

_LEVELS = {"L1": "in process", "L2": "over sockets, with a simulated kubelet"}


@attrs.frozen(kw_only=True)
class Reason:
    """Why a check is there."""

    why: str
    source: str
    fix: str


@cache
def reasons() -> Mapping[str, Reason]:
    """By id; one for each check."""
    text = resources.files(__package__).joinpath("reasons.toml").read_text(encoding="utf-8")
    return {ident: Reason(**found) for ident, found in tomllib.loads(text).items()}


def page(ident: str) -> str:
    """The page of a check, as Markdown, for ``accelkit conformance show ID``.

    Raises:
        ConfigError: There is no such check.
    """
    check = next((c for c in CHECKS if c.id == ident), None)
    if check is None:
        raise ConfigError([(ident, "is no check")], remedy="see: accelkit conformance list")
    reason = reasons()[ident]
    needs = _needs(check)
    return "\n".join(
        (
            f"# {check.id}: {check.claim}",
            "",
            " · ".join(
                (
                    "Must" if check.must else "Should",
                    f"{check.level}, {_LEVELS[check.level]}",
                    f"badges: {', '.join(sorted(check.badges))}",
                )
            ),
            "",
            f"**Why.** {reason.why}",
            "",
            f"**Source.** {reason.source}",
            "",
            f"**When it fails.** {reason.fix}",
            *(("", f"**Not applicable** when {needs}.") if needs else ()),
            "",
        )
    )


def _needs(check: AnyCheck) -> str:
    words = []
    for need in check.needs:
        if isinstance(need, Feature):
            words.append(WHY_NOT[need])
        else:
            names = [name for name, ability in ABILITIES.items() if ability is need]
            words.append(f"the plugin does not declare {' '.join(names)}")
    return "; or ".join(words)


def index() -> str:
    """The page that leads to all of them."""
    rows = [f"| [{c.id}]({c.id}.md) | {c.level} | {c.claim} |" for c in CHECKS]
    return "\n".join(
        (
            "# Conformance checks",
            "",
            "Ids are permanent. A check that fails names its page.",
            "",
            "| id | level | claim |",
            "|---|---|---|",
            *rows,
            "",
        )
    )


def pages() -> dict[str, str]:
    """Text by file name: what docs/conformance has to hold."""
    return {"README.md": index(), **{f"{c.id}.md": page(c.id) for c in CHECKS}}


def main(directory: str) -> None:
    """Write the pages into *directory*."""
    for name, text in pages().items():
        Path(directory, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

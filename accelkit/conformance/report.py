"""What came of a run, as values: results, badges, the report. Not here: how it is written."""

from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from accelkit.conformance.checks import AnyCheck
from accelkit.conformance.model import OF_ABILITIES, Badge, Level, Verdict
from accelkit.core.values import FrozenMap, freeze


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Result:
    """How one check ended."""

    id: str
    claim: str
    level: Level
    must: bool
    badges: frozenset[Badge]
    verdict: Verdict
    findings: tuple[str, ...] = ()
    """What is wrong; of *not applicable* and *waived* why."""
    took_s: float = attrs.field(default=0.0, eq=False)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Report:
    """A run of the suite over one subject."""

    kind: str
    """plugin or driver."""
    name: str
    abilities: tuple[str, ...] = ()
    product: str = ""
    seed: int = 0
    faults: tuple[str, ...] = ()
    """What its machines were made to do by whoever ran it; such a run earns no badge."""
    results: tuple[Result, ...] = ()
    badges: FrozenMap[Badge, bool] = FrozenMap()
    """See *granted*."""
    not_run: tuple[str, ...] = ()
    """Ids of checks that were asked for, and that the run did not come to."""

    @property
    def failed(self) -> tuple[Result, ...]:
        """Must checks that failed or are unstable: the answer is no if there is one."""
        return tuple(r for r in self.results if r.must and r.verdict in BAD)

    @property
    def summary(self) -> Mapping[Verdict, int]:
        counts = Counter(r.verdict for r in self.results)
        return {verdict: counts[verdict] for verdict in Verdict}


BAD = frozenset({Verdict.FAIL, Verdict.UNSTABLE})


def granted(checks: Iterable[AnyCheck], verdicts: Mapping[str, Verdict]) -> dict[Badge, bool]:
    """Whether every applicable must check of a badge passed, for each badge.

    A waiver keeps the run from failing; it earns nothing.

    Args:
        checks: All that there are.
        verdicts: Of those that were run, or that are known not to apply, by id.

    Returns:
        Without badges that nothing applies to but what applies to everybody, and without those of
        which nothing failed so far, and something was not run.
    """
    apply = [c for c in checks if c.must and verdicts.get(c.id) is not Verdict.NOT_APPLICABLE]
    found: dict[Badge, bool] = {}
    for badge in Badge:
        own = [check for check in apply if badge in check.badges]
        ends = {verdicts.get(check.id) for check in own}
        if badge in OF_ABILITIES and not any(check.of_ability for check in own):
            continue
        if ends - {Verdict.PASS, None}:
            found[badge] = False
        elif ends == {Verdict.PASS}:
            found[badge] = True
    return found

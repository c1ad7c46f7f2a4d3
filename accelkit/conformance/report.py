"""What came of a run, as values: results, badges, the report. Not here: how it is written."""

from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from accelkit.conformance.model import Badge, Level, Verdict
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
    results: tuple[Result, ...] = ()

    @property
    def failed(self) -> tuple[Result, ...]:
        """Must checks that failed or are unstable: the answer is no if there is one."""
        return tuple(r for r in self.results if r.must and r.verdict in BAD)

    @property
    def badges(self) -> FrozenMap[Badge, bool]:
        """Each badge that some check of it applied to: whether it is granted."""
        return FrozenMap(granted(self.results))

    @property
    def summary(self) -> Mapping[Verdict, int]:
        counts = Counter(r.verdict for r in self.results)
        return {verdict: counts[verdict] for verdict in Verdict}


BAD = frozenset({Verdict.FAIL, Verdict.UNSTABLE})


def granted(results: Iterable[Result]) -> dict[Badge, bool]:
    """Whether every applicable must check of a badge passed, for each badge.

    A waiver keeps the run from failing; it earns nothing.
    """
    found: dict[Badge, bool] = {}
    for result in results:
        if result.must and result.verdict is not Verdict.NOT_APPLICABLE:
            for badge in result.badges:
                found[badge] = found.get(badge, True) and result.verdict is Verdict.PASS
    return found

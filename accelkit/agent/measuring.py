"""What vendors measured last, and how it is written. Not here: when they are asked."""

import attrs

from accelkit.agent.metrics import Labels, Metrics
from accelkit.agent.problems import AGENT, Problems
from accelkit.core.allocation import Sample
from accelkit.core.clock import Clock
from accelkit.core.dcgm import as_dcgm
from accelkit.core.policy import TelemetryNames
from accelkit.core.samples import Measured, believed, series_of
from accelkit.core.view import View

REFUSED = "sample-refused"


@attrs.frozen
class _Heard:
    measured: tuple[Measured, ...]
    at_s: float


class Measuring:
    """Keeps the last measures of each vendor.

    What could not be measured again is written on, with its age beside it.
    """

    def __init__(self, problems: Problems, clock: Clock) -> None:
        self._problems = problems
        self._clock = clock
        self._heard: dict[str, _Heard] = {}
        self._refused: dict[str, set[str]] = {}

    def learn(self, vendor: str, samples: tuple[Sample, ...], view: View) -> None:
        """Keep what *vendor* measured of devices of *view*; note what is not in the list."""
        measured, wrong = believed(samples, view.devices)
        self._heard[vendor] = _Heard(measured, self._clock.monotonic())
        for metric in self._refused.get(vendor, set()) - wrong.keys():
            self._problems.solve(AGENT, REFUSED, f"{vendor} {metric}")
        self._refused[vendor] = set(wrong)
        for metric, why in wrong.items():
            reason = f"{vendor} measures {metric}: {why}"
            remedy = "see `accelkit metrics` for what may be measured; upgrade the plugin"
            self._problems.note(AGENT, REFUSED, f"{vendor} {metric}", reason, remedy)

    def show(
        self, metrics: Metrics, view: View, names: tuple[TelemetryNames, ...], *, leading: bool
    ) -> None:
        """Set every series of what was measured; none where another instance does it."""
        heard = self._heard if leading else {}
        measured = tuple(one for vendor in heard.values() for one in vendor.measured)
        otel = measured if TelemetryNames.OTEL in names else ()
        for metric, values in series_of(otel, view.devices).items():
            metrics.replace(metric, values)
        dcgm = measured if TelemetryNames.DCGM in names else ()
        found = as_dcgm(dcgm, view.devices, view.holdings, view.snapshot.node)
        for metric, values in found.items():
            metrics.replace(metric, values)
        now = self._clock.monotonic()
        ages: dict[Labels, float] = {(v,): now - one.at_s for v, one in heard.items()}
        metrics.replace("accelkit_telemetry_age_seconds", ages)

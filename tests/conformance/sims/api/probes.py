"""The table of requests that a real API server and the simulated one are both asked."""

from tests.conformance.sims.api.asking import Probe
from tests.conformance.sims.api.probes_claims import CLAIMS
from tests.conformance.sims.api.probes_requests import REQUESTS
from tests.conformance.sims.api.probes_slices import SLICES
from tests.conformance.sims.api.probes_status import STATUS
from tests.conformance.sims.api.probes_values import VALUES
from tests.conformance.sims.api.probes_watches import WATCHES

PROBES: tuple[Probe, ...] = (*SLICES, *VALUES, *CLAIMS, *STATUS, *REQUESTS)
"""Those that older releases are asked, too."""
ALL_PROBES = (*PROBES, *WATCHES)

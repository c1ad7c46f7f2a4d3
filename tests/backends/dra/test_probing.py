"""What servers keep, asked without writing."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from accelkit.backends.dra.dialect import RELEASES
from accelkit.backends.dra.objects import Owner
from accelkit.backends.dra.pool import Dialect
from accelkit.backends.dra.probing import probe
from accelkit.conformance.sims.api.faults import asks
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.conformance.sims.gates import BINDING, COUNTERS, DEVICE_STATUS, LISTS, SHARES, TAINTS
from accelkit.core.errors import ApiError
from accelkit.core.kube import SLICES
from tests.backends.dra.slices_world import kube_port
from tests.backends.dra.views import DRIVER, NODE

OWNER = Owner(name=NODE, uid="u1")
EVERY = dict.fromkeys((TAINTS, COUNTERS, SHARES, BINDING, DEVICE_STATUS), True)


async def asked(
    directory: Path, release: str, gates: Mapping[str, bool] | None = None, *, lists: bool = False
) -> Dialect:
    async with ApiSim(release, gates) as sim:
        kube = kube_port(sim, directory)
        try:
            found = await probe(kube, DRIVER, OWNER, lists=lists)
        finally:
            await kube.close()
        assert sim.items(SLICES) == []
        assert all(one.dry_run for one in sim.journal.writes(dry_run=True))
        assert sim.journal.writes() == []
    return found


@pytest.mark.parametrize("release", RELEASES)
async def test_server_with_default_gates_speaks_the_dialect_of_its_release(
    tmp_path: Path, release: str
) -> None:
    assert await asked(tmp_path, release) == RELEASES[release]


async def test_gates_decide_not_the_release(tmp_path: Path) -> None:
    assert await asked(tmp_path, "1.35", EVERY) == Dialect()


async def test_1_34_has_no_effect_none_few_taints_and_no_counters_of_our_kind(
    tmp_path: Path,
) -> None:
    assert await asked(tmp_path, "1.34", EVERY) == Dialect(
        effect_none=False, most_taints=4, counters=False
    )


@pytest.mark.parametrize(
    "gate,left",
    [
        (TAINTS, Dialect(taints=False, effect_none=False, most_taints=4)),
        (COUNTERS, Dialect(counters=False)),
        (SHARES, Dialect(consumable=False)),
        (BINDING, Dialect(bindings=False)),
    ],
)
async def test_gate_that_is_off_costs_what_it_is_for(
    tmp_path: Path, gate: str, left: Dialect
) -> None:
    assert await asked(tmp_path, "1.36", {gate: False}) == left


@pytest.mark.parametrize("gate", [True, False])
async def test_lists_are_asked_about_only_where_they_are_wished_for(
    tmp_path: Path, *, gate: bool
) -> None:
    """Where they are not kept the whole slice is refused."""
    gates = {LISTS: gate}

    assert (await asked(tmp_path, "1.37", gates, lists=True)).list_attributes is gate
    assert (await asked(tmp_path, "1.37", gates)).list_attributes is False


async def test_server_that_takes_no_slice_at_all_says_why(tmp_path: Path) -> None:
    async with ApiSim() as sim:
        kube = kube_port(sim, tmp_path)
        try:
            for status, message in ((403, "no rights"), (422, "policy: denied request: no")):
                sim.faults.fail(status=status, message=message, which=asks(verb="create"))
                with pytest.raises(ApiError, match=message):
                    await probe(kube, DRIVER, OWNER)
        finally:
            await kube.close()


async def test_admission_that_denies_a_question_is_no_answer(tmp_path: Path) -> None:
    """Policies answer 422 as well (seen on 1.37.2)."""
    async with ApiSim() as sim:
        kube = kube_port(sim, tmp_path)
        sim.faults.delay(0.0, which=asks(verb="create"))  # the first is answered
        sim.faults.fail(status=422, message="policy: denied request: no", which=asks(verb="create"))
        try:
            with pytest.raises(ApiError, match="denied request"):
                await probe(kube, DRIVER, OWNER)
        finally:
            await kube.close()

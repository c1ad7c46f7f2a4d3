"""What vendors are asked, and where."""

from pathlib import Path

import pytest

from accelkit.agent.calls import CALLS, needs_process
from accelkit.agent.lanes import DEADLINES_S
from accelkit.core.host import Host
from accelkit.core.policy import Isolation, VendorPolicy
from accelkit.core.real_host import RealHost
from accelkit.core.vendor import Vendor
from accelkit.testing.hosts import open_host
from accelkit.testing.simulate import simulate
from tests.agent.acme import Acme
from tests.agent.toys import Toy


@pytest.fixture
def real(tmp_path: Path) -> Host:
    return RealHost(str(tmp_path))


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    simulate("sim", None, 1, str(tmp_path / "machine"))
    return open_host(str(tmp_path / "machine"))


def test_every_call_has_a_deadline() -> None:
    assert {call.lane for call in CALLS.values()} - DEADLINES_S.keys() == set()


def test_every_call_has_a_name_of_its_own() -> None:
    assert all(name == call.name for name, call in CALLS.items())


@pytest.mark.parametrize(
    "kind, isolation, on_real, on_machine",
    [
        (Acme, Isolation.AUTO, True, False),
        (Acme, Isolation.THREAD, False, False),
        (Acme, Isolation.PROCESS, True, True),
        (Toy, Isolation.AUTO, False, False),
        (Toy, Isolation.THREAD, False, False),
        (Toy, Isolation.PROCESS, True, True),
    ],
)
def test_native_code_of_a_real_host_has_a_process_unless_the_policy_says_otherwise(
    real: Host,
    machine: Host,
    kind: type[Vendor],
    isolation: Isolation,
    on_real: bool,
    on_machine: bool,
) -> None:
    block = VendorPolicy(name=kind.name, isolation=isolation)

    assert needs_process(kind, block, real) is on_real
    assert needs_process(kind, block, machine) is on_machine

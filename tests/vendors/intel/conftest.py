import pytest

from accelkit.core.host import ReadOnly
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.intel.vendor import Intel, IntelOptions
from tests.vendors.intel.bench import Bench, Make


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Make:
    def make(
        product: str = "flex-170",
        count: int = 2,
        options: IntelOptions | None = None,
        machine: dict[str, str] | None = None,
    ) -> Bench:
        directory = str(tmp_path_factory.mktemp("machine"))
        simulate("intel", product, count, directory, options=machine)
        machine_host = MachineHost(directory)
        vendor = Intel(options or IntelOptions())
        return Bench(directory, ReadOnly(machine_host), vendor, machine_host)

    return make

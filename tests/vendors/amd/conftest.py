import pytest

from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.amd.vendor import Amd
from tests.vendors.amd.bench import Bench, Make


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Make:
    def make(
        product: str = "mi300x", count: int = 2, machine: dict[str, str] | None = None
    ) -> Bench:
        directory = str(tmp_path_factory.mktemp("machine"))
        simulate("amd", product, count, directory, options=machine)
        return Bench(directory, MachineHost(directory), Amd(Amd.options()))

    return make

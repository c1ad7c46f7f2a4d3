import pytest

from accelkit.core.vendor import NoOptions
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.gaudi.vendor import Gaudi
from tests.vendors.gaudi.bench import Bench, Make


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Make:
    def make(
        product: str = "gaudi3",
        count: int = 8,
        seed: int = 0,
        machine: dict[str, str] | None = None,
    ) -> Bench:
        directory = str(tmp_path_factory.mktemp("machine"))
        simulate("gaudi", product, count, directory, seed=seed, options=machine)
        return Bench(directory, MachineHost(directory), Gaudi(NoOptions()))

    return make

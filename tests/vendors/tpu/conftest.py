import pytest

from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.tpu.vendor import Tpu, TpuOptions
from tests.vendors.tpu.bench import Bench, Make


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Make:
    def make(
        product: str = "v5e",
        count: int = 8,
        options: TpuOptions | None = None,
        **machine: str,
    ) -> Bench:
        directory = str(tmp_path_factory.mktemp("machine"))
        simulate("tpu", product, count, directory, options=machine)
        return Bench(directory, MachineHost(directory), Tpu(options or TpuOptions()))

    return make

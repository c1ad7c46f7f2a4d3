from collections.abc import Iterator

import pytest

from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.nvidia.vendor import Nvidia, NvidiaOptions
from tests.vendors.nvidia.bench import Bench, Make


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    made: list[Bench] = []

    def make(
        product: str = "h100",
        count: int = 2,
        options: NvidiaOptions | None = None,
        machine: dict[str, str] | None = None,
    ) -> Bench:
        directory = str(tmp_path_factory.mktemp("machine"))
        simulate("nvidia", product, count, directory, options=machine)
        vendor = Nvidia(options or NvidiaOptions())
        made.append(Bench(directory, MachineHost(directory), vendor))
        return made[-1]

    yield make
    for each in made:
        each.vendor.close()


@pytest.fixture
def cut(bench: Make) -> Bench:
    """A GPU in MIG mode."""
    made = bench("h100", 1)
    made.do("mig gpu-0 on")
    return made

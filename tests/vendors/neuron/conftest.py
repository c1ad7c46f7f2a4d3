import pytest

from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate
from accelkit.vendors.neuron.vendor import Neuron, NeuronOptions
from tests.vendors.neuron.bench import Bench, Make


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Make:
    def make(product: str = "trn2", count: int = 2, machine: dict[str, str] | None = None) -> Bench:
        directory = str(tmp_path_factory.mktemp("machine"))
        simulate("neuron", product, count, directory, options=machine)
        return Bench(directory, MachineHost(directory), Neuron(NeuronOptions()))

    return make

"""One real node for all tests here; each test finds it without pods and leaves it whole."""

import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from tests.node.cluster import Cluster, read_logs
from tests.node.lifecycle import take_down
from tests.node.processes import alive
from tests.node.programs import programs_folder, require_host

HERE = Path(__file__).parent
FOLDER = "akn-"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.node)
            item.add_marker(pytest.mark.timeout(300))


def _sweep() -> None:
    """Take down what a test run left that was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}[0-9]*"):
        if not alive(int(folder.name.removeprefix(FOLDER))):
            take_down(folder)
            rmtree(folder)


def _interrupt(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(f"signal {number}")


@pytest.fixture(scope="session")
def whole_run_cluster() -> Iterator[Cluster]:
    require_host()
    _sweep()
    signal.signal(signal.SIGTERM, _interrupt)  # so that what is below "finally" comes to pass
    root = Path(tempfile.gettempdir()) / f"{FOLDER}{os.getpid()}"
    cluster = Cluster.up(root, programs_folder())
    try:
        yield cluster
    finally:
        cluster.down(remove=True)


@pytest.fixture
def cluster(whole_run_cluster: Cluster) -> Iterator[Cluster]:
    """The node, with no pod on it; whatever the test stops or leaves is put right after it."""
    yield whole_run_cluster
    whole_run_cluster.start_kubelet()
    whole_run_cluster.remove_pods()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of the node's logs with a failure."""
    report = yield
    running = getattr(item, "funcargs", {}).get("whole_run_cluster")
    if report.failed and isinstance(running, Cluster):
        report.sections += [(f"{name}.log", text) for name, text in read_logs(running.root).items()]
    return report

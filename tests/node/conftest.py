"""One real node for all tests here; each test finds it without pods and leaves it whole."""

import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from tests.node.agents import Agents
from tests.node.cluster import Cluster, read_logs
from tests.node.lifecycle import take_down
from tests.node.measured import Measured, summary
from tests.node.processes import alive
from tests.node.programs import RELEASE, programs_folder, require_host
from tests.node.simulated import Gpus

HERE = Path(__file__).parent
FOLDER = "akn-"
SECOND = "second"
"""Below the first node's folder, that of one that joins it."""
GATES = ("ResourceHealthStatus=true",) if RELEASE in {"1.34", "1.35"} else ()
"""By it a pod's status names its devices; from 1.36 on it does so anyway."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.node)
            item.add_marker(pytest.mark.timeout(300))


def _sweep() -> None:
    """Take down what a test run left that was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}[0-9]*"):
        if not alive(int(folder.name.removeprefix(FOLDER))):
            for root in (folder / SECOND, folder):
                take_down(root)
            rmtree(folder)


def _interrupt(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(f"signal {number}")


@pytest.fixture(scope="session")
def whole_run_cluster() -> Iterator[Cluster]:
    require_host()
    _sweep()
    signal.signal(signal.SIGTERM, _interrupt)  # so that what is below "finally" comes to pass
    root = Path(tempfile.gettempdir()) / f"{FOLDER}{os.getpid()}"
    cluster = Cluster.up(root, programs_folder(), gates=GATES)
    try:
        yield cluster
    finally:
        cluster.down(remove=True)


@pytest.fixture(scope="module")
def second_node(whole_run_cluster: Cluster) -> Iterator[Cluster]:
    """One more node of the cluster, for the tests of one module."""
    first = whole_run_cluster
    made = Cluster.up(first.root / SECOND, first.programs, join=first, gates=GATES)
    try:
        yield made
    finally:
        made.down(remove=True)
        first.kubectl("delete", "node", made.name)


@pytest.fixture(scope="module", autouse=True)
def _as_found(whole_run_cluster: Cluster) -> Iterator[None]:
    """What no test of another module may meet.

    CDI files for the kubelet's device plugins stay when their agent ends. Programs that have lost
    their API server again and again look for it less and less often.
    """
    processes = whole_run_cluster.processes
    before = processes.started()["kube-apiserver"]
    yield
    for path in whole_run_cluster.cdi.iterdir():
        path.unlink()
    if processes.started()["kube-apiserver"] != before:
        for program in ("kube-controller-manager", "kube-scheduler", "kubelet"):
            whole_run_cluster.restart(program)


@pytest.fixture
def cluster(whole_run_cluster: Cluster) -> Iterator[Cluster]:
    """The node, with no pod on it; whatever the test stops or leaves is put right after it."""
    yield whole_run_cluster
    whole_run_cluster.start_kubelet()
    whole_run_cluster.remove_pods()


@pytest.fixture
def agents(cluster: Cluster) -> Iterator[Agents]:
    """Starts agents; they end with the test, before its pods."""
    started = Agents(cluster)
    yield started
    started.end()


@pytest.fixture
def gpus(cluster: Cluster) -> Gpus:
    """A machine of eight GPUs for this test alone."""
    return Gpus(cluster)


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Measured:
    return Measured(request.node)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = (one for several in terminalreporter.stats.values() for one in several)
    ended = [r for r in reports if isinstance(r, pytest.TestReport) and r.when == "teardown"]
    if lines := summary(ended):
        terminalreporter.section("times on this node; promises are held elsewhere")
        terminalreporter.write_line("\n".join(lines))


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

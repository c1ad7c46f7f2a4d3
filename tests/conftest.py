import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.backends.kube.behaviour")  # a suite that others import

# A property is about answers: how long an example takes depends on what else the machine does.
settings.register_profile("accelkit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("accelkit")
settings.register_profile("quick", settings.get_profile("accelkit"), max_examples=10)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so do shells with what they put aside
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what tests start is interrupted


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files anew; look at the diff"
    )


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory with a short name, whatever the test is called: a socket path has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ak-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)

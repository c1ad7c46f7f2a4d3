"""What `accelkit render` prints, put before a real API server as people put it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accelkit.cli.main import main
from accelkit.testing.simulate import simulate
from tests.node.cluster import Cluster

pytestmark = pytest.mark.node

POLICY = """\
partitioning: [{select: {pci: "*:03:*"}, how: dynamic}]
offers:
- {name: parts, select: {partition: true}, through: dra, extendedResource: "example.com/{profile}"}
- {name: shared, select: {pci: "*:04:*"}, through: dra, sharing: {divide: requested}}
- {name: whole, through: dra, extendedResource: example.com/gpu}
"""


@pytest.fixture
def rendered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Print what a backend makes of a node with two H100."""
    simulate("nvidia", "h100", 2, str(tmp_path / "machine"))
    (tmp_path / "policy.yaml").write_text(POLICY)
    words = ("--host", str(tmp_path / "machine"), "--policy", str(tmp_path / "policy.yaml"))

    def render(backend: str) -> str:
        capsys.readouterr()
        assert main(["render", backend, *words]) == 0
        return capsys.readouterr().out

    return render


@pytest.mark.parametrize("backend, objects", [("dra", 2), ("extended", 8)])
def test_server_would_keep_every_object_that_is_rendered(
    cluster: Cluster, rendered: Callable[[str], str], backend: str, objects: int
) -> None:
    text = rendered(backend)

    said = cluster.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"),
        stdin=text,
    )

    assert said.count("serverside-applied (server dry run)") == objects

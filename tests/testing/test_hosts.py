import subprocess
import sys
from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError
from accelkit.core.real_host import RealHost
from accelkit.testing.hosts import open_host
from accelkit.testing.machine_host import MachineHost
from accelkit.testing.simulate import simulate


def test_a_record_makes_a_machine(here: str) -> None:
    simulate("sim", None, 1, here)

    assert isinstance(open_host(here), MachineHost)


def test_any_other_directory_is_a_host_root(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/name").write_text("node\n")

    host = open_host(str(tmp_path))

    assert isinstance(host, RealHost)
    assert host.read("/etc/name") == "node"
    assert host.outside("/dev/x") == "/dev/x"


def test_machine_that_was_not_finished_is_no_host_without_devices(tmp_path: Path) -> None:
    """As when the disk is full, or whoever made it was killed; it can be made then."""
    (tmp_path / "machine.lock").touch()
    (tmp_path / "dev").mkdir()

    with pytest.raises(ConfigError, match="was not finished"):
        open_host(str(tmp_path))

    simulate("sim", None, 1, str(tmp_path))
    assert isinstance(open_host(str(tmp_path)), MachineHost)


def test_agent_of_a_real_host_loads_nothing_of_simulated_machines() -> None:
    program = """
import sys
import accelkit.cli.agent
from accelkit.testing.hosts import open_host
open_host("/")
print(*(name for name in sys.modules if name.startswith("accelkit.testing")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.split() == [b"accelkit.testing", b"accelkit.testing.hosts"]


@pytest.mark.parametrize("name", ["none", "file"])
def test_what_is_no_directory_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="is not a directory"):
        open_host(str(tmp_path / name))


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"format": "machine/9"}'],
)
def test_a_malformed_machine_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "machine.json").write_text(content)

    with pytest.raises(ConfigError) as caught:
        open_host(str(tmp_path))

    assert str(caught.value).startswith(f"{tmp_path}/machine.json: ")
    assert "\n" not in str(caught.value)


def test_a_machine_of_an_unknown_vendor_is_refused(here: str) -> None:
    simulate("sim", None, 1, here)
    record = Path(here, "machine.json")
    record.write_text(record.read_text().replace('"sim"', '"gone"'))

    with pytest.raises(ConfigError, match="vendor gone: is not installed"):
        open_host(here)

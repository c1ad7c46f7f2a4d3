"""The plugin to start from keeps its promises, installed like any other."""

import os
from pathlib import Path

import pytest

from accelkit.cli.main import main
from tests.installing import install

PLUGIN = Path(__file__).parent.parent / "examples/plugins/acme"
FUNCTION = "sys/devices/pci0000:00/0000:00:05.0"
FILES = {
    f"{FUNCTION}/vendor": "0x1dea",
    f"{FUNCTION}/device": "0x0001",
    f"{FUNCTION}/class": "0x120000",
    f"{FUNCTION}/serial": "SN-1",
    f"{FUNCTION}/product": "NPU One",
    f"{FUNCTION}/minor": "0",
    f"{FUNCTION}/firmware": "1.2",
    f"{FUNCTION}/memory_bytes": str(1 << 34),
    f"{FUNCTION}/faults": "",
    "sys/module/acme/version": "3.4",
}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    root = tmp_path / "host"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    (root / "sys/bus/pci/devices").mkdir(parents=True)
    (root / "sys/bus/pci/devices/0000:00:05.0").symlink_to(f"../../../../{FUNCTION}")
    (root / "dev").mkdir()
    try:
        os.mknod(root / "dev/acme0", 0o20666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("device nodes need root")
    return root


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path / "site", PLUGIN)


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_plugin_to_start_from_shows_its_device_and_keeps_every_promise(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = main(["devices", "--host", str(host)])
    devices = capsys.readouterr().out
    checked = main(["conformance", "run", "acme", "--host", str(host)])
    said = capsys.readouterr().out

    assert (listed, devices.split("\n")[1].split()[:4]) == (
        0,
        ["acme/sn-1", "NPU", "One", "HEALTHY"],
    )
    verdicts = {line.split()[1] for line in said.splitlines() if len(line.split()) > 2}
    assert (checked, "pass" in verdicts, "fail" in verdicts) == (0, True, False)
    assert "badge core: granted\nbadge health: granted" in said

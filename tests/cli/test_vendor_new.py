"""The project of a new plugin: it works before anything in it is changed."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.installing import install

pytestmark = pytest.mark.slow  # its processes and pauses take seconds


@pytest.mark.parametrize("name", ["umbra", pytest.param("umbra-x1", marks=pytest.mark.slow)])
def test_new_plugin_shows_its_devices_and_keeps_every_promise_in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, name: str
) -> None:
    project, node = tmp_path / "project", tmp_path / "node"
    made = run("vendor", "new", name, project)
    install(monkeypatch, tmp_path / "site", project)
    run("simulate", name, "--count", 2, node)
    run("simulate", "set", node, "fault", "npu-1", "hot", "FATAL")

    listed = [line.split() for line in run("devices", "--host", node).lines[1:3]]
    checked = run("conformance", "run", name, "--only", "L1")

    assert (made.code, checked.code) == (0, 0)
    assert [(line[0], line[3]) for line in listed] == [
        (f"{name}/sn-000000", "HEALTHY"),
        (f"{name}/sn-000001", "UNHEALTHY"),
    ]
    assert " fail " not in checked.out


def test_new_plugin_is_one_short_file(tmp_path: Path, run: Run) -> None:
    run("vendor", "new", "acme", tmp_path)

    assert len((tmp_path / "acme_accelkit/__init__.py").read_text().splitlines()) <= 65


@pytest.mark.parametrize("told, pci", [((), "1dea"), (("--pci", "0x1E0B"), "1e0b")])
def test_pci_id_of_the_hardware_is_in_plugin_and_machine(
    tmp_path: Path, run: Run, told: tuple[str, ...], pci: str
) -> None:
    run("vendor", "new", "acme", tmp_path, *told)

    for name in ("__init__", "machine"):
        assert f"vendor=0x{pci}" in (tmp_path / "acme_accelkit" / f"{name}.py").read_text()


@pytest.mark.parametrize("pci", ["acme", "1de", "1dea0", "0x"])
def test_what_is_no_pci_id_is_refused(tmp_path: Path, run: Run, pci: str) -> None:
    answer = run("vendor", "new", "acme", tmp_path / "project", "--pci", pci)

    assert (answer.code, "it has four hexadecimal digits" in answer.err) == (2, True)
    assert not (tmp_path / "project").exists()


@pytest.mark.parametrize("name", ["nvidia", "kubelet"])
def test_name_of_what_comes_with_accelkit_is_refused(tmp_path: Path, run: Run, name: str) -> None:
    answer = run("vendor", "new", name, tmp_path / "project")

    assert (answer.code, f"NAME: {name} comes with accelkit" in answer.err) == (2, True)
    assert not (tmp_path / "project").exists()


@pytest.mark.parametrize("name", ["Acme", "9acme", "-", "a" * 21, "../acme"])
def test_name_that_no_vendor_can_have_is_refused(tmp_path: Path, run: Run, name: str) -> None:
    answer = run("vendor", "new", "--", name, tmp_path / "project")

    assert answer.code == 2
    assert f"{name!r} is no name of a vendor" in answer.err
    assert not (tmp_path / "project").exists()


def test_what_is_there_already_is_not_overwritten(tmp_path: Path, run: Run) -> None:
    run("vendor", "new", "acme", tmp_path)
    (tmp_path / "README.md").write_text("mine")

    answer = run("vendor", "new", "acme", tmp_path)

    assert (answer.code, (tmp_path / "README.md").read_text()) == (2, "mine")
    assert "is not empty" in answer.err

"""The grown-up plugin shows all that it can, installed like any other; the suite is run by `build`.

Its own tests are those of an author: each check of the suite is one.
"""

import ast
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import accelkit
from accelkit import Device, Evidence, Signal, SupportsHealth, SupportsSignals, testing
from accelkit.conformance.intree import subject_of
from accelkit.conformance.subjects import Cut, PluginSubject
from accelkit.core.vendor import ABILITIES
from accelkit.testing import open_host
from accelkit.testing.shared import vendor_class
from tests.cli.conftest import Run, run
from tests.installing import install

__all__ = ["run"]

PROJECT = Path(__file__).parent.parent / "examples/acme-accelkit"
MODULES = sorted((PROJECT / "acme_accelkit").glob("*.py"))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Four cards on one board."""
    install(monkeypatch, tmp_path / "site", PROJECT)
    assert run("simulate", "acme", "--count", 4, tmp_path / "node").code == 0
    return tmp_path / "node"


def test_example_declares_every_ability_that_needs_no_library(node: Path, run: Run) -> None:
    listed = next(
        line for line in run("vendor", "list", "--host", node).lines if line.startswith("acme ")
    )

    assert {*listed.split()} & {*ABILITIES} == {*ABILITIES} - {"events"}


@pytest.mark.slow
def test_example_is_cut_as_a_policy_says(node: Path, tmp_path: Path, run: Run) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "layouts: {halved: {half: 2}}\n"
        "partitioning: [{select: {name: sn-000001}, how: layout, layout: halved}]\n"
        f"paths: {{run: {tmp_path / 'run'}}}\n"
    )
    applied = run("partition", "apply", "--without-agent", "--host", node, "--policy", policy)
    devices = run("devices", "--host", node).lines[1:]

    assert applied.code == 0
    assert [line.split()[1] for line in devices if "half" in line] == [
        "acme/sn-000001-half-0",
        "acme/sn-000001-half-1",
    ]


@pytest.mark.parametrize(
    "words, shown",
    [
        ("fault npu-1 hot FATAL", "acme/sn-000001 hot FATAL"),
        ("hold npu-2 4711", "4711"),
        ("rubbish npu-0", "unreadable"),
        ("unload", "driver-not-ready"),
    ],
)
def test_example_shows_what_happens(node: Path, run: Run, words: str, shown: str) -> None:
    run("simulate", "set", node, *words.split())

    said = " ".join(run("devices", "--host", node).out.split())
    assert shown in said


def test_example_understands_what_the_kernel_says(node: Path) -> None:
    vendor = PluginSubject(vendor=vendor_class("acme")).make()
    host = open_host(str(node))
    (card, *_) = (d for d in vendor.discover(host) if isinstance(d, Device))
    assert isinstance(vendor, SupportsSignals)
    assert isinstance(vendor, SupportsHealth)

    line = f"acme {card.locality.pci_address}: watchdog: card was reset"
    (event,) = vendor.interpret(Signal(source="kernel", text=line))
    at = datetime(2027, 1, 1, tzinfo=UTC)
    told = Evidence(
        vendor="acme",
        subject=str(event.subject),
        code=event.code,
        source="kernel",
        count=2,
        first=at,
        last=at,
    )
    (condition,) = vendor.conditions(host, card, (told,))

    assert (event.subject, condition.code) == (card.locality.pci_address, "watchdog-reset")
    assert "2 times" in condition.message
    assert [*vendor.interpret(Signal(source="kernel", text="acme: loaded"))] == []


@pytest.mark.usefixtures("node")
def test_checks_of_the_example_begin_as_its_machine_tells() -> None:
    subject = subject_of("acme")

    assert subject.cut == Cut(product="quad", words=(("cut", "npu-0", "1"),))
    assert subject.blocks is not None
    assert subject.blocks.file == "clock"


def test_example_explains_an_old_driver_and_missing_device_files(
    tmp_path: Path, node: Path, run: Run
) -> None:
    old = tmp_path / "old"
    run("simulate", "acme", "--option", "driver=1.9", old)
    run("simulate", "set", node, "no-nodes")

    assert "install Acme's driver 2.0.0 or later" in run("doctor", "--host", old).out
    assert "udevadm trigger" in run("doctor", "--host", node).out


def test_example_needs_nothing_that_is_not_public() -> None:
    foreign = [
        f"{module.name}: {name}"
        for module in MODULES
        for name in imported(module)
        if not public(name)
    ]

    assert foreign == []
    assert all(len(module.read_text().splitlines()) <= 180 for module in MODULES)


def imported(module: Path) -> list[str]:
    """Everything that a module imports, as module.name."""
    found = []
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def public(name: str) -> bool:
    module, _, last = name.rpartition(".")
    if module in {"accelkit", "accelkit.testing"}:
        return last in dir(accelkit if module == "accelkit" else testing)
    return name.partition(".")[0] in {*sys.stdlib_module_names, "attrs", "acme_accelkit"}

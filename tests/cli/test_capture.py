"""A node is captured and looked at elsewhere."""

from pathlib import Path

import pytest

from accelkit.testing.simulate import simulate
from tests.cli.conftest import Run


@pytest.mark.slow
def test_capture_of_a_mixed_node_is_a_host_like_the_node(tmp_path: Path, run: Run) -> None:
    node, kept = tmp_path / "node", tmp_path / "kept"
    simulate("nvidia", "h100", 2, str(node))
    simulate("sim", "ring", 2, str(node))
    commands = (["devices"], ["topology"], ["render", "kubelet"])
    before = [run(*words, "--host", node).out for words in commands]

    said = run("capture", kept, "--host", node)

    assert said.code == 0
    assert said.lines[0].startswith(f"{kept}: 4 devices, as told by ")
    assert [run(*words, "--host", kept).out for words in commands] == before


def test_masked_capture_shows_other_names_of_the_same_devices(tmp_path: Path, run: Run) -> None:
    node, kept = tmp_path / "node", tmp_path / "kept"
    simulate("nvidia", "h100", 2, str(node))
    before = run("devices", "--host", node).lines

    said = run("capture", kept, "--host", node, "--mask")

    after = run("devices", "--host", kept).lines
    assert said.code == 0
    assert [line.split()[1:] for line in after] == [line.split()[1:] for line in before]
    assert {line.split()[0] for line in after} & {line.split()[0] for line in before} == {"DEVICE"}


def test_folder_that_has_something_is_not_written_into(tmp_path: Path, run: Run) -> None:
    (tmp_path / "mine").touch()

    answer = run("capture", tmp_path)

    assert (answer.code, list(tmp_path.iterdir())) == (2, [tmp_path / "mine"])
    assert "is not empty" in answer.err

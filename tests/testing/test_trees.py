import os
from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError, PluginContractError
from accelkit.testing.machines import File, Line, Link, Node
from accelkit.testing.trees import gather, lay_out


def test_lines_of_several_parts_make_one_file() -> None:
    tree = gather(
        [
            Line(path="/proc/devices", text="a"),
            Line(path="/proc/devices", text="b"),
            File(path="/x"),
        ]
    )

    assert tree == {
        "/proc/devices": File(path="/proc/devices", content="a\nb\n"),
        "/x": File(path="/x"),
    }


def test_the_same_entry_twice_is_one() -> None:
    assert gather([File(path="/x"), File(path="/x")]) == {"/x": File(path="/x")}


@pytest.mark.parametrize(
    "entries",
    [
        (File(path="/x", content="1"), File(path="/x", content="2")),
        (File(path="/x"), Link(path="/x", target="/y")),
        (File(path="/x"), Line(path="/x", text="")),
        (File(path="x"),),
        (File(path="/a/../b"),),
        (File(path="/a/"),),
    ],
)
def test_entries_that_cannot_be_are_refused(entries: tuple[File | Link | Line, ...]) -> None:
    with pytest.raises(PluginContractError):
        gather(entries)


def test_a_tree_is_laid_out(tmp_path: Path) -> None:
    tree = gather(
        [
            File(path="/a/text", content="hello\n", mode=0o444),
            File(path="/a/bytes", content=b"\xff"),
            Link(path="/b/link", target="/a/text"),
            Link(path="/b/near", target="link"),
            Node(path="/dev/x", major=250, minor=1, mode=0o600),
        ]
    )

    lay_out(str(tmp_path), {}, tree, device_nodes=False)

    assert (tmp_path / "a/text").read_text() == "hello\n"
    assert (tmp_path / "a/text").stat().st_mode & 0o777 == 0o444
    assert (tmp_path / "a/bytes").read_bytes() == b"\xff"
    assert (tmp_path / "b/near").read_text() == "hello\n"
    assert (tmp_path / "b/link").readlink() == Path("../a/text")
    assert (tmp_path / "dev/x").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "dev"]


def test_only_what_differs_is_touched(tmp_path: Path) -> None:
    before = gather([File(path="/a/same"), File(path="/a/old"), File(path="/a/new", content="1")])
    after = gather([File(path="/a/same"), File(path="/a/new", content="2")])
    lay_out(str(tmp_path), {}, before, device_nodes=False)
    (tmp_path / "a/same").write_text("written by somebody else")
    (tmp_path / "a/foreign").write_text("mine")

    lay_out(str(tmp_path), before, after, device_nodes=False)

    found = {path.name: path.read_text() for path in (tmp_path / "a").iterdir()}
    assert found == {"same": "written by somebody else", "foreign": "mine", "new": "2"}


def test_folders_that_became_empty_go_and_others_stay(tmp_path: Path) -> None:
    before = gather([File(path="/a/b/c"), File(path="/d/e")])
    lay_out(str(tmp_path), {}, before, device_nodes=False)
    (tmp_path / "d/mine").write_text("")

    lay_out(str(tmp_path), before, {}, device_nodes=False)

    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == ["d", "d/mine"]


def test_a_path_in_the_way_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file where a folder must be")

    with pytest.raises(ConfigError, match="cannot be laid out") as caught:
        lay_out(str(tmp_path), {}, gather([File(path="/a/b")]), device_nodes=False)

    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_real_device_nodes_have_the_numbers_of_dev_null(tmp_path: Path) -> None:
    tree = gather([Node(path="/dev/x", major=250, minor=1, mode=0o640)])

    lay_out(str(tmp_path), {}, tree, device_nodes=True)

    found = (tmp_path / "dev/x").stat()
    assert found.st_rdev == Path("/dev/null").stat().st_rdev
    assert found.st_mode & 0o777 == 0o640

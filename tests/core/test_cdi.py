import json
import os
import resource
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from accelkit.core.allocation import ContainerEdits, Hook, Mount
from accelkit.core.cdi import (
    HOOKS,
    LONGEST_FILE,
    claim_file,
    claim_kind,
    claim_uid,
    document,
    has_part,
    render,
    static_file,
    static_id,
    static_kind,
    write_atomically,
    written,
)
from accelkit.core.errors import RenderError
from accelkit.core.model import DeviceNode
from accelkit.core.values import FrozenMap
from tests.core.cdi_rules import CHECKED

KIND = "toy.accelkit.dev/static"
NULL = DeviceNode(path="/dev/null")
PLAIN = ContainerEdits(nodes=(NULL,))
MOUNT = Mount(host_path="/opt/toy", container_path="/opt/toy")
HOOK = Hook(name="createContainer", path="/usr/bin/toy-hook")


def version(devices: Mapping[str, ContainerEdits], kind: str = KIND) -> object:
    return document(kind, devices)["cdiVersion"]


def test_static_devices_have_one_kind_file_and_name() -> None:
    assert static_kind("toy") == KIND
    assert static_file("toy") == "toy.accelkit.dev-static.json"
    assert static_id("toy", "gpu-0") == "toy.accelkit.dev/static=gpu-0"


def test_everything_that_a_container_needs_is_written() -> None:
    moved = DeviceNode(
        path="/dev/toy0", host_path="/host/toy0", permissions="rwm", major=9, minor=1
    )
    edits = ContainerEdits(
        env=FrozenMap({"B": "2=3", "A": "1"}),
        nodes=(moved, NULL),
        mounts=(
            Mount(host_path="tmpfs", container_path="/x", options=("rw",), kind="tmpfs"),
            MOUNT,
        ),
        hooks=(
            HOOK,
            Hook(name="poststop", path="/bin/h", args=("h", "-v"), env=("X=1",), timeout_s=5),
        ),
        gids=(44, 109),
        joined=FrozenMap({"VISIBLE": "gpu-0"}),
    )

    assert document(KIND, {"gpu-0": edits}) == {
        "cdiVersion": "0.7.0",
        "kind": KIND,
        "devices": [
            {
                "name": "gpu-0",
                "containerEdits": {
                    "env": ["A=1", "B=2=3"],
                    "deviceNodes": [
                        {"path": "/dev/null", "permissions": "rw"},
                        {"path": "/dev/toy0", "hostPath": "/host/toy0", "permissions": "rwm"},
                    ],
                    "mounts": [
                        {
                            "hostPath": "tmpfs",
                            "containerPath": "/x",
                            "options": ["rw"],
                            "type": "tmpfs",
                        },
                        {
                            "hostPath": "/opt/toy",
                            "containerPath": "/opt/toy",
                            "options": ["ro", "nosuid", "nodev", "bind"],
                        },
                    ],
                    "hooks": [
                        {"hookName": "createContainer", "path": "/usr/bin/toy-hook"},
                        {
                            "hookName": "poststop",
                            "path": "/bin/h",
                            "args": ["h", "-v"],
                            "env": ["X=1"],
                            "timeout": 5,
                        },
                    ],
                    "additionalGids": [44, 109],
                },
            }
        ],
    }


@pytest.mark.parametrize(
    "name,edits,lowest",
    [
        ("gpu-0", PLAIN, "0.3.0"),
        ("gpu-0", ContainerEdits(mounts=(MOUNT,), hooks=(HOOK,)), "0.3.0"),
        (
            "gpu-0",
            ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b", kind="bind"),)),
            "0.4.0",
        ),
        ("gpu-0", ContainerEdits(nodes=(DeviceNode(path="/dev/a", host_path="/dev/b"),)), "0.5.0"),
        ("gpu-0", ContainerEdits(nodes=(DeviceNode(path="/dev/a", host_path="/dev/a"),)), "0.3.0"),
        ("0-gpu", PLAIN, "0.5.0"),
        ("gpu-0", ContainerEdits(gids=(44,)), "0.7.0"),
    ],
)
def test_the_version_is_the_lowest_that_suffices(
    name: str, edits: ContainerEdits, lowest: str
) -> None:
    assert version({"a": PLAIN, name: edits}) == lowest


def test_a_class_with_a_dot_needs_a_later_version() -> None:
    assert version({"a": PLAIN}, "toy.dev/gpu.small") == "0.6.0"


def test_devices_without_any_part_are_left_out() -> None:
    empty = ContainerEdits(joined=FrozenMap({"VISIBLE": "gpu-1"}))

    assert document(KIND, {"a": PLAIN, "b": empty}) == document(KIND, {"a": PLAIN})
    assert (has_part(PLAIN), has_part(empty)) == (True, False)
    with pytest.raises(RenderError, match="must describe a device"):
        document(KIND, {"b": empty})


@pytest.mark.parametrize("kind", ["toy", "9toy.dev/static", "toy.dev/", "toy.dev/-x", "toy.dev-/x"])
def test_a_kind_that_cdi_refuses_is_refused(kind: str) -> None:
    with pytest.raises(RenderError, match="is not a CDI kind"):
        document(kind, {"a": PLAIN})


@pytest.mark.parametrize(
    "name,edits,words",
    [
        ("-a", PLAIN, "a device's name"),
        ("a", ContainerEdits(env=FrozenMap({"A=B": ""})), "'A=B' is not the name of a variable"),
        ("a", ContainerEdits(env=FrozenMap({"": "x"})), "'' is not the name of a variable"),
        ("a", ContainerEdits(nodes=(DeviceNode(path=""),)), "a device node needs a path"),
        (
            "a",
            ContainerEdits(nodes=(DeviceNode(path="/dev/x", permissions="rx"),)),
            "the permissions of /dev/x are 'rx'",
        ),
        (
            "a",
            ContainerEdits(nodes=(DeviceNode(path="/dev/x", permissions=""),)),
            "the permissions of /dev/x are ''",
        ),
        (
            "a",
            ContainerEdits(mounts=(Mount(host_path="/x", container_path=""),)),
            "a mount needs a path",
        ),
        (
            "a",
            ContainerEdits(hooks=(Hook(name="prestop", path="/h"),)),
            "'prestop' at '/h' is not a hook",
        ),
        (
            "a",
            ContainerEdits(hooks=(Hook(name="poststop", path="/h", env=("=1",)),)),
            "the environment of hook /h",
        ),
        ("a", ContainerEdits(gids=(0,)), "a group id must be"),
    ],
)
def test_edits_that_cdi_refuses_are_refused(name: str, edits: ContainerEdits, words: str) -> None:
    with pytest.raises(RenderError, match=words):
        document(KIND, {name: edits})


words = st.text("abcXYZ019", min_size=1, max_size=4)
paths = words.map("/{}".format)
some_edits = st.builds(
    ContainerEdits,
    env=st.dictionaries(words, st.text(max_size=4)).map(FrozenMap),
    nodes=st.lists(
        st.builds(
            DeviceNode,
            path=paths,
            host_path=st.none() | paths,
            permissions=st.sampled_from(["r", "rw", "rwm"]),
        )
    ),
    mounts=st.lists(
        st.builds(
            Mount,
            host_path=paths,
            container_path=paths,
            options=st.lists(words),
            kind=st.none() | words,
        )
    ),
    hooks=st.lists(
        st.builds(
            Hook,
            name=st.sampled_from(sorted(HOOKS)),
            path=paths,
            args=st.lists(words),
            env=st.lists(words.map("{}=x".format)),
            timeout_s=st.none() | st.integers(0, 9),
        )
    ),
    gids=st.sets(st.integers(1, 2**32 - 1)),
)


@given(st.dictionaries(words, some_edits.filter(has_part), min_size=1, max_size=3))
def test_whatever_is_written_is_as_published_and_the_same_in_any_order(
    devices: dict[str, ContainerEdits],
) -> None:
    written = render(KIND, devices)

    CHECKED.validate(json.loads(written))
    assert render(KIND, dict(reversed(devices.items()))) == written
    assert json.loads(written) == document(KIND, devices)


def test_files_are_for_everyone_to_read_and_text_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "cdi" / static_file("toy")
    content = render(KIND, {"a": ContainerEdits(env=FrozenMap({"NAME": "é"}))})

    assert write_atomically(path, content)

    assert path.read_bytes() == content
    assert "é" in path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o022 == 0
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_with_the_same_content_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, b"one")
    before = path.stat().st_ino

    assert not write_atomically(path, b"one")
    assert path.stat().st_ino == before
    assert write_atomically(path, b"two")
    assert path.read_bytes() == b"two"


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, b"one")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))  # as a full disk would

    try:
        with pytest.raises(OSError, match="too large"):
            write_atomically(path, b"two")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a.json": b"one"}


def test_pipe_where_the_file_should_be_is_replaced_without_waiting(tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    os.mkfifo(path)

    assert write_atomically(path, b"one")
    assert path.read_bytes() == b"one"


def test_file_that_is_a_link_into_an_endless_device_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    path.symlink_to("/dev/zero")

    assert write_atomically(path, b"one")
    assert path.read_bytes() == b"one"


def test_directory_where_the_file_should_be_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    path.mkdir()

    with pytest.raises(IsADirectoryError):
        write_atomically(path, b"one")
    assert [found.name for found in tmp_path.iterdir()] == ["toy.json"]


def test_a_claim_has_a_file_and_a_kind_of_its_driver() -> None:
    assert claim_file("toy.accelkit.dev", "22-a") == "toy.accelkit.dev-claim_22-a.json"
    assert claim_kind("toy.accelkit.dev") == "toy.accelkit.dev/claim"


@pytest.mark.parametrize("driver", ["toy.accelkit.dev", "a" * 253, "a-claim_b", f"{'a' * 252}b"])
def test_the_uid_of_a_claim_is_read_back_from_its_file(driver: str) -> None:
    name = claim_file(driver, "f" * 64)

    assert len(name.encode()) <= LONGEST_FILE
    assert claim_uid(driver, name) == "f" * 64


def test_long_names_of_drivers_stay_apart() -> None:
    assert claim_file("a" * 252 + "b", "1") != claim_file("a" * 253, "1")


@pytest.mark.parametrize(
    "file",
    [
        "toy.accelkit.dev-claim_.json",
        "toy.accelkit.dev-claim_1.yaml",
        "toy.accelkit.dev-static.json",
        "x.toy.accelkit.dev-claim_1.json",
        ".toy.accelkit.dev-claim_1.json.tmp",
    ],
)
def test_files_of_others_are_no_files_of_claims(file: str) -> None:
    assert claim_uid("toy.accelkit.dev", file) is None


def test_a_document_that_was_kept_as_json_gives_the_same_file() -> None:
    devices = {"b": PLAIN, "a": ContainerEdits(env=FrozenMap({"Z": "ü", "A": "1"}), gids=(1,))}

    assert written(json.loads(json.dumps(document(KIND, devices)))) == render(KIND, devices)

"""CDI files are read, refused and merged as container runtimes do."""

import json
from pathlib import Path

import pytest

from accelkit.conformance.sims.dra.cdi import Injected, Unresolvable, inject, read_specs
from accelkit.conformance.sims.dra.specs import faults, needed

NODE = {"path": "/dev/x"}


def spec(*names: str, version: str = "0.3.0", kind: str = "a.test/x", **edits: object) -> object:
    own = edits or {"deviceNodes": [NODE]}
    devices = [{"name": name, "containerEdits": own} for name in names]
    return {"cdiVersion": version, "kind": kind, "devices": devices}


def write(directory: Path, name: str, tree: object) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(json.dumps(tree))


def test_edits_of_file_and_devices_are_merged_in_order(tmp_path: Path) -> None:
    first = spec(
        "a",
        env=["A=1", "B=1"],
        mounts=[{"hostPath": "/h", "containerPath": "/c"}],
        hooks=[{"hookName": "prestart", "path": "/bin/h"}],
    )
    assert isinstance(first, dict)
    write(tmp_path, "a.json", {**first, "containerEdits": {"env": ["C=1"]}})
    node = {"path": "/dev/x", "hostPath": "/host/x"}
    write(
        tmp_path, "b.yaml", spec("b", version="0.5.0", kind="b.test/x", deviceNodes=[node], env=[])
    )

    assert inject([tmp_path], ["a.test/x=a", "b.test/x=b", "a.test/x=a"]) == Injected(
        env=(("A", "1"), ("B", "1"), ("C", "1")),
        nodes=(("/dev/x", "/host/x"),),
        mounts=(("/c", "/h"),),
        hooks=("/bin/h",),
    )


def test_what_two_devices_set_otherwise_is_told(tmp_path: Path) -> None:
    write(tmp_path, "a.json", spec("a", env=["N=0"]))
    write(tmp_path, "b.json", spec("b", kind="b.test/x", env=["N=1"]))

    got = inject([tmp_path], ["a.test/x=a", "b.test/x=b"])

    assert got.env == (("N", "1"),)
    assert got.clashes == ("variable N is 0 for one device, 1 for next",)


def test_directory_with_more_weight_wins_and_two_files_of_one_do_not_resolve(
    tmp_path: Path,
) -> None:
    static, dynamic = tmp_path / "etc", tmp_path / "run"
    write(static, "a.json", spec("a", env=["WHO=static"]))
    write(dynamic, "a.json", spec("a", env=["WHO=dynamic"]))
    got = inject([static, dynamic], ["a.test/x=a"])
    write(dynamic, "b.json", spec("a", env=["WHO=rival"]))

    assert got.env == (("WHO", "dynamic"),)
    with pytest.raises(Unresolvable, match="unresolvable CDI devices"):
        inject([static, dynamic], ["a.test/x=a"])


def test_files_that_are_not_described_or_broken_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.json", spec("a", version="9.9.9"))
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.tmp").write_text("{")

    assert [one.path.name for one in read_specs([tmp_path])] == ["a.json", "b.json"]
    assert all(one.faults for one in read_specs([tmp_path]))
    with pytest.raises(Unresolvable):
        inject([tmp_path], ["a.test/x=a"])


@pytest.mark.parametrize(
    "tree, fault",
    [
        ([], "it is no object"),
        (spec(), "it has no device"),
        (spec("-a"), "'-a' is no name of a device"),
        (spec("a", "a"), "a is there twice"),
        (spec("a", kind="a"), "its kind 'a' is not vendor/class"),
        (spec("a", version="0.9.0"), "its version '0.9.0' is not known"),
        (spec("7a"), "its version is 0.3.0, and it has what 0.5.0 brought"),
        (spec("a", gids=[1]), "gids is no key of edits"),
        (spec("a", env=["NAME"]), "'NAME' is no NAME=value"),
        (spec("a", mounts=[{"hostPath": "/a"}]), "something in mounts has no containerPath"),
        (spec("a", deviceNodes=[{**NODE, "mod": 1}]), "mod is no key of deviceNodes"),
        (
            spec("a", deviceNodes=[{**NODE, "permissions": "rx"}]),
            "the permissions of /dev/x are 'rx'",
        ),
        (spec("a", hooks=[{"hookName": "now", "path": "/a"}]), "'now' is no hook"),
        ({"cdiVersion": "0.3.0", "kind": "a/b", "devices": [{"name": "a"}], "x": 1}, "x is no key"),
        (
            {"cdiVersion": "0.3.0", "kind": "a/b", "devices": [{"name": "a", "y": 1}]},
            "y is no key of a device",
        ),
    ],
)
def test_file_that_readers_refuse_says_why(tree: object, fault: str) -> None:
    assert fault in list(faults(tree))


@pytest.mark.parametrize(
    "tree, version",
    [
        (spec("a"), "0.3.0"),
        (spec("a", mounts=[{"hostPath": "/", "containerPath": "/", "type": "x"}]), "0.4.0"),
        (spec("a", deviceNodes=[{**NODE, "hostPath": "/"}]), "0.5.0"),
        (spec("a", kind="a/b.c"), "0.6.0"),
        (spec("a", additionalGids=[7]), "0.7.0"),
        (spec("a", intelRdt={"closID": "x"}), "0.7.0"),
        (spec("a", intelRdt={"schemata": []}), "1.1.0"),
        (spec("a", netDevices=[{"hostInterfaceName": "a", "name": "b"}]), "1.1.0"),
    ],
)
def test_lowest_version_is_that_of_the_newest_key(tree: object, version: str) -> None:
    assert isinstance(tree, dict)
    assert needed(tree) == version

"""The CDI files of devices that are handed out by name."""

import json
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import attrs

from accelkit.backends.kubelet.static import StaticFiles
from accelkit.core.allocation import ContainerEdits
from accelkit.core.policy import Inject, Offer
from accelkit.core.values import FrozenMap
from accelkit.core.view import View
from tests.backends.kubelet.world import gpu, ident, view_of

BY_NAME = Offer(name="all", inject=Inject.CDI)
FILE = "acme.accelkit.dev-static.json"


def described(directory: Path) -> list[str]:
    told = json.loads((directory / FILE).read_text())
    assert told["kind"] == "acme.accelkit.dev/static"
    return [device["name"] for device in told["devices"]]


def written(directory: Path, view: View) -> StaticFiles:
    files = StaticFiles(directory)
    files.want(view)
    assert files.write() == {}
    return files


def test_devices_are_described_by_name_without_variables_that_list_a_set(tmp_path: Path) -> None:
    view = view_of(gpu("a"), offers=[BY_NAME])

    files = written(tmp_path / "cdi", view)

    text = (tmp_path / "cdi" / FILE).read_text()
    assert described(tmp_path / "cdi") == ["a"]
    assert "ACME_DEVICES" not in text
    assert "/dev/a" in text
    assert files.undescribed(view) == frozenset()


def test_devices_that_are_handed_out_directly_have_no_file(tmp_path: Path) -> None:
    written(tmp_path, view_of(gpu("a")))

    assert list(tmp_path.iterdir()) == []


def test_files_of_others_are_not_touched(tmp_path: Path) -> None:
    other = tmp_path / "acme.accelkit.dev-claim_1.json"
    other.write_text("theirs")

    written(tmp_path, view_of(gpu("a"), offers=[BY_NAME]))

    assert other.read_text() == "theirs"


def test_device_is_undescribed_before_its_file_is_written(tmp_path: Path) -> None:
    assert StaticFiles(tmp_path).undescribed(view_of(gpu("a"), offers=[BY_NAME])) == {ident("a")}


def test_file_that_vanished_or_was_changed_is_made_again(tmp_path: Path) -> None:
    files = written(tmp_path, view_of(gpu("a"), offers=[BY_NAME]))
    (tmp_path / FILE).unlink()
    files.write()
    assert described(tmp_path) == ["a"]
    (tmp_path / FILE).write_text("{}")
    files.write()

    assert described(tmp_path) == ["a"]


def test_device_stays_described_while_the_node_has_it_offered_or_not(tmp_path: Path) -> None:
    files = written(tmp_path, view_of(gpu("a"), gpu("b"), offers=[BY_NAME]))

    files.want(view_of(gpu("a"), offers=[Offer(name="all")]))
    files.write()

    assert described(tmp_path) == ["a"]


def test_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("a file")
    view = view_of(gpu("a"), offers=[BY_NAME])
    files = StaticFiles(tmp_path / "cdi")
    files.want(view)

    assert "cannot be written" in files.write()["acme"]
    assert files.undescribed(view) == {ident("a")}


def test_devices_described_already_stay_good_when_a_later_write_fails(tmp_path: Path) -> None:
    directory = tmp_path / "cdi"
    files = written(directory, view_of(gpu("a"), offers=[BY_NAME]))
    view = view_of(gpu("a"), gpu("b"), offers=[BY_NAME])
    files.want(view)
    with no_room():
        wrong = files.write()

    assert list(wrong) == ["acme"]
    assert files.undescribed(view) == {ident("b")}


@contextmanager
def no_room() -> Generator[None, None, None]:
    """No file can grow beyond some bytes, even for root."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_edits_that_cdi_cannot_express_leave_out_their_device_alone(tmp_path: Path) -> None:
    view = view_of(gpu("a"), gpu("b"), offers=[BY_NAME])
    bad = ContainerEdits(env=FrozenMap({"A=B": "1"}))
    view = attrs.evolve(view, edits=FrozenMap({**view.edits, ident("a"): bad}))
    files = StaticFiles(tmp_path)
    files.want(view)

    assert "is not the name of a variable" in files.write()["acme"]
    assert described(tmp_path) == ["b"]
    assert files.undescribed(view) == {ident("a")}


def test_device_that_needs_nothing_is_described_by_silence(tmp_path: Path) -> None:
    view = view_of(gpu("a"), offers=[BY_NAME])
    view = attrs.evolve(view, edits=FrozenMap({ident("a"): ContainerEdits()}))
    files = written(tmp_path, view)

    assert files.undescribed(view) == frozenset()
    assert list(tmp_path.iterdir()) == []


def test_changed_edits_are_undescribed_until_they_are_written(tmp_path: Path) -> None:
    view = view_of(gpu("a"), offers=[BY_NAME])
    files = written(tmp_path, view)
    other = ContainerEdits(env=FrozenMap({"NEW": "1"}))
    changed = attrs.evolve(view, edits=FrozenMap({ident("a"): other}))

    assert files.undescribed(changed) == {ident("a")}
    files.want(changed)
    files.write()
    assert files.undescribed(changed) == frozenset()

import hashlib
import json
import stat
from pathlib import Path

import pytest

from accelkit.agent.claim_files import ClaimFiles
from accelkit.agent.disk import HostDisk
from accelkit.core.allocation import ContainerEdits
from accelkit.core.cdi import claim_file, claim_kind, document, written
from accelkit.core.claims import CdiRecord
from accelkit.core.errors import LedgerError
from accelkit.core.model import DeviceNode
from tests.agent.keeping.process import Crash, Process
from tests.agent.keeping.storage import RealStorage
from tests.core.cdi_rules import CHECKED

DRIVER = "toy.accelkit.dev"
DOCUMENT = document(
    claim_kind(DRIVER), {"1-a": ContainerEdits(nodes=(DeviceNode(path="/dev/null"),))}
)
CONTENT = written(DOCUMENT)
RECORD = CdiRecord(
    file=claim_file(DRIVER, "1"),
    digest=f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
    spec=DOCUMENT,
)


def of(directory: Path) -> ClaimFiles:
    return ClaimFiles(directory, disk=HostDisk())


def test_a_file_is_as_the_specification_wants_it_and_everybody_may_read_it(tmp_path: Path) -> None:
    files = of(tmp_path / "cdi")

    record = files.describe(DRIVER, "1", DOCUMENT)

    path = tmp_path / "cdi" / f"{DRIVER}-claim_1.json"
    CHECKED.validate(json.loads(path.read_text()))
    assert json.loads(path.read_text()) == DOCUMENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o755 == 0o755
    assert record == RECORD
    assert files.right(RECORD)


def test_a_file_is_right_for_a_new_process_if_its_content_is(tmp_path: Path) -> None:
    of(tmp_path).write(RECORD)

    assert of(tmp_path).right(RECORD)


@pytest.mark.parametrize("harm", ["remove", "change", "replace", "link"])
def test_a_file_that_was_changed_by_whomever_is_not_right(harm: str, tmp_path: Path) -> None:
    files = of(tmp_path)
    files.write(RECORD)
    path = tmp_path / RECORD.file
    match harm:
        case "remove":
            path.unlink()
        case "change":
            path.write_text("{}")
        case "replace":
            (tmp_path / "other").write_text("{}")
            (tmp_path / "other").replace(path)
        case _:
            path.rename(tmp_path / "moved")
            path.symlink_to(tmp_path / "moved")

    assert not files.right(RECORD)

    files.write(RECORD)

    assert files.right(RECORD)
    assert not path.is_symlink()


@pytest.mark.parametrize("effects", [1, 2])
def test_a_file_that_is_not_whole_is_passed_over_by_runtimes(effects: int, tmp_path: Path) -> None:
    """They read what ends in .json and .yaml."""
    process = Process(ends_before=effects)
    files = ClaimFiles(tmp_path, disk=RealStorage(tmp_path).door(process))

    with pytest.raises(Crash):
        files.write(RECORD)

    (left,) = tmp_path.iterdir()
    assert left.suffix == ".tmp"
    assert of(tmp_path).orphans([DRIVER], ()) == {RECORD.file: "1"}


def test_a_record_gives_the_same_file_after_it_was_kept_as_json(tmp_path: Path) -> None:
    files = of(tmp_path)
    files.write(RECORD)
    before = (tmp_path / RECORD.file).read_bytes()
    kept = CdiRecord(
        file=RECORD.file, digest=RECORD.digest, spec=json.loads(json.dumps(RECORD.spec))
    )

    files.write(kept)

    assert (tmp_path / RECORD.file).read_bytes() == before
    assert of(tmp_path).right(kept)


def test_a_file_is_removed_and_one_that_is_not_there_is_fine(tmp_path: Path) -> None:
    files = of(tmp_path)
    files.write(RECORD)
    files.remove(DRIVER, "1")
    files.remove(DRIVER, "1")

    assert list(tmp_path.iterdir()) == []


def test_what_others_removed_is_forgotten(tmp_path: Path) -> None:
    files = of(tmp_path)
    files.write(RECORD)
    (tmp_path / RECORD.file).unlink()

    files.forget_all_but(())

    assert files._seen == {}
    assert not files.right(RECORD)


def test_only_our_files_without_a_claim_are_orphans(tmp_path: Path) -> None:
    files = of(tmp_path)
    for uid in ("1", "2"):
        files.describe(DRIVER, uid, DOCUMENT)
    left = f".{claim_file(DRIVER, '3')}.tmp"
    foreign = {
        "gpu.example.com-claim_4.json": json.dumps({"kind": "gpu.example.com/claim"}),
        claim_file(DRIVER, "5"): json.dumps({"kind": "other/claim"}),
        claim_file(DRIVER, "6"): "no json",
        claim_file(DRIVER, "7"): "[]",
        f"{DRIVER}-static.json": "{}",
        f"{DRIVER}-claim_UP.json": json.dumps({"kind": f"{DRIVER}/claim"}),
    }
    for name, content in {**foreign, left: "torn"}.items():
        (tmp_path / name).write_text(content)

    found = files.orphans([DRIVER], {"1"})

    assert found == {claim_file(DRIVER, "2"): "2", claim_file(DRIVER, "3"): "3"}

    for file in found:
        files.remove_orphan(file)

    assert {path.name for path in tmp_path.iterdir()} == {claim_file(DRIVER, "1"), *foreign}


def test_a_directory_that_is_not_there_has_no_orphans(tmp_path: Path) -> None:
    assert of(tmp_path / "missing").orphans([DRIVER], ()) == {}


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("")

    with pytest.raises(LedgerError, match="cannot be written: Not a directory"):
        of(tmp_path / "cdi").write(RECORD)

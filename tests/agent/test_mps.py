import json
from pathlib import Path

import attrs
import pytest

from accelkit.agent.mps import Mps, with_missing, without_missing
from accelkit.agent.problems import Problems
from accelkit.core.model import Device, Snapshot
from accelkit.core.policy import Divide, Offer, Sharing
from accelkit.core.units import Bytes
from accelkit.core.values import Enforcement, FrozenMap
from accelkit.core.view import Assignment, View
from tests.core.things import LATER, START, fatal, gpu

GIB = 1 << 30
MPS = Sharing(shares=3, divide=Divide.EQUAL, enforce=Enforcement.MPS, unit=Bytes(GIB))
SHARED = gpu("a", handle="GPU-1", capacity=FrozenMap({"memory": 16 * GIB}))
PLAIN = gpu("b")


def viewed(*devices: Device, sharing: Sharing = MPS) -> View:
    """*devices*, all but the plain one shared."""
    offers = {
        d.id: Offer(name="all", sharing=Sharing() if d == PLAIN else sharing) for d in devices
    }
    return View(
        snapshot=Snapshot(devices=devices),
        assignments=FrozenMap((i, Assignment(terms=terms)) for i, terms in offers.items()),
    )


@pytest.fixture
def problems() -> Problems:
    return Problems(lambda: START)


@pytest.fixture
def mps(tmp_path: Path, problems: Problems) -> Mps:
    return Mps(tmp_path, problems)


def wanted(tmp_path: Path) -> dict[str, object]:
    return {p.name: json.loads(p.read_text()) for p in (tmp_path / "mps").glob("*.json")}


def test_daemon_is_told_which_device_to_share_and_how(tmp_path: Path, mps: Mps) -> None:
    mps.look(viewed(SHARED, PLAIN), leading=True)

    assert wanted(tmp_path) == {
        "a.json": {
            "format": "1.0",
            "device": "toy/a",
            "uuid": "GPU-1",
            "shares": 3,
            "memory": 5 * GIB,
            "threads": 33,
        }
    }


def test_shares_that_have_no_part_each_are_not_limited(tmp_path: Path, mps: Mps) -> None:
    mps.look(viewed(SHARED, sharing=attrs.evolve(MPS, divide=Divide.NONE)), leading=True)
    limits = json.loads((tmp_path / "mps" / "a.json").read_text())

    assert (limits["memory"], limits["threads"]) == (None, None)


def test_device_is_unserved_until_its_daemon_is_ready(tmp_path: Path, mps: Mps) -> None:
    view = viewed(SHARED, PLAIN)
    before = mps.unserved(view)
    news = [mps.look(view, leading=True)]
    (tmp_path / "mps" / "a.ready").touch()
    news += [mps.look(view, leading=True), mps.look(view, leading=True)]
    ready = mps.unserved(view)
    (tmp_path / "mps" / "a.ready").unlink()
    news.append(mps.look(view, leading=True))

    assert before == mps.unserved(view) == {SHARED.id}
    assert ready == set()
    assert news == [False, True, False, True]


def test_unserved_device_has_a_condition_since_it_was_first_seen() -> None:
    sick = attrs.evolve(SHARED, conditions=(fatal(since=START),))
    snapshot = Snapshot(devices=(sick, PLAIN))
    first = with_missing(snapshot, {SHARED.id}, {}, START)
    again = with_missing(snapshot, {SHARED.id}, first.by_id, LATER)
    after = without_missing(again)

    found = again.by_id[SHARED.id].conditions
    assert [(c.code, c.since) for c in found] == [("burnt", START), ("service-missing", START)]
    assert again.by_id[PLAIN.id] is PLAIN
    assert after == snapshot
    assert without_missing(snapshot) is snapshot


def test_daemon_that_is_wanted_no_more_is_told_by_the_end_of_its_file(
    tmp_path: Path, mps: Mps
) -> None:
    mps.look(viewed(SHARED), leading=True)
    (tmp_path / "mps" / "a.ready").touch()
    (tmp_path / "mps" / "a").mkdir()
    mps.look(viewed(SHARED, sharing=Sharing()), leading=True)

    assert [path.name for path in (tmp_path / "mps").iterdir()] == ["a"]


def test_follower_looks_and_asks_for_nothing(tmp_path: Path, mps: Mps) -> None:
    (tmp_path / "mps").mkdir()
    (tmp_path / "mps" / "a.ready").touch()
    (tmp_path / "mps" / "old.json").touch()

    assert mps.look(viewed(SHARED), leading=False)
    assert sorted(path.name for path in (tmp_path / "mps").iterdir()) == ["a.ready", "old.json"]


def test_node_without_daemons_has_no_folder_for_them(tmp_path: Path, mps: Mps) -> None:
    mps.look(viewed(PLAIN), leading=True)

    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written_is_a_problem_until_it_can(
    tmp_path: Path, mps: Mps, problems: Problems
) -> None:
    (tmp_path / "mps").touch()
    mps.look(viewed(SHARED), leading=True)
    noted = [problem.code for problem in problems.all]
    (tmp_path / "mps").unlink()
    mps.look(viewed(SHARED), leading=True)

    assert (noted, problems.all) == (["daemons-not-asked"], ())


def test_file_is_written_again_only_when_it_is_not_as_wanted(tmp_path: Path, mps: Mps) -> None:
    path = tmp_path / "mps" / "a.json"
    mps.look(viewed(SHARED), leading=True)
    first = path.stat().st_ino
    mps.look(viewed(SHARED), leading=True)
    second = path.stat().st_ino
    path.write_text("rubbish")
    mps.look(viewed(SHARED), leading=True)

    assert first == second
    assert wanted(tmp_path).keys() == {"a.json"}

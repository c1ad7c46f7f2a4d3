import json
import os
from pathlib import Path

import attrs
import pytest

from accelkit.agent.heard import Cleared, Told
from accelkit.agent.judged import verdicts
from accelkit.agent.memory import (
    ASSIGNMENT,
    COURSE,
    INVENTORY,
    MadeFor,
    Memory,
    write_whole,
)
from accelkit.agent.problems import Problems
from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import Device, Evidence, Link, Snapshot
from accelkit.core.policy import Divide, Offer, Selection, Sharing
from accelkit.core.values import FrozenMap, Health, LinkKind, Severity, Standing, Version
from accelkit.core.view import Assignment, Past, Verdict, View
from tests.core.things import DOMAINS, START, cut, fatal, gpu, of, part

TERMS = Offer(
    name="shared",
    select=Selection(attributes=FrozenMap({"level": ("7",)})),
    resource="example.com/x",
    sharing=Sharing(shares=4, divide=Divide.EQUAL),
)
EDITS = ContainerEdits(env=FrozenMap({"GPU": "b"}))
LOST = gpu("b", standing=Standing.LOST, conditions=(fatal("lost", message="gone"),))
VIEW = View(
    snapshot=Snapshot(
        node="n1",
        devices=(
            cut("a", attributes={"firmware": Version(1, 2, 3), "level": 7, "fast": True}),
            part("a", 1),
            LOST,
        ),
        links=(Link.between(of("a"), of("b"), LinkKind.HOST),),
        software=FrozenMap({"toy/driver": "1.0"}),
        answered=frozenset({"toy"}),
        taken_at=START,
    ),
    assignments=FrozenMap(
        {
            of("a"): Assignment(terms=None, why="it is cut"),
            of("b"): Assignment(terms=TERMS, leaving=True, why="held on earlier terms"),
        }
    ),
    edits=FrozenMap({of("b"): EDITS}),
    domains=DOMAINS,
)

HEARD = Evidence(
    vendor="toy",
    subject="a",
    code="xid-79",
    source="nvml",
    count=3,
    first=START,
    last=START,
    data=FrozenMap({"pid": "7"}),
)
TOLD = Told(
    evidence=(HEARD,),
    numbers=FrozenMap({"kernel": 17}),
    cleared=(Cleared(vendor="toy", subject="b", code="xid-63"),),
    clears=4,
)
PAST = Past(
    turned_s=9.0,
    faults=(fatal(message="smoke", since=START),),
    changes=(3.0, 9.0),
    flapping_s=5.0,
    health=Health.UNHEALTHY,
    since_s=2.0,
    since=START,
)
VERDICTS = FrozenMap(
    {of("a"): Verdict(health=Health.UNHEALTHY, since=START, since_s=7.0, past=PAST)}
)


@pytest.fixture
def problems() -> Problems:
    return Problems(lambda: START)


@pytest.fixture
def memory(tmp_path: Path, problems: Problems) -> Memory:
    return Memory(tmp_path / "boot", "1.2.3", problems)


def codes(problems: Problems) -> list[tuple[str, str]]:
    return [(p.code, Path(p.subject or "").name) for p in problems.all]


def test_what_was_believed_is_recalled_by_the_next_instance(
    tmp_path: Path, memory: Memory, problems: Problems
) -> None:
    memory.keep(VIEW)

    view, edits = Memory(tmp_path / "boot", "1.2.4", problems).recall("n1")

    assert view == View(
        # Which vendors have answered is for each instance to see.
        snapshot=attrs.evolve(VIEW.snapshot, answered=frozenset()),
        assignments=VIEW.assignments,
    )
    assert view.assignments[of("b")].why == "held on earlier terms"
    assert view.devices[of("b")].conditions[0].message == "gone"
    assert edits == (MadeFor(device=of("b"), terms=TERMS, edits=EDITS),)
    assert problems.all == ()


def test_first_start_of_a_boot_recalls_nothing(memory: Memory, problems: Problems) -> None:
    assert memory.recall("n1") == (View(snapshot=Snapshot(node="n1")), ())
    assert problems.all == ()


def test_files_are_written_only_when_something_changed(tmp_path: Path, memory: Memory) -> None:
    def stamps() -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in (tmp_path / "boot").iterdir()}

    memory.keep(VIEW)
    first = stamps()
    memory.keep(attrs.evolve(VIEW, snapshot=attrs.evolve(VIEW.snapshot, taken_at=None)))
    second = stamps()
    memory.keep(attrs.evolve(VIEW, assignments=FrozenMap(), edits=FrozenMap()))

    assert first == second
    assert first.keys() == {INVENTORY, ASSIGNMENT}
    assert all(first[name] != inode for name, inode in stamps().items())


def test_file_that_is_gone_is_written_again(tmp_path: Path, memory: Memory) -> None:
    memory.keep(VIEW)
    for path in (tmp_path / "boot").iterdir():
        path.unlink()
    (tmp_path / "boot").rmdir()
    memory.keep(VIEW)

    assert {path.name for path in (tmp_path / "boot").iterdir()} == {INVENTORY, ASSIGNMENT}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": "2.0"}',
        '{"writer": "1.0"}',
        '{"format": "1.0", "devices": [{"id": "toy/a"}]}',
        '{"format": "1.0", "devices": [%s, %s]}' % (('{"id": "toy/a", "kind": "x"}',) * 2),
        '{"format": "1.0", "later": 1, "devices": 7}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_inventory_that_cannot_be_read_is_a_problem_and_no_more(
    tmp_path: Path, memory: Memory, problems: Problems, text: str
) -> None:
    memory.keep(VIEW)
    (tmp_path / "boot" / INVENTORY).write_bytes(text.encode(errors="surrogateescape"))

    view, edits = memory.recall("n1")

    assert (view.snapshot, edits) == (Snapshot(node="n1"), ())
    assert view.assignments == VIEW.assignments
    assert codes(problems) == [("memory-ignored", INVENTORY)]
    assert all(p.reason and p.remedy for p in problems.all)


def test_links_and_pipes_in_the_place_of_files_are_not_read(
    tmp_path: Path, memory: Memory, problems: Problems
) -> None:
    memory.keep(VIEW)
    for name in (INVENTORY, ASSIGNMENT):
        (tmp_path / "boot" / name).unlink()
    (tmp_path / "boot" / INVENTORY).symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "boot" / ASSIGNMENT)

    view, _ = memory.recall("n1")

    assert (view.snapshot, dict(view.assignments)) == (Snapshot(node="n1"), {})
    assert codes(problems) == [("memory-ignored", ASSIGNMENT), ("memory-ignored", INVENTORY)]


def test_problem_of_a_file_goes_when_it_is_written_again(
    tmp_path: Path, memory: Memory, problems: Problems
) -> None:
    write_whole(tmp_path / "boot" / ASSIGNMENT, b"rubbish")
    memory.recall("n1")
    noted = codes(problems)
    memory.keep(VIEW)

    assert noted == [("memory-ignored", ASSIGNMENT)]
    assert problems.all == ()


def test_what_a_later_version_of_the_format_adds_is_left_out(
    tmp_path: Path, memory: Memory, problems: Problems
) -> None:
    memory.keep(VIEW)
    path = tmp_path / "boot" / INVENTORY
    tree = json.loads(path.read_text())
    tree["format"] = "1.9"
    tree["colour"] = "blue"
    tree["devices"][0]["smell"] = {"kind": "none"}
    path.write_text(json.dumps(tree))

    view, _ = memory.recall("n1")

    assert view.devices == VIEW.devices
    assert problems.all == ()


def test_directory_that_cannot_be_written_is_a_problem_until_it_can(
    tmp_path: Path, memory: Memory, problems: Problems
) -> None:
    (tmp_path / "boot").write_text("in the way")
    memory.keep(VIEW)
    noted = codes(problems)
    (tmp_path / "boot").unlink()
    memory.keep(VIEW)

    assert noted == [("not-remembered", ASSIGNMENT), ("not-remembered", INVENTORY)]
    assert problems.all == ()


def test_device_of_every_kind_survives_being_kept(memory: Memory) -> None:
    whole = cut("a", nodes=(), conditions=(fatal(), fatal("hot", severity=Severity.DEGRADED)))
    devices: tuple[Device, ...] = (whole, part("a", 0), gpu("b", aliases={"GPU-1"}, handle="7"))
    memory.keep(attrs.evolve(VIEW, snapshot=Snapshot(devices=devices)))

    assert memory.recall("")[0].snapshot.devices == devices


def test_what_was_heard_stays_to_be_written_where_the_disk_is_full(
    tmp_path: Path, memory: Memory, problems: Problems
) -> None:
    (tmp_path / "boot").write_text("in the way")
    memory.keep_course(TOLD, VERDICTS)
    noted = codes(problems)
    (tmp_path / "boot").unlink()
    memory.keep_course(TOLD, VERDICTS)

    assert noted == [("not-remembered", COURSE)]
    assert problems.all == ()
    assert Memory(tmp_path / "boot", "1", problems).recall_course().told == TOLD


def test_verdicts_are_kept_with_all_that_damping_needs(memory: Memory, tmp_path: Path) -> None:
    memory.keep_course(TOLD, VERDICTS)

    kept = verdicts(memory.recall_course(), 100.0)

    assert kept == VERDICTS
    assert kept[of("a")].past == PAST
    assert (kept[of("a")].since, kept[of("a")].since_s) == (START, 7.0)
    assert (tmp_path / "boot" / COURSE).stat().st_mode & 0o777 == 0o600


def test_times_of_another_boot_are_not_later_than_now(memory: Memory) -> None:
    memory.keep_course(TOLD, VERDICTS)

    past = verdicts(memory.recall_course(), 4.0)[of("a")].past

    assert past is not None
    assert (past.turned_s, past.changes, past.flapping_s, past.since_s) == (4, (3, 4), 4, 2)


def test_times_alone_are_written_too(tmp_path: Path, memory: Memory) -> None:
    memory.keep_course(TOLD, VERDICTS)
    before = (tmp_path / "boot" / COURSE).stat().st_ino
    memory.keep_course(TOLD, VERDICTS)
    same = (tmp_path / "boot" / COURSE).stat().st_ino
    later = attrs.evolve(VERDICTS[of("a")], since_s=8.0)
    memory.keep_course(TOLD, FrozenMap({of("a"): later}))

    assert before == same
    assert (tmp_path / "boot" / COURSE).stat().st_ino != before


def test_news_are_told_once(tmp_path: Path, memory: Memory, problems: Problems) -> None:
    follower = Memory(tmp_path / "boot", "1", problems)
    nothing = follower.news()
    memory.keep_course(TOLD, VERDICTS)

    assert (nothing, follower.news(), follower.news()) == (None, TOLD, None)


def test_news_that_cannot_be_read_are_none(
    tmp_path: Path, memory: Memory, problems: Problems
) -> None:
    write_whole(tmp_path / "boot" / COURSE, b"rubbish")

    assert memory.news() is None
    assert codes(problems) == [("memory-ignored", COURSE)]
    assert (tmp_path / "boot" / COURSE).exists()

import asyncio
import json
import stat
from datetime import datetime
from pathlib import Path

import attrs
import pytest

from accelkit.agent.disk import HostDisk, Mark
from accelkit.agent.ledger import Ledger
from accelkit.core.allocation import ClaimRef, Piece
from accelkit.core.claim_record import Record, write_record
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import LedgerBusy, LedgerError, LedgerNewer, NoSpace
from tests.agent.keeping.board import ident
from tests.agent.keeping.process import Process
from tests.agent.keeping.storage import MemoryStorage
from tests.agent.keeping.virtual import VirtualClock, virtually

ENTRY = LedgerEntry(
    state=EntryState.WORKING,
    claim=ClaimRef(uid="1", namespace="default", name="c1"),
    driver="toy.accelkit.dev",
    pieces=(Piece(device=ident("a"), request="r"),),
)
READY = attrs.evolve(ENTRY, state=EntryState.READY)


def of(run: Path, boot: str = "b1", writer: str = "1.0") -> Ledger:
    """A ledger of another process on a real directory."""
    return Ledger(run, boot, writer=writer, clock=VirtualClock(), disk=HostDisk())


def opened(run: Path, boot: str = "b1", writer: str = "1.0") -> Ledger:
    ledger = of(run, boot, writer)
    ledger.open()
    return ledger


def claims(run: Path) -> Path:
    return run / "b1" / "claims"


def test_an_entry_is_a_file_that_another_instance_reads(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)

    written = one.put(ENTRY)
    other.refresh()

    assert dict(other.entries) == {"1": ENTRY} == dict(one.entries)
    assert (written.writer, written.since) == ("1.0", VirtualClock().now())
    assert stat.S_IMODE((claims(tmp_path) / "1.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(claims(tmp_path).stat().st_mode) == 0o700

    other.drop("1")
    one.refresh()

    assert dict(one.entries) == {}


def test_one_look_at_one_claim_sees_what_others_did(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    one.put(ENTRY)

    assert other.look("1") == ENTRY

    one.put(READY)

    assert other.look("1") == READY

    one.drop("1")

    assert other.look("1") is None
    assert dict(other.entries) == {}


def test_users_of_devices_are_known_until_they_give_them_back(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    shared = attrs.evolve(ENTRY, claim=attrs.evolve(ENTRY.claim, uid="2"))
    one.put(shared)
    one.put(READY)
    other.refresh()

    assert other.users_of([ident("b"), ident("a")]) == (READY, shared)
    assert other.users_of([ident("b")]) == ()

    one.drop("2")
    one.put(attrs.evolve(READY, pieces=(Piece(device=ident("b"), request="r"),)))
    other.refresh()

    assert other.users_of([ident("a")]) == ()
    assert [user.claim.uid for user in other.users_of([ident("b")])] == ["1"]


def test_the_time_of_a_state_stays_until_the_state_changes(tmp_path: Path) -> None:
    class Later(VirtualClock):
        hours = 0

        def now(self) -> datetime:
            return super().now().replace(hour=10 + self.hours)

    clock = Later()
    ledger = Ledger(tmp_path, "b1", writer="1.0", clock=clock, disk=HostDisk())
    ledger.open()
    first = ledger.put(ENTRY)
    clock.hours = 1

    assert ledger.put(attrs.evolve(ENTRY, create=(ident("p"),))).since == first.since
    assert ledger.put(READY).since != first.since


def test_what_a_later_minor_version_added_is_kept_when_an_entry_is_written(tmp_path: Path) -> None:
    ledger = opened(tmp_path, writer="1.0")
    tree = json.loads(write_record(Record(READY)))
    tree |= {"format": "1.7", "writer": "1.9", "colour": "red"}
    tree["pieces"][0]["weight"] = 3
    (claims(tmp_path) / "1.json").write_text(json.dumps(tree))

    found = ledger.look("1")
    assert found == READY
    ledger.put(attrs.evolve(READY, state=EntryState.RELEASING))

    written = json.loads((claims(tmp_path) / "1.json").read_text())
    assert (written["colour"], written["pieces"][0]["weight"]) == ("red", 3)
    assert (written["state"], written["writer"]) == ("releasing", "1.0")


def test_an_entry_of_a_later_major_version_is_left_alone_with_its_devices(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    content = b'{"format": "2.0", "writer": "9", "things": [{"device": "toy/a"}]}'
    (claims(tmp_path) / "1.json").write_bytes(content)

    ledger.refresh()

    (unread,) = ledger.unread
    assert (unread.uid, unread.devices) == ("1", (ident("a"),))
    with pytest.raises(LedgerNewer, match=r"version '9' in format 2\.0"):
        ledger.look("1")
    assert (claims(tmp_path) / "1.json").read_bytes() == content

    (claims(tmp_path) / "1.json").unlink()
    ledger.refresh()

    assert ledger.unread == ()


@pytest.mark.parametrize(
    "content", [b"{", b"{}", b"[]", b'{"format": "1.0"}', b"\x00" * 9, b"", b'"device": "toy/a"']
)
def test_a_damaged_entry_is_set_aside_and_all_others_are_served(
    content: bytes, tmp_path: Path
) -> None:
    ledger = opened(tmp_path)
    ledger.put(attrs.evolve(ENTRY, claim=ClaimRef(uid="2", namespace="n", name="c2")))
    (claims(tmp_path) / "1.json").write_bytes(content)

    ledger.refresh()

    assert set(ledger.entries) == {"2"}
    assert [one.uid for one in ledger.unread] == ["1"]
    assert (tmp_path / "b1" / "quarantine" / "1.0.json").read_bytes() == content
    assert sorted(path.name for path in claims(tmp_path).iterdir()) == [".kept", "2.json"]


def test_devices_of_a_damaged_entry_are_known_after_a_restart_until_the_claim_ends(
    tmp_path: Path,
) -> None:
    (claims(tmp_path)).mkdir(parents=True)
    whole = write_record(Record(READY))
    (claims(tmp_path) / "1.json").write_bytes(whole[:-40])
    opened(tmp_path)

    again = opened(tmp_path)

    (unread,) = again.unread
    assert (unread.uid, unread.devices) == ("1", (ident("a"),))
    assert "1" in str(unread.error)

    again.drop("1")

    assert again.unread == ()
    assert opened(tmp_path).unread == ()


def test_what_was_set_aside_by_one_instance_is_known_to_the_other(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    (claims(tmp_path) / "1.json").write_bytes(b"{")
    one.refresh()

    other.refresh()
    assert [unread.uid for unread in other.unread] == ["1"]

    one.drop("1")
    other.refresh()
    assert other.unread == ()


def test_each_damaged_entry_of_a_claim_is_kept(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    for content in (b"{1", b"{2"):
        (claims(tmp_path) / "1.json").write_bytes(content)
        ledger.refresh()

    aside = tmp_path / "b1" / "quarantine"
    assert [(aside / f"1.{n}.json").read_bytes() for n in (0, 1)] == [b"{1", b"{2"]


def test_a_claim_that_is_written_anew_is_damaged_no_more(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    (claims(tmp_path) / "1.json").write_bytes(b"{")
    ledger.refresh()

    ledger.put(ENTRY)

    assert (ledger.unread, set(ledger.entries)) == ((), {"1"})


def test_a_damaged_entry_that_somebody_works_on_is_left_to_them(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    (claims(tmp_path) / "1.json").write_bytes(b"{")
    with ledger.locks.free("1") as free:
        assert free
        other = opened(tmp_path)

    assert (claims(tmp_path) / "1.json").read_bytes() == b"{"
    assert other.unread == ()


def test_an_entry_of_another_claim_than_its_name_says_is_damaged(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    (claims(tmp_path) / "2.json").write_bytes(write_record(Record(ENTRY)))

    ledger.refresh()

    assert [one.uid for one in ledger.unread] == ["2"]


def test_what_was_set_aside_by_hand_is_named_so(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    (tmp_path / "b1" / "quarantine" / "1.0.json").write_bytes(write_record(Record(ENTRY)))
    (tmp_path / "b1" / "quarantine" / "README").write_bytes(b"not a claim")

    ledger.refresh()

    (unread,) = ledger.unread
    assert "it was set aside by hand" in str(unread.error)


@pytest.mark.parametrize("name", ["..json", "UP.json", "1.txt", "readme", ".json", "x y.json"])
def test_files_that_are_no_entries_are_left_alone(name: str, tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    (claims(tmp_path) / name).write_bytes(b"{")

    ledger.refresh()
    opened(tmp_path)

    assert (claims(tmp_path) / name).read_bytes() == b"{"
    assert (ledger.unread, dict(ledger.entries)) == ((), {})


def test_what_writers_that_ended_left_is_removed_at_the_start(tmp_path: Path) -> None:
    opened(tmp_path).put(ENTRY)
    for name in (".1.json.tmp", ".2.json.tmp", "2.lock", "1.lock"):
        (claims(tmp_path) / name).write_bytes(b"")

    opened(tmp_path)

    left = sorted(path.name for path in claims(tmp_path).iterdir())
    assert left == [".kept", "1.json", "1.lock"]


def test_what_somebody_writes_now_is_left_at_the_start(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with ledger.locks.free("1"):
        (claims(tmp_path) / ".1.json.tmp").write_bytes(b"{")
        opened(tmp_path)

        assert (claims(tmp_path) / ".1.json.tmp").exists()


def test_a_directory_that_was_emptied_is_filled_again(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "run")
    ledger.put(READY)
    (tmp_path / "run").rename(tmp_path / "gone")

    ledger.refresh()

    assert ledger.wiped == 1
    assert opened(tmp_path / "run").look("1") == READY


def test_the_next_write_fills_a_directory_that_was_emptied(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "run")
    ledger.put(READY)
    (tmp_path / "run").rename(tmp_path / "gone")

    ledger.put(attrs.evolve(ENTRY, claim=ClaimRef(uid="2", namespace="n", name="c2")))

    assert set(opened(tmp_path / "run").entries) == {"1", "2"}


def test_files_that_were_removed_together_with_their_marker_are_written_again(
    tmp_path: Path,
) -> None:
    ledger = opened(tmp_path)
    ledger.put(READY)
    for path in claims(tmp_path).iterdir():
        path.unlink()

    ledger.refresh()

    assert set(opened(tmp_path).entries) == {"1"}


def test_instances_that_start_at_once_do_not_take_each_other_for_an_emptied_directory(
    tmp_path: Path,
) -> None:
    class Overtaken(HostDisk):
        """Another instance starts between its first look and its first write."""

        def mark(self, path: Path) -> Mark | None:
            found = super().mark(path)
            if found is None and not others:
                others.append(of(tmp_path))
                others[0].open()
            return found

    others: list[Ledger] = []
    ledger = Ledger(tmp_path, "b1", writer="1.0", clock=VirtualClock(), disk=Overtaken())
    ledger.open()

    for instance in (ledger, *others):
        instance.refresh()
        assert instance.wiped == 0
    assert len(others) == 1


def test_a_directory_that_somebody_else_fills_is_left_to_them(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    ledger.put(READY)
    (claims(tmp_path) / ".kept").unlink()
    (claims(tmp_path) / "1.json").unlink()
    other = of(tmp_path)
    with other.locks.places_free() as free:
        assert free
        ledger.refresh()

    assert not (claims(tmp_path) / "1.json").exists()
    assert dict(ledger.entries) == {"1": READY}

    ledger.refresh()

    assert (claims(tmp_path) / "1.json").exists()


def test_other_boots_are_forgotten_and_nothing_else(tmp_path: Path) -> None:
    opened(tmp_path, "b0").put(ENTRY)
    ledger = opened(tmp_path, "b1")
    (tmp_path / "mps").mkdir()
    (tmp_path / "leader.lock").write_text("")

    ledger.forget_other_boots()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["b1", "leader.lock", "mps"]
    assert dict(ledger.entries) == {}


def test_a_run_directory_that_is_not_there_yet_has_no_other_boots(tmp_path: Path) -> None:
    of(tmp_path / "missing").forget_other_boots()


@virtually
async def test_a_lock_that_another_process_has_is_waited_for(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    order: list[str] = []

    async def work(ledger: Ledger, name: str) -> None:
        async with ledger.locks.claim("1", until=40.0):
            order.append(f"{name} begins")
            await asyncio.sleep(5.0)
            order.append(f"{name} ends")

    await asyncio.gather(work(one, "one"), work(other, "other"))

    assert order == ["one begins", "one ends", "other begins", "other ends"]
    assert sorted(path.name for path in claims(tmp_path).iterdir()) == [".kept"]


@virtually
async def test_a_lock_that_is_not_given_back_in_time_is_told_with_its_holder(
    tmp_path: Path,
) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    async with one.locks.places(until=0.0), one.locks.claim("1", until=0.0):
        with pytest.raises(LedgerBusy, match=r"claim 1: another agent works there \(process \d+\)"):
            async with other.locks.claim("1", until=3.0):
                pass
        with pytest.raises(LedgerBusy, match="the places of this node"):
            async with other.locks.places(until=3.0):
                pass


@virtually
async def test_a_lock_in_a_directory_that_was_removed_makes_it_anew(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "gone")

    async with ledger.locks.claim("1", until=0.0), ledger.locks.places(until=0.0):
        assert (tmp_path / "run" / "b1" / "claims" / "1.lock").exists()


def test_a_full_disk_is_told_and_what_was_written_stays() -> None:
    storage = MemoryStorage()
    ledger = Ledger(
        Path("/run/a"), "b1", writer="", clock=VirtualClock(), disk=storage.door(Process())
    )
    ledger.open()
    ledger.put(ENTRY)
    storage.full = True

    with pytest.raises(NoSpace, match="claim 1 cannot be written down"):
        ledger.put(READY)

    assert dict(ledger.entries) == {"1": ENTRY}
    assert ledger.look("1") == ENTRY


def test_a_run_directory_that_is_no_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")

    with pytest.raises(LedgerError, match="cannot be made"):
        opened(tmp_path / "run")


def test_scratch_directories_are_made_and_removed(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    ledger.make_scratch("1")
    ledger.make_scratch("1")
    (ledger.scratch("1") / "cache").write_text("x")

    assert stat.S_IMODE(ledger.scratch("1").stat().st_mode) == 0o1777

    ledger.remove_scratch("1")
    ledger.remove_scratch("1")

    assert list(ledger.scratch("1").parent.iterdir()) == []

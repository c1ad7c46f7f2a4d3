from typing import Any

import pytest

from accelkit.core.allocation import ClaimRef, Piece
from accelkit.core.claims import EntryState, LedgerEntry, is_uid
from accelkit.core.model import DeviceId
from tests.core.things import of


def test_pieces_of_admin_access_take_no_place() -> None:
    taken, seen = Piece(device=of("a")), Piece(device=of("b"), admin=True)
    entry = LedgerEntry(
        state=EntryState.READY,
        claim=ClaimRef(uid="1", namespace="n", name="c"),
        driver="toy",
        pieces=(taken, seen),
    )

    assert entry.places == (taken,)


def entry_of(*vendors: str, **fields: Any) -> LedgerEntry:  # type: ignore[explicit-any]  # of it
    return LedgerEntry(
        state=EntryState.READY,
        claim=ClaimRef(uid="1", namespace="n", name="c"),
        driver="a.accelkit.dev",
        pieces=tuple(Piece(device=DeviceId(vendor=vendor, name="x")) for vendor in vendors),
        **fields,
    )


def test_a_claim_knows_what_its_drivers_were_called() -> None:
    names = {"a": "a.accelkit.dev", "b": "gpu.corp.example"}

    assert entry_of("a", "b", drivers=names).called == names


def test_in_a_record_without_names_the_one_driver_has_that_of_the_claim() -> None:
    assert entry_of("a", "a").called == {"a": "a.accelkit.dev"}
    assert entry_of("a", "b").called == {}


@pytest.mark.parametrize("text", ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "2222", "a" * 64])
def test_uids_are_told_by_their_letters(text: str) -> None:
    assert is_uid(text)


@pytest.mark.parametrize("text", ["", "..", "../x", "a/b", "A", "a" * 65, "a\n", "ä", "a b", "."])
def test_what_could_be_a_path_is_no_uid(text: str) -> None:
    assert not is_uid(text)

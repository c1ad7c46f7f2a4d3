import pytest

from accelkit.core.allocation import ClaimRef, Piece
from accelkit.core.claims import EntryState, LedgerEntry, is_uid
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


@pytest.mark.parametrize("text", ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "2222", "a" * 64])
def test_uids_are_told_by_their_letters(text: str) -> None:
    assert is_uid(text)


@pytest.mark.parametrize("text", ["", "..", "../x", "a/b", "A", "a" * 65, "a\n", "ä", "a b", "."])
def test_what_could_be_a_path_is_no_uid(text: str) -> None:
    assert not is_uid(text)

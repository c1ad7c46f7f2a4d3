import json
from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given, strategies as st

from accelkit.core.allocation import Answer, ClaimRef, Piece, PodRef, Setting
from accelkit.core.claim_record import FORMAT, Record, devices_in, read_record, write_record
from accelkit.core.claims import CdiRecord, EntryState, LedgerEntry
from accelkit.core.errors import LedgerEntry as BadEntry, LedgerNewer
from accelkit.core.model import DeviceId
from accelkit.core.values import FrozenMap

PART = DeviceId(vendor="nvidia", name="gpu-8f6d-1g10gb-0")
WHOLE = DeviceId(vendor="nvidia", name="gpu-8f6d")
ENTRY = LedgerEntry(
    state=EntryState.READY,
    claim=ClaimRef(uid="2222-a", namespace="default", name="c1"),
    driver="nvidia.accelkit.dev",
    pieces=(
        Piece(device=PART, request="gpu", offer="mig"),
        Piece(device=WHOLE, request="all", share="7e-1", amounts=FrozenMap({"memory": 1 << 30})),
        Piece(device=WHOLE, request="look", admin=True),
    ),
    pods=(PodRef(uid="3333", namespace="default", name="p1"),),
    extended="example.com/gpu",
    drivers=FrozenMap({"nvidia": "nvidia.accelkit.dev"}),
    modes=FrozenMap({WHOLE: "mig"}),
    create=(PART,),
    handles=FrozenMap({PART: "MIG-1"}),
    settings=(
        Setting(device=WHOLE, key="timeslice", value="long"),
        Setting(device=None, key="daemon", value="runs"),
    ),
    cdi=CdiRecord(
        file="nvidia.accelkit.dev-claim_2222-a.json",
        digest="sha256:00",
        spec={"cdiVersion": "0.5.0", "devices": [{"name": "2222-a-gpu"}]},
    ),
    answer=(Answer(device=PART, requests=("gpu",), cdi_ids=("nvidia.accelkit.dev/claim=x",)),),
    trace=(("reserve", 0.4), ("create", 812.0)),
    since=datetime(2027, 1, 31, 10, tzinfo=UTC),
    writer="1.4.2",
)
PLAIN = LedgerEntry(
    state=EntryState.WORKING,
    claim=ENTRY.claim,
    driver="toy.accelkit.dev",
    pieces=(Piece(device=WHOLE),),
)


def tree_of(entry: LedgerEntry = ENTRY) -> dict[str, object]:
    tree: dict[str, object] = json.loads(write_record(Record(entry)))
    return tree


def text(tree: object) -> bytes:
    return json.dumps(tree).encode()


@pytest.mark.parametrize("entry", [ENTRY, PLAIN])
def test_what_is_written_is_read_as_the_same(entry: LedgerEntry) -> None:
    read = read_record(write_record(Record(entry)))

    assert (read.entry, read.entry.trace, read.entry.since, read.entry.writer) == (
        entry,
        entry.trace,
        entry.since,
        entry.writer,
    )
    assert write_record(read) == write_record(Record(entry))


def test_the_file_is_spelt_as_it_is_documented() -> None:
    assert tree_of() == {
        "format": "1.0",
        "writer": "1.4.2",
        "state": "ready",
        "since": "2027-01-31T10:00:00Z",
        "claim": {"uid": "2222-a", "namespace": "default", "name": "c1"},
        "driver": "nvidia.accelkit.dev",
        "drivers": {"nvidia": "nvidia.accelkit.dev"},
        "extended": "example.com/gpu",
        "pods": [{"uid": "3333", "namespace": "default", "name": "p1"}],
        "pieces": [
            {
                "device": "nvidia/gpu-8f6d-1g10gb-0",
                "request": "gpu",
                "share": None,
                "amounts": {},
                "admin": False,
                "offer": "mig",
            },
            {
                "device": "nvidia/gpu-8f6d",
                "request": "all",
                "share": "7e-1",
                "amounts": {"memory": 1073741824},
                "admin": False,
                "offer": "",
            },
            {
                "device": "nvidia/gpu-8f6d",
                "request": "look",
                "share": None,
                "amounts": {},
                "admin": True,
                "offer": "",
            },
        ],
        "modes": [{"device": "nvidia/gpu-8f6d", "mode": "mig"}],
        "create": ["nvidia/gpu-8f6d-1g10gb-0"],
        "handles": [{"device": "nvidia/gpu-8f6d-1g10gb-0", "handle": "MIG-1"}],
        "settings": [
            {"device": "nvidia/gpu-8f6d", "key": "timeslice", "value": "long"},
            {"device": None, "key": "daemon", "value": "runs"},
        ],
        "cdi": {
            "file": "nvidia.accelkit.dev-claim_2222-a.json",
            "digest": "sha256:00",
            "spec": {"cdiVersion": "0.5.0", "devices": [{"name": "2222-a-gpu"}]},
        },
        "answer": [
            {
                "device": "nvidia/gpu-8f6d-1g10gb-0",
                "requests": ["gpu"],
                "share": None,
                "cdi": ["nvidia.accelkit.dev/claim=x"],
            }
        ],
        "trace": [["reserve", 0.4], ["create", 812.0]],
    }


def test_keys_of_a_later_minor_version_are_kept_and_written_back() -> None:
    tree = tree_of()
    tree["format"] = "1.9"
    tree["colour"] = {"of": "the claim"}
    tree["claim"] = {"uid": "2222-a", "namespace": "default", "name": "c1", "generation": 7}
    pieces = tree["pieces"]
    settings = tree["settings"]
    assert isinstance(pieces, list)
    assert isinstance(settings, list)
    pieces[1]["tolerations"] = ["x"]
    settings[0]["until"] = "noon"
    record = read_record(text(tree))

    later = attrs.evolve(
        record.entry, state=EntryState.RELEASING, settings=record.entry.settings[1:]
    )
    written = json.loads(write_record(Record(later, record.tree)))

    assert record.entry == ENTRY
    assert written["colour"] == {"of": "the claim"}
    assert written["claim"]["generation"] == 7
    assert written["pieces"][1]["tolerations"] == ["x"]
    assert written["settings"] == [{"device": None, "key": "daemon", "value": "runs"}]
    assert (written["state"], written["format"]) == ("releasing", FORMAT)


def test_a_document_that_changed_keeps_nothing_of_the_one_before() -> None:
    record = read_record(write_record(Record(ENTRY)))
    cdi = CdiRecord(file="f", digest="sha256:11", spec={"cdiVersion": "0.6.0"})

    written = json.loads(write_record(Record(attrs.evolve(ENTRY, cdi=cdi), record.tree)))

    assert written["cdi"] == {"file": "f", "digest": "sha256:11", "spec": {"cdiVersion": "0.6.0"}}


def test_a_later_major_version_is_refused_as_newer() -> None:
    with pytest.raises(LedgerNewer, match=r"version '9.1' in format 2.0"):
        read_record(text({"format": "2.0", "writer": "9.1"}))


def test_a_word_of_a_later_minor_version_is_newer_and_not_damaged() -> None:
    with pytest.raises(LedgerNewer):
        read_record(text({**tree_of(), "format": "1.1", "state": "resting"}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "resting"},
        {"state": None},
        {"claim": {"uid": "../x", "namespace": "a", "name": "b"}},
        {"claim": None},
        {"driver": 7},
        {"pieces": [7]},
        {"pieces": [{"device": "nvidia", "request": "", "admin": False}]},
        {"pieces": [{"device": "a/b", "request": "", "admin": 1}]},
        {"pieces": [{"device": "a/b", "request": "", "admin": False, "amounts": {"m": True}}]},
        {"create": [7]},
        {"trace": [["reserve"]]},
        {"since": "yesterday"},
        {"settings": {}},
        {"format": "1"},
        {"format": None},
    ],
)
def test_what_is_no_entry_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadEntry):
        read_record(text({**tree_of(), **wrong}))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_what_is_no_mapping_is_refused(content: bytes) -> None:
    with pytest.raises(BadEntry):
        read_record(content)


@given(st.data())
def test_damage_anywhere_is_found_or_harmless(data: st.DataObject) -> None:
    content = bytearray(write_record(Record(ENTRY)))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))

    try:
        read_record(bytes(content))
    except (BadEntry, LedgerNewer):
        return


def test_devices_of_a_damaged_file_are_seen_where_they_stand() -> None:
    content = write_record(Record(ENTRY))

    assert devices_in(content) == (WHOLE, PART)
    assert devices_in(content[: content.index(b'"modes"')] + b"\x00") == (WHOLE, PART)
    assert devices_in(b'{"device": "/x", "device": "a/b/c"}') == ()

from datetime import timedelta

from hypothesis import given, strategies as st

from accelkit.core.evidence import MOST_EVIDENCE, merge, of_device, record
from accelkit.core.model import Device, DeviceId, Event, Evidence, Locality
from accelkit.core.values import FrozenMap
from tests.core.things import LATER, START, cut, gpu, part

XID = Event(subject="gpu-0", code="xid-79", source="nvml", data=FrozenMap({"pid": "7"}))

events = st.lists(
    st.builds(
        Event,
        subject=st.sampled_from([None, "gpu-0", "gpu-1"]),
        code=st.sampled_from(["xid-79", "xid-63"]),
        source=st.just("nvml"),
    ),
    max_size=8,
)


def entry(subject: str, vendor: str = "toy", code: str = "xid-79") -> Evidence:
    return Evidence(
        vendor=vendor, subject=subject, code=code, source="nvml", count=1, first=START, last=START
    )


def test_events_of_one_kind_are_one_entry_with_count_and_times() -> None:
    once = record((), "toy", [XID], START)
    again = Event(subject="gpu-0", code="xid-79", source="kernel", data=FrozenMap({"pid": "8"}))

    twice = record(once, "toy", [again], LATER)

    assert twice == (
        Evidence(
            vendor="toy",
            subject="gpu-0",
            code="xid-79",
            source="kernel",
            count=2,
            first=START,
            last=LATER,
            data=FrozenMap({"pid": "8"}),
        ),
    )


def test_an_entry_knows_when_its_last_event_was_for_durations() -> None:
    once = record((), "toy", [XID], START, now_s=5.0)

    assert [e.last_s for e in record(once, "toy", [XID], LATER, now_s=7.0)] == [7.0]


def test_an_event_of_the_whole_vendor_has_no_subject() -> None:
    [kept] = record((), "toy", [Event(subject=None, code="fabric-down", source="kernel")], START)

    assert kept.subject == ""


def test_same_codes_of_two_vendors_are_kept_apart() -> None:
    kept = record(record((), "toy", [XID], START), "other", [XID], START)

    assert [(e.vendor, e.count) for e in kept] == [("other", 1), ("toy", 1)]


def test_the_longest_ago_is_dropped_where_a_vendor_has_too_much() -> None:
    strange = entry("gpu-0", vendor="other")
    old = Event(subject="gpu-0", code="first", source="nvml")
    kept = record([strange], "toy", [old], START)

    many = [Event(subject=f"gpu-{n}", code="xid-1", source="nvml") for n in range(MOST_EVIDENCE)]
    kept = record(kept, "toy", many, START + timedelta(seconds=1))

    assert strange in kept
    assert len(kept) == MOST_EVIDENCE + 1
    assert "first" not in {e.code for e in kept}


@given(events, events)
def test_recording_in_two_goes_is_recording_at_once(
    first: list[Event], second: list[Event]
) -> None:
    assert record(record((), "toy", first, START), "toy", second, START) == record(
        (), "toy", [*first, *second], START
    )


def test_a_device_is_found_by_name_alias_and_place_and_its_vendor_counts() -> None:
    device = Device(
        id=DeviceId(vendor="toy", name="gpu-0"),
        kind="gpu",
        aliases=frozenset({"uuid-1"}),
        locality=Locality(pci_address="0000:41:00.0"),
    )
    its = [entry(subject) for subject in ("gpu-0", "uuid-1", "0000:41:00.0", "")]

    found = of_device([*its, entry("gpu-1"), entry("gpu-0", vendor="other")], device)

    assert found == tuple(its)


def test_evidence_of_a_parent_is_evidence_of_its_partitions() -> None:
    parent = cut("gpu-0", aliases={"uuid-1"})

    found = of_device([entry("uuid-1"), entry("gpu-1")], part("gpu-0", 0), parent)

    assert found == (entry("uuid-1"),)
    assert of_device([entry("gpu-0-1g-0")], gpu("gpu-0")) == ()


def test_too_many_entries_lose_those_that_mean_nothing_bad_first() -> None:
    many = [Event(subject=f"d{n}", code="xid-79", source="nvml") for n in range(3)]
    more = [Event(subject=f"d{n}", code="note", source="nvml") for n in range(MOST_EVIDENCE)]

    kept = record(record((), "toy", many, START), "toy", more, LATER, serious={"xid-79"})

    assert len(kept) == MOST_EVIDENCE
    assert [e.subject for e in kept if e.code == "xid-79"] == ["d0", "d1", "d2"]


def test_what_two_wrote_down_is_bounded_too() -> None:
    one = record(
        (), "toy", [Event(subject=f"a{n}", code="x", source="s") for n in range(200)], START
    )
    two = record(
        (), "toy", [Event(subject=f"b{n}", code="x", source="s") for n in range(200)], LATER
    )

    merged = merge(one, two)

    assert len(merged) == MOST_EVIDENCE
    assert {e for e in merged if e.subject.startswith("b")} == set(two)


@given(events, events)
def test_to_merge_is_the_same_in_any_order(one: list[Event], other: list[Event]) -> None:
    ours, theirs = record((), "toy", one, START), record((), "toy", other, LATER)

    assert merge(ours, theirs) == merge(theirs, ours)
    assert merge(ours, ours) == ours


def test_later_events_have_later_times_though_the_clock_is_set_back() -> None:
    fault = record((), "toy", [Event(subject="a", code="fault", source="kernel")], LATER)
    cured = record(fault, "toy", [Event(subject="a", code="cure", source="kernel")], START)
    again = record(cured, "toy", [Event(subject="a", code="fault", source="kernel")], START)
    other = record(again, "other", [Event(subject="a", code="fault", source="kernel")], START)

    times = {(e.vendor, e.code): e.last for e in other}
    assert {e.code: e.last for e in cured}["cure"] > LATER
    assert times["toy", "fault"] > times["toy", "cure"]
    assert times["other", "fault"] == START

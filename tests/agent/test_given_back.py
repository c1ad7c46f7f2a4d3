"""What is believed between the end of a claim and the next answers about it."""

from pathlib import Path

import attrs

from accelkit.agent.given_back import GivenBack
from accelkit.agent.holders import Holders
from accelkit.agent.problems import Problems
from accelkit.agent.sources import Source
from accelkit.core.clock import RealClock
from accelkit.core.model import (
    Condition,
    Device,
    Group,
    Holder,
    Holding,
    Link,
    Problem,
    Snapshot,
    VendorReport,
)
from accelkit.core.real_host import RealHost
from accelkit.core.values import HolderKind, LinkKind, Severity
from accelkit.core.view import View
from tests.agent.toys import Toy, device

CLOCK = RealClock()
PART, REST = (device("toy", name) for name in ("part", "rest"))
REPORT = VendorReport(
    vendor="toy",
    answered=True,
    devices=tuple(Device(id=i, kind="toy") for i in (PART, REST)),
    links=(Link(a=PART, b=REST, kind=LinkKind.DIRECT),),
    groups=(Group(kind="board", name="one", members=(PART, REST)),),
    problems=tuple(
        Problem(vendor="toy", subject=i.name, code="not-there", reason="its file is gone")
        for i in (PART, REST)
    ),
)


class Around:
    """One vendor, and a kubelet that says what a test puts here."""

    def __init__(self, folder: Path) -> None:
        self.told: tuple[Holding, ...] = ()
        self.source = Source(Toy(), RealHost(str(folder)), 1.0, CLOCK)
        self.holders = Holders(self._read, Problems(CLOCK.now))
        self.given_back = GivenBack({"toy": self.source}, self.holders)

    async def _read(self, _view: View) -> tuple[Holding, ...]:
        return self.told

    async def read_vendor(self) -> None:
        await self.source.read()
        self.source.heard = self.source.asked


def held(claim: str, *, pod: str | None = None) -> Holding:
    holder = Holder(kind=HolderKind.CLAIM, namespace="ns", claim=claim, pod=pod)
    return Holding(device=PART, through="dra", holder=holder)


async def test_unmade_partition_is_not_there_though_its_vendor_was_not_read_since(
    tmp_path: Path,
) -> None:
    around = Around(tmp_path)
    await around.read_vendor()
    around.given_back.compare(made=[PART], claims=[])
    before = around.given_back.corrected(REPORT)

    around.given_back.compare(made=[], claims=[])

    assert before == REPORT
    assert around.given_back.corrected(REPORT) == VendorReport(
        vendor="toy", answered=True, devices=REPORT.devices[1:], problems=REPORT.problems[1:]
    )


def test_what_is_wrong_with_a_partition_while_it_is_made_or_unmade_is_no_problem(
    tmp_path: Path,
) -> None:
    around = Around(tmp_path)

    around.given_back.compare(made=[PART], claims=[], changing=[PART])
    unwell = Condition(code="node-missing", severity=Severity.FATAL)
    devices = tuple(attrs.evolve(d, conditions=(unwell,)) for d in REPORT.devices)
    halfway = attrs.evolve(REPORT, devices=devices, problems=())

    told = around.given_back.corrected(halfway).devices
    assert told == (REPORT.devices[0], devices[1])
    assert around.given_back.corrected(REPORT) == attrs.evolve(REPORT, problems=REPORT.problems[1:])


async def test_partition_that_is_there_at_a_later_read_is_somebody_elses(tmp_path: Path) -> None:
    around = Around(tmp_path)
    around.given_back.compare(made=[PART], claims=[])
    around.given_back.compare(made=[], claims=[])

    await around.source.read()
    around.given_back.compare(made=[], claims=[])
    while_it_is_read = around.given_back.corrected(REPORT)
    around.source.heard = around.source.asked
    around.given_back.compare(made=[], claims=[])

    assert while_it_is_read != REPORT
    assert around.given_back.corrected(REPORT) == REPORT


async def test_partition_that_a_read_may_have_met_halfway_is_asked_for_again(
    tmp_path: Path,
) -> None:
    around = Around(tmp_path)
    around.given_back.compare(made=[PART], claims=[])
    await around.source.read()
    around.given_back.compare(made=[], claims=[])

    around.source.heard = around.source.asked
    around.given_back.compare(made=[], claims=[])

    assert around.given_back.corrected(REPORT) != REPORT


async def test_partition_that_is_made_again_is_there(tmp_path: Path) -> None:
    around = Around(tmp_path)
    around.given_back.compare(made=[PART], claims=[])
    around.given_back.compare(made=[], claims=[])

    around.given_back.compare(made=[PART], claims=[])

    assert around.given_back.corrected(REPORT) == REPORT


async def test_partition_that_is_half_made_for_a_claim_is_not_there_yet(tmp_path: Path) -> None:
    """It is offered as one that could be; of a stranger it is what it looks like."""
    around = Around(tmp_path)
    part, rest = (attrs.evolve(d, usable=False) for d in REPORT.devices)
    half = VendorReport(vendor="toy", answered=True, devices=(part, rest))
    around.given_back.compare(made=[PART], claims=[])

    assert around.given_back.corrected(half).devices == (rest,)


async def test_what_was_wrong_with_a_partition_before_it_was_given_counts_when_it_is_read_again(
    tmp_path: Path,
) -> None:
    around = Around(tmp_path)
    await around.read_vendor()
    around.given_back.compare(made=[PART], claims=[], given={PART: "1"})
    before = around.given_back.corrected(REPORT)
    await around.read_vendor()

    assert before == attrs.evolve(REPORT, problems=REPORT.problems[1:])
    assert around.given_back.corrected(REPORT) == REPORT


async def test_partition_that_a_claim_was_given_and_no_read_met_is_unseen(tmp_path: Path) -> None:
    around = Around(tmp_path)
    view = View(potential=REPORT.devices)
    await around.source.read()
    around.given_back.compare(made=[PART], claims=[], given={PART: "1"})
    around.source.heard = around.source.asked  # it may have been read before it was made
    early = around.given_back.unseen(view)
    await around.read_vendor()

    around.given_back.compare(made=[PART], claims=[], given={PART: "1"})
    late = around.given_back.unseen(view)
    there = View(snapshot=Snapshot(devices=REPORT.devices), potential=REPORT.devices)
    met = around.given_back.unseen(there)
    around.given_back.compare(made=[PART], claims=[], changing=[PART])

    assert (early, late, met) == ((), REPORT.devices[:1], ())
    around.given_back.compare(made=[PART], claims=[], given={PART: "2"})
    assert around.given_back.unseen(view) == ()  # it was made again, for another claim
    assert around.given_back.unseen(view) == ()


async def test_claim_that_is_over_holds_nothing_though_the_kubelet_named_it(
    tmp_path: Path,
) -> None:
    around = Around(tmp_path)
    others = (held("other", pod="p"), attrs.evolve(held("over"), device=REST))
    around.told = (held("over", pod="p"), *others)
    await around.holders.ask(View())
    around.given_back.compare(made=[], claims=[held("over")])
    before = tuple(around.given_back.without_over(around.told))

    around.given_back.compare(made=[], claims=[])

    assert before == around.told
    assert tuple(around.given_back.without_over(around.told)) == others


async def test_claim_that_the_kubelet_still_names_when_asked_again_holds(tmp_path: Path) -> None:
    """It may be another one of that name, whose record was lost."""
    around = Around(tmp_path)
    around.told = (held("over", pod="p"),)
    around.given_back.compare(made=[], claims=[held("over")])
    around.given_back.compare(made=[], claims=[])

    await around.holders.ask(View())
    around.given_back.compare(made=[], claims=[])

    assert tuple(around.given_back.without_over(around.told)) == around.told


async def test_claim_of_the_same_name_holds_again(tmp_path: Path) -> None:
    around = Around(tmp_path)
    around.given_back.compare(made=[], claims=[held("over")])
    around.given_back.compare(made=[], claims=[])

    around.given_back.compare(made=[], claims=[held("over")])

    told = (held("over", pod="p"),)
    assert tuple(around.given_back.without_over(told)) == told


async def test_partition_of_a_vendor_that_is_asked_no_more_is_nothing_to_remember(
    tmp_path: Path,
) -> None:
    around = Around(tmp_path)
    other = VendorReport(
        vendor="other", answered=True, devices=(Device(id=device("other", "x"), kind="x"),)
    )
    around.given_back.compare(made=[device("other", "x")], claims=[])

    around.given_back.compare(made=[], claims=[])

    assert around.given_back.corrected(other) == other

import json
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from accelkit.agent.calls import Here
from accelkit.agent.problems import Problems
from accelkit.agent.sources import Source
from accelkit.agent.standing import FILE, Standing
from accelkit.agent.works import Works
from accelkit.core.allocation import ClaimRef, Piece, Setting
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.clock import RealClock
from accelkit.core.errors import SourceError
from accelkit.core.host import Host
from accelkit.core.model import Snapshot
from accelkit.core.policy import Offer, Sharing, Timeslice
from accelkit.core.values import FrozenMap, Standing as Seen
from accelkit.core.view import Assignment, View
from tests.agent.toys import Cutting, cut_host
from tests.core.things import START

LONG = Sharing(shares=2, timeslice=Timeslice.LONG)
SHORT = Sharing(shares=2, timeslice=Timeslice.SHORT)


class Bench:
    """Standing settings of one device, whose switch is a file."""

    def __init__(self, tmp_path: Path) -> None:
        self.vendor = Cutting()
        self.host = cut_host(tmp_path, "whole")
        self.source = Source(self.vendor, self.host, 1.0, RealClock())
        self.device = self.vendor.whole(self.host)
        self.switch = tmp_path / "host" / "cut" / "switch"
        self.file = tmp_path / "boot" / FILE
        self.entries: dict[str, LedgerEntry] = {}
        self.problems = Problems(lambda: START)
        self.standing = self.another()

    def replace(self, vendor: Cutting) -> None:
        """Let *vendor* answer from now on."""
        self.source._asked = Here(vendor, self.host)

    def another(self) -> Standing:
        """As an instance that starts anew."""
        view = View(snapshot=Snapshot(devices=(self.device,)))
        return Standing(
            Works({"cutting": self.source}, lambda: view),
            frozenset({"cutting"}),
            lambda: self.entries,
            self.file.parent,
            self.problems,
        )

    def view(
        self, sharing: Sharing = LONG, through: str = "kubelet", seen: Seen = Seen.PRESENT
    ) -> View:
        device = attrs.evolve(self.device, standing=seen)
        terms = Offer(name="all", through=through, sharing=sharing)
        return View(
            snapshot=Snapshot(devices=(device,), answered=frozenset({"cutting"})),
            assignments=FrozenMap({device.id: Assignment(terms=terms)}),
        )

    def claim(self, value: str, state: EntryState = EntryState.READY) -> LedgerEntry:
        return LedgerEntry(
            state=state,
            claim=ClaimRef(uid="1", namespace="team", name="c"),
            driver="d",
            pieces=(Piece(device=self.device.id),),
            settings=(self.setting(value),),
        )

    def setting(self, value: str) -> Setting:
        return Setting(device=self.device.id, key="switch", value=value)

    @property
    def told(self) -> Mapping[str, str]:
        return {p.code: p.reason for p in self.problems.all}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_what_the_policy_wants_of_devices_of_the_kubelet_is_set(bench: Bench) -> None:
    await bench.standing.renew(bench.view())

    assert bench.switch.read_text() == "long"
    assert bench.told == {}


async def test_devices_that_are_prepared_claim_by_claim_are_left_alone(bench: Bench) -> None:
    await bench.standing.renew(bench.view(through="dra"))

    assert bench.switch.read_text() == ""
    assert not bench.file.exists()


async def test_what_somebody_else_changed_is_set_again(bench: Bench) -> None:
    bench.entries = {"1": bench.claim("short")}
    await bench.standing.renew(bench.view(through="dra"))
    bench.switch.write_text("drifted")
    await bench.standing.renew(bench.view(through="dra"))

    assert bench.switch.read_text() == "short"


async def test_what_the_policy_wants_no_more_is_undone_by_whoever_leads_then(bench: Bench) -> None:
    await bench.standing.renew(bench.view())
    await bench.another().renew(bench.view(sharing=Sharing()))

    assert bench.vendor.works == ["apply long", "revert"]
    assert bench.switch.read_text() == ""
    assert json.loads(bench.file.read_text()) == []


async def test_setting_that_a_claim_has_taken_over_is_not_undone(bench: Bench) -> None:
    await bench.standing.renew(bench.view())
    bench.entries = {"1": bench.claim("long")}
    await bench.standing.renew(bench.view(through="dra"))

    assert bench.switch.read_text() == "long"
    assert "revert" not in bench.vendor.works


@pytest.mark.parametrize("seen", [Seen.STALE, None])
async def test_nothing_is_undone_while_it_is_not_known_what_is_there(
    bench: Bench, seen: Seen | None
) -> None:
    await bench.standing.renew(bench.view())
    view = View() if seen is None else bench.view(seen=seen)
    await bench.standing.renew(view)

    assert bench.switch.read_text() == "long"
    assert json.loads(bench.file.read_text())


async def test_need_that_cannot_be_known_is_a_problem_and_nothing_is_undone(bench: Bench) -> None:
    class Mute(Cutting):
        def needs(self, host: Host, grant: object) -> tuple[Setting, ...]:  # noqa: ARG002 - a toy
            raise SourceError("no idea")

    await bench.standing.renew(bench.view())
    mute = Mute()
    bench.replace(mute)
    await bench.standing.renew(bench.view())

    assert bench.told == {"setting-failed": "cutting/a: no idea"}
    assert (bench.switch.read_text(), mute.works) == ("long", [])


async def test_claim_that_is_being_prepared_or_released_is_left_to_its_keeper(
    bench: Bench,
) -> None:
    for state in (EntryState.WORKING, EntryState.RELEASING, EntryState.STUCK):
        bench.entries = {"1": bench.claim("short", state)}
        await bench.standing.renew(bench.view())

    assert bench.vendor.works == []


async def test_claim_that_ends_while_its_setting_is_renewed_leaves_nothing_set(
    bench: Bench,
) -> None:
    class Ending(Cutting):
        def apply(self, host: Host, setting: Setting) -> None:
            super().apply(host, setting)
            bench.entries.clear()

    bench.replace(Ending())
    bench.entries = {"1": bench.claim("short")}
    await bench.standing.renew(bench.view(through="dra"))

    assert bench.switch.read_text() == ""


async def test_policy_gives_way_to_a_claim_that_wants_it_otherwise(bench: Bench) -> None:
    bench.entries = {"1": bench.claim("short")}
    await bench.standing.renew(bench.view())
    told = bench.told
    bench.entries.clear()
    await bench.standing.renew(bench.view())

    assert bench.vendor.works == ["apply short", "apply long"]
    assert told == {
        "conflicting-setting": "cutting/a switch: the policy wants long, a claim has set short"
    }
    assert bench.told == {}


async def test_setting_that_cannot_be_made_or_undone_is_a_problem_until_it_can(
    bench: Bench,
) -> None:
    bench.vendor.raising = SourceError("stuck")
    await bench.standing.renew(bench.view())
    made = bench.told
    await bench.standing.renew(bench.view(sharing=Sharing()))
    undone = bench.told
    bench.vendor.raising = None
    await bench.standing.renew(bench.view(sharing=Sharing()))

    assert made == {"setting-failed": "cutting/a switch: it cannot be long: stuck"}
    assert undone == {"setting-failed": "cutting/a switch: it cannot be undone: stuck"}
    assert bench.told == {}
    assert json.loads(bench.file.read_text()) == []


async def test_settings_that_one_device_needs_both_ways_conflict(bench: Bench) -> None:
    class Torn(Cutting):
        def needs(self, host: Host, grant: object) -> tuple[Setting, ...]:  # noqa: ARG002 - a toy
            return (bench.setting("long"), bench.setting("short"))

    bench.replace(Torn())
    await bench.standing.renew(bench.view())

    assert bench.switch.read_text() == "long"
    assert bench.told == {
        "conflicting-setting": "cutting/a switch: the policy wants both long and short"
    }


async def test_file_that_cannot_be_read_or_written_costs_only_itself(bench: Bench) -> None:
    bench.file.parent.mkdir()
    bench.file.write_text("rubbish")
    await bench.standing.renew(bench.view())
    first = bench.told
    bench.file.unlink()
    bench.file.mkdir()
    (bench.file / "inside").touch()
    await bench.standing.renew(bench.view(sharing=SHORT))

    assert first == {}
    assert bench.switch.read_text() == "short"
    assert bench.told.keys() == {"setting-failed"}


async def test_devices_of_vendors_that_set_nothing_are_not_asked_about(bench: Bench) -> None:
    nobody = Standing(
        Works({}, View), frozenset(), lambda: bench.entries, bench.file.parent, bench.problems
    )
    await nobody.renew(bench.view())

    assert bench.told == {}

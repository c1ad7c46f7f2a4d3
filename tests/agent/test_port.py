import threading
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from accelkit.agent import sources
from accelkit.agent.agent import Parts
from accelkit.core.allocation import ContainerEdits, Edits, Piece
from accelkit.core.backend import BackendStatus
from accelkit.core.errors import DeviceUnavailable, MissingParts, SourceTimeout
from accelkit.core.host import Host
from accelkit.core.model import Device, Holder, Holding, Unreadable
from accelkit.core.policy import Divide, Offer, Policy, Sharing
from accelkit.core.values import Enforcement, FrozenMap, HolderKind
from tests.agent.toys import (
    Sets,
    Toy,
    codes_of,
    device,
    parts,
    policy,
    port_of,
    ready,
    running,
    until,
    view_of,
)


def slow(tmp_path: Path) -> Policy:
    """A policy under which nothing is read again during a test."""
    wanted = policy(tmp_path)
    return attrs.evolve(wanted, read=type(wanted.read)())


def toys(tmp_path: Path, *vendors: Toy) -> Parts:
    return parts(tmp_path, *vendors, wanted=slow(tmp_path))


class Shared(Toy):
    """Its devices can be shared in one way."""

    def __init__(self, enforce: Enforcement) -> None:
        super().__init__()
        self._enforce = enforce

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:  # noqa: ARG002 - it has no files
        for name in self.names:
            yield self.device(name, kind="toy", sharing=frozenset({self._enforce}))


def pieces(vendor: str, *names: str) -> list[Piece]:
    return [Piece(device=device(vendor, name)) for name in names]


async def test_admission_answers_from_the_view_without_asking_the_vendor(tmp_path: Path) -> None:
    toy = Toy()
    async with running(toys(tmp_path, toy)) as agent:
        await ready(agent)
        before = list(toy.asked)

        edits = await port_of(agent).admit("all", pieces("toy", "a", "b"))

    assert edits == Edits(
        each=FrozenMap(
            (device("toy", name), ContainerEdits(env=FrozenMap({"TOY": name})))
            for name in ("a", "b")
        )
    )
    assert toy.asked == before == ["a", "b"]


async def test_admission_answers_while_every_lane_of_the_vendor_hangs(tmp_path: Path) -> None:
    go = threading.Event()
    async with running(toys(tmp_path, Toy())) as agent:
        await ready(agent)
        lanes = agent._knowledge.sources["toy"].lanes
        for lane in lanes.all:
            with pytest.raises(SourceTimeout):
                await lane.call("x", go.wait, deadline_s=0.001)

        edits = await port_of(agent).admit("all", pieces("toy", "a"))
        go.set()

    assert edits.each.keys() == {device("toy", "a")}


async def test_vendor_with_sets_is_asked_about_the_set(tmp_path: Path) -> None:
    async with running(toys(tmp_path, Sets(), Toy())) as agent:
        await ready(agent)
        await until(lambda: len(view_of(agent).edits) == 4)

        edits = await port_of(agent).admit("all", [*pieces("sets", "b", "a"), *pieces("toy", "a")])

    assert edits.whole == ContainerEdits(env=FrozenMap({"SET": "a,b"}))
    assert edits.each.keys() == {device("sets", "a"), device("sets", "b"), device("toy", "a")}


@pytest.mark.parametrize(
    "enforce,asked",
    [(Enforcement.LIBRARY, True), (Enforcement.MPS, True), (Enforcement.NONE, False)],
)
async def test_vendor_is_asked_about_a_set_whose_limits_depend_on_it(
    tmp_path: Path, enforce: Enforcement, asked: bool
) -> None:
    toy = Shared(enforce)
    for name in ("a", "b"):
        daemon = tmp_path / "run" / "mps" / f"{name}.ready"
        daemon.parent.mkdir(parents=True, exist_ok=True)
        daemon.touch()
    sharing = Sharing(shares=2, divide=Divide.EQUAL, enforce=enforce)
    wanted = attrs.evolve(slow(tmp_path), offers=(Offer(name="all", sharing=sharing),))
    async with running(parts(tmp_path, toy, wanted=wanted)) as agent:
        await ready(agent)
        await until(lambda: all(verdict.good for verdict in view_of(agent).verdicts.values()))
        before = len(toy.asked)

        await port_of(agent).admit("all", pieces("toy", "a", "b"))

    assert (len(toy.asked) > before) is asked


async def test_vendor_with_sets_that_does_not_answer_costs_the_limit_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SET_S", 0.05)
    sets = Sets()
    async with running(toys(tmp_path, sets, Toy())) as agent:
        await ready(agent)
        await until(lambda: len(view_of(agent).edits) == 4)
        sets.go.clear()
        port = port_of(agent)
        with pytest.raises(SourceTimeout, match=r"in 0\.05 s"):
            await port.admit("all", pieces("sets", "a"))
        with pytest.raises(SourceTimeout, match="still hangs"):
            await port.admit("all", pieces("sets", "a"))
        assert agent._shared.pending.besides(()) == ()
        assert (await port.admit("all", pieces("toy", "a"))).each
        sets.go.set()
        await until(lambda: not agent._knowledge.sources["sets"].lanes.stuck)

        assert (await port.admit("all", pieces("sets", "a"))).whole


async def test_admitted_device_is_held_until_the_kubelet_says_by_whom(tmp_path: Path) -> None:
    listed: list[Holding] = []

    async def read(_view: object) -> tuple[Holding, ...]:
        return tuple(listed)

    made = attrs.evolve(toys(tmp_path, Toy()), holdings=read)
    async with running(made) as agent:
        await ready(agent)
        await port_of(agent).admit("all", pieces("toy", "a"))
        await until(lambda: view_of(agent).held == {device("toy", "a")})
        pending = view_of(agent).holdings
        listed.append(attrs.evolve(pending[0], holder=Holder(kind=HolderKind.POD, pod="p")))
        await port_of(agent).admit("all", pieces("toy", "b"))
        await until(lambda: len(view_of(agent).holdings) == 2)

        assert listed[0] in view_of(agent).holdings

    assert pending[0].through == "kubelet"
    assert pending[0].holder == Holder(kind=HolderKind.POD)


async def test_refused_admission_holds_nothing(tmp_path: Path) -> None:
    toy = Toy()
    toy.missing = frozenset({"b"})
    async with running(toys(tmp_path, toy)) as agent:
        await ready(agent)
        with pytest.raises(MissingParts, match="toy/b"):
            await port_of(agent).admit("all", pieces("toy", "a", "b"))

        assert agent._shared.pending.besides(()) == ()


async def test_device_whose_parts_were_missing_is_offered_when_they_appear(tmp_path: Path) -> None:
    toy = Toy()
    toy.missing = frozenset({"b"})
    async with running(parts(tmp_path, toy)) as agent:
        await until(lambda: codes_of(agent) == {"missing-parts"})
        assert view_of(agent).edits.keys() == {device("toy", "a")}
        toy.missing = frozenset()
        await until(lambda: len(view_of(agent).edits) == 2)

        assert codes_of(agent) == set()
        assert toy.asked.count("a") == 1


async def test_admission_through_another_backend_is_refused(tmp_path: Path) -> None:
    wanted = attrs.evolve(
        slow(tmp_path), offers=(Offer(name="all"), Offer(name="none", through="other"))
    )
    made = parts(tmp_path, Toy(), wanted=wanted)
    made = attrs.evolve(made, backends={**made.backends, "other": made.backends["kubelet"]})
    async with running(made) as agent:
        await until(lambda: len(view_of(agent).edits) == 2)
        port = agent._backends._running["other"].port

        with pytest.raises(DeviceUnavailable, match="through kubelet, not other"):
            await port.admit("none", pieces("toy", "a"))


async def test_port_shows_node_paths_and_flags(tmp_path: Path) -> None:
    async with running(toys(tmp_path, Toy())) as agent:
        await ready(agent)
        port = port_of(agent)

        assert port.node == "n1"
        assert port.paths.run == str(tmp_path / "run")
        assert port.leading.now
        assert not port.closing.now
        assert port.answered()
        assert port.view() is view_of(agent)
        assert port.clock.monotonic() > 0


async def test_status_is_dated_when_it_changes(tmp_path: Path) -> None:
    async with running(toys(tmp_path, Toy())) as agent:
        await ready(agent)
        port = agent._backends._running["kubelet"].port
        port.report(BackendStatus(backend="kubelet", registered=True, published=True))
        first = port.status
        port.report(BackendStatus(backend="kubelet", registered=True, published=True))
        assert port.status is first
        port.report(BackendStatus(backend="kubelet", detail="kubelet is gone"))
        reasons = agent.why_not_ready()

    assert first.since is not None
    assert reasons == ("backend kubelet has not registered yet: kubelet is gone",)


async def test_problem_of_a_backend_is_listed_until_it_is_solved(tmp_path: Path) -> None:
    async with running(toys(tmp_path, Toy())) as agent:
        await ready(agent)
        port = port_of(agent)
        port.problem("foreign-writer", "toy.example.com/toy", "somebody else lists it")
        noted = codes_of(agent)
        port.solved("foreign-writer", "toy.example.com/toy")

        assert (noted, codes_of(agent)) == ({"foreign-writer"}, set())

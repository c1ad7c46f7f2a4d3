from pathlib import Path

import attrs

from accelkit.agent.agent import Agent, Parts
from accelkit.agent.reload import read_policy_file
from accelkit.agent.renewal import stamp_of
from accelkit.core.model import Holder, Holding
from accelkit.core.values import HolderKind
from accelkit.core.view import View
from tests.agent.toys import (
    Hanging,
    Toy,
    codes_of,
    device,
    health_of,
    parts,
    policy,
    ready,
    running,
    served,
    until,
    view_of,
)

OFTEN = "{inventory: 50ms, health: 50ms, holdings: 50ms, debounce: 10ms}"


def written(tmp_path: Path, rest: str, *, port: int = 0, read: str = OFTEN) -> Path:
    """A policy file: quick, below *tmp_path*, and *rest*."""
    file = tmp_path / "policy.yaml"
    file.write_text(
        f"read: {read}\n"
        f"paths: {{run: {tmp_path / 'run'}}}\n"
        f"http: {{listen: '127.0.0.1:{port}'}}\n"
        f"{rest}\n"
    )
    return file


def from_file(file: Path, tmp_path: Path, *vendors: Toy) -> Parts:
    made = parts(tmp_path, *vendors, wanted=read_policy_file(file))
    return attrs.evolve(made, policy_file=file, read_policy=lambda: read_policy_file(file))


async def test_changed_file_is_read_and_devices_are_offered_anew(tmp_path: Path) -> None:
    toy = Toy()
    file = written(tmp_path, "offers: [{name: one}]")
    async with running(from_file(file, tmp_path, toy)) as agent:
        await ready(agent)
        before = view_of(agent)
        written(tmp_path, "offers: [{name: two, resource: example.com/two}]")
        await until(lambda: [offer.name for offer in view_of(agent).offers] == ["two"])

        after = view_of(agent)
        metrics = agent._metrics.text().decode()
        backend = served(agent)

    terms = after.assignments[device("toy", "a")].terms
    assert terms is not None
    assert terms.name == "two"
    assert after.revision != before.revision
    assert all(len(document) in {0, 2} for document in backend.seen)
    assert toy.asked == ["a", "b", "a", "b"]
    assert 'accelkit_config_reloads_total{outcome="accepted"} 1' in metrics


async def test_file_that_changed_while_the_agent_was_made_is_read_again(tmp_path: Path) -> None:
    file = written(tmp_path, "offers: [{name: one}]")
    stamp = stamp_of(file)
    made = from_file(file, tmp_path, Toy())
    written(tmp_path, "offers: [{name: other}]")
    async with running(attrs.evolve(made, policy_stamp=stamp)) as agent:
        await until(lambda: [offer.name for offer in view_of(agent).offers] == ["other"])


def test_file_is_read_again_once_it_is_written_to_its_end(tmp_path: Path) -> None:
    """A file that is copied over another is empty for a moment, and empty is all defaults."""
    file = written(tmp_path, "offers: [{name: one}]")
    made = from_file(file, tmp_path)
    renewal = Agent(made)._renewal

    told = []
    for text in ("", "offers:\n", "offers: [{name: two}]\n", "offers: [{name: two}]\n", None, None):
        if text is not None and text != file.read_text():
            file.write_text(text)
        told.append(renewal.file_changed())

    assert told == [False, False, False, True, False, False]


def test_stamp_changes_with_the_file_and_with_who_may_read_it(tmp_path: Path) -> None:
    """Seen: a policy that was unreadable for a while stayed refused."""
    file = written(tmp_path, "offers: [{name: one}]")
    before = stamp_of(file)
    file.chmod(0o600)

    assert stamp_of(file) not in {None, before}
    assert stamp_of(tmp_path / "none") is None
    assert stamp_of(None) is None


async def test_bad_file_keeps_the_policy_before_and_says_all_that_is_wrong(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, "offers: [{name: one}]")
    async with running(from_file(file, tmp_path, Toy())) as agent:
        await ready(agent)
        written(tmp_path, "offers: [{name: two, sharring: 1}]\nlayoutz: 1")
        agent.reload()
        await until(lambda: "config-invalid" in codes_of(agent))
        (problem,) = agent.problems()
        kept = [offer.name for offer in view_of(agent).offers]
        metrics = agent._metrics.text().decode()
        written(tmp_path, "offers: [{name: two}]")
        await until(lambda: [offer.name for offer in view_of(agent).offers] == ["two"])
        await until(lambda: codes_of(agent) == set())

    assert kept == ["one"]
    assert "$.offers[0].sharring" in problem.reason
    assert "$.layoutz" in problem.reason
    assert 'accelkit_config_reloads_total{outcome="refused"}' in metrics


async def test_file_that_vanishes_keeps_the_policy(tmp_path: Path) -> None:
    file = written(tmp_path, "offers: [{name: one}]")
    async with running(from_file(file, tmp_path, Toy())) as agent:
        await ready(agent)
        file.unlink()
        await until(lambda: "config-invalid" in codes_of(agent))

        assert [offer.name for offer in view_of(agent).offers] == ["one"]


async def test_change_of_what_is_read_at_start_asks_for_a_restart(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    async with running(from_file(file, tmp_path, Toy())) as agent:
        await ready(agent)
        written(tmp_path, "", port=1)
        await until(lambda: "restart-needed" in codes_of(agent))
        (problem,) = agent.problems()
        written(tmp_path, "")
        await until(lambda: codes_of(agent) == set())

    assert problem.subject == "$.http"
    assert problem.remedy == "restart the agent"


async def test_vendor_that_hangs_does_not_hold_up_a_new_policy(tmp_path: Path) -> None:
    hanging = Hanging()
    file = written(tmp_path, "offers: [{name: one}]")
    async with running(from_file(file, tmp_path, Toy(), hanging)) as agent:
        await until(lambda: health_of(agent).keys() == {"toy/a", "toy/b"})
        written(tmp_path, "offers: [{name: two}]")
        await until(lambda: [offer.name for offer in view_of(agent).offers] == ["two"])

        assert not hanging.go.is_set()
        assert view_of(agent).edits.keys() == {device("toy", "a"), device("toy", "b")}
    hanging.go.set()


async def test_held_device_keeps_its_terms_and_has_edits_for_the_new_ones_once_it_is_free(
    tmp_path: Path,
) -> None:
    """Without waiting for the next read of the vendor, which is an hour away here."""
    a = device("toy", "a")
    held = [
        Holding(device=a, through="kubelet", holder=Holder(kind=HolderKind.POD, pod="p")),
    ]

    async def read(_view: View) -> tuple[Holding, ...]:
        return tuple(held)

    seldom = "{inventory: 1h, health: 1h, holdings: 50ms}"
    file = written(tmp_path, "offers: [{name: one}]", read=seldom)
    made = attrs.evolve(from_file(file, tmp_path, Toy()), holdings=read)
    async with running(made) as agent:
        await ready(agent)
        written(tmp_path, "offers: [{name: two}]", read=seldom)
        await until(lambda: view_of(agent).assignments[a].leaving)
        leaving = view_of(agent)
        held.clear()
        await until(lambda: not view_of(agent).assignments[a].leaving)
        await until(lambda: len(view_of(agent).edits) == 2)
        free = view_of(agent).assignments[a].terms

    kept = leaving.assignments[a].terms
    assert kept is not None
    assert kept.name == "one"
    assert len(leaving.edits) == 2
    assert free is not None
    assert free.name == "two"


async def test_new_backend_is_started(tmp_path: Path) -> None:
    file = written(tmp_path, "offers: [{name: one}]")
    made = from_file(file, tmp_path, Toy())
    made = attrs.evolve(made, backends={**made.backends, "other": made.backends["kubelet"]})
    async with running(made) as agent:
        await ready(agent)
        assert agent._backends.made.keys() == {"kubelet"}
        written(tmp_path, "offers: [{name: two, through: other}]")
        await until(lambda: agent._backends.made.keys() == {"kubelet", "other"})
        await until(lambda: served(agent).seen[-1] == ("toy/a:HEALTHY", "toy/b:HEALTHY"))


async def test_backend_without_offers_is_started_for_those_who_hold_devices_through_it(
    tmp_path: Path,
) -> None:
    """Seen: after a restart without offers nobody served pods of before, whose containers could
    no longer restart five minutes later."""
    held: list[Holding] = []

    async def read(_view: View) -> tuple[Holding, ...]:
        return tuple(held)

    pod = Holder(kind=HolderKind.POD, pod="p")
    made = from_file(written(tmp_path, "offers: []"), tmp_path, Toy())
    async with running(attrs.evolve(made, holdings=read)) as agent:
        await ready(agent)
        assert agent._backends.made == {}
        held.append(Holding(device=device("toy", "a"), through="kubelet", holder=pod))
        held.append(Holding(device=device("toy", "b"), through="foreign", holder=pod))
        await until(lambda: agent._backends.made.keys() == {"kubelet"})


async def test_agent_without_a_file_ignores_the_wish_to_read_it(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Toy(), wanted=policy(tmp_path))) as agent:
        await ready(agent)
        before = view_of(agent).revision
        await agent._renewal.renew()

        assert view_of(agent).revision == before
        assert codes_of(agent) == set()

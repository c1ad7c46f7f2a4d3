from pathlib import Path

from accelkit.core.clock import RealClock
from tests.agent.toys import Hanging, NotReady, Toy, get, get_json, parts, ready, running, until


async def test_socket_answers_the_view_with_everything_in_it(tmp_path: Path) -> None:
    async with running(parts(tmp_path, Toy())) as agent:
        await ready(agent)
        view = await get_json(tmp_path / "run" / "agent.sock", "/view")

    assert isinstance(view, dict)
    assert [device["id"] for device in view["snapshot"]["devices"]] == ["toy/a", "toy/b"]
    assert view["verdicts"]["toy/a"]["health"] == "HEALTHY"


async def test_socket_answers_problems_with_remedies(tmp_path: Path) -> None:
    async with running(parts(tmp_path, NotReady(), Toy())) as agent:
        await ready(agent)
        problems = await get_json(tmp_path / "run" / "agent.sock", "/problems")

    assert isinstance(problems, list)
    assert [(p["code"], p["remedy"]) for p in problems] == [("driver-not-ready", "load it")]


async def test_socket_answers_probes_and_knows_no_other_document(tmp_path: Path) -> None:
    socket = tmp_path / "run" / "agent.sock"
    async with running(parts(tmp_path, Toy())) as agent:
        await ready(agent)
        probe = await get(socket, "/readyz")
        unknown = await get(socket, "/documents/dra")

    assert probe == (200, "ok\n")
    assert unknown[0] == 404


async def test_probe_lists_what_is_missing(tmp_path: Path) -> None:
    hanging = Hanging()
    socket = tmp_path / "run" / "agent.sock"
    async with running(parts(tmp_path, hanging)):
        await until(socket.exists)
        probe = await get(socket, "/readyz")
        hanging.go.set()

    assert probe[0] == 503
    assert probe[1].splitlines()[0] == "vendor hanging has not answered yet"


async def test_agent_whose_loop_did_not_turn_lately_is_not_live(tmp_path: Path) -> None:
    socket = tmp_path / "run" / "agent.sock"
    async with running(parts(tmp_path)) as agent:
        begun = agent._turned
        await until(lambda: agent._turned > begun)
        agent._clock = Ahead()
        dead = await get(socket, "/livez")
        agent._clock = RealClock()
        alive = await get(socket, "/livez")

    assert dead == (503, "the loop hangs\n")
    assert alive == (200, "ok\n")


class Ahead(RealClock):
    """Shows a later time than what was noted, just now, too."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def monotonic(self) -> float:
        self._ahead_s += 100
        return super().monotonic() + self._ahead_s

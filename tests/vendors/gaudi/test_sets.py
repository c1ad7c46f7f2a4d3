"""What containers get of a host as a whole: which cards together, and what they are told."""

import json
from itertools import combinations

import pytest
from click.testing import CliRunner

from accelkit.cli.root import cli
from tests.vendors.gaudi.bench import Bench, Make


def picked(made: Bench, size: int, *taken: str) -> list[object]:
    """Module ids of the cards that a pod for *size* would get, ascending."""
    words = ["topology", "--host", made.directory, "--pick", str(size), "-o", "json"]
    answer = CliRunner().invoke(cli, [*words, *(w for t in taken for w in ("--taken", t))])
    ids = json.loads(answer.stdout)["ids"]
    modules = {d.id.name: d.attributes["moduleId"] for d in made.devices()}
    return sorted((modules[i] for i in ids), key=str)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("size, sets", [(2, ["01", "23", "45", "67"]), (4, ["0123", "4567"])])
def test_pod_gets_a_set_of_next_modules(bench: Make, seed: int, size: int, sets: list[str]) -> None:
    made = bench("gaudi2", seed=seed)

    assert "".join(map(str, picked(made, size))) in sets


def test_pod_gets_the_four_that_is_whole(bench: Make) -> None:
    made = bench("gaudi2")
    first = next(d for d in made.devices() if d.attributes["moduleId"] == 1)

    assert picked(made, 4, first.id.name) == [4, 5, 6, 7]


def test_pod_is_not_refused_where_no_set_is_whole(bench: Make) -> None:
    made = bench("gaudi2")
    made.do("status gaudi-0 disabled", "status gaudi-1 disabled")

    assert len(picked(made, 3)) == 3


def test_container_is_told_of_its_own_modules_only(bench: Make) -> None:
    """Seen: a program is given the module of another card: "Invalid HABANA_VISIBLE_MODULES=5"."""
    made = bench("gaudi2-pcie", seed=3)
    devices = made.devices()

    for pair in combinations(devices, 2):
        said = made.variables(*pair)["HABANA_VISIBLE_MODULES"].split(",")
        assert said == [str(d.attributes["moduleId"]) for d in pair]

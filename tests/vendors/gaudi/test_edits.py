import pytest

from accelkit import Hook, MissingParts, Mount
from tests.vendors.gaudi.bench import Make
from tests.vendors.opened import grant

HOOK = "/usr/bin/habana-container-hook"


def test_set_is_described_by_numbers_nodes_and_modules_in_one_order(bench: Make) -> None:
    """Seen: a container of two cards finds none, since a module is not what the index says."""
    made = bench()
    devices = made.devices()

    assert made.variables(devices[3], devices[1]) == {
        "HABANA_VISIBLE_DEVICES": "1,3",
        "HL_VISIBLE_DEVICES": "/dev/accel/accel1,/dev/accel/accel3",
        "HABANA_VISIBLE_MODULES": "4,5",
    }


def test_modules_are_those_of_this_host(bench: Make) -> None:
    """Seen: a map of one server is written into a program, and another server has another one."""
    orders = set()
    for seed in (0, 1, 2):
        made = bench(seed=seed)
        said = made.variables(*made.devices())["HABANA_VISIBLE_MODULES"].split(",")

        assert said == [str(m) for m in made.modules()]
        orders.add(tuple(said))
    assert len(orders) == 3


def test_nodes_and_variables_follow_the_driver_to_its_new_numbers(bench: Make) -> None:
    made = bench(count=2)
    made.do("reboot")
    first = made.devices()[0]

    assert made.variables(first) == {
        "HABANA_VISIBLE_DEVICES": "1",
        "HL_VISIBLE_DEVICES": "/dev/accel/accel1",
        "HABANA_VISIBLE_MODULES": "0",
    }


@pytest.mark.parametrize("count", [0, 1, 8])
def test_nobody_is_ever_told_to_take_all(bench: Make, count: int) -> None:
    """Seen: two containers say all, and the second fails to move the network of the first."""
    made = bench()
    edits = made.vendor.edits(made.host, grant(*made.devices()[:count]))

    assert "all" not in str(edits)
    assert len(edits.each) == count
    assert bool(edits.whole) == (count > 0)


def test_hook_and_addresses_come_once_for_the_set(bench: Make) -> None:
    made = bench()
    edits = made.vendor.edits(made.host, grant(*made.devices()))

    assert [(h.name, h.path, h.args) for h in edits.whole.hooks] == [
        ("createRuntime", HOOK, ("habana-container-hook", "createRuntime"))
    ]
    assert edits.whole.hooks[0].env[0].endswith(":/usr/bin")
    assert edits.whole.mounts == (
        Mount(
            host_path="/etc/habanalabs/gaudinet.json",
            container_path="/etc/habanalabs/gaudinet.json",
        ),
    )
    assert all(not e.hooks and not e.mounts and not e.env for e in edits.each.values())


@pytest.mark.parametrize(
    "hook, found",
    [("/usr/local/habana/bin/habana-container-hook", 1), ("none", 0)],
)
def test_hook_is_used_where_it_is(bench: Make, hook: str, found: int) -> None:
    made = bench(machine={"hook": hook})
    hooks: tuple[Hook, ...] = made.whole(*made.devices()).hooks

    assert [h.path for h in hooks] == [hook] * found


def test_set_with_a_card_that_does_not_tell_its_module_is_refused(bench: Make) -> None:
    made = bench(count=2)
    made.do("module gaudi-1 none")
    devices = made.devices()

    with pytest.raises(MissingParts, match="module id"):
        made.variables(*devices)
    assert "HABANA_VISIBLE_MODULES" not in made.variables(devices[1])


def test_card_whose_node_is_gone_is_refused(bench: Make) -> None:
    made = bench(count=1)
    devices = made.devices()
    made.do("no-nodes")

    with pytest.raises(MissingParts, match=r"accel0 is not there"):
        made.variables(*devices)


def test_set_is_described_the_same_in_whatever_order_it_is_asked_for(bench: Make) -> None:
    made = bench()
    devices = made.devices()

    assert made.whole(*devices) == made.whole(*reversed(devices))

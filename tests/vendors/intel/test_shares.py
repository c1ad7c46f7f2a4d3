from accelkit import LinkKind
from accelkit.core.policy import Place
from accelkit.core.preference import Level, of_devices, of_shares, prefer
from tests.vendors.intel.bench import Make

SHARES = 10


def test_shares_of_one_gpu_are_preferred_together(bench: Make) -> None:
    """A container that asked for 3 of 10 shares got shares of two cards."""
    made = bench("arc-a770", 3)
    names = [d.id.name for d in made.devices()]
    links = made.vendor.links(made.host, made.devices())
    near = {
        (a, b): 50
        for link in links
        for a, b in ((link.a.name, link.b.name), (link.b.name, link.a.name))
        if link.kind is LinkKind.SWITCH
    }
    devices = of_devices({n: n for n in names}, [Level(pairs=near, apart=0, inside=100)])
    shares = of_shares(devices, dict.fromkeys(names, SHARES), Place.PACKED)
    left = [f"{name}::{n}" for name in names for n in range(SHARES) if (name, n) != (names[1], 0)]

    assert {i.partition("::")[0] for i in prefer(shares, left, [], 3).ids} == {names[1]}

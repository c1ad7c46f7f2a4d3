import attrs

from accelkit.agent.made import MadeEdits
from accelkit.core.allocation import ContainerEdits
from accelkit.core.model import Condition, Device, DeviceId
from accelkit.core.policy import Offer, Selection, Sharing
from accelkit.core.values import FrozenMap, Severity, Standing

A = Device(id=DeviceId(vendor="toy", name="a"), kind="toy")
ONE = Offer(name="one")
SHARED = Offer(name="one", sharing=Sharing(shares=2))
DRIVER = FrozenMap({"driver": "1"})
EDITS = ContainerEdits(gids=(1,))


def made() -> MadeEdits:
    edits = MadeEdits()
    edits.keep(A, ONE, DRIVER, EDITS)
    return edits


def test_edits_are_those_of_the_terms() -> None:
    edits = made()
    edits.keep(A, SHARED, DRIVER, None)

    assert edits.get(A.id, ONE) == EDITS
    assert edits.get(A.id, SHARED) is None
    assert edits.tried(A.id, SHARED)
    assert not edits.tried(A.id, Offer(name="two"))
    assert edits.get(A.id, Offer(name="two")) is None


def test_edits_hold_whatever_else_an_offer_selects() -> None:
    assert made().current(A, attrs.evolve(ONE, select=Selection(kind=("toy",))), DRIVER)


def test_edits_are_out_of_date_with_their_device_or_software() -> None:
    edits = made()

    assert not edits.current(attrs.evolve(A, product="other"), ONE, DRIVER)
    assert not edits.current(A, ONE, FrozenMap({"driver": "2"}))
    assert not edits.current(A, SHARED, DRIVER)


def test_health_and_standing_do_not_make_edits_out_of_date() -> None:
    ill = attrs.evolve(
        A, conditions=(Condition(code="x", severity=Severity.FATAL),), standing=Standing.STALE
    )

    assert made().current(ill, ONE, DRIVER)


def test_edits_that_failed_are_never_current() -> None:
    edits = made()

    edits.keep(A, ONE, DRIVER, None)

    assert not edits.current(A, ONE, DRIVER)
    assert edits.get(A.id, ONE) is None


def test_edits_of_what_is_offered_nowhere_are_forgotten() -> None:
    edits = made()
    edits.keep(A, SHARED, DRIVER, EDITS)

    assert not edits.forget_all_but({A.id: (A, ONE)}, {})
    assert not edits.tried(A.id, SHARED)
    assert edits.get(A.id, ONE) == EDITS
    assert edits.forget_all_but({}, {}) == {A.id}
    assert not edits.tried(A.id, ONE)

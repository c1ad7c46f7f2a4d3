from datetime import UTC

from accelkit.core.clock import RealClock


async def test_the_real_clock_goes_on_and_sleeps() -> None:
    clock = RealClock()
    before = clock.monotonic()

    await clock.sleep(0.01)

    assert clock.monotonic() >= before + 0.01
    assert clock.now().tzinfo is UTC

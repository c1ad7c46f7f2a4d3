"""Which Kubernetes has what by default: tests of what it lacks are skipped, and say why."""

from typing import Final

import pytest

from tests.node.programs import RELEASE

SINCE: Final = {
    "DRAConsumableCapacity": "1.36",
    "DRADeviceTaints": "1.36",
    "DRAExtendedResource": "1.36",
    "DRAPartitionableDevices": "1.36",
    "messages of devices' health in the status of pods": "1.36",
}
"""Feature gate, or what it is: the first release that has it on. Seen on 1.34.4 to 1.37.2."""


def has(feature: str) -> bool:
    """Whether the release that is used has a feature of `SINCE` on."""
    return _numbers(RELEASE) >= _numbers(SINCE[feature])


def needs(*features: str) -> pytest.MarkDecorator:
    """Skip a test, or the tests of a module, where the release lacks one of these features."""
    lacking = [feature for feature in features if not has(feature)]
    reason = f"Kubernetes {RELEASE} has not by default: {', '.join(lacking)}"
    return pytest.mark.skipif(bool(lacking), reason=reason)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in release.split("."))

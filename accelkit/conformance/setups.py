"""How a driver of claims is to run for a check. Not here: who runs it."""

from pathlib import Path

import attrs

UNITS = 4
MANY = 130
"""Devices: more than two slices have; more than 64 do."""
RESOURCE = "conformance.test/device"
"""An extended resource, where devices are offered under a name."""
BY_PROFILE = "conformance.test/{profile}"
"""One for each kind of partition."""


@attrs.frozen(kw_only=True)
class Site:
    """Where a driver finds the cluster that it belongs to."""

    kubeconfig: Path
    node: str


@attrs.frozen(kw_only=True)
class Setup:
    """What a check wishes for; a driver that cannot be told runs as it is."""

    release: str = "1.37"
    """Of Kubernetes."""
    kubelet: str = ""
    """The kubelet's release; empty: the same."""
    units: int = UNITS
    """Devices of the machine."""
    shares: int = 1
    """How many may have one device."""
    cut: bool = False
    """Devices can be cut into partitions."""
    metadata: bool = False
    """Claims come with files that describe their devices."""
    resource: str = ""
    """The extended resource under which devices are offered; empty: under none."""
    through: str = "dra"
    """The interface: ``dra`` or ``kubelet``."""
    mark: str = "a"
    """Shows in every device that is published: another one changes all of them."""
    rich: bool = False
    """Devices have more attributes than may be published."""

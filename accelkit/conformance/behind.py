"""A plugin behind the agent: what can be done with it over sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelkit.conformance.model import Feature
    from accelkit.conformance.subjects import PluginSubject


def features_behind(subject: PluginSubject, own: frozenset[Feature]) -> frozenset[Feature]:
    return frozenset()

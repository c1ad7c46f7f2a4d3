"""What containers with Intel GPUs need. Not here: how the GPUs are found."""

from collections.abc import Iterator
from enum import StrEnum

from accelkit import (
    ContainerEdits,
    Device,
    DeviceId,
    Edits,
    FrozenMap,
    Grant,
    Host,
    MissingParts,
    Mount,
    PciFunction,
)
from accelkit.vendors.intel import cards, facts

PRELIM_ENV = "NEO_ENABLE_I915_PRELIM_DETECTION"
"""Tells Intel's compute runtime to look for the interface of the i915 of Intel's own packages.
Source: the README of intel/compute-runtime."""


class ByPath(StrEnum):
    """Which links below /dev/dri/by-path containers get: some frameworks walk through all."""

    NONE = "none"
    ALL = "all"


def make_edits(host: Host, grant: Grant, by_path: ByPath) -> Edits:
    """Device files of each device, as the kernel calls them now.

    Raises:
        MissingParts: A device or one of its files is not there.
    """
    each: dict[DeviceId, ContainerEdits] = {}
    for granted in grant.granted:
        card = _card(host, granted.device)
        mei = cards.mei_nodes(card) if granted.admin else ()
        before = each.get(granted.device.id, ContainerEdits())
        each[granted.device.id] = ContainerEdits(
            env=FrozenMap({PRELIM_ENV: "1"} if cards.is_prelim(card) else {}),
            nodes=(*card.nodes, *mei, *before.nodes),
            mounts=tuple(_links(host, by_path)),
        )
    return Edits(each=FrozenMap(each))


def _card(host: Host, device: Device) -> cards.Card:
    card = None
    if device.handle is not None:
        card = cards.card_of(PciFunction(address=device.handle, host=host))
    if card is None or not card.served:
        raise MissingParts(
            f"{device.id}: no driver shows device files for it now",
            remedy="see accelkit devices; a virtual function goes with its GPU's mode",
        )
    for node in card.nodes:
        if not host.exists(node.path):
            raise MissingParts(
                f"{device.id}: {node.path} is not there",
                remedy="the kernel lists it: see whether /dev of the host is the one that is seen",
            )
    return card


def _links(host: Host, by_path: ByPath) -> Iterator[Mount]:
    if by_path is ByPath.ALL and host.exists(facts.BY_PATH):
        yield Mount(host_path=facts.BY_PATH, container_path=facts.BY_PATH)

"""An agent that prepares claims, through a toy of the DRA backend."""

from pathlib import Path
from typing import Any

import attrs

from accelkit.agent.agent import Agent, Parts
from accelkit.core.allocation import Allocation, ClaimRef, Piece
from accelkit.core.backend import BackendFactory, NodePort
from accelkit.core.kube import KubePort
from accelkit.core.policy import Offer, Sharing
from tests.agent.api import Api
from tests.agent.toys import Toy, ToyBackend, device, parts, policy

UID = "11111111-2222-4333-8444-555555555555"
NAME = "example.com/toy"
"""An extended resource."""
CLAIM = ClaimRef(uid=UID, namespace="team", name="trainer-gpu")


class DraToy(ToyBackend):
    """The toy backend as one that prepares claims."""

    name = "dra"


def claiming(  # type: ignore[explicit-any]  # of Policy
    tmp_path: Path,
    *vendors: Toy,
    sharing: Sharing = Sharing(),  # noqa: B008 - a value
    api: Api | None = None,
    **fields: Any,
) -> Parts:
    """An agent that offers everything through the toy of DRA; *fields* are of its policy."""
    offers = (Offer(name="all", through="dra", sharing=sharing),)
    wanted = attrs.evolve(policy(tmp_path), **{"offers": offers, **fields})
    made = parts(tmp_path, *vendors, wanted=wanted)
    factory = BackendFactory(name="dra", create=DraToy)

    def connect(_count: object) -> KubePort | None:
        return api

    return attrs.evolve(made, backends={"dra": factory}, connect=connect)


def port_of(agent: Agent) -> NodePort:
    backend = agent._backends.made["dra"]
    assert isinstance(backend, DraToy)
    assert backend.node is not None
    return backend.node


def wish(vendor: Toy, name: str = "a", claim: ClaimRef = CLAIM) -> Allocation:
    piece = Piece(device=device(vendor.name, name), request="gpu")
    return Allocation(claim=claim, driver=f"{vendor.name}.accelkit.dev", pieces=(piece,))


def node(count: int) -> dict[str, object]:
    """A Node that has so many of the resource from a device plugin."""
    info = {"kubeletVersion": "v1.37.2"}
    return {
        "metadata": {"name": "n1"},
        "status": {"nodeInfo": info, "allocatable": {NAME: str(count)}},
    }

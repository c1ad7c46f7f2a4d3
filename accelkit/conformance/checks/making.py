"""How checks are written down. Not here: any check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from accelkit.conformance.model import Arena, Badge, Check, Feature, Level
from accelkit.conformance.setups import Setup

if TYPE_CHECKING:
    from accelkit.conformance.bench import PluginBench
    from accelkit.conformance.claims_bench import ClaimsBench
    from accelkit.conformance.socket_bench import SocketBench


def in_process(
    ident: str,
    claim: str,
    body: Callable[[PluginBench], Iterator[str]],
    *needs: type | Feature,
    badges: tuple[Badge, ...] = (Badge.CORE,),
    must: bool = True,
) -> Check[PluginBench]:
    """A check of a plugin alone."""
    return Check(
        id=ident,
        claim=claim,
        level=Level.L1,
        must=must,
        needs=needs,
        badges=frozenset(badges),
        body=body,
    )


def over_sockets(
    ident: str,
    claim: str,
    body: Callable[[SocketBench], Iterator[str]],
    *needs: type | Feature,
    badges: tuple[Badge, ...] = (Badge.DEVICE_PLUGIN,),
    must: bool = True,
) -> Check[SocketBench]:
    """A check of whatever serves a device plugin's socket."""
    return Check(
        id=ident,
        claim=claim,
        level=Level.L2,
        arena=Arena.SOCKETS,
        must=must,
        needs=(Feature.SOCKETS, *needs),
        badges=frozenset(badges),
        body=body,
    )


def with_claims(
    ident: str,
    claim: str,
    body: Callable[[ClaimsBench], Iterator[str]],
    *needs: type | Feature,
    badges: tuple[Badge, ...] = (Badge.DRA,),
    must: bool = True,
    setup: Setup = Setup(),  # noqa: B008 - frozen
) -> Check[ClaimsBench]:
    """A check of whatever serves claims."""
    return Check(
        id=ident,
        claim=claim,
        level=Level.L2,
        arena=Arena.CLAIMS,
        must=must,
        needs=(Feature.DRIVER, *needs),
        badges=frozenset(badges),
        setup=setup,
        body=body,
    )

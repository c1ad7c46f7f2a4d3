"""Claims of a simulated machine, written down as an agent does."""

from pathlib import Path

import attrs

from accelkit.agent.disk import HostDisk
from accelkit.agent.ledger import Ledger
from accelkit.cli.composing import boot_of
from accelkit.core.allocation import ClaimRef, Piece
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.clock import RealClock
from accelkit.core.model import DeviceId
from accelkit.testing.hosts import open_host

UID = "22222222-2222-2222-2222-222222222222"


def claim(device: str, name: str = "c1", *, share: str | None = None) -> LedgerEntry:
    """A claim that is ready, of one device."""
    piece = Piece(device=DeviceId.parse(device), request="gpu", share=share, offer="all")
    return LedgerEntry(
        state=EntryState.READY,
        claim=ClaimRef(uid=UID[:-1] + name[-1], namespace="default", name=name),
        driver="sim.accelkit.dev",
        pieces=(piece,),
    )


def write_down(run: Path, machine: Path, *entries: LedgerEntry) -> Path:
    """Let *run* have them as of this boot of *machine*; returns where they are."""
    boot = boot_of(open_host(str(machine)))
    ledger = Ledger(run, boot, writer="1.0.0", clock=RealClock(), disk=HostDisk())
    ledger.open()
    for entry in entries:
        ledger.put(entry)
    return run / boot


def stuck(entry: LedgerEntry) -> LedgerEntry:
    return attrs.evolve(entry, state=EntryState.STUCK)

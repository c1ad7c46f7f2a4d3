"""From WORKING to READY, step by step. Not here: what may be had at all, and undoing."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import attrs

from accelkit.agent.keeper_hardware import create, modes_matter, set_modes
from accelkit.agent.keeper_settings import apply_settings
from accelkit.agent.keeper_work import Work
from accelkit.core.allocation import Edits, Grant
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.grants import answers, described, edits_by_key, split_by_request, vendor_of


async def take_steps(work: Work) -> LedgerEntry:
    """Make the devices of *work* usable, and let runtimes find them; returns the entry, READY.

    Raises:
        AccelkitError: A step failed; the entry on disk lists what is to be undone.
    """
    steps: tuple[tuple[str, Callable[[Work], Awaitable[None]], bool], ...] = (
        ("modes", set_modes, modes_matter(work)),
        ("create", create, any(term.device.parent is not None for term in work.terms)),
        ("settings", apply_settings, True),
        ("cdi", _describe, True),
    )
    if work.needs_scratch:
        work.means.ledger.make_scratch(work.uid)
    clock = work.means.clock
    for name, step, needed in steps:
        if needed:
            began = clock.monotonic()
            try:
                await step(work)
            finally:
                work.took(name, clock.monotonic() - began)
    ready = attrs.evolve(
        work.entry,
        state=EntryState.READY,
        cdi=work.cdi,
        answer=work.answer,
        trace=tuple(work.trace),
    )
    return work.means.put(ready)


async def _describe(work: Work) -> None:
    """Ask the vendor what containers need, and write the file that runtimes read."""
    made = await _edits(work, work.sets)
    if apart := split_by_request(work.terms, made):
        made = await _edits(work, work.split(apart))
    edits = edits_by_key(made)
    entry = work.entry
    document = described(entry.driver, work.uid, edits)
    files = work.means.files
    if document is not None:
        work.cdi = files.describe(entry.driver, work.uid, document)
    work.answer = answers(entry.driver, work.uid, entry.pieces, edits)


async def _edits(work: Work, grants: Iterable[Grant]) -> list[tuple[Grant, Edits]]:
    ask = work.means.hardware.edits
    found = []
    for grant in grants:
        edits = next((edits for told, edits in work.told if told == grant), None)
        if edits is None:
            edits = await work.patiently(partial(ask, vendor_of(grant), grant))
        found.append((grant, edits))
    return found

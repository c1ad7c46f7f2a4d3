"""Settings that must hold: those of the policy for devices of the kubelet, and those of claims.

What somebody else changed is set again. Not here: what a claim needs when it is prepared.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import attrs

from accelkit.agent.hardware import Hardware
from accelkit.agent.memory import write_whole
from accelkit.agent.problems import AGENT, Problems
from accelkit.core.allocation import Grant, Granted, Setting
from accelkit.core.claims import EntryState, LedgerEntry
from accelkit.core.errors import AccelkitError
from accelkit.core.model import Device, DeviceId
from accelkit.core.offers import KUBELET
from accelkit.core.policy import Offer
from accelkit.core.values import Standing as Seen, freeze
from accelkit.core.view import View

log = logging.getLogger(__name__)

FILE = "standing.json"
CONFLICT, FAILED = "conflicting-setting", "setting-failed"
Key: TypeAlias = tuple[str, DeviceId | None, str]
"""What a setting is of: vendor, device, key."""
Wanted: TypeAlias = Mapping[Key, Setting]


@attrs.frozen(kw_only=True, field_transformer=freeze)
class _Kept:
    """What was set for the policy, so that whoever leads later can undo it."""

    vendor: str
    setting: Setting


class Standing:
    """Makes settings true again and again, as the leader.

    Args:
        hardware: The vendors.
        vendors: Names of those that set anything.
        entries: All claims of this boot.
        directory: Of this boot.
    """

    def __init__(
        self,
        hardware: Hardware,
        vendors: frozenset[str],
        entries: Callable[[], Mapping[str, LedgerEntry]],
        directory: Path,
        problems: Problems,
    ) -> None:
        self._hardware = hardware
        self._vendors = vendors
        self._entries = entries
        self._path = directory / FILE
        self._problems = problems
        self._noted: set[tuple[str, str]] = set()

    async def renew(self, view: View) -> None:
        """Let everything be set that *view* and the claims want, and what nobody wants be undone.

        Never raises: what cannot be set is a problem, and tried again at the next call.
        """
        faults: dict[tuple[str, str], str] = {}
        policy = await self._of_policy(view, faults)
        unsure = _unsure(view, self._vendors) | {subject.split("/")[0] for _, subject in faults}
        claims = self._of_claims()
        for key, setting in policy.items():
            if key in claims and claims[key] != setting:
                why = f"the policy wants {setting.value}, a claim has set {claims[key].value}"
                faults[CONFLICT, _name(key)] = why
        await self._undo(unsure, policy, faults)
        for (vendor, device, word), setting in {**policy, **claims}.items():
            key = (vendor, device, word)
            if key in self._busy():
                continue  # a claim is being prepared or released: it knows better
            await self._apply(key, setting, faults)
            # Whoever released it meanwhile believes that it was the last to touch it.
            if key not in policy and key not in self._of_claims() and key not in self._busy():
                await self._revert(key, setting, faults)
        self._announce(faults)

    async def _of_policy(self, view: View, faults: dict[tuple[str, str], str]) -> Wanted:
        """What devices need that are handed out without anybody preparing them."""
        wanted: dict[Key, Setting] = {}
        for device, terms in _handed_out(view, self._vendors):
            vendor = device.id.vendor
            grant = Grant(
                owner=terms.name, granted=(Granted(device=device),), sharing=terms.sharing
            )
            try:
                needs = await self._hardware.needs(vendor, grant)
            except AccelkitError as error:
                faults[FAILED, str(device.id)] = str(error)
                continue
            for setting in needs:
                key = (vendor, setting.device, setting.key)
                other = wanted.setdefault(key, setting)
                if other != setting:
                    why = f"the policy wants both {other.value} and {setting.value}"
                    faults[CONFLICT, _name(key)] = why
        return wanted

    def _of_claims(self) -> Wanted:
        return _settings(e for e in self._entries().values() if e.state is EntryState.READY)

    def _busy(self) -> Wanted:
        return _settings(e for e in self._entries().values() if e.state is not EntryState.READY)

    async def _undo(
        self, unsure: frozenset[str], policy: Wanted, faults: dict[tuple[str, str], str]
    ) -> None:
        """Undo what the policy wanted before and nobody wants now; then keep what it wants.

        Nothing is undone of vendors that are *unsure*: what they need is not known now.
        """
        before, left = self._recall(), dict(policy)
        for key, setting in before.items():
            if key in policy or key in self._of_claims() or key in self._busy():
                continue
            if key[0] in unsure or not await self._revert(key, setting, faults):
                left[key] = setting  # to be tried again
        if left == before:
            return
        try:
            write_whole(self._path, _written(left))
        except OSError as error:
            faults[FAILED, FILE] = f"{self._path} cannot be written: {error.strerror}"

    async def _apply(self, key: Key, setting: Setting, faults: dict[tuple[str, str], str]) -> None:
        try:
            await self._hardware.apply(key[0], setting)
        except AccelkitError as error:
            faults[FAILED, _name(key)] = f"it cannot be {setting.value}: {error}"

    async def _revert(self, key: Key, setting: Setting, faults: dict[tuple[str, str], str]) -> bool:
        try:
            await self._hardware.revert(key[0], setting)
        except AccelkitError as error:
            faults[FAILED, _name(key)] = f"it cannot be undone: {error}"
            return False
        log.info("setting undone", extra={"setting": _name(key)})
        return True

    def _recall(self) -> Wanted:
        from accelkit.core.serde import from_tree  # noqa: PLC0415 - only where something is set

        try:
            kept = from_tree(tuple[_Kept, ...], json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return {}
        except Exception as error:  # noqa: BLE001 - whatever is in it, settings go on
            log.warning("settings forgotten", extra={"error": str(error)})
            return {}
        return {(one.vendor, one.setting.device, one.setting.key): one.setting for one in kept}

    def _announce(self, faults: Mapping[tuple[str, str], str]) -> None:
        remedies = {
            CONFLICT: "let the policy and claims ask for the same, or for different devices",
            FAILED: "look for problems of the vendor; it is tried again by itself",
        }
        for (code, subject), why in faults.items():
            self._problems.note(AGENT, code, subject, f"{subject}: {why}", remedies[code])
        for code, subject in self._noted - faults.keys():
            self._problems.solve(AGENT, code, subject)
        self._noted = set(faults)


def _handed_out(view: View, vendors: frozenset[str]) -> Iterator[tuple[Device, Offer]]:
    """Devices that the kubelet hands out, and on which terms."""
    for device in view.snapshot.devices:
        given = view.assignments.get(device.id)
        if (
            given is not None
            and given.terms is not None
            and given.terms.through == KUBELET
            and device.id.vendor in vendors
            and device.standing is Seen.PRESENT
        ):
            yield device, given.terms


def _unsure(view: View, vendors: frozenset[str]) -> frozenset[str]:
    """Vendors of which it is not known now what they have."""
    gone = {d.id.vendor for d in view.snapshot.devices if d.standing is Seen.STALE}
    return (vendors - view.snapshot.answered) | (gone & vendors)


def _settings(entries: Iterable[LedgerEntry]) -> Wanted:
    return {
        (entry.pieces[0].device.vendor, setting.device, setting.key): setting
        for entry in entries
        for setting in entry.settings
    }


def _written(wanted: Wanted) -> bytes:
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - only where something is set

    kept = [_Kept(vendor=vendor, setting=setting) for (vendor, _, _), setting in wanted.items()]
    return json.dumps([to_tree(one) for one in kept]).encode()


def _name(key: Key) -> str:
    vendor, device, word = key
    return f"{device or vendor} {word}"

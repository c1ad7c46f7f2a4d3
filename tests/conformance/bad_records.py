# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""DRA drivers that read wrongly what was written down of claims, and are otherwise fine."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.toy_claims import LOOK_S, ToyClaims
from tests.conformance.toy_plug import held_by_pods
from tests.conformance.toy_records import Notes


class Strict(Notes):
    """Reads all files or none."""

    def read(self) -> None:
        if any(self.tree(uid) is None for uid in self._record.claims):
            raise ValueError("the records are damaged")
        super().read()


class Brittle(ToyClaims):
    """Does not start where one file is damaged."""

    notes_kind = Strict

    def start(self, kubelet: Path) -> None:
        try:
            super().start(kubelet)
        except ValueError:
            return


class Loose(Notes):
    def read(self) -> None:
        super().read()
        self._record.unread.clear()


class Forgiving(ToyClaims):
    """Forgets what it cannot read, and gives its device away."""

    notes_kind = Loose


class Old(Notes):
    def version(self, tree: dict[str, object]) -> int:
        return 1

    def read(self) -> None:
        super().read()
        for entry in self._record.claims.values():
            self.write(entry)


class Overwriting(ToyClaims):
    """Takes every version for its own."""

    notes_kind = Old


class Exact(Notes):
    """Knows its own fields, all of them and no other."""

    def is_good(self, uid: str) -> bool:
        tree = self.tree(uid)
        return tree is not None and tree.keys() == {"format", "devices", "level"}


class Exacting(ToyClaims):
    notes_kind = Exact


class Pruning(ToyClaims):
    """Gives back what no pod has."""

    async def look_after(self) -> None:
        pods = await held_by_pods(self.kubelet) or set()
        for uid, entry in tuple(self.record.claims.items()):
            if pods.isdisjoint(piece.device for piece in entry.pieces):
                del self.record.claims[uid]
        await asyncio.sleep(LOOK_S)
        await super().look_after()


class Complete(Notes):
    """Knows records that have all its own fields."""

    def is_good(self, uid: str) -> bool:
        tree = self.tree(uid)
        return tree is not None and {"format", "devices", "level"} <= tree.keys()


class Demanding(ToyClaims):
    notes_kind = Complete


BAD: Mapping[str, type[ToyClaims]] = {
    "CR03": Brittle,
    "CR04": Demanding,
    "CR05": Overwriting,
    "CR06": Exacting,
    "CR11": Pruning,
}
"""Who breaks the rule of each check."""
MORE = (("CR03", Forgiving), ("CR05", Forgiving))
"""Who breaks it in another way."""

# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""DRA drivers that tell operators little, or mind upgrades and outages; otherwise they are fine."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from accelkit.core.allocation import ClaimRef
from accelkit.core.errors import BackendError
from accelkit.core.kube import NODES, Json
from tests.conformance.toy_answers import Refusal
from tests.conformance.toy_claims import ToyClaims
from tests.conformance.toy_plug import Holder


class Exploding(ToyClaims):
    """Has a series for each claim that it ever prepared."""

    ever: ClassVar[list[str]] = []

    def check(self, claim: Json, ref: ClaimRef) -> None:
        super().check(claim, ref)
        self.ever.append(ref.uid)

    def measured(self) -> list[str]:
        each = [f'toy_prepare_seconds{{claim="{uid}"}} 1' for uid in self.ever]
        return [*super().measured(), *each]


class TwoTongued(ToyClaims):
    """Has other labels for those who have a device by a claim."""

    def labels(self, holder: Holder) -> str:
        told = super().labels(holder)
        return told.replace("pod=", "pod_name=") if holder.by_claim else told


class Shouting(ToyClaims):
    """Tells each time."""

    async def tell_of(self, ref: ClaimRef, why: str) -> None:
        await self.tell(ref, why)


class Silent(ToyClaims):
    def note(self, event: str, **keys: object) -> None:
        super().note(event)


class Terse(ToyClaims):
    """Logs what, and not of whom."""

    def note(self, event: str, **keys: object) -> None:
        super().note(f"{event} {keys}")


class Jealous(ToyClaims):
    """Prepares nothing while there is another instance."""

    twins: ClassVar[int] = 0

    def start(self, kubelet: Path) -> None:
        type(self).twins += 1
        super().start(kubelet)

    def kill(self) -> None:
        if self._task is not None:
            type(self).twins -= 1
        super().kill()

    def check(self, claim: Json, ref: ClaimRef) -> None:
        super().check(claim, ref)
        if self.twins > 1:
            raise Refusal("another instance is there")


class Dependent(ToyClaims):
    """Gives up where it cannot see its node."""

    async def serve(self) -> None:
        try:
            await self.kube.get(NODES, self.node)
        except BackendError:
            return
        await super().serve()


BAD: Mapping[str, type[ToyClaims]] = {
    "AG03": Exploding,
    "AG05": TwoTongued,
    "AG08": Shouting,
    "AG12": Silent,
    "AG19": Terse,
    "AG21": Jealous,
    "AG22": Dependent,
}
"""Who breaks the rule of each check."""

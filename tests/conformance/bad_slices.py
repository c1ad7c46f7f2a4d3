# ruff: noqa: ARG002 - what breaks a rule often does so by not looking
"""For each check of what DRA drivers publish one that breaks its rule, and is otherwise fine."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from accelkit.conformance.sims.api.values import number, text
from accelkit.conformance.sims.tasks import do
from accelkit.core.errors import ApiError, BackendError
from accelkit.core.kube import CLAIMS, PODS, SLICES, Json
from tests.conformance.toy_answers import DRIVER
from tests.conformance.toy_claims import ToyClaims
from tests.conformance.toy_slices import Tree


class Wordy(ToyClaims):
    """Learns limits by being refused."""

    brief = False

    def attributes(self, device: str) -> Mapping[str, object]:
        note = {} if self.brief else {"note": {"string": "so much to say " * 8}}
        return {**super().attributes(device), **note}

    async def write_one(self, item: Json | None, spec: Tree, index: int) -> None:
        try:
            await super().write_one(item, spec, index)
        except ApiError:
            self.brief = True
            raise


class Big(ToyClaims):
    most = 128


class Miscounting(ToyClaims):
    def pool(self, generation: int, count: int) -> Tree:
        return super().pool(generation, count + 1)


class Doubling(ToyClaims):
    """Publishes a device in two slices."""

    most = 2

    def drawn(self) -> list[Tree]:
        found = super().drawn()
        return [*found, *found[:1]]


class Dangling(ToyClaims):
    def consumption(self, name: str) -> Tree:
        return {**super().consumption(name), "counterSet": "nowhere"}


class Mixed(ToyClaims):
    """Puts counters beside devices."""

    def wanted(self) -> list[Tree]:
        found = super().wanted()
        sets = [s for spec in found for s in spec.get("sharedCounters", [])]
        return [{**s, "sharedCounters": sets} for s in found if "devices" in s] if sets else found


class Orphaned(ToyClaims):
    def owners(self) -> list[Tree]:
        return []


class Restless(ToyClaims):
    def same(self, found: Sequence[Tree], wanted: Sequence[Tree]) -> bool:
        return False


class Content(ToyClaims):
    """Looks once."""

    async def look(self) -> None:
        if not self._compared:
            await super().look()


class Hopeful(ToyClaims):
    """Believes that servers keep what they are told."""

    def keeps(self, field: str) -> bool:
        return True


class OneGeneration(ToyClaims):
    """Changes one slice after the other, without a new generation."""

    async def write_all(self, there: Sequence[Json], wanted: Sequence[Tree]) -> None:
        if len(there) != len(wanted):
            await super().write_all(there, wanted)
            return
        newest = max(number(i, "spec", "pool", "generation") for i in there)
        for index, spec in enumerate(wanted):
            full = {**spec, "pool": self.pool(newest, len(wanted))}
            await self.write_one(there[index], full, index)


class Hiding(ToyClaims):
    def shows(self, name: str) -> bool:
        return super().shows(name) and not self.bad(name)


class Precise(ToyClaims):
    """Knows when a device broke to the microsecond, and wants it kept."""

    def taints(self, name: str) -> list[Tree]:
        stamp = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        return [{**taint, "timeAdded": stamp} for taint in super().taints(name)]

    def comparable(self, spec: Json) -> Tree:
        return {key: value for key, value in spec.items() if key != "pool"}

    def with_times(self, spec: Tree, item: Json) -> Tree:
        return spec


class Tidy(ToyClaims):
    """Leaves nothing behind."""

    def stop(self) -> None:
        do(self._remove())
        super().stop()

    async def _remove(self) -> None:
        for item in await self.there():
            await self.kube.delete(SLICES, text(item, "metadata", "name"))


class Fragile(ToyClaims):
    """Gives up publishing at the first trouble."""

    async def look(self) -> None:
        try:
            await super().look()
        except BackendError:
            await asyncio.Event().wait()


class Moody(ToyClaims):
    """Leaves out other attributes each time."""

    def attributes(self, device: str) -> Mapping[str, object]:
        return {
            f"{name}{self.starts}" if name.startswith("n") else name: value
            for name, value in super().attributes(device).items()
        }


class Prompt(ToyClaims):
    jitter_s = 0.0


class Absent(ToyClaims):
    """Does not publish what is not there, whoever has it."""

    def shows(self, name: str) -> bool:
        return super().shows(name) and name not in self.hardware.lost


class Negative(ToyClaims):
    def consumption(self, name: str) -> Tree:
        return {**super().consumption(name), "counters": {"half": {"value": "-1"}}}


class Shuffling(ToyClaims):
    """Begins with another device each time that it has to begin."""

    rounds = 0

    async def there(self) -> list[Json]:
        found = await super().there()
        self.rounds += not found
        return found

    def drawn(self) -> list[Tree]:
        found = super().drawn()
        at = self.rounds % max(len(found), 1)
        return [*found[at:], *found[:at]]


class Blunt(ToyClaims):
    async def probe_server(self) -> None:
        self._kept = dict.fromkeys(("taints", "allowMultipleAllocations", "counters"), True)


class Overlapping(ToyClaims):
    def listed(self) -> list[str]:
        found = super().listed()
        return [*dict.fromkeys([*self.hardware.names, *found])] if self.setup.cut else found


class Fractional(ToyClaims):
    def draw(self, name: str) -> Tree:
        found = super().draw(name)
        found["capacity"]["cores"] = {"value": "500m"}
        return found


# Extended resources.


class Twofold(ToyClaims):
    """Has two classes for one name."""

    def classes(self) -> tuple[Json, ...]:
        (one,) = super().classes()
        return one, {**one, "metadata": {"name": "another"}}


class Fewer(ToyClaims):
    def plugged_names(self) -> list[str]:
        return super().plugged_names()[1:]


class Both(ToyClaims):
    """Serves a name in both ways."""

    async def look_after_plug(self) -> None:
        if self.setup.resource:
            await self._plug.open(self.kubelet)

    def plugged_healthy(self) -> bool:
        return True

    def allocatable(self) -> bool:
        return False


class Renaming(ToyClaims):
    def plugged_names(self) -> list[str]:
        return [f"plugged-{name}" for name in super().plugged_names()]


class Indifferent(ToyClaims):
    """Has one expression for every profile."""

    def profile_is(self, profile: str) -> str:
        return f'device.driver == "{DRIVER}"'


class Grabby(ToyClaims):
    """Makes a claim for every pod that names its resource."""

    async def look(self) -> None:
        await super().look()
        listing = await self.kube.list(PODS)
        for pod in listing.items:
            name, namespace = text(pod, "metadata", "name"), text(pod, "metadata", "namespace")
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name}
            owners = [{**owner, "uid": text(pod, "metadata", "uid")}]
            exactly = {"deviceClassName": "toy"}
            spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
            meta = {"name": f"grabbed-{name}", "ownerReferences": owners}
            try:
                item = {"metadata": meta, "spec": spec}
                await self.kube.create(CLAIMS, item, namespace=namespace)
            except ApiError:
                continue


class Impatient(ToyClaims):
    """Publishes what pods have by the device plugin."""

    def shows(self, name: str) -> bool:
        return True


class Piecewise(ToyClaims):
    """Lets a name go device by device."""

    def allocatable(self) -> bool:
        return False

    def plugged_healthy(self) -> bool:
        return True


class Reopening(ToyClaims):
    def plugged_healthy(self) -> bool:
        return self.setup.through == "kubelet"


class Unaware(ToyClaims):
    """Does not look which kubelet it has."""

    def may_publish(self) -> bool:
        return self.setup.through == "dra"


class Exclusive(ToyClaims):
    """Forgets that shares of a device are out."""

    def shareable(self, name: str) -> bool:
        return self.setup.shares > 1


BAD: Mapping[str, type[ToyClaims]] = {
    "DP19": Reopening,
    "ER01": Twofold,
    "ER02": Fewer,
    "ER03": Both,
    "ER04": Renaming,
    "ER05": Indifferent,
    "ER06": Grabby,
    "ER07": Impatient,
    "ER08": Piecewise,
    "ER09": Reopening,
    "ER10": Unaware,
    "SL01": Wordy,
    "SL02": Big,
    "SL03": Miscounting,
    "SL04": Doubling,
    "SL05": Dangling,
    "SL06": Mixed,
    "SL07": Orphaned,
    "SL08": Restless,
    "SL09": Content,
    "SL10": Hopeful,
    "SL11": OneGeneration,
    "SL12": Hiding,
    "SL13": Precise,
    "SL14": Tidy,
    "SL15": Fragile,
    "SL16": Moody,
    "SL17": Prompt,
    "SL18": Exclusive,
    "SL19": Absent,
    "SL20": Negative,
    "SL21": Shuffling,
    "SL22": Blunt,
    "SL23": Overlapping,
    "SL24": Fractional,
}
"""Who breaks the rule of each check."""

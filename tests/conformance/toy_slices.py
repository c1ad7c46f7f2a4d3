"""What a toy of a DRA driver publishes, and when. Not here: claims, and its life."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from accelkit.backends.dra.slices_settings import jitter_of
from accelkit.conformance.setups import BY_PROFILE, RESOURCE
from accelkit.conformance.sims.api.values import number, part, parts, text
from accelkit.core.errors import ApiError, BackendError
from accelkit.core.kube import NODES, SLICES, Json
from tests.conformance.toy_answers import DRIVER, Answers, Refusal

Tree = dict[str, Any]  # type: ignore[explicit-any]  # JSON that is put together
LOOK_S = 0.03
_LIMIT = 30


class Slices(Answers):
    """Keeps slices as they should be; what breaks a rule overrides a method."""

    jitter_s: ClassVar[float] = 10.0
    most: ClassVar[int] = 64
    """Devices of a slice."""

    def __init__(self) -> None:
        super().__init__()
        self.registered = False
        self.drops = 0
        self._kept: dict[str, bool] = {}
        """Whether the server keeps a field."""
        self._node: Json = {}
        self._began_s = time.monotonic()
        self._compared = False

    # When.

    async def publish(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                if self.registered:
                    await self.look()
            except (BackendError, Refusal):
                continue  # the next look tries again

    async def look(self) -> None:
        if not self._kept:
            await self.probe_server()
        self._node = await self.kube.get(NODES, self.node)
        there = await self.there()
        wanted = self.wanted()
        found = [self.comparable(part(item, "spec")) for item in there]
        if self.same(found, [self.comparable(spec) for spec in wanted]):
            self._compared = True
            return
        alters = bool(there) and not self._compared
        if alters and time.monotonic() < self._began_s + jitter_of(self.node, self.jitter_s):
            return
        await self.write_all(there, wanted)
        self._compared = True

    async def there(self) -> list[Json]:
        """The slices that are there, by name."""
        fields = f"spec.nodeName={self.node}"
        listing = await self.kube.list(SLICES, fields=fields)
        mine = [item for item in listing.items if text(item, "spec", "driver") == DRIVER]
        return sorted(mine, key=lambda item: text(item, "metadata", "name"))

    def comparable(self, spec: Json) -> Tree:
        """What is compared of a specification: neither the pool nor times."""
        found = {key: value for key, value in spec.items() if key != "pool"}
        found["devices"] = [
            {**device, "taints": [{**t, "timeAdded": ""} for t in parts(device, "taints")]}
            for device in parts(found, "devices")
        ]
        return found

    def same(self, found: Sequence[Tree], wanted: Sequence[Tree]) -> bool:
        return list(found) == list(wanted)

    async def write_all(self, there: Sequence[Json], wanted: Sequence[Tree]) -> None:
        """A new generation: the pool is incomplete until the last of it is there."""
        newest = max((number(i, "spec", "pool", "generation") for i in there), default=0)
        for item in there[len(wanted) :]:
            await self.kube.delete(SLICES, text(item, "metadata", "name"))
        for index, spec in enumerate(wanted):
            full = {**spec, "pool": self.pool(newest + 1, len(wanted))}
            await self.write_one(there[index] if index < len(there) else None, full, index)

    async def write_one(self, item: Json | None, spec: Tree, index: int) -> None:
        if item is None:
            name = f"{self.node}-{DRIVER}-{index:03}"
            meta = {"name": name, "ownerReferences": self.owners()}
            await self.kube.create(SLICES, {**_HEAD, "metadata": meta, "spec": spec})
        else:
            changed = {**item, "spec": self.with_times(spec, item)}
            await self.kube.replace(SLICES, {**_HEAD, **changed})

    def pool(self, generation: int, count: int) -> Tree:
        return {"name": self.node, "generation": generation, "resourceSliceCount": count}

    def owners(self) -> list[Tree]:
        uid = text(self._node, "metadata", "uid")
        return [{"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": uid}]

    def with_times(self, spec: Tree, item: Json) -> Tree:
        """*spec* with the times of taints that are there."""
        times = {
            (text(device, "name"), text(taint, "key")): taint.get("timeAdded")
            for device in parts(item, "spec", "devices")
            for taint in parts(device, "taints")
        }
        for device in spec.get("devices", []):
            for taint in device.get("taints", []):
                known = times.get((device["name"], taint["key"]))
                if known:
                    taint["timeAdded"] = known
        return spec

    # What the server keeps.

    async def probe_server(self) -> None:
        """Try each field that may be dropped without writing anything."""
        probes: Mapping[str, Tree] = {
            "taints": {"taints": [{"key": "conformance.test/probe", "effect": "NoSchedule"}]},
            "allowMultipleAllocations": {"allowMultipleAllocations": True},
        }
        for field, extra in probes.items():
            kept = await self.kept_of({"devices": [{"name": "probe", **extra}]})
            self._kept[field] = any(field in device for device in parts(kept, "devices"))
        counters = [{"name": "s", "counters": {"c": {"value": "1"}}}]
        self._kept["counters"] = "sharedCounters" in await self.kept_of(
            {"sharedCounters": counters}
        )

    async def kept_of(self, spec: Tree) -> Json:
        full = {"driver": DRIVER, "nodeName": self.node, "pool": self.pool(1, 1), **spec}
        item = {**_HEAD, "metadata": {"name": f"{self.node}-probe"}, "spec": full}
        try:
            return part(await self.kube.create(SLICES, item, dry_run=True), "spec")
        except ApiError:
            return {}

    def keeps(self, field: str) -> bool:
        return self._kept.get(field, False)

    # What.

    def wanted(self) -> list[Tree]:
        """Specifications of the slices, without their pool."""
        devices = self.drawn()
        common = {"driver": DRIVER, "nodeName": self.node}
        chunks = [devices[at : at + self.most] for at in range(0, len(devices), self.most)]
        found = [{**common, "devices": chunk} for chunk in chunks]
        return [*self.counter_slices(common), *found]

    def counter_slices(self, common: Tree) -> list[Tree]:
        if not self.counted:
            return []
        sets = [{"name": n, "counters": {"half": {"value": "2"}}} for n in self.hardware.names]
        return [{**common, "sharedCounters": sets[at : at + 8]} for at in range(0, len(sets), 8)]

    @property
    def counted(self) -> bool:
        return self.setup.cut and self.keeps("counters")

    def drawn(self) -> list[Tree]:
        """Devices in order: a whole one before its halves."""
        if not self.may_publish():
            return []
        return [self.draw(name) for name in self.listed() if self.shows(name)]

    def may_publish(self) -> bool:
        if self.setup.through != "dra":
            return False
        version = text(self._node, "status", "nodeInfo", "kubeletVersion")
        minor = int(version.partition("v1.")[2].partition(".")[0] or 99)
        return not self.setup.resource or minor >= 36

    def listed(self) -> list[str]:
        names = []
        for name in self.hardware.names:
            halves = [f"{name}-half-{half}" for half in range(2)] if self.setup.cut else []
            if not halves or self.counted:
                names.append(name)
            names += halves
        return names

    def shows(self, name: str) -> bool:
        if name in self.record.held:
            return True
        hidden = self.bad(name) and not self.keeps("taints")
        self.drops += hidden
        return name not in self.hardware.lost and not hidden

    def bad(self, name: str) -> bool:
        return name in self.hardware.sick or name in self.hardware.lost

    def draw(self, name: str) -> Tree:
        found: Tree = {"name": name, "attributes": self.attributes(name)}
        found["capacity"] = {"memory": {"value": "16Gi"}}
        if self.shareable(name):
            found["allowMultipleAllocations"] = True
            policy = {"default": "1", "validValues": ["1"]}
            count = str(max(self.setup.shares, 2))
            found["capacity"]["shares"] = {"value": count, "requestPolicy": policy}
            found["capacity"]["memory"]["requestPolicy"] = {
                "default": "0",
                "validRange": {"min": "0"},
            }
        if self.counted:
            found["consumesCounters"] = [self.consumption(name)]
        if self.bad(name):
            found["taints"] = self.taints(name)
        return found

    def shareable(self, name: str) -> bool:
        wanted = self.setup.shares > 1 or name in self.record.shared
        return wanted and self.keeps("allowMultipleAllocations")

    def consumption(self, name: str) -> Tree:
        root, half, _ = name.partition("-half")
        return {"counterSet": root, "counters": {"half": {"value": "1" if half else "2"}}}

    def taints(self, _name: str) -> list[Tree]:
        return [{"key": "conformance.test/broken", "effect": "NoSchedule"}]

    def attributes(self, device: str) -> Mapping[str, object]:
        profile = "half" if "-half" in device else "whole"
        found: Tree = {"mark": {"string": self.setup.mark}, "profile": {"string": profile}}
        found |= {f"n{n:02}": {"int": n} for n in range(self.extra())}
        return found

    def extra(self) -> int:
        """How many more attributes a device has: as many as may be, of those there are."""
        return min(60, _LIMIT - 2) if self.setup.rich else 0

    def classes(self) -> tuple[Json, ...]:
        """The device classes that go with the resource names."""
        driver = f'device.driver == "{DRIVER}"'
        if self.setup.resource == BY_PROFILE:
            return tuple(
                device_class(p, f"conformance.test/{p}", f"{driver} && {self.profile_is(p)}")
                for p in ("whole", "half")
            )
        return (device_class("toy", RESOURCE, driver),)

    def profile_is(self, profile: str) -> str:
        return f'device.attributes["{DRIVER}"].profile == "{profile}"'


_HEAD: Tree = {"apiVersion": SLICES.api_version, "kind": SLICES.kind}


def device_class(name: str, resource: str, expression: str) -> Json:
    spec = {"extendedResourceName": resource, "selectors": [{"cel": {"expression": expression}}]}
    return {"metadata": {"name": name}, "spec": spec}

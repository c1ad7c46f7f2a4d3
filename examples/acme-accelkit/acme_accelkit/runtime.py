"""What containers are given, and what must hold while they have a card."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import attrs

from accelkit import (
    ContainerEdits,
    Device,
    Edits,
    Enforcement,
    FrozenMap,
    Grant,
    Host,
    MissingParts,
    NotThere,
    Setting,
    SupportsPreparation,
    Vendor,
    equal_share,
)
from acme_accelkit.files import file_of


class Clock(StrEnum):
    """How fast a card runs."""

    QUIET = "quiet"
    TURBO = "turbo"


@attrs.frozen(kw_only=True)
class AcmeClaim:
    """What users may ask for in a claim."""

    clock: Clock | None = None
    """While the claim lives; None: as it is."""


class Runtime(Vendor, SupportsPreparation):
    """Device files, the limits of Acme's library, and the clock that a claim asks for."""

    claim_config = AcmeClaim

    def edits(self, host: Host, grant: Grant) -> Edits:
        made = super().edits(host, grant)
        for node in (node for edits in made.each.values() for node in edits.nodes):
            if not host.exists(node.on_host):
                raise MissingParts(f"{node.on_host} is not there")
        if grant.sharing.enforce is not Enforcement.LIBRARY:
            return made
        memories = (
            (granted.amounts or equal_share(granted.device.capacity, grant.sharing)).get("memory")
            for granted in grant.granted
        )
        env = {f"ACME_MEMORY_LIMIT_{n}": str(memory) for n, memory in enumerate(memories) if memory}
        return attrs.evolve(made, whole=ContainerEdits(env=FrozenMap(env)))

    def needs(self, host: Host, grant: Grant) -> Iterable[Setting]:  # noqa: ARG002 - the claim says it
        if isinstance(grant.config, AcmeClaim) and grant.config.clock is not None:
            for card in dict.fromkeys(granted.device.root for granted in grant.granted):
                yield Setting(device=card, key="clock", value=grant.config.clock)

    def apply(self, host: Host, setting: Setting) -> None:
        host.write(self._file(host, setting), setting.value)

    def revert(self, host: Host, setting: Setting) -> None:
        try:
            host.write(self._file(host, setting), "auto")
        except NotThere:
            return  # the card is gone, and its clock with it

    def _file(self, host: Host, setting: Setting) -> str:
        for found in self.discover(host):
            if isinstance(found, Device) and found.id == setting.device:
                return file_of(found, setting.key)
        raise NotThere(f"{setting.device} is not there", operation=setting.key)

    def software(self, host: Host) -> Mapping[str, str]:
        return {"driver": host.read("/sys/module/acme/version")}

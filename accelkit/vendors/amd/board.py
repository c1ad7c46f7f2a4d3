"""Where the GPUs of a simulated machine hang and what they are called. Not here: their files."""

import re
from hashlib import sha256
from typing import cast

import attrs

from accelkit.testing.machines import Json, Part, State
from accelkit.testing.sysfs import PciPlace, extended_minor, part_place
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.cutting import Cut
from accelkit.vendors.amd.products import PRODUCTS, Product

_FIRST_MINOR = 128
"""Of render nodes (Linux, drivers/gpu/drm/drm_drv.c)."""
_MOST_XCPS = 64
"""Linux, drivers/gpu/drm/amd/amdxcp/amdgpu_xcp_drv.c, MAX_XCP_PLATFORM_DEVICE."""
_NAMED = re.compile(r"(?:GPU-)?([0-9a-f]{16})", re.IGNORECASE)
_PRIME, _STEP = 65521, 7919
"""Ids of KFD look like chance, and no two are equal."""


@attrs.frozen(kw_only=True)
class Board:
    """The GPUs of one part."""

    part: Part

    @property
    def product(self) -> Product:
        return PRODUCTS[self.part.product]

    @property
    def guest(self) -> bool:
        """Whether this is a virtual machine that has virtual functions."""
        return self.part.options.get("guest", "") == "vf" and self.product.virtual is not None

    @property
    def counts_errors(self) -> bool:
        """Whether its files tell of errors; a virtual function has no such files."""
        return self.product.ras and not self.guest

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(f"gpu-{self.part.first + i}" for i in range(self.part.count))

    @property
    def pci_device(self) -> int:
        virtual = self.product.virtual
        return virtual if self.guest and virtual is not None else self.product.pci_device

    def place(self, index: int) -> PciPlace:
        place = part_place(self.part, index)
        if self.part.options.get("domains", "") != "own":
            return place
        domain = f"{self.part.first + index + 1:04x}"
        return attrs.evolve(place, address=f"{domain}:00:00.0", root=f"pci{domain}:00", above=())

    def folder(self, index: int) -> str:
        """Of the PCI function in sysfs."""
        place = self.place(index)
        return "/".join(("/sys/devices", place.root, *place.above, place.address))

    def unique_id(self, index: int) -> int:
        if (told := _NAMED.fullmatch(self.part.told.units[index].uuid or "")) is not None:
            return int(told[1], 16)
        text = f"{self.part.seed}/{self.part.first + index}"
        return int(sha256(text.encode()).hexdigest()[:16], 16) | 1

    def hive(self, index: int) -> tuple[int, ...]:
        """The GPUs that xGMI connects to a GPU, itself among them; empty: none."""
        if self.part.told.links is not None:
            return self._together(index)
        size = self.product.hive
        if not size or self.part.options.get("domains", "") == "own":
            return ()
        first = index // size * size
        members = tuple(range(first, min(first + size, self.part.count)))
        return members if len(members) > 1 else ()

    def _together(self, index: int) -> tuple[int, ...]:
        """The GPUs that can be reached over the links that are told."""
        found, news = {index}, {index}
        while news:
            near = {other for one in news for other in self.part.told.beside(one) or ()}
            news = near - found
            found |= news
        return tuple(sorted(found)) if len(found) > 1 else ()

    def linked(self, index: int) -> tuple[int, ...]:
        """GPUs that have links with a GPU."""
        told = self.part.told.beside(index)
        return tuple(other for other in self.hive(index) if told is None or other in told)

    def hive_id(self, index: int) -> int:
        members = self.hive(index)
        return self.unique_id(members[0]) >> 1 if members else 0

    def kfd_id(self, index: int, partition: int) -> int:
        number = (self.part.first + index) * self.product.complexes + partition
        return (number + 1) * _STEP % _PRIME

    # What depends on the state.

    def order(self, state: State) -> tuple[int, ...]:
        """GPUs in the order in which the driver found them: another one after each boot."""
        indices = tuple(range(self.part.count))
        boots = number(state.get(self.part.vendor, {}).get("boots"))
        return indices[::-1] if boots % 2 else indices

    def minor(self, state: State, index: int, partition: int) -> int:
        """Of the render node, one after another by GPU."""
        nth = self.nth(state, index, partition)
        return extended_minor(self.part, nth) if self.part.first else _FIRST_MINOR + nth

    def card_of(self, minor: int) -> int:
        """The card of a render node: card0 is the picture of the server's own management."""
        return minor + 1 if self.part.first else minor - _FIRST_MINOR + 1

    def nth(self, state: State, index: int, partition: int) -> int:
        return self.order(state).index(index) * self.product.complexes + partition

    def has_minor(self, state: State, index: int, partition: int) -> bool:
        """Whether the kernel had a device number left for it, and a platform device."""
        most = state.get(self.part.vendor, {}).get("minors")
        if partition and self.xcp(state, index, partition) >= _MOST_XCPS:
            return False
        return most is None or self.nth(state, index, partition) < number(most)

    def xcp(self, state: State, index: int, partition: int) -> int:
        """The number of the platform device of a partition that is not the first."""
        each = self.product.complexes - 1
        return self.order(state).index(index) * each + partition - 1

    def cut(self, state: State, index: int) -> Cut | None:
        """What a GPU is cut to; None: it cannot be."""
        modes = self.product.memory_modes
        if not modes:
            return None
        memory = str(state.get(self.part.vendor, {}).get("nps", modes[0]))
        compute = state.get(self.units[index], {}).get("compute")
        return Cut(
            compute=self.first_compute(memory) if compute is None else str(compute), memory=memory
        )

    def first_compute(self, memory: str) -> str:
        """The compute mode that comes with a memory mode.

        Source: aqua_vanjaram.c, __aqua_vanjaram_get_auto_mode.
        """
        ranges, complexes = facts.MEMORY[memory], self.product.complexes
        if ranges == 1:
            return facts.SPX
        if ranges == 2:
            return "DPX"
        return "CPX" if complexes % 3 else "TPX"

    def count(self, state: State, index: int) -> int:
        """Partitions of a GPU."""
        cut = self.cut(state, index)
        return 1 if cut is None else facts.count_of(cut.compute, self.product.complexes)

    def compute_modes(self, memory: str) -> tuple[str, ...]:
        """What a GPU can be set to in a memory mode."""
        return tuple(
            mode
            for mode in facts.compute_modes(self.product.complexes)
            if facts.go_together(mode, memory, self.product.gfx, virtual=self.guest)
        )


def number(value: Json) -> int:
    return int(cast("int", value)) if isinstance(value, int | str) else 0

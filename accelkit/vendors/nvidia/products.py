"""Products of the simulated machine, as tables. Not here: the vendor, which reads it all from NVML.

Source of profiles: `nvidia-smi mig -lgip` and `-lgipp` of each product, as in NVIDIA's MIG user
guide; the placements of H200 and B200 are assumed to be those of H100.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

GIB = 1 << 30


@attrs.frozen(kw_only=True)
class MigProfile:
    """One size of a product; *index* and *number* are nvml.h's enum and the driver's id."""

    index: int
    number: int
    name: str
    slices: int
    memory_mb: int
    engines: tuple[int, ...]
    """Multiprocessors, copy engines, decoders, JPEG, optical flow, encoders."""
    limit: int
    starts: tuple[int, ...]
    size: int


@attrs.frozen(kw_only=True)
class Product:
    """One product."""

    name: str
    pci_device: int
    pci_class: int = 0x030200
    architecture: int
    """nvml.h, NVML_DEVICE_ARCH_*."""
    capability: tuple[int, int]
    memory: int
    brand: int = 14
    links: int = 0
    """NVLinks of one GPU."""
    link_version: int = 0
    """nvml.h, NVML_NVLINK_VERSION_*."""
    switched: bool = False
    """The links lead to switches."""
    mesh: Mapping[tuple[int, int], int] = attrs.field(factory=dict)
    """Links between two GPUs of a board of eight, where they lead to each other."""
    fabric: bool = False
    """Tells the state of its fabric (Hopper and newer)."""
    profiles: tuple[MigProfile, ...] = ()
    resetless: bool = False
    """MIG mode can be set without a reset (Hopper and newer)."""

    @property
    def slots(self) -> int:
        """Of the grid on which its instances lie; 0: it cannot be cut."""
        return max((p.starts[-1] + p.size for p in self.profiles), default=0)

    @property
    def most_instances(self) -> int:
        return max((p.limit for p in self.profiles), default=0)

    def profile(self, name: str) -> MigProfile | None:
        """The profile *name*; 3g stands for the first of three slices, whatever its memory."""
        return next((p for p in self.profiles if name in {p.name, p.name.split(".")[0]}), None)


_GRID: Mapping[int, tuple[tuple[int, ...], int]] = MappingProxyType(
    {
        19: ((0, 1, 2, 3, 4, 5, 6), 1),
        20: ((0, 1, 2, 3, 4, 5, 6), 1),
        15: ((0, 2, 4, 6), 2),
        14: ((0, 2, 4), 2),
        9: ((0, 4), 4),
        5: ((0,), 4),
        0: ((0,), 8),
    }
)
"""First slots and size by profile id, on every data-centre GPU with seven slices."""
_INDEX = MappingProxyType({19: 0, 14: 1, 9: 2, 5: 3, 0: 4, 20: 7, 15: 9})
_SLICES = MappingProxyType({19: 1, 20: 1, 15: 1, 14: 2, 9: 3, 5: 4, 0: 7})
_LIMITS = MappingProxyType({19: 7, 20: 1, 15: 4, 14: 3, 9: 2, 5: 1, 0: 1})


def _seven(rows: Sequence[tuple[int, str, int, tuple[int, ...]]]) -> tuple[MigProfile, ...]:
    """Rows of id, name, MiB and engines."""
    return tuple(
        MigProfile(
            index=_INDEX[number],
            number=number,
            name=name,
            slices=_SLICES[number],
            memory_mb=memory,
            engines=(*engines, 0),
            limit=_LIMITS[number],
            starts=_GRID[number][0],
            size=_GRID[number][1],
        )
        for number, name, memory, engines in rows
    )


def _grid(
    rows: Sequence[tuple[int, int, str, int, int, tuple[int, ...], int, tuple[int, ...], int]],
) -> tuple[MigProfile, ...]:
    """Rows of all fields, in their order."""
    names = [field.name for field in attrs.fields(MigProfile)]
    return tuple(MigProfile(**dict(zip(names, row, strict=True))) for row in rows)  # type: ignore[arg-type]  # in the order of the fields


_QUARTERS, _HALVES = (0, 1, 2, 3), (0, 2)
_A30 = _grid(
    [
        (0, 14, "1g.6gb", 1, 5952, (14, 1, 0, 0, 0, 0), 4, _QUARTERS, 1),
        (7, 21, "1g.6gb+me", 1, 5952, (14, 1, 1, 1, 1, 0), 1, _QUARTERS, 1),
        (1, 5, "2g.12gb", 2, 11968, (28, 2, 2, 0, 0, 0), 2, _HALVES, 2),
        (8, 6, "2g.12gb+me", 2, 11968, (28, 2, 2, 1, 1, 0), 1, _HALVES, 2),
        (3, 0, "4g.24gb", 4, 24000, (56, 4, 4, 1, 1, 0), 1, (0,), 4),
    ]
)
_THIRDS, _SIXES = (0, 3, 6, 9), (0, 6)
_RTX_PRO_6000 = _grid(
    [
        (0x0, 14, "1g.24gb", 1, 24192, (46, 1, 1, 1, 0, 1), 4, _THIRDS, 3),
        (0x7, 21, "1g.24gb+me", 1, 24192, (46, 1, 1, 1, 1, 1), 1, _THIRDS, 3),
        (0xA, 47, "1g.24gb+gfx", 1, 24192, (46, 1, 1, 1, 0, 1), 4, _THIRDS, 3),
        (0xF, 65, "1g.24gb+me.all", 1, 24192, (46, 1, 4, 4, 1, 4), 1, _THIRDS, 3),
        (0xD, 67, "1g.24gb-me", 1, 24192, (46, 1, 0, 0, 0, 0), 4, _THIRDS, 3),
        (0x1, 5, "2g.48gb", 2, 48512, (94, 2, 2, 2, 0, 2), 2, _SIXES, 6),
        (0xB, 35, "2g.48gb+gfx", 2, 48512, (94, 2, 2, 2, 0, 2), 2, _SIXES, 6),
        (0x10, 64, "2g.48gb+me.all", 2, 48512, (94, 2, 4, 4, 1, 4), 1, _SIXES, 6),
        (0xE, 66, "2g.48gb-me", 2, 48512, (94, 2, 0, 0, 0, 0), 2, _SIXES, 6),
        (0x3, 0, "4g.96gb", 4, 97280, (188, 4, 4, 4, 1, 4), 1, (0,), 12),
        (0xC, 32, "4g.96gb+gfx", 4, 97280, (188, 4, 4, 4, 1, 4), 1, (0,), 12),
    ]
)

_DGX1_MESH = MappingProxyType(
    {
        (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
        (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
    }
)  # fmt: skip
"""The hybrid cube mesh of eight V100. Source: `nvidia-smi topo -m` of a DGX-1."""

PRODUCTS: Mapping[str, Product] = MappingProxyType(
    {
        "h100": Product(
            name="NVIDIA H100 80GB HBM3",
            pci_device=0x2330,
            architecture=9,
            capability=(9, 0),
            memory=80 * GIB - 455 * (1 << 20),
            links=18,
            link_version=6,
            switched=True,
            fabric=True,
            resetless=True,
            profiles=_seven(
                [
                    (19, "1g.10gb", 9984, (16, 1, 1, 1, 0)),
                    (20, "1g.10gb+me", 9984, (16, 1, 1, 1, 1)),
                    (15, "1g.20gb", 20096, (26, 1, 1, 1, 0)),
                    (14, "2g.20gb", 20096, (32, 2, 2, 2, 0)),
                    (9, "3g.40gb", 40448, (60, 3, 3, 3, 0)),
                    (5, "4g.40gb", 40448, (64, 4, 4, 4, 0)),
                    (0, "7g.80gb", 81152, (132, 8, 7, 7, 1)),
                ]
            ),
        ),
        "a100-40": Product(
            name="NVIDIA A100-SXM4-40GB",
            pci_device=0x20B0,
            architecture=7,
            capability=(8, 0),
            memory=40 * GIB,
            links=12,
            link_version=4,
            switched=True,
            profiles=_seven(
                [
                    (19, "1g.5gb", 4864, (14, 1, 0, 0, 0)),
                    (20, "1g.5gb+me", 4864, (14, 1, 1, 1, 1)),
                    (15, "1g.10gb", 9856, (14, 1, 1, 0, 0)),
                    (14, "2g.10gb", 9984, (28, 2, 1, 0, 0)),
                    (9, "3g.20gb", 19968, (42, 3, 2, 0, 0)),
                    (5, "4g.20gb", 19968, (56, 4, 2, 0, 0)),
                    (0, "7g.40gb", 40192, (98, 7, 5, 1, 1)),
                ]
            ),
        ),
        "a100-80": Product(
            name="NVIDIA A100-SXM4-80GB",
            pci_device=0x20B2,
            architecture=7,
            capability=(8, 0),
            memory=80 * GIB,
            links=12,
            link_version=4,
            switched=True,
            profiles=_seven(
                [
                    (19, "1g.10gb", 9728, (14, 1, 0, 0, 0)),
                    (20, "1g.10gb+me", 9728, (14, 1, 1, 1, 1)),
                    (15, "1g.20gb", 19968, (14, 1, 1, 0, 0)),
                    (14, "2g.20gb", 19968, (28, 2, 1, 0, 0)),
                    (9, "3g.40gb", 40192, (42, 3, 2, 0, 0)),
                    (5, "4g.40gb", 40192, (56, 4, 2, 0, 0)),
                    (0, "7g.80gb", 80384, (98, 7, 5, 1, 1)),
                ]
            ),
        ),
        "h200": Product(
            name="NVIDIA H200",
            pci_device=0x2335,
            architecture=9,
            capability=(9, 0),
            memory=143771 << 20,
            links=18,
            link_version=6,
            switched=True,
            fabric=True,
            resetless=True,
            profiles=_seven(
                [
                    (19, "1g.18gb", 16384, (16, 1, 1, 1, 0)),
                    (20, "1g.18gb+me", 16384, (16, 1, 1, 1, 1)),
                    (15, "1g.35gb", 33024, (26, 1, 1, 1, 0)),
                    (14, "2g.35gb", 33024, (32, 2, 2, 2, 0)),
                    (9, "3g.71gb", 71168, (60, 3, 3, 3, 0)),
                    (5, "4g.71gb", 71168, (64, 4, 4, 4, 0)),
                    (0, "7g.141gb", 143360, (132, 8, 7, 7, 1)),
                ]
            ),
        ),
        "b200": Product(
            name="NVIDIA B200",
            pci_device=0x2901,
            architecture=10,
            capability=(10, 0),
            memory=183359 << 20,
            links=18,
            link_version=7,
            switched=True,
            fabric=True,
            resetless=True,
            profiles=_seven(
                [
                    (19, "1g.23gb", 22528, (18, 2, 1, 1, 0)),
                    (20, "1g.23gb+me", 22528, (18, 2, 1, 1, 1)),
                    (15, "1g.45gb", 45312, (30, 2, 1, 1, 0)),
                    (14, "2g.45gb", 45312, (36, 4, 2, 2, 0)),
                    (9, "3g.90gb", 91136, (70, 6, 3, 3, 0)),
                    (5, "4g.90gb", 91136, (72, 8, 4, 4, 0)),
                    (0, "7g.180gb", 182784, (148, 16, 7, 7, 1)),
                ]
            ),
        ),
        "a30": Product(
            name="NVIDIA A30",
            pci_device=0x20B7,
            architecture=7,
            capability=(8, 0),
            memory=24 * GIB,
            profiles=_A30,
        ),
        "rtx-pro-6000": Product(
            name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
            pci_device=0x2BB5,
            architecture=10,
            capability=(12, 0),
            memory=97887 << 20,
            brand=13,
            resetless=True,
            profiles=_RTX_PRO_6000,
        ),
        "l4": Product(
            name="NVIDIA L4",
            pci_device=0x27B8,
            architecture=8,
            capability=(8, 9),
            memory=23034 << 20,
        ),
        "dgx1": Product(
            name="Tesla V100-SXM2-32GB",
            pci_device=0x1DB5,
            architecture=5,
            capability=(7, 0),
            memory=32 * GIB,
            brand=2,
            links=6,
            link_version=2,
            mesh=_DGX1_MESH,
        ),
    }
)

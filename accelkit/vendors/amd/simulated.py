"""The files of simulated GPUs: KFD's nodes, and what sysfs has of each. Not here: what happens."""

from collections.abc import Iterator, Mapping

from accelkit.testing.machines import Entry, File, Json, Link, Node, State
from accelkit.testing.sysfs import CPUS_PER_NODE, NUMA_NODES
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.board import Board, number
from accelkit.vendors.amd.kfd import NODES

DRM_MAJOR, KFD_MAJOR = 226, 240
BLOCKS = ("umc", "sdma", "gfx", "mmhub", "xgmi_wafl")
"""Parts of a GPU that count errors."""
_XGMI, _PCIE = 11, 2
"""Linux, drivers/gpu/drm/amd/amdkfd/kfd_crat.h, CRAT_IOLINK_TYPE_*."""


def kfd(board: Board, state: State) -> Iterator[Entry]:
    """KFD's own files."""
    root = f"{facts.KFD}/topology"
    common = state.get(board.part.vendor, {})
    yield Link(path="/sys/class/kfd/kfd", target=facts.KFD)
    yield File(path=f"{root}/generation_id", content=f"{number(common.get('generation')) + 1}\n")
    yield File(path=f"{root}/system_properties", content="platform_oem 0\nplatform_id 0\n")
    cpus = max(NUMA_NODES, *(board.place(i).numa + 1 for i in range(board.part.count)))
    for cpu in range(cpus):
        yield from _cpu_node(cpu)
    places = {
        (index, partition): cpus + nth
        for nth, (index, partition) in enumerate(_listed(board, state))
    }
    for (index, partition), node in places.items():
        yield from _gpu_node(board, state, (index, partition), node)
        yield from _links(board, state, (index, partition), places)
    yield Node(path=facts.KFD_NODE, major=KFD_MAJOR, minor=0)


def _listed(board: Board, state: State) -> Iterator[tuple[int, int]]:
    """GPUs and partitions that KFD has, in its order."""
    for index in board.order(state):
        own = state.get(board.units[index], {})
        bound = own.get("bound", facts.DRIVER) == facts.DRIVER
        if bound and not own.get("removed") and not own.get("unsupported"):
            for partition in range(board.count(state, index)):
                if board.has_minor(state, index, partition):
                    yield index, partition


def _cpu_node(cpu: int) -> Iterator[Entry]:
    lines = {"cpu_cores_count": CPUS_PER_NODE, "simd_count": 0, "mem_banks_count": 1}
    yield File(path=f"{NODES}/{cpu}/gpu_id", content="0\n")
    yield File(path=f"{NODES}/{cpu}/name", content="\n")
    yield File(path=f"{NODES}/{cpu}/properties", content=_text(lines))


def _gpu_node(board: Board, state: State, at: tuple[int, int], node: int) -> Iterator[Entry]:
    index, partition = at
    product, parts = board.product, board.count(state, index)
    folder = f"{NODES}/{node}"
    own = state.get(board.units[index], {})
    text = _text(_properties(board, state, at))
    yield File(path=f"{folder}/gpu_id", content=f"{board.kfd_id(index, partition)}\n")
    yield File(path=f"{folder}/name", content=f"{facts.target_of(product.gfx)}\n")
    rubbish = mapping(own.get("files")).get("properties")
    yield File(path=f"{folder}/properties", content=text if rubbish is None else str(rubbish))
    bank = {"heap_type": 1, "size_in_bytes": product.memory // parts, "flags": 0, "width": 8192}
    yield File(path=f"{folder}/mem_banks/0/properties", content=_text(bank))
    yield File(
        path=f"{folder}/mem_banks/0/used_memory",
        content=f"{number(own.get('used')) // parts}\n",
    )


def _properties(board: Board, state: State, at: tuple[int, int]) -> dict[str, int]:
    index, partition = at
    product, parts = board.product, board.count(state, index)
    domain, bus, rest = board.place(index).address.split(":")
    location = int(bus, 16) << 8 | int(rest.partition(".")[0], 16) << 3
    high = board.part.options.get("location", "") == "high"
    location |= partition << (28 if high else 0)
    return {
        "cpu_cores_count": 0,
        "simd_count": product.compute_units * product.simds // parts,
        "mem_banks_count": 1,
        "max_waves_per_simd": 8,
        "wave_front_size": 64,
        "simd_per_cu": product.simds,
        "gfx_target_version": product.gfx,
        "vendor_id": facts.PCI_VENDOR,
        "device_id": board.pci_device,
        "location_id": location,
        "domain": int(domain, 16),
        "drm_render_minor": board.minor(state, index, partition),
        "hive_id": board.hive_id(index),
        "num_sdma_engines": 2,
        "max_engine_clk_fcompute": 2100,
        "local_mem_size": 0,
        "fw_version": 177,
        "unique_id": board.unique_id(index),
        "num_xcc": product.complexes // parts,
    }


def _links(
    board: Board, state: State, at: tuple[int, int], places: Mapping[tuple[int, int], int]
) -> Iterator[Entry]:
    index, _ = at
    node = places[at]
    lines = [(_PCIE, board.place(index).numa, 20, board.product.link, board.product.link)]
    # Of a GPU that is cut, only the first partition tells of other GPUs: all would be 4,000 files.
    near = (index, *board.linked(index)) if at[1] == 0 else (index,)
    for other, to in places.items():
        if other != at and other[0] in near:
            weight, least, most = _strength(board, at, other, parts=board.count(state, index))
            lines.append((_XGMI, to, weight, least, most))
    for nth, (kind, to, weight, least, most) in enumerate(lines):
        link = {
            "type": kind,
            "version_major": 0,
            "version_minor": 0,
            "node_from": node,
            "node_to": to,
            "weight": weight,
            "min_latency": 0,
            "max_latency": 0,
            "min_bandwidth": least,
            "max_bandwidth": most,
            "flags": 1,
        }
        yield File(path=f"{NODES}/{node}/io_links/{nth}/properties", content=_text(link))


def _strength(
    board: Board, at: tuple[int, int], other: tuple[int, int], *, parts: int
) -> tuple[int, int, int]:
    """Weight, least and most MB/s of an xGMI link."""
    if at[0] == other[0]:
        return 13, 819200, 819200
    if parts > 1:
        return 41, 0, 0
    lanes = board.product.pair if at[0] // 2 == other[0] // 2 else 1
    return 15, board.product.link, board.product.link * lanes


def pci_files(board: Board, state: State, index: int) -> dict[str, str | bytes]:
    """What the driver shows of a GPU, by name."""
    unit, product = board.units[index], board.product
    own = state.get(unit, {})
    lost = bool(own.get("lost"))
    minor = board.minor(state, index, 0)
    card = board.card_of(minor)
    header = board.pci_device << 16 | facts.PCI_VENDOR
    files: dict[str, str | bytes] = {
        "config": b"\xff" * 64 if lost else header.to_bytes(4, "little") + bytes(60),
        "current_link_speed": "Unknown\n" if lost else "32.0 GT/s PCIe\n",
        "current_link_width": "63\n" if lost else f"{own.get('width', 16)}\n",
        "max_link_speed": "32.0 GT/s PCIe\n",
        "max_link_width": "16\n",
        "power/runtime_status": "active\n",
        "unique_id": f"{board.unique_id(index):016x}\n",
        "mem_info_vram_total": f"{product.memory}\n",
        "mem_info_vram_used": f"{number(own.get('used'))}\n",
        "gpu_busy_percent": f"{number(own.get('busy'))}\n",
        "mem_busy_percent": f"{number(own.get('busy')) // 2}\n",
        "pcie_replay_count": "0\n",
        "vbios_version": "113-M3000100-102\n",
        f"drm/card{card}/dev": f"{DRM_MAJOR}:{card}\n",
        f"drm/renderD{minor}/dev": f"{DRM_MAJOR}:{minor}\n",
        **_sensors(board, own, index),
        **(_ras(own) if board.counts_errors else {}),
        **_modes(board, state, index),
    }
    if product.name and not board.guest:
        files["product_name"] = f"{product.name}\n"
        told = board.part.told.units[index].serial
        files["serial_number"] = f"{told or f'69{board.unique_id(index) % 10**10:010}'}\n"
    files.update({k: str(v) for k, v in mapping(own.get("files")).items() if k != "properties"})
    return files


def _sensors(board: Board, own: Mapping[str, Json], index: int) -> dict[str, str]:
    folder = f"hwmon/hwmon{board.part.first + index}"
    celsius = number(own.get("temperature", 45))
    return {
        f"{folder}/name": "amdgpu\n",
        f"{folder}/temp2_label": "junction\n",
        f"{folder}/temp2_input": f"{celsius * 1000}\n",
        f"{folder}/temp2_crit": "100000\n",
        f"{folder}/temp2_emergency": "105000\n",
        f"{folder}/temp3_label": "mem\n",
        f"{folder}/temp3_input": f"{(celsius - 5) * 1000}\n",
        f"{folder}/temp3_crit": "94000\n",
        f"{folder}/power1_average": "140000000\n",
        f"{folder}/power1_cap": "750000000\n",
        f"{folder}/freq1_label": "sclk\n",
        f"{folder}/freq1_input": "2100000000\n",
    }


def _ras(own: Mapping[str, Json]) -> dict[str, str]:
    counts = mapping(own.get("ras"))
    files = {"ras/gpu_vram_bad_pages": _pages(own), "ras/features": "feature mask: 0x1f\n"}
    for block in BLOCKS:
        found = counts.get(block)
        ue, ce = (found if isinstance(found, list) else [0, 0])[:2]
        files[f"ras/{block}_err_count"] = f"ue: {ue}\nce: {ce}\n"
    return files


def _pages(own: Mapping[str, Json]) -> str:
    flags = str(own.get("pages", ""))
    return "".join(f"0x{4096 + n:08x} : 0x00001000 : {flag}\n" for n, flag in enumerate(flags))


def _modes(board: Board, state: State, index: int) -> dict[str, str]:
    cut = board.cut(state, index)
    if cut is None:
        return {}
    files = {
        "current_compute_partition": f"{cut.compute}\n",
        "current_memory_partition": f"{cut.memory}\n",
    }
    if board.guest:
        return files
    every = facts.compute_modes(board.product.complexes)
    return {
        **files,
        "available_compute_partition": ", ".join(board.compute_modes(cut.memory)) + "\n",
        "available_memory_partition": ", ".join(board.product.memory_modes) + "\n",
        "compute_partition_config/supported_xcp_configs": ", ".join(every) + "\n",
    }


def mapping(value: Json) -> dict[str, Json]:
    return dict(value) if isinstance(value, dict) else {}


def _text(lines: Mapping[str, int]) -> str:
    return "".join(f"{name} {value}\n" for name, value in lines.items())

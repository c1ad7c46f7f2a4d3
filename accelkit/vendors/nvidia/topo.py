"""Machines from what `nvidia-smi topo -m` prints, as people paste it. Not here: the machine."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import attrs

from accelkit import ConfigError, FrozenMap
from accelkit.testing.pasted import Likeness, Told, Unit
from accelkit.testing.record import MOST_UNITS
from accelkit.vendors.nvidia.board import (
    BUS_WORDS,
    HOSTBRIDGE,
    MULTIPLE,
    TOPOLOGY,
    Topology,
    is_switched,
    nearest,
)
from accelkit.vendors.nvidia.products import PRODUCTS

_DECORATION = re.compile(r"^[\s>]*|[|`]")
_DEVICE = re.compile(r"GPU\d+|NIC\d+|(?:mlx|bnxt|irdma|ibp|roce)\w*\d", re.IGNORECASE)
_GPU = re.compile(r"GPU\d+")
_RELATION = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SOC|SYS")
_CPUS = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*|N/A")
_LEGEND = re.compile(r"legend", re.IGNORECASE)
_OLD = {"SOC": "SYS"}
"""Words that older drivers print."""
_MOST_LINKS = 36
NAME = "nvidia-smi topo -m"
_REMEDY = "paste the whole output of: nvidia-smi topo -m"


@attrs.define
class _Row:
    name: str
    line: int
    cells: list[str]


def is_it(text: str) -> bool:
    """Whether a line of *text* may be the heading or a row of such an output."""
    lines = map(_tokens, text.splitlines())
    return any(tokens and _GPU.fullmatch(tokens[0]) for tokens in lines)


def read(text: str) -> Likeness:
    """What *text* says of its GPUs; escape codes, quoting and prose around it are fine.

    Raises:
        ConfigError: It is not such an output; the path says in which line and column.
    """
    topology = parse_topology(text)
    product = _product(topology)
    return Likeness(
        product=product,
        told=Told(units=(Unit(),) * len(topology.words)),
        options=FrozenMap({TOPOLOGY: topology.dump()}),
        warnings=(f"the product is not told: it is {product}, which --product can change",),
    )


def _product(topology: Topology) -> str:
    counts = {
        topology.links(i, j) for i in range(len(topology.words)) for j in range(len(topology.words))
    }
    most = max(counts)
    if most == 0:
        return "l4"
    if most <= 3:
        return "dgx1"
    return "a100-80" if most <= 12 else "h100"


def parse_topology(text: str) -> Topology:
    """What *text* says about its GPUs.

    Raises:
        ConfigError: All that is wrong with it, each with line and column.
    """
    lines = [(n, _tokens(line)) for n, line in enumerate(text.splitlines(), start=1)]
    columns, rows = _table([(n, tokens) for n, tokens in lines if tokens])
    gpus = [name for name in columns if _GPU.fullmatch(name)]
    if not gpus:
        raise ConfigError([("text", "has no heading with GPU0")], remedy=_REMEDY)
    if len(gpus) > MOST_UNITS:
        raise ConfigError([("heading", f"names {len(gpus)} GPUs, more than {MOST_UNITS}")])
    by_name = {row.name: row for row in rows}
    problems = [*_repeated(columns, rows), *_missing(gpus, by_name)]
    if not problems:
        problems = [p for name in gpus for p in _wrong_cells(by_name[name], columns)]
    if not problems:
        problems = list(_one_sided(gpus, by_name, columns))
    if problems:
        raise ConfigError(problems, remedy=_REMEDY)
    words = tuple(
        tuple(_word(by_name[name].cells[columns.index(other)]) for other in gpus) for name in gpus
    )
    places = [_affinity(by_name[name], len(columns)) for name in gpus]
    topology = Topology(
        words=words, numa=tuple(n for _, n in places), cpus=tuple(c for c, _ in places)
    )
    if problems := list(_impossible(topology, gpus, by_name)):
        raise ConfigError(problems, remedy=_REMEDY)
    return topology


def _tokens(line: str) -> list[str]:
    tokens = _DECORATION.sub(" ", line).split()
    # The rule between head and body of a Markdown table.
    return [] if all(set(token) <= set("-:=+") for token in tokens) else tokens


def _word(cell: str) -> str:
    return _OLD.get(cell, cell)


def _table(lines: Iterable[tuple[int, list[str]]]) -> tuple[list[str], list[_Row]]:
    """Names of the columns and the rows; both may be broken over several lines."""
    columns: list[str] = []
    rows: list[_Row] = []
    for number, tokens in lines:
        if _LEGEND.search(tokens[0]) or (len(tokens) > 1 and _LEGEND.search(tokens[1])):
            break
        device = _DEVICE.fullmatch(tokens[0]) is not None
        row = len(tokens) > 1 and device and _DEVICE.fullmatch(tokens[1]) is None
        if row and not columns and _RELATION.fullmatch(tokens[1]):
            continue  # the heading is missing
        if not rows and device and (not row or not columns):
            columns += [token for token in tokens if _DEVICE.fullmatch(token)]
        elif columns and (row or (device and rows)):
            rows.append(_Row(tokens[0], number, tokens[1:]))
        elif rows and len(rows[-1].cells) < len(columns):
            rows[-1].cells += tokens
    return columns, rows


def _repeated(columns: list[str], rows: list[_Row]) -> Iterator[tuple[str, str]]:
    for name, times in sorted(Counter(columns).items()):
        if times > 1:
            yield "heading", f"{name} is there twice"
    names = Counter(row.name for row in rows)
    for row in rows:
        if names[row.name] > 1:
            yield f"line {row.line}", f"{row.name} has several rows"


def _missing(gpus: list[str], rows: dict[str, _Row]) -> Iterator[tuple[str, str]]:
    for name in gpus:
        if name not in rows:
            yield "text", f"there is no row for {name}"


def _wrong_cells(row: _Row, columns: list[str]) -> Iterator[tuple[str, str]]:
    for index, column in enumerate(columns):
        where = f"line {row.line}, column {column}"
        if index >= len(row.cells):
            yield where, f"{row.name} has only {len(row.cells)} of {len(columns)} columns"
            return
        cell = row.cells[index]
        if _RELATION.fullmatch(cell) is None:
            yield where, f"{cell!r} is none of X, NV1 and so on, PIX, PXB, PHB, NODE, SYS"
        elif (cell == "X") is not (column == row.name):
            yield where, f"X belongs where {row.name} meets itself, {cell} does not"
        elif cell.startswith("NV") and not 1 <= int(cell[2:]) <= _MOST_LINKS:
            yield where, f"{cell}: a GPU has from 1 to {_MOST_LINKS} NVLinks"


def _one_sided(
    gpus: list[str], rows: dict[str, _Row], columns: list[str]
) -> Iterator[tuple[str, str]]:
    """PCIe relations that differ by direction; NVLinks do so on real machines."""
    for position, one in enumerate(gpus):
        for other in gpus[:position]:
            mine = _word(rows[one].cells[columns.index(other)])
            theirs = _word(rows[other].cells[columns.index(one)])
            if mine != theirs and {mine, theirs} <= BUS_WORDS.keys():
                where = f"line {rows[one].line}, column {other}"
                yield where, f"is {mine}, but {theirs} in line {rows[other].line}, column {one}"


def _impossible(
    topology: Topology, gpus: list[str], rows: dict[str, _Row]
) -> Iterator[tuple[str, str]]:
    """Relations that no machine can have beside the others: near is near to all of a group."""
    roots, switches = nearest(topology, HOSTBRIDGE), nearest(topology, MULTIPLE)
    switched = is_switched(topology, PRODUCTS[_product(topology)])
    for one, name in enumerate(gpus):
        for other in range(one):
            word = topology.words[one][other]
            where = f"line {rows[name].line}, column {gpus[other]}"
            if word not in BUS_WORDS:
                continue
            if switched:
                yield where, f"is {word}, but so many NVLinks as others have go through switches"
            elif roots[one] == roots[other] and BUS_WORDS[word] > HOSTBRIDGE:
                yield where, f"is {word}, but by what is between others they share a host bridge"
            elif switches[one] == switches[other] and BUS_WORDS[word] > MULTIPLE:
                yield where, f"is {word}, but by what is between others they share switches"


def _affinity(row: _Row, columns: int) -> tuple[str, int | None]:
    """CPUs and NUMA node, where the row gives them."""
    rest = [cell for cell in row.cells[columns:] if _CPUS.fullmatch(cell)]
    cpus = rest[0] if rest and rest[0] != "N/A" else ""
    # Several nodes, as in 0-1, are all equally near: the first stands for them.
    node = re.match(r"\d+", rest[1]) if len(rest) > 1 else None
    return cpus, None if node is None else int(node[0])

"""Machines from what `amd-smi` and `rocm-smi` print of links. Not here: the machine.

Source:
    amd-smi 24 to 26 and rocm-smi 6 (ROCm 6.2 to 7.1), as people paste their output.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from accelkit import ConfigError
from accelkit.testing.pasted import (
    Cut,
    Likeness,
    Looks,
    Output,
    Told,
    Unit,
    Verb,
    address_in,
    numa_in,
)
from accelkit.testing.texts import json_in, mapping, mappings, word
from accelkit.vendors.amd import facts
from accelkit.vendors.amd.products import PRODUCTS

LOOKS: Mapping[str, Looks] = {
    name: Looks(
        names=(one.name, one.name.removesuffix(" OAM")),
        memory=one.memory,
        pci=frozenset(i for i in (one.pci_device, one.virtual) if i is not None),
    )
    for name, one in PRODUCTS.items()
}
_TEXT, _JSON, _OLD = "amd-smi topology", "amd-smi topology --json", "rocm-smi --showtopo"
_TABLE = re.compile(r"[\s>|]*([A-Z][A-Z -]*) TABLE:?\s*")
_TITLE = re.compile(r"[\s>|]*=+ *([A-Z][A-Za-z ]+?) *=+\s*")
_GPU = re.compile(r"GPU\d{1,3}")
_NODE = re.compile(r"GPU\[(\d{1,3})\]\s*:\s*\(Topology\) Numa Node:\s*(\d+)", re.ASCII)
_XGMI = "XGMI"
_KINDS = {_XGMI, "PCIE", "SELF", "0", "N/A", "UNKNOWN", "NOT_APPLICABLE"}

Table = Mapping[str, Mapping[str, str]]
"""Cells by row and column."""


@attrs.frozen
class _Rows:
    """GPUs or partitions, in their order, and what is between them."""

    names: tuple[str, ...]
    kinds: Table
    numa: Mapping[str, int | None]


def outputs() -> tuple[Output, ...]:
    return (
        Output(name=_JSON, is_it=_is_json, read=lambda text: _likeness(_of_json(text), _JSON)),
        Output(name=_TEXT, is_it=_is_text, read=lambda text: _likeness(_of_text(text), _TEXT)),
        Output(name=_OLD, is_it=_is_old, read=lambda text: _likeness(_of_old(text), _OLD)),
    )


def _is_json(text: str) -> bool:
    return '"link_type"' in text and '"bdf"' in text


def _is_text(text: str) -> bool:
    return any(_TABLE.fullmatch(line) for line in text.splitlines())


def _is_old(text: str) -> bool:
    return "Link Type between two GPUs" in text


def _of_json(text: str) -> _Rows:
    found = json_in(text)
    listed = mappings(found) or mappings(next(iter(mapping(found).values()), None))
    kinds: dict[str, dict[str, str]] = {}
    for gpu in listed:
        links = mappings(gpu.get("links"))
        bdf = _address(word(gpu.get("bdf")))
        if bdf in kinds:
            raise ConfigError([(f"bdf {bdf}", "is there twice")])
        kinds[bdf] = {_address(word(one.get("bdf"))): word(one.get("link_type")) for one in links}
    return _Rows(tuple(kinds), kinds, {})


def _address(text: str) -> str:
    found = address_in(text)
    if found is None:
        raise ConfigError([(f"bdf {text[:40]!r}", "is no PCI address")])
    return found


def _of_text(text: str) -> _Rows:
    tables = _tables(text, _TABLE, lambda token: address_in(token) is not None)
    names, kinds = _first(tables, "LINK TYPE")
    return _Rows(tuple(map(_address, names)), kinds, {})


def _of_old(text: str) -> _Rows:
    tables = _tables(text, _TITLE, lambda token: _GPU.fullmatch(token) is not None)
    names, kinds = _first(tables, "Link Type between two GPUs")
    nodes = {f"GPU{one}": numa_in(node) for one, node in _NODE.findall(text)}
    return _Rows(names, kinds, nodes)


def _tables(
    text: str, title: re.Pattern[str], is_name: Callable[[str], bool]
) -> dict[str, tuple[list[str], dict[str, dict[str, str]]]]:
    """Columns and rows of each table, by its title; a terminal may have broken both."""
    tables: dict[str, tuple[list[str], dict[str, dict[str, str]]]] = {}
    columns: list[str] = []
    rows: dict[str, dict[str, str]] = {}
    row: dict[str, str] = {}
    for line in text.splitlines():
        if found := title.fullmatch(line):
            columns, rows, row = [], {}, {}
            tables[found[1].strip()] = (columns, rows)
            continue
        tokens = line.strip(" >|\t").split()
        if tokens and all(map(is_name, tokens)) and not rows:
            columns += tokens
        elif tokens and is_name(tokens[0]) and columns:
            if tokens[0] in rows:
                raise ConfigError([(f"row {tokens[0]}", "is there twice")])
            row = rows[tokens[0]] = dict(zip(columns, tokens[1:], strict=False))
        elif rows:
            row |= zip(columns[len(row) :], tokens, strict=False)
    return tables


def _first(
    tables: Mapping[str, tuple[list[str], dict[str, dict[str, str]]]], title: str
) -> tuple[tuple[str, ...], Table]:
    columns, rows = tables.get(title, ([], {}))
    if not columns:
        raise ConfigError([("text", f"has no table with the title {title}, or nothing in it")])
    return tuple(columns), rows


def _likeness(rows: _Rows, name: str) -> Likeness:
    _check(rows)
    members = _by_gpu(rows.names)
    places = {row: index for index, group in enumerate(members) for row in group}
    # Of a GPU that is cut, partitions are linked as their GPU is.
    links = dict.fromkeys(
        (places[one], places[other])
        for one in rows.names
        for other in rows.names
        if rows.kinds[one][other] == _XGMI and places[one] != places[other]
    )
    product = _product(links, len(members))
    parts = Counter(map(len, members))
    verbs = [v for index, group in enumerate(members) for v in _modes(product, index, len(group))]
    return Likeness(
        product=product,
        told=Told(
            units=tuple(
                Unit(address=address_in(group[0]), numa=rows.numa.get(group[0]))
                for group in members
            ),
            links=tuple(links),
        ),
        verbs=tuple(verbs),
        warnings=tuple(_warnings(name, product, rows, cut=set(parts) != {1})),
    )


def _check(rows: _Rows) -> None:
    """See that every GPU tells of every other.

    Raises:
        ConfigError: One does not, or says nonsense.
    """
    problems = []
    if not rows.names or len(set(rows.names)) != len(rows.names):
        problems.append(("text", "has no GPUs, or one of them twice"))
    for one in rows.names:
        for other in rows.names:
            cell = rows.kinds.get(one, {}).get(other)
            if cell is None:
                problems.append((f"row {one}, column {other}", "is missing"))
            elif cell.upper() not in _KINDS:
                problems.append((f"row {one}, column {other}", f"{cell[:20]!r} is no type of link"))
    if problems:
        raise ConfigError(problems[:10])


def _by_gpu(names: Iterable[str]) -> list[list[str]]:
    """Names of one GPU together: its partitions have other functions of its address."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.rpartition(".")[0] or name, []).append(name)
    return list(found.values())


def _product(links: Mapping[tuple[int, int], None], count: int) -> str:
    """A product that can be linked so: all to all, in groups, in part, or not at all."""
    if not links:
        return "rx7900"
    near = {one: {one} | {b for a, b in links if a == one} for one in range(count)}
    if any(near[a] != near[b] for a, b in links):
        return "mi250x"
    return "mi300x" if len(near[0]) == count else "mi210"


def _modes(product: str, index: int, parts: int) -> Iterator[Verb]:
    complexes = PRODUCTS[product].complexes
    if parts > 1:
        known = (m for m in facts.compute_modes(complexes) if facts.count_of(m, complexes) == parts)
        yield "mode", index, next(known, f"of {parts} partitions")


def cut(index: int, cuts: Sequence[Cut]) -> tuple[Verb, ...]:
    """The verbs that put a GPU into the mode that its partitions tell, as in cpx_nps4."""
    if not cuts:
        return ()
    compute, _, memory = cuts[0].profile.upper().partition("_")
    changed: tuple[Verb, ...] = (("memory", memory),) if memory and index == 0 else ()
    return (*changed, ("mode", index, compute))


def _warnings(name: str, product: str, rows: _Rows, *, cut: bool) -> Iterator[str]:
    yield f"the product is not told: it is {product}, which --product can change"
    if not any(node is not None for node in rows.numa.values()):
        yield f"NUMA nodes and PCIe roots are not told by {name}: they are made up"
    if any(address_in(one) is None for one in rows.names):
        yield f"PCI addresses are not told by {name}: they are made up"
    yield f"serial numbers and UUIDs are not told by {name}: they are made up"
    if cut:
        yield "the memory mode is not told: it is the product's first"
    yield "not taken over: weights, hops, bandwidths, and what links can do"

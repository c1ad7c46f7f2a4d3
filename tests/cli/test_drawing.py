"""Drawings are looked at by people; here is what must be true of each."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from accelkit.cli.drawing import draw
from accelkit.core.model import Link
from accelkit.core.values import LinkKind
from accelkit.core.view import View
from accelkit.testing.simulate import set_state, simulate
from tests.cli.conftest import Run
from tests.core.things import gpu, of, report, seen, view

SVG = "{http://www.w3.org/2000/svg}"


def drawn(run: Run, host: Path, tmp_path: Path) -> ET.Element:
    file = tmp_path / "drawn.svg"
    assert run("topology", "--host", host, "--svg", file).code == 0
    return ET.fromstring(file.read_text())


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def paths(root: ET.Element) -> list[ET.Element]:
    return list(root.iter(f"{SVG}path"))


def machine(tmp_path: Path, product: str, count: int) -> Path:
    simulate("nvidia", product, count, str(tmp_path / product))
    return tmp_path / product


@pytest.mark.parametrize(
    "product, count, lines",
    [("h100", 8, 8 + 1), ("dgx1", 8, 16 + 2), ("a100-80", 16, 16 + 1), ("l4", 4, 0)],
)
def test_every_device_and_every_link_is_drawn(
    run: Run, tmp_path: Path, product: str, count: int, lines: int
) -> None:
    """Devices behind switches have one line each, not one for each pair; the rest is legend."""
    root = drawn(run, machine(tmp_path, product, count), tmp_path)

    ids = [text for text in texts(root) if re.fullmatch(r" ?\d+ nvidia/gpu-\S+", text)]
    assert len(ids) == count
    assert len(paths(root)) == lines


def test_everything_is_inside_the_drawing(run: Run, tmp_path: Path) -> None:
    root = drawn(run, machine(tmp_path, "dgx1", 8), tmp_path)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])

    for element in root.iter(f"{SVG}rect"):
        if "x" in element.attrib:
            assert float(element.attrib["x"]) >= 0
            assert float(element.attrib["x"]) + float(element.attrib["width"]) <= width
            assert float(element.attrib["y"]) + float(element.attrib["height"]) <= height
    for element in root.iter(f"{SVG}text"):
        assert 0 < float(element.attrib["x"]) < width
        assert 0 < float(element.attrib["y"]) < height


def test_more_links_are_drawn_thicker_and_darker(run: Run, tmp_path: Path) -> None:
    root = drawn(run, machine(tmp_path, "dgx1", 8), tmp_path)

    looks = {(p.attrib["stroke-width"], p.attrib["stroke"]) for p in paths(root)}

    assert looks == {("2", "#7eb0e8"), ("4.5", "#114e9c")}
    assert {"direct link ×1", "direct link ×2"} <= set(texts(root))  # noqa: RUF001 - times


def test_links_that_are_down_are_dashed(run: Run, tmp_path: Path) -> None:
    host = machine(tmp_path, "dgx1", 8)
    set_state(str(host), ["dark", "gpu-0", "6"])

    root = drawn(run, host, tmp_path)

    assert len([p for p in paths(root) if "stroke-dasharray" in p.attrib]) == 4 + 1
    assert texts(root).count("down") == 4 + 1


def test_ring_is_drawn_as_a_ring(run: Run, ring: Path, tmp_path: Path) -> None:
    """The lower line goes the other way round, so that links between the lines are short."""
    root = drawn(run, ring, tmp_path)

    numbers = {
        text.text: (float(text.attrib["x"]), float(text.attrib["y"]))
        for text in root.iter(f"{SVG}text")
        if re.fullmatch(r"\d", text.text or "")
    }
    assert numbers["3"][0] == numbers["4"][0]
    assert numbers["0"][0] == numbers["7"][0]


def test_health_and_partitions_are_seen(run: Run, split: Path, tmp_path: Path) -> None:
    set_state(str(split), ["fault", "accel-1", "too-hot"])

    root = drawn(run, split, tmp_path)

    assert "unhealthy" in texts(root)
    assert " 1 sim/s00-0001 UNHEALTHY" in texts(root)
    halves = [r for r in root.iter(f"{SVG}rect") if r.attrib["height"] == "6"]
    assert len(halves) == 2 * (1 + 2)


def test_groups_are_named(run: Run, cube: Path, tmp_path: Path) -> None:
    assert "group 4-4 (block, law): 4 5 6 7" in texts(drawn(run, cube, tmp_path))


def test_names_cannot_break_the_drawing(run: Run, ring: Path, tmp_path: Path) -> None:
    file = tmp_path / "drawn.svg"
    run("topology", "--host", ring, "--svg", file, "--node", "<b>&\x1b")

    assert texts(ET.fromstring(file.read_text()))[0].startswith("<b>&�: 8 × ring")  # noqa: RUF001 - times


def test_only_what_is_linked_all_to_all_shares_a_box_of_switches() -> None:
    """Of four devices three are linked with each other, the fourth with one of them."""
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    links = [Link.between(of(x), of(y), LinkKind.FABRIC, count=2) for x, y in pairs]
    node = seen(report(*map(gpu, "abcd"), links=tuple(links)))

    root = ET.fromstring(draw(view(node)))

    assert "switches of the vendor: 3 devices, all to all" in texts(root)
    assert len(paths(root)) == 3 + 1 + 1


def test_device_whose_links_are_all_down_is_seen_in_a_fabric() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    links = [
        Link.between(of(x), of(y), LinkKind.FABRIC, count=2, up="c" not in y) for x, y in pairs
    ]

    root = ET.fromstring(draw(view(seen(report(*map(gpu, "abc"), links=tuple(links))))))

    assert [text for text in texts(root) if text.startswith("×")] == ["×2", "×2", "×0"]  # noqa: RUF001 - times
    assert len([p for p in paths(root) if "stroke-dasharray" in p.attrib]) == 1


def test_node_without_devices_can_be_drawn() -> None:
    root = ET.fromstring(draw(View()))

    assert texts(root)[0] == "node: no devices"


def test_same_view_is_drawn_the_same(run: Run, ring: Path, tmp_path: Path) -> None:
    once = ET.tostring(drawn(run, ring, tmp_path))

    assert ET.tostring(drawn(run, ring, tmp_path)) == once

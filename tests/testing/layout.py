"""Captures that were written by hand after real machines, one file each. Not here: their tests."""

import json
import os
import re
from pathlib import Path
from typing import cast

import attrs
import yaml

from accelkit.testing.captures.layout import FILES, FORMAT, NAME

FOLDER = Path(__file__).parent / "layouts"
Words = dict[str, object]


@attrs.frozen
class Layout:
    """What a file says: files, links and device nodes; some once for each device."""

    vendor: str
    product: str
    devices: int
    found: Words

    def lay_out(self, folder: Path) -> None:
        """Make a capture in *folder*."""
        nodes: dict[str, Words] = {}
        for words in cast("list[Words]", self.found["each"]):
            for path, text in self._files(words):
                put(folder / FILES, path).write_bytes(text.encode("latin-1"))
            for path, node in self._all("nodes", words):
                kind, *numbers = cast("list[object]", node)
                major, minor = (int(filled(str(number), words)) for number in numbers)
                nodes[path] = {"kind": kind, "mode": 0o666, "major": major, "minor": minor}
                put(folder / FILES, f"{path}.unread").touch()
            for path, target in self._all("links", words):
                to = folder / FILES / filled(str(target), words).lstrip("/")
                link = put(folder / FILES, path)
                if not link.is_symlink():
                    link.symlink_to(os.path.relpath(to, link.parent))
        told = {"format": FORMAT, "nodes": nodes, "libraries": {}}
        (folder / NAME).write_text(json.dumps(told))

    def _files(self, words: Words) -> list[tuple[str, str]]:
        found = []
        for path, text in self._all("files", words):
            inner = text if isinstance(text, dict) else {"": text}
            for name, content in inner.items():
                whole = f"{path}/{filled(name, words)}".rstrip("/")
                found.append((whole, filled(str(content), words)))
        return found

    def _all(self, key: str, words: Words) -> list[tuple[str, object]]:
        found = cast("Words", self.found[key])
        return [(filled(path, words), value) for path, value in found.items()]


def filled(text: str, words: Words) -> str:
    return re.sub(r"<([A-Z]+)>", lambda found: str(words[found[1]]), text)


def put(root: Path, path: str) -> Path:
    """Where *path* is below *root*, its folder made."""
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def load_layout(name: str) -> Layout:
    found = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return Layout(found["vendor"], found["product"], found["devices"], found)


LAYOUTS = sorted(path.stem for path in FOLDER.glob("*.yaml"))

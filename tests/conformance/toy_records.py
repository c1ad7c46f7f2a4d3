"""What a toy of a DRA driver has on disk of its claims. Not here: what it remembers."""

import json
from pathlib import Path

from tests.conformance.toy_hardware import Entry, Record

FORMAT = "1.0"


class Notes:
    """A file for each claim, by which a driver that starts tells whether it knows it still.

    Args:
        directory: Where they are.
        record: All that it remembers, and would read from the files were it a process.
    """

    def __init__(self, directory: Path, record: Record) -> None:
        self.directory = directory
        self._record = record

    def write(self, entry: Entry) -> None:
        self.directory.mkdir(exist_ok=True)
        devices = [piece.device for piece in entry.pieces]
        tree = {"format": FORMAT, "devices": devices, "level": entry.level or None}
        self.file(entry.ref.uid).write_text(json.dumps(tree))

    def remove(self, uid: str) -> None:
        self.file(uid).unlink(missing_ok=True)

    def file(self, uid: str) -> Path:
        return self.directory / f"claim-{uid}.json"

    def read(self) -> None:
        """Know of each claim whether its file can be read."""
        record = self._record
        known = record.claims | record.unread
        record.unread = {uid: one for uid, one in known.items() if not self.is_good(uid)}
        record.claims = {uid: one for uid, one in known.items() if uid not in record.unread}

    def is_good(self, uid: str) -> bool:
        tree = self.tree(uid)
        return tree is not None and self.version(tree) == 1

    def tree(self, uid: str) -> dict[str, object] | None:
        """What is in a file; None: it is damaged."""
        try:
            return dict(json.loads(self.file(uid).read_bytes()))
        except ValueError:
            return None

    def version(self, tree: dict[str, object]) -> int:
        return int(str(tree["format"]).partition(".")[0])

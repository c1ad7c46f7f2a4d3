"""Hides what names a card, a host or its owner in a capture: each becomes another such word.

The same word becomes the same everywhere.

Sizes stay, so that what libraries answered can be read as before.
"""

import hashlib
import json
import re
import secrets
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from accelkit.core.model import Device
from accelkit.testing.captures.arguments import BYTES, MEMORY
from accelkit.testing.captures.layout import COMMANDS, FILES, LOG, MODULES, TAPE

_UUID = re.compile(
    rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    rb"|(?<![\w:])[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?![\w:])"
    rb"|(?<=\bi-)(?:[0-9a-f]{17}|[0-9a-f]{8})\b"
    rb"|(?<=/home/)[\w.-]+"
)
"""UUIDs, addresses of network cards, instances of AWS, and users by their homes."""
_SECRET = re.compile(r"serial|uuid|unique", re.IGNORECASE)
"""Attributes and files whose values name one card."""
_SAID = re.compile(
    rb"(?i)\b[\w-]*(?:serial|unique|instance_id|node_id|project|endpoint|host_?name)[\w-]*"
    rb"\\?[\"']?\s*[:= ]\s*\\?[\"']?((?=[\w.:-]*\d)\w[\w.:-]{4,}\w)"
)
"""The same, and names of hosts and their owners, in what says several things."""
_CALLS = {TAPE, MODULES}
_SHORTEST = 6
"""Shorter ones are everywhere by chance."""


def mask_folder(folder: Path, devices: Iterable[Device], host: str = "") -> None:
    """Hide what names single cards, and the *host*, in all of *folder*."""
    known = {*_of_devices(devices), *_of_files(folder / FILES), *_of_texts(folder)}
    if len(host) >= _SHORTEST and not host.isalpha():  # such as nvidia, which other things are
        known.add(host.encode())
    hide = _hider(secrets.token_bytes(16), known)
    for path in sorted(folder.rglob("*"), reverse=True):  # what is in a folder comes before it
        if path.is_symlink():
            target = path.readlink()
            path.unlink()
            path.symlink_to(hide(str(target).encode()).decode())
        elif path.is_file():
            content = _tape(path, hide) if path.parent.name in _CALLS else path.read_bytes()
            path.write_bytes(content if path.parent.name == TAPE else hide(content))
        name = Path(hide(str(path.relative_to(folder)).encode()).decode()).name
        if name != path.name:
            path.rename(path.with_name(name))


def _of_devices(devices: Iterable[Device]) -> Iterator[bytes]:
    for device in devices:
        for key, value in device.attributes.items():
            word = str(value).encode()
            if _SECRET.search(key) and len(word) >= _SHORTEST and not _UUID.search(word):
                yield word


def _of_files(files: Path) -> Iterator[bytes]:
    for path in files.rglob("*"):
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes()
            if _SECRET.search(path.name):
                yield from (word for word in text.split() if len(word) >= _SHORTEST)
            yield from (found.group(1) for found in _SAID.finditer(text))


def _of_texts(folder: Path) -> Iterator[bytes]:
    """Of the kernel's log, and of what programs and Python bindings said."""
    for path in (folder / LOG, folder / COMMANDS, *(folder / MODULES).glob("*")):
        if path.is_file():
            yield from (found.group(1) for found in _SAID.finditer(path.read_bytes()))


def _hider(key: bytes, known: Iterable[bytes]) -> Callable[[bytes], bytes]:
    others = {word.lower(): _other(key, word) for word in known}
    others |= dict(_in_decimal(others))
    words = sorted(others, key=lambda word: (-len(word), word))
    plain = b"|".join(map(re.escape, words))
    # The names of devices are DNS labels: in small letters, without dots.
    either = b"|".join(part for part in (plain, _UUID.pattern) if part)
    pattern = re.compile(either, re.IGNORECASE)

    def hide(content: bytes) -> bytes:
        return pattern.sub(one, content)

    def one(found: re.Match[bytes]) -> bytes:
        return others.get(found.group().lower()) or _other(key, found.group())

    return hide


def _in_decimal(others: Mapping[bytes, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The same numbers as other files spell them."""
    for word, other in others.items():
        if re.fullmatch(rb"(0x)?[0-9a-f]{12,16}", word) and not word.isdigit():
            yield str(int(word, 16)).encode(), str(int(other, 16)).encode()


def _other(key: bytes, word: bytes) -> bytes:
    """Another word of the same kind and size; the case of letters stays."""
    drawn = hashlib.blake2b(word.lower(), key=key).digest()
    if word[:2].lower() == b"0x":
        return word[:2] + _other(key, word[2:])
    hexadecimal = re.fullmatch(rb"[0-9a-f:-]+", word.lower()) is not None
    letters = "abcdef" if hexadecimal else string.ascii_lowercase
    out = []
    for place, char in enumerate(word.decode("ascii", errors="replace")):
        number = drawn[place % len(drawn)]
        if char.isdecimal():
            out.append(str(number % 10))
        elif char.isalpha():
            made = letters[number % len(letters)]
            out.append(made.upper() if char.isupper() else made)
        else:
            out.append(char)
    return "".join(out).encode()


def _tape(path: Path, hide: Callable[[bytes], bytes]) -> bytes:
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return b"".join(json.dumps(_hidden(line, hide)).encode() + b"\n" for line in lines)


def _hidden(told: object, hide: Callable[[bytes], bytes]) -> object:
    """*told* with what is in its bytes hidden."""
    if isinstance(told, dict):
        return {
            key: hide(bytes.fromhex(value)).hex()
            if key in {BYTES, MEMORY} and isinstance(value, str)
            else _hidden(value, hide)
            for key, value in told.items()
        }
    return [_hidden(one, hide) for one in told] if isinstance(told, list) else told

"""Edits as documents of the Container Device Interface. Not here: when they are written.

Source:
    Container Device Interface specification 1.1.0, its JSON schema and its Go library
    (pkg/cdi/version.go: which key needs which version; pkg/parser: names).
"""

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from accelkit.core.allocation import ContainerEdits, Hook, Mount
from accelkit.core.errors import RenderError
from accelkit.core.model import DeviceNode

Json: TypeAlias = "str | int | list[Json] | dict[str, Json]"

STATIC_CLASS = "static"
"""Class of the devices of the kubelet backend, whose files outlive a boot."""
HOOKS = frozenset(
    {
        "prestart",
        "createRuntime",
        "createContainer",
        "startContainer",
        "poststart",
        "poststop",
    }
)
"""Hooks of the OCI runtime specification."""
CLAIM_CLASS = "claim"
"""Class of the devices of claims, whose files end with their claim."""
FILE_MODE = 0o644
LONGEST_FILE = 240
"""Bytes of a file's name: 255 on Linux, less what is put around it while it is written."""

_LOWEST = (0, 3, 0)
_KIND_PART = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_UINT32 = 2**32


def static_kind(vendor: str) -> str:
    """The CDI kind of devices that the kubelet backend names: ``<vendor>.accelkit.dev/static``."""
    return f"{vendor}.accelkit.dev/{STATIC_CLASS}"


def static_file(vendor: str) -> str:
    """The name of the file that describes them."""
    return f"{vendor}.accelkit.dev-{STATIC_CLASS}.json"


def static_id(vendor: str, device: str) -> str:
    """The name under which a container asks for *device*: ``kind=device``."""
    return f"{static_kind(vendor)}={device}"


def claim_kind(driver: str) -> str:
    """The CDI kind of the devices of *driver*'s claims: ``<driver>/claim``."""
    return f"{driver}/{CLAIM_CLASS}"


def claim_file(driver: str, uid: str) -> str:
    """The name of the file that describes a claim's devices: ``<driver>-claim_<uid>.json``.

    A driver's name that would make it too long is cut, and ends with its hash.
    """
    room = LONGEST_FILE - len(f"-{CLAIM_CLASS}_{uid}.json")
    if len(driver) > room:
        driver = f"{driver[: room - 9]}-{hashlib.sha256(driver.encode()).hexdigest()[:8]}"
    return f"{driver}-{CLAIM_CLASS}_{uid}.json"


def claim_uid(driver: str, file: str) -> str | None:
    """The uid of the claim of *driver* whose file is called *file*; None: it is no such file."""
    uid = file.removesuffix(".json").rpartition(f"-{CLAIM_CLASS}_")[2]
    return uid if uid and file == claim_file(driver, uid) else None


def has_part(edits: ContainerEdits) -> bool:
    """Whether anything of *edits* can stand in a CDI document; a device without has no entry."""
    return bool(edits.env or edits.nodes or edits.mounts or edits.hooks or edits.gids)


def document(kind: str, devices: Mapping[str, ContainerEdits]) -> dict[str, Json]:
    """The CDI document that describes *devices*, in the lowest version that can.

    A reader rejects a whole file whose version it does not know, or that is too low for a key.

    Args:
        kind: ``vendor/class``.
        devices: By name; those without any part are left out, ``joined`` variables, too.

    Raises:
        RenderError: A name, a variable, a node or a hook is not as CDI wants it.
    """
    _check_kind(kind)
    described = {name: edits for name, edits in sorted(devices.items()) if has_part(edits)}
    if not described:
        raise RenderError(f"{kind}: a CDI document must describe a device at least")
    version = max(_needed(kind, name, edits) for name, edits in described.items())
    return {
        "cdiVersion": ".".join(map(str, version)),
        "kind": kind,
        "devices": [
            {"name": name, "containerEdits": _edits(f"{kind}={name}", edits)}
            for name, edits in described.items()
        ],
    }


def render(kind: str, devices: Mapping[str, ContainerEdits]) -> bytes:
    """The file of :func:`document`: equal devices give equal bytes."""
    return written(document(kind, devices))


def written(document: Mapping[str, object]) -> bytes:
    """The file of a document, also of one that was kept as JSON in between."""
    return f"{json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)}\n".encode()


def holds(path: Path, content: bytes) -> bool:
    """Whether a file with *content* can be read at *path*; what is no file is not waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:  # noqa: PTH123 - of a handle: a pipe must not block it
            found = os.fstat(handle)
            alike = stat.S_ISREG(found.st_mode) and found.st_size == len(content)
            return alike and file.read() == content
    except OSError:
        return False


def write_atomically(path: Path, content: bytes) -> bool:
    """Let *path* have *content*, in one step for whoever reads the directory.

    Runtimes read files that end in .json or .yaml, so the file that is being written ends
    otherwise. Makes the directory where it is missing.

    Returns:
        Whether anything was written: not if the file had this content.

    Raises:
        OSError: The directory cannot be written.
    """
    if holds(path, content):
        return False
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(FILE_MODE)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return True


def _check_kind(kind: str) -> None:
    vendor, slash, class_ = kind.partition("/")
    if not (slash and _KIND_PART.fullmatch(vendor) and _KIND_PART.fullmatch(class_)):
        raise RenderError(
            f"{kind!r} is not a CDI kind",
            remedy="vendor and class begin with a letter and have letters, digits, '_', '-', '.'",
        )


def _needed(kind: str, name: str, edits: ContainerEdits) -> tuple[int, int, int]:
    """The lowest version that has every key which *edits* need."""
    needs = (
        (any(m.kind is not None for m in edits.mounts), (0, 4, 0)),
        (any(n.on_host != n.path for n in edits.nodes), (0, 5, 0)),
        (name[:1].isdigit(), (0, 5, 0)),
        ("." in kind.partition("/")[2], (0, 6, 0)),
        (bool(edits.gids), (0, 7, 0)),
    )
    return max((version for needed, version in needs if needed), default=_LOWEST)


def _edits(name: str, edits: ContainerEdits) -> dict[str, Json]:
    """*edits* with the keys that are not empty."""
    _check(name, edits)
    parts: dict[str, Json] = {
        "env": [f"{key}={value}" for key, value in edits.env.items()],
        "deviceNodes": [_node(node) for node in edits.nodes],
        "mounts": [_mount(mount) for mount in edits.mounts],
        "hooks": [_hook(hook) for hook in edits.hooks],
        "additionalGids": list(edits.gids),
    }
    return {key: part for key, part in parts.items() if part}


def _node(node: DeviceNode) -> dict[str, Json]:
    # Numbers are left out: the runtime reads them of the file. A static document outlives a boot,
    # after which a driver may have other ones.
    told: dict[str, Json] = {"path": node.path, "permissions": node.permissions}
    if node.on_host != node.path:
        told["hostPath"] = node.on_host
    return told


def _mount(mount: Mount) -> dict[str, Json]:
    told: dict[str, Json] = {
        "hostPath": mount.host_path,
        "containerPath": mount.container_path,
        "options": list(mount.options),
    }
    if mount.kind is not None:
        told["type"] = mount.kind
    return told


def _hook(hook: Hook) -> dict[str, Json]:
    told: dict[str, Json] = {"hookName": hook.name, "path": hook.path}
    if hook.args:
        told["args"] = list(hook.args)
    if hook.env:
        told["env"] = list(hook.env)
    if hook.timeout_s is not None:
        told["timeout"] = hook.timeout_s
    return told


def _check(name: str, edits: ContainerEdits) -> None:
    wrong = next(_faults(name, edits), None)
    if wrong is not None:
        raise RenderError(f"{name}: {wrong}", remedy="correct what the vendor's edits say")


def _faults(name: str, edits: ContainerEdits) -> Iterator[str]:
    if not _DEVICE.fullmatch(name.partition("=")[2]):
        yield "a device's name has letters, digits, '_', '-', '.', ':', no sign at either end"
    for key in edits.env:
        if not key or "=" in key:
            yield f"{key!r} is not the name of a variable"
    yield from (fault for node in edits.nodes for fault in _node_faults(node))
    yield from (fault for hook in edits.hooks for fault in _hook_faults(hook))
    if not all(mount.host_path and mount.container_path for mount in edits.mounts):
        yield "a mount needs a path on the host and one in the container"
    if any(not 0 < gid < _UINT32 for gid in edits.gids):
        yield "a group id must be from 1 to 2^32-1"


def _node_faults(node: DeviceNode) -> Iterator[str]:
    if not node.path or not node.on_host:
        yield "a device node needs a path"
    if not node.permissions or set(node.permissions) - set("rwm"):
        yield f"the permissions of {node.path} are {node.permissions!r}, not some of rwm"


def _hook_faults(hook: Hook) -> Iterator[str]:
    if hook.name not in HOOKS or not hook.path:
        yield f"{hook.name!r} at {hook.path!r} is not a hook"
    if any(entry.find("=") < 1 for entry in hook.env):
        yield f"the environment of hook {hook.path} is not NAME=value"

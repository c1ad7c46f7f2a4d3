"""What a file of the Container Device Interface may hold. Not here: who looks for one.

Source:
    Container Device Interface specification 1.1.0, its JSON schema and its Go library
    (pkg/cdi/version.go: which key needs which version; pkg/parser: names; unknown keys are
    refused with the whole file).
"""

import re
from collections.abc import Iterator, Mapping

VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
_CLASS_OR_VENDOR = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_HOOKS = {
    *("prestart", "createRuntime", "createContainer", "startContainer"),
    *("poststart", "poststop"),
}
_TOP = {"cdiVersion", "kind", "annotations", "devices", "containerEdits"}
_EDITS: Mapping[str, frozenset[str] | None] = {
    # Key, and the keys of what it holds; None: it holds no objects.
    "env": None,
    "deviceNodes": frozenset(
        ("path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid")
    ),
    "mounts": frozenset(("hostPath", "containerPath", "options", "type")),
    "hooks": frozenset(("hookName", "path", "args", "env", "timeout")),
    "intelRdt": frozenset(
        ("closID", "l3CacheSchema", "memBwSchema", "schemata", "enableMonitoring")
    ),
    "additionalGids": None,
    "netDevices": frozenset(("hostInterfaceName", "name")),
}
_NEEDED = {"env": "", "deviceNodes": "path", "mounts": "hostPath containerPath"}
_NEEDED |= {"hooks": "hookName path", "netDevices": "hostInterfaceName name"}
_SINCE = {"intelRdt": "0.7.0", "additionalGids": "0.7.0", "netDevices": "1.1.0"}

Json = Mapping[str, object]


def is_device_name(text: str) -> bool:
    """Whether *text* can be the name of a device: what stands behind ``vendor/class=``."""
    return _DEVICE.fullmatch(text) is not None


def faults(tree: object) -> Iterator[str]:
    """Why a reader refuses the file; nothing if it takes it."""
    if not isinstance(tree, dict):
        yield "it is no object"
        return
    yield from (f"{key} is no key" for key in sorted(tree.keys() - _TOP))
    kind = str(tree.get("kind", ""))
    if not all(_CLASS_OR_VENDOR.fullmatch(word) for word in _halves(kind)):
        yield f"its kind {kind!r} is not vendor/class"
    devices = objects(tree.get("devices"))
    if not devices:
        yield "it has no device"
    names = [str(device.get("name", "")) for device in devices]
    yield from (f"{name!r} is no name of a device" for name in names if not is_device_name(name))
    yield from (f"{n} is there twice" for n in sorted({n for n in names if names.count(n) > 1}))
    for device in devices:
        strange = sorted(device.keys() - {"name", "annotations", "containerEdits"})
        yield from (f"{key} is no key of a device" for key in strange)
        if not device.get("containerEdits"):
            yield f"device {device.get('name')} has no edits"
    yield from (fault for edits in all_edits(tree) for fault in _of_edits(edits))
    version, least = str(tree.get("cdiVersion", "")).removeprefix("v"), needed(tree)
    if version not in VERSIONS:
        yield f"its version {version!r} is not known"
    elif VERSIONS.index(version) < VERSIONS.index(least):
        yield f"its version is {version}, and it has what {least} brought"


def needed(tree: Json) -> str:
    """The lowest version that has everything in *tree*."""
    devices = objects(tree.get("devices"))
    found = {
        "0.5.0": any(str(d.get("name", ""))[:1].isdigit() for d in devices),
        "0.6.0": "annotations" in tree
        or any("annotations" in d for d in devices)
        or "." in _halves(str(tree.get("kind", "")))[1],
    }
    wanted = [version for version, there in found.items() if there]
    for edits in all_edits(tree):
        wanted += [_SINCE[key] for key in edits if key in _SINCE]
        wanted += ["0.4.0" for mount in objects(edits.get("mounts")) if "type" in mount]
        wanted += ["0.5.0" for node in objects(edits.get("deviceNodes")) if "hostPath" in node]
        rdt = edits.get("intelRdt")
        wanted += ["1.1.0"] if isinstance(rdt, dict) and rdt.keys() & _NEW_RDT else []
    return max(wanted, key=VERSIONS.index, default=VERSIONS[0])


_NEW_RDT = {"schemata", "enableMonitoring"}


def all_edits(tree: Json) -> Iterator[Json]:
    """The edits of the file, and of each device."""
    for holder in (tree, *objects(tree.get("devices"))):
        edits = holder.get("containerEdits")
        if isinstance(edits, dict):
            yield edits


def objects(found: object) -> list[dict[str, object]]:
    """The objects in a list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _of_edits(edits: Json) -> Iterator[str]:
    yield from (f"{key} is no key of edits" for key in sorted(edits.keys() - _EDITS.keys()))
    for key, known in _EDITS.items():
        for one in objects(edits.get(key)) if known else ():
            yield from (f"{name} is no key of {key}" for name in sorted(one.keys() - (known or ())))
            lacking = [name for name in _NEEDED.get(key, "").split() if not one.get(name)]
            yield from (f"something in {key} has no {name}" for name in lacking)
    for variable in _texts(edits.get("env")):
        if variable.find("=") < 1:
            yield f"{variable!r} is no NAME=value"
    for node in objects(edits.get("deviceNodes")):
        if set(str(node.get("permissions", ""))) - set("rwm"):
            yield f"the permissions of {node.get('path')} are {node['permissions']!r}"
    for hook in objects(edits.get("hooks")):
        if hook.get("hookName") not in _HOOKS:
            yield f"{hook.get('hookName')!r} is no hook"


def _texts(found: object) -> list[str]:
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _halves(kind: str) -> tuple[str, str]:
    vendor, _, class_ = kind.partition("/")
    return vendor, class_

"""The one container image of the node tests: a static busybox, packed here, pulled from nowhere."""

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path
from platform import machine

IMAGE = "local.test/busybox:1"
APPLETS = (
    "cat",
    "echo",
    "env",
    "false",
    "grep",
    "head",
    "id",
    "kill",
    "ls",
    "mount",
    "nc",
    "nslookup",
    "ps",
    "readlink",
    "sh",
    "sleep",
    "stat",
    "test",
    "true",
    "wget",
)
FOLDERS = ("bin", "dev", "etc", "proc", "run", "sys", "tmp", "var")
GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def busybox() -> Path | None:
    """The static busybox of this machine, if there is one."""
    found = shutil.which("busybox") or shutil.which("busybox", path="/bin:/usr/bin")
    return Path(found) if found else None


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _layer(program: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for folder in FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        _add(archive, "bin/busybox", program, 0o755)
        for applet in APPLETS:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(entry)
    return out.getvalue()


def write_image(archive_path: Path, program: Path) -> None:
    """Write the image in the form that ``docker save`` writes and ``ctr images import`` reads.

    Source:
        https://github.com/moby/docker-image-spec, v1.2,
        "Combined Image JSON + Filesystem Changeset Format".
    """
    layer = _layer(program.read_bytes())
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": GO_ARCHITECTURES.get(machine(), machine()),
            "os": "linux",
            "config": {"Cmd": ["sleep", "1000000"], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [IMAGE], "Layers": [f"{digest}.tar"]}]
    with tarfile.open(archive_path, "w") as archive:
        _add(archive, name, config)
        _add(archive, f"{digest}.tar", layer)
        _add(archive, "manifest.json", json.dumps(manifest).encode())

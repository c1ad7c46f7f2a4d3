"""What a node has to itself on a shared host: a number, mounts, a control group, a bridge."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.node.processes import NodeError, run, wait_for

PRIVATE = {
    "/var/lib/kubelet": "k",  # the kubelet's device-plugin folder is compiled in
    "/var/run/cdi": "cdi",
    "/run/containerd": "shims",  # sockets of the shims, whatever containerd's state folder is
    "/run/netns": "netns",
    "/var/lib/cni": "cni-results",
}
"""Folder as the node sees it: its place below the node's root. Nothing of it shows outside."""

CGROUPS = Path("/sys/fs/cgroup")
GROUP = "accelkit-test"


def claim_index() -> tuple[int, socket.socket]:
    """Take the first free number of this host.

    The claim is an abstract socket that the node's processes inherit, so it ends with the last of
    them and leaves no file. Two kubelets with one name or one control group would clear away each
    other's pods.

    Returns:
        The number, from 1, and the socket, which must stay open until the first process has it.

    Raises:
        NodeError: All are taken.
    """
    for index in range(1, 250):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            claim.bind(f"\0accelkit-test-node-{index}")
        except OSError:
            claim.close()
            continue
        claim.set_inheritable(True)
        return index, claim
    raise NodeError("249 nodes are up on this host: bring some down")


def mount_private_folders(root: Path) -> None:
    """Lay the node's own folders over the host's; only in a mount namespace made for it."""
    for inside, name in PRIVATE.items():
        Path(inside).mkdir(parents=True, exist_ok=True)
        (root / name).mkdir(exist_ok=True)
        run("mount", "--bind", str(root / name), inside)
    hosts = root / "hosts"
    hosts.write_text(Path("/etc/hosts").read_text())
    run("mount", "--bind", str(hosts), "/etc/hosts")


def announce_node(control_plane: Path, name: str) -> None:
    """Let the API server in that folder reach a kubelet by its node name, for logs and exec."""
    with (control_plane / "hosts").open("a") as hosts:
        hosts.write(f"127.0.0.1 {name}\n")


def _hierarchies() -> list[Path]:
    if (CGROUPS / "cgroup.controllers").exists():  # version 2
        return [CGROUPS]
    return [p for p in CGROUPS.iterdir() if p.name != "unified" and not p.is_symlink()]


def make_cgroup(name: str) -> str:
    """Make the node's control group in every hierarchy and return its path below them."""
    for hierarchy in _hierarchies():
        group = hierarchy / GROUP / name
        group.mkdir(parents=True, exist_ok=True)
        # version 1: a child's cpuset starts empty and takes no process
        if (group / "cpuset.cpus").exists() and hierarchy != CGROUPS:
            for child in (group.parent, group):
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (child / file).write_text((child.parent / file).read_text())
    return f"/{GROUP}/{name}"


def containers(name: str) -> Iterator[tuple[str, list[str]]]:
    """The uid of the pod and the process ids of each container of a node that runs."""
    version_2 = (CGROUPS / "cgroup.controllers").exists()
    root = (CGROUPS if version_2 else CGROUPS / "pids") / GROUP / name / "kubepods"
    for folder, _, _ in os.walk(root):  # passes over what goes meanwhile
        group = Path(folder)
        if group.parent.name.startswith("pod"):
            with contextlib.suppress(OSError):
                yield group.parent.name.removeprefix("pod"), _processes(group)


def _processes(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()


def kill_pods(name: str) -> None:
    """Kill what runs in all containers of a node, as a reboot does."""
    for _, pids in containers(name):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _clear(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        for pid in _processes(Path(folder)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        Path(folder).rmdir()  # its files go with it
    return True


def remove_cgroup(name: str) -> None:
    """Kill what runs in the node's control group, which are its pods, and remove the group."""
    # on a version 1 host the kubelet uses the version 2 tree beside it, too
    for hierarchy in {*_hierarchies(), CGROUPS / "unified"}:
        group = hierarchy / GROUP / name
        # a killed process leaves its group a moment later, so more than one round is needed
        wait_for(f"{group} empty", partial(_clear, group), patience=20)
        with contextlib.suppress(OSError):  # other nodes are in it, or it never was
            group.parent.rmdir()


def remove_bridge(name: str) -> None:
    """Remove a network bridge; does nothing if there is none."""
    if Path(f"/sys/class/net/{name}").exists():
        subprocess.run(["ip", "link", "delete", name], check=True, capture_output=True)

"""How a node comes up and goes away, and the note about it that stays in its folder between."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from attrs import asdict, frozen

from tests.node.certificates import node_certificate, write_kubeconfig
from tests.node.control_plane import PROGRAMS, start_control_plane
from tests.node.isolation import (
    announce_node,
    claim_index,
    mount_private_folders,
    remove_bridge,
    remove_cgroup,
)
from tests.node.processes import MARK, NodeError, Processes, run, wait_for
from tests.node.runtime import (
    start_containerd,
    start_kubelet,
    write_kubelet_config,
)

READY = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
LONGEST_ROOT = 60
"""Characters; a socket below has at most 107 (sun_path in unix(7))."""


@frozen
class Note:
    """What there is to know about a node that is up."""

    name: str
    """The node's name in Kubernetes, and its bridge's."""
    index: int
    programs: str
    control_plane: str
    """Folder of the node that has the control plane; its own, unless it joined."""
    port: int = 0
    """Of the API server on 127.0.0.1."""

    @classmethod
    def read(cls, root: Path) -> "Note":
        file = root / "node.json"
        if not file.exists():
            raise NodeError(f"no node in {root}")
        return cls(**json.loads(file.read_text()))

    def write(self, root: Path) -> None:
        (root / "node.json").write_text(json.dumps(asdict(self)))


def enter_own_namespace(root: Path, argv: Sequence[str]) -> None:
    """Become *argv*, marked as a process of the node, in a mount namespace that is made for it."""
    command = ["unshare", "--mount", "--propagation=private", "--", *argv]
    os.execvpe(command[0], command, {**os.environ, MARK: str(root)})


def bring_up(
    root: Path,
    programs: Path,
    *,
    join: Path | None = None,
    gates: Sequence[str] = (),
    runtime_config: Sequence[str] = (),
) -> Note:
    """Start a node and wait until it is Ready; only in a mount namespace made for it.

    Raises:
        NodeError: Something did not start; the message names its log. What did start still runs.
    """
    index, claim = claim_index()
    name = f"akn{index}"
    mount_private_folders(root)
    note = Note(name, index, str(programs), str(join or root))
    note.write(root)
    processes = Processes(root)
    processes.start("anchor", "sleep", "infinity")  # keeps the namespace and the claim
    claim.close()
    if join:
        port = Note.read(join).port
        announce_node(join, name)
    else:
        announce_node(root, name)
        port = start_control_plane(processes, programs, gates, runtime_config)
    note = Note(name, index, str(programs), str(join or root), port)
    note.write(root)
    node_certificate(root / "pki", name, join / "pki" if join else None)
    for user in ("admin", "kubelet"):
        write_kubeconfig(root / f"{user}.kubeconfig", root / "pki", user, port)
    start_containerd(processes, programs, name, index)
    write_kubelet_config(root, name, gates)
    start_kubelet(processes, programs, name)
    _wait_until_ready(root, note)
    return note


def _wait_until_ready(root: Path, note: Note) -> None:
    kubectl = (f"{note.programs}/kubectl", f"--kubeconfig={root}/admin.kubeconfig", "get")
    wait_for(
        f"node Ready (log: {root}/kubelet.log)",
        lambda: run(*kubectl, "node", note.name, "-o", READY) == "True",
        120,
    )
    # without it no pod is admitted
    wait_for("service account", lambda: run(*kubectl, "serviceaccount", "default", "-o", "name"))


def prepare_folder(root: Path, programs: Path) -> None:
    """Check what would otherwise fail late, and make the node's folder.

    Raises:
        NodeError: The folder was used before, its path is too long, or the programs are missing.
    """
    if not programs.is_dir():
        raise NodeError(f"no programs in {programs}: `./dev node` builds them")
    if root.exists() and any(root.iterdir()):
        raise NodeError(f"{root} is not empty: bring its node down and remove it, or take another")
    if len(str(root)) > LONGEST_ROOT:
        raise NodeError(f"{root} is too long for sockets: at most {LONGEST_ROOT} characters")
    root.mkdir(parents=True, exist_ok=True)


def take_down(root: Path) -> None:
    """End everything that the node started and remove everything that it made outside *root*.

    Works from any state, half up or half down. Logs stay in *root*.
    """
    processes = Processes(root)
    processes.stop("kubelet", signal.SIGKILL)
    if (root / "node.json").exists():
        note = Note.read(root)
        for program in ("containerd", *reversed(PROGRAMS)):
            processes.stop(program, patience=3)
        processes.kill_left()
        remove_bridge(note.name)
        remove_cgroup(note.name)
        (root / "node.json").unlink()
    processes.kill_left()

"""What a test can do with a node that is up."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TypeVar

from tests.node import processes
from tests.node.api import APPLY, MERGE, Api, path_of
from tests.node.golang import PROJECT
from tests.node.isolation import kill_pods
from tests.node.lifecycle import Note, prepare_folder, take_down
from tests.node.objects import Document, NodeStatus
from tests.node.processes import NodeError, Processes, run
from tests.node.runtime import wait_for_containerd

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds; what is waited for takes a few, ten when the host is busy."""


def read_logs(root: Path, lines: int = 40) -> dict[str, str]:
    """The end of each program's log, by name, in order of their last writing."""
    files = sorted(root.glob("*.log"), key=os.path.getmtime)
    return {f.stem: "\n".join(f.read_text(errors="replace").splitlines()[-lines:]) for f in files}


class Cluster:
    """The node in *root* and the cluster that it belongs to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.note = Note.read(root)
        self.programs = Path(self.note.programs)
        self.processes = Processes(root)
        self._api = Api(root, self.note.port)

    @classmethod
    def up(
        cls,
        root: Path,
        programs: Path,
        *,
        join: "Cluster | None" = None,
        gates: Sequence[str] = (),
        runtime_config: Sequence[str] = (),
    ) -> "Cluster":
        """Bring a node up in the folder *root* and wait until it is Ready.

        Args:
            join: The cluster that it becomes a member of; without it, it gets one of its own.
            gates: ``NAME=true`` each.
            runtime_config: ``GROUP/VERSION=true`` each.

        Raises:
            NodeError: It did not come up. What was started has been taken down; the logs remain.
        """
        options = [f"--gate={gate}" for gate in gates]
        options += [f"--runtime-config={version}" for version in runtime_config]
        options += [f"--join={join.root}"] if join else []
        place = ["--dir", str(root), "--programs", str(programs)]
        prepare_folder(root, programs)
        command = [sys.executable, "-m", "tests.node", "up", *place, *options]
        try:
            subprocess.run(command, check=True, cwd=PROJECT, text=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            take_down(root)
            logs = "".join(f"\n== {name}\n{text}" for name, text in read_logs(root, 15).items())
            raise NodeError(f"no node in {root}: {error.stderr.strip()}{logs}") from error
        except BaseException:  # Ctrl-C: nothing may stay behind
            take_down(root)
            rmtree(root)
            raise
        return cls(root)

    def down(self, *, remove: bool = False) -> None:
        """End the node and what it made outside its folder; with *remove*, the folder, too."""
        self._api.close()
        take_down(self.root)
        if remove:
            rmtree(self.root)

    # what the API server knows

    @property
    def name(self) -> str:
        """The node's name in Kubernetes."""
        return self.note.name

    @property
    def kubeconfig(self) -> Path:
        return self.root / "admin.kubeconfig"

    def kubectl(self, *argv: str, stdin: str | None = None, patience: float = PATIENCE) -> str:
        """Run kubectl as the cluster's administrator and return what it printed."""
        config = f"--kubeconfig={self.kubeconfig}"
        return run(f"{self.programs}/kubectl", config, *argv, stdin=stdin, patience=patience)

    def api(self, path: str) -> Document:
        """Read from the API server: ``/api/v1/nodes``.

        Raises:
            NodeError: The answer is not 200.
        """
        return self._api.ask("GET", path)

    def create(self, path: str, manifest: Document) -> Document:
        """Make an object in a collection: ``/api/v1/namespaces/default/pods``.

        Cheaper than `apply`, for many of them.

        Raises:
            NodeError: The API server refuses.
        """
        return self._api.ask("POST", path, manifest)

    def delete(self, path: str) -> None:
        """Delete an object, as gently as it says, without waiting for its end.

        Raises:
            NodeError: There is none, or the API server refuses.
        """
        self._api.ask("DELETE", path)

    def label(self, path: str, **labels: str) -> None:
        """Give an object these labels.

        Raises:
            NodeError: There is none, or the API server refuses.
        """
        self._api.ask("PATCH", path, {"metadata": {"labels": labels}}, MERGE)

    def apply(self, manifest: Document) -> None:
        """Make an object, or let it be as it is said here.

        Raises:
            NodeError: The API server refuses.
        """
        path = f"{path_of(manifest)}?fieldManager=tests&force=true&fieldValidation=Strict"
        self._api.ask("PATCH", path, manifest, APPLY)

    def node(self) -> NodeStatus:
        return NodeStatus.of(self.api(f"/api/v1/nodes/{self.name}"))

    def pod(self, name: str, namespace: str = "default") -> Document:
        return self.api(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def phase(self, pod: str) -> str:
        """The pod's phase; empty for a pod that the API server has not given one yet."""
        phase: str = self.pod(pod)["status"].get("phase", "")
        return phase

    def wait_for(self, what: str, ready: Callable[[], T], patience: float = PATIENCE) -> T:
        """Ask until the answer is true, and return it; see `tests.node.processes.wait_for`."""
        return processes.wait_for(what, ready, patience)

    def wait_for_phase(self, pod: str, phase: str, patience: float = PATIENCE) -> None:
        """Wait until the pod is in that phase.

        Raises:
            NodeError: It is not; the message has its status, where the reason stands.
        """
        try:
            self.wait_for(f"pod {pod} {phase}", lambda: self.phase(pod) == phase, patience)
        except NodeError as error:
            raise NodeError(f"{error}; {self.pod(pod)['status']}") from error

    def exec_in_pod(self, pod: str, *argv: str) -> str:
        """Run a command in the pod's first container and return what it printed."""
        return self.kubectl("exec", pod, "--", *argv)

    def remove_pods(self) -> None:
        """Delete all pods of the default namespace and wait until the kubelet has let them go.

        What events tell of them goes, too: the next one may have the same name.

        Raises:
            NodeError: The kubelet does not let one go; it is deleted by force, for others' sake.
        """
        pods = "/api/v1/namespaces/default/pods"
        try:
            self.clear(pods)
        except NodeError:
            self._api.ask("DELETE", f"{pods}?gracePeriodSeconds=0")
            raise
        finally:
            self.delete("/api/v1/namespaces/default/events")

    def clear(self, *collections: str) -> None:
        """Delete everything in these collections, one after the other, and wait until it is gone.

        Raises:
            NodeError: Something stays.
        """
        for path in collections:
            self._api.ask("DELETE", f"{path}?gracePeriodSeconds=1")
            self.wait_for(f"{path} empty", partial(self._empty, path), 120)

    def _empty(self, collection: str) -> bool:
        return not self.api(collection)["items"]

    # what runs on the node

    @property
    def kubelet_root(self) -> Path:
        """The node's /var/lib/kubelet, seen from outside."""
        return self.root / "k"

    @property
    def cdi(self) -> Path:
        """The node's /var/run/cdi, seen from outside."""
        return self.root / "cdi"

    def restart(self, program: str) -> None:
        """Stop and start one program: ``kube-apiserver``, ``containerd``, ``kubelet`` …"""
        self.processes.restart(program)

    def start(self, program: str) -> None:
        """Start one program as it was started before; does nothing if it runs."""
        if not self.processes.running(program):
            self.processes.restart(program)

    def start_kubelet(self) -> None:
        self.start("kubelet")

    def stop_kubelet(self) -> None:
        self.processes.stop("kubelet")

    def kill_kubelet(self) -> None:
        self.processes.stop("kubelet", signal.SIGKILL)

    def reboot(self) -> None:
        """Let everything on the node end, and what is in memory only be gone, as in a reboot.

        containerd and the kubelet run again then; agents are the caller's.
        """
        self.kill_kubelet()
        self.processes.stop("containerd", signal.SIGKILL)
        kill_pods(self.name)
        for path in self.cdi.iterdir():
            path.unlink()
        self.restart("containerd")
        wait_for_containerd(self.root, self.programs)
        self.restart("kubelet")

    def run_in_namespace(
        self, argv: Sequence[str], *, log: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a command for which /var/lib/kubelet and /var/run/cdi are the node's.

        The caller ends it and waits for it; what is left when the node goes down is killed.

        Args:
            log: Its output is appended to the file ``LOG.log`` in the node's folder.
            environment: Variables on top of this process's.
        """
        whole = {**self.processes.environment(), **(environment or {})}
        with (self.root / f"{log}.log").open("ab") as output:
            return subprocess.Popen(
                [*self.processes.entrance(), *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=whole,
            )

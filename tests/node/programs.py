"""The programs of a node: which there are, where they are kept, how they are built.

They are built from the Go modules in ``modules/``, once, into the cache folder; that takes minutes.
Another release than the newest: ``ACCELKIT_KUBERNETES=1.35``.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.node.golang import Say, cache, find_go
from tests.node.image import busybox
from tests.node.processes import NodeError
from tests.node.runtime import CNI

MODULES: Final = Path(__file__).parent / "modules"
RELEASES: Final = {"1.37": "1.37.2", "1.36": "1.36.3", "1.35": "1.35.4", "1.34": "1.34.4"}
NEWEST: Final = "1.37"
BUILT: Final = {
    "containerd": (("containerd", "containerd-shim-runc-v2", "ctr"), "1 minute"),
    "etcd": (("etcd",), "half a minute"),
    "kubernetes": (
        ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"),
        "5 minutes",
    ),
}
"""Module: the programs that it brings, and how long they take the first time on two cores."""
HOST_COMMANDS: Final = {
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "runc": "runc",
    "unshare": "util-linux",
}
"""Command that a node needs on the host: the Debian package that has it."""

RELEASE: Final = os.environ.get("ACCELKIT_KUBERNETES", NEWEST)
"""The release that is used where none is named."""


def _modules(release: str) -> tuple[Path, ...]:
    kubernetes = "kubernetes" if release == NEWEST else f"kubernetes-{release}"
    return tuple(MODULES / name for name in ("containerd", "etcd", kubernetes))


def programs_folder(release: str = RELEASE) -> Path:
    """Where the programs of that release are, or will be; it exists only when they are complete.

    Raises:
        NodeError: There is no such release here.
    """
    if release not in RELEASES:
        raise NodeError(f"no release {release!r} here; there are: {', '.join(RELEASES)}")
    digest = hashlib.sha256()
    for module in _modules(release):
        for name in ("go.mod", "go.sum"):
            digest.update((module / name).read_bytes())
    return cache() / f"kubernetes-{RELEASES[release]}-{digest.hexdigest()[:12]}"


def missing_packages() -> list[str]:
    """The Debian packages, in order of their names, that a node needs and this host lacks."""
    lacking = {package for command, package in HOST_COMMANDS.items() if not shutil.which(command)}
    if busybox() is None:
        lacking.add("busybox-static")
    if not all((CNI / plugin).exists() for plugin in ("bridge", "host-local")):
        lacking.add("containernetworking-plugins")
    return sorted(lacking)


def require_host() -> None:
    """Check that this host can carry a node.

    Raises:
        NodeError: It cannot; the message says all that is missing.
    """
    if os.geteuid() != 0:
        raise NodeError("a node needs root: it mounts, makes control groups and a bridge")
    if lacking := missing_packages():
        raise NodeError(f"a node needs packages that are not here: {' '.join(lacking)}")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep two builds of one folder apart.

    The lock ends with the process, however it ends, and with the Go that it started.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.set_inheritable(lock.fileno(), True)
        yield


def build_programs(say: Say, release: str = RELEASE) -> Path:
    """Build the programs of a release, unless they are there, and return their folder.

    The folder gets its name when the last program is in it, so a build that was killed counts for
    nothing; Go's own cache makes the next one short.

    Raises:
        NodeError: Go could not be installed, or failed.
    """
    folder = programs_folder(release)
    if folder.is_dir():
        return folder
    with _alone(folder):
        if folder.is_dir():  # another build was faster
            return folder
        go = find_go(say)
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for module, (names, usually) in zip(_modules(release), BUILT.values(), strict=True):
            say(f"building {', '.join(names)}: usually {usually} the first time")
            _install(module, RELEASES[release], partial, go, say)
        (partial / "server").rename(partial / "etcd")  # Go names it after its folder
        partial.rename(folder)
    return folder


def _install(module: Path, version: str, target: Path, go: Path, say: Say) -> None:
    package = "k8s.io/component-base/version"
    facts = {
        "gitVersion": f"v{version}",
        "gitMajor": "1",
        "gitMinor": version.split(".")[1],
    }
    stamped = " ".join(f"-X {package}.{name}={value}" for name, value in facts.items())
    command = [str(go), "install", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {stamped}"]
    environment = {
        # absolute and together, whatever HOME is
        "GOPATH": str(cache() / "go"),
        "GOCACHE": str(cache() / "go-build"),
        "GOTOOLCHAIN": "local",
        **os.environ,
        "GOBIN": str(target),
    }
    log = target / "build.log"
    begun = time.monotonic()
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*command, "tool"],
            cwd=module,
            env=environment,
            stdout=output,
            stderr=output,
            close_fds=False,
        ) as build,
    ):
        try:
            while build.poll() is None:
                _wait(build, 30)
                say(f"  {module.name}: {time.monotonic() - begun:.0f} s")
        finally:
            build.terminate()  # on Ctrl-C; harmless when it has ended
    if build.returncode:
        last = "\n".join(log.read_text().splitlines()[-20:])
        raise NodeError(f"go install in {module} failed:\n{last}")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return

"""containerd and kubelet of one node: their configuration and their start."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.node.image import IMAGE, busybox, write_image
from tests.node.isolation import make_cgroup
from tests.node.processes import NodeError, Processes, free_port, run, wait_for

CNI = Path("/usr/lib/cni")
"""Where Debian's containernetworking-plugins puts the programs."""

CONTAINERD_CONFIG = """\
version = 3
root = "{root}/containerd"
state = "{root}/run-containerd"
[grpc]
  address = "{root}/containerd.sock"
[ttrpc]
  address = "{root}/containerd.sock.ttrpc"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{image}"
[plugins.'io.containerd.cri.v1.runtime']
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  # without CAP_SYS_RESOURCE nobody may lower the score, and pods could not start
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{cni}"]
    conf_dir = "{root}/cni"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
"""


def _write_network(root: Path, name: str, index: int) -> None:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": f"10.89.{index}.0/24"}]],
        "dataDir": str(root / "cni-data"),
    }
    bridge = {
        "type": "bridge",
        "bridge": name,
        "isGateway": True,
        "ipMasq": False,
        "ipam": addresses,
    }
    (root / "cni").mkdir()
    (root / "cni" / "10-test.conflist").write_text(
        json.dumps({"cniVersion": "1.0.0", "name": "test", "plugins": [bridge]})
    )


def start_containerd(processes: Processes, programs: Path, name: str, index: int) -> None:
    """Start containerd and give it the image; the bridge of its pods is called *name*."""
    root = processes.root
    _write_network(root, name, index)
    config = CONTAINERD_CONFIG.format(root=root, image=IMAGE, cni=CNI)
    (root / "containerd.toml").write_text(config)
    processes.start("containerd", f"{programs}/containerd", f"--config={root}/containerd.toml")
    program = busybox()
    if program is None:
        raise NodeError("no busybox on this host: install busybox-static")
    write_image(root / "busybox.tar", program)
    ctr = wait_for_containerd(root, programs)
    run(*ctr, "images", "import", str(root / "busybox.tar"))


def wait_for_containerd(root: Path, programs: Path) -> tuple[str, ...]:
    """Wait until it answers, without which no kubelet starts; returns how to ask it."""
    # the namespace in which the kubelet's runtime interface looks for images
    ctr = (f"{programs}/ctr", f"--address={root}/containerd.sock", "--namespace=k8s.io")
    wait_for(f"containerd (log: {root}/containerd.log)", lambda: run(*ctr, "version"))
    return ctr


def write_kubelet_config(root: Path, name: str, gates: Sequence[str]) -> None:
    endpoint = f"unix://{root}/containerd.sock"
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": make_cgroup(name),
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": endpoint,
        "imageServiceEndpoint": endpoint,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(root / "pki" / "ca.crt")},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "clusterDNS": ["10.96.0.10"],
        "address": "127.0.0.1",
        "port": free_port(),
        "readOnlyPort": 0,
        "healthzPort": 0,
        # a full disk of the host is not what these tests are about
        "evictionHard": {
            "memory.available": "1Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "imageMinimumGCAge": "24h",
        "resolvConf": "",
        "podLogsDir": str(root / "pod-logs"),
        "staticPodPath": "",
        "volumePluginDir": str(root / "volume-plugins"),
        "nodeStatusUpdateFrequency": "2s",
        "syncFrequency": "10s",
        "makeIPTablesUtilChains": False,  # they would be the host's, and stay
        "oomScoreAdj": 0,  # lowering it needs CAP_SYS_RESOURCE
        "featureGates": {g.partition("=")[0]: g.partition("=")[2] == "true" for g in gates},
    }
    (root / "kubelet.yaml").write_text(json.dumps(config, indent=1))


def start_kubelet(processes: Processes, programs: Path, name: str) -> None:
    root = processes.root
    processes.start(
        "kubelet",
        f"{programs}/kubelet",
        f"--config={root}/kubelet.yaml",
        f"--kubeconfig={root}/kubelet.kubeconfig",
        f"--hostname-override={name}",
        f"--cert-dir={root}/kubelet-certs",
        "--v=2",
    )

"""etcd, API server, controller manager and scheduler of a test cluster."""

import json
import ssl
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.node.certificates import cluster_certificates, write_kubeconfig
from tests.node.processes import Processes, free_port, wait_for

AUDITED = "audited"
"""The group of users whose requests are written to ``audit.jsonl``."""
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def trust(root: Path) -> ssl.SSLContext:
    """The administrator's side of a connection to the API server."""
    pki = root / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context


def _etcd(root: Path, port: int) -> list[str]:
    peer, client = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{port}"
    return [
        f"--data-dir={root}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # nothing here outlives the host
    ]


def _audit_policy(root: Path) -> Path:
    found = root / "audit.json"
    found.write_text(
        json.dumps(
            {
                "apiVersion": "audit.k8s.io/v1",
                "kind": "Policy",
                "omitStages": ["RequestReceived"],
                "rules": [{"level": "Metadata", "userGroups": [AUDITED]}, {"level": "None"}],
            }
        )
    )
    return found


def _api_server(root: Path, port: int, etcd: int) -> list[str]:
    pki = root / "pki"
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={root}/apiserver-certs",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--service-account-key-file={pki}/sa.pub",
        f"--service-account-signing-key-file={pki}/sa.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-cluster-ip-range=10.96.0.0/24",
        "--allow-privileged=true",
        f"--kubelet-client-certificate={pki}/admin.crt",
        f"--kubelet-client-key={pki}/admin.key",
        # the kubelet listens on the loopback address, which is no node address
        "--kubelet-preferred-address-types=Hostname",
        "--endpoint-reconciler-type=none",
        f"--audit-policy-file={_audit_policy(root)}",
        f"--audit-log-path={root}/audit.jsonl",
        "--audit-log-mode=blocking",  # so that it stands there once the answer has come
    ]


def start_control_plane(
    processes: Processes, programs: Path, gates: Sequence[str], runtime_config: Sequence[str]
) -> int:
    """Start the control plane and return the port of its API server, which answers by then."""
    port = start_api_server(processes, programs, gates, runtime_config)
    _start_controllers(processes, programs, _features(gates))
    return port


def _features(gates: Sequence[str]) -> list[str]:
    return [f"--feature-gates={','.join(gates)}"] if gates else []


def start_api_server(
    processes: Processes, programs: Path, gates: Sequence[str], runtime_config: Sequence[str]
) -> int:
    """Start etcd and an API server, without any controller, and return its port."""
    root = processes.root
    cluster_certificates(root / "pki")
    port, etcd = free_port(), free_port()
    features = _features(gates)
    extra = [f"--runtime-config={','.join(runtime_config)}"] if runtime_config else []
    processes.start("etcd", f"{programs}/etcd", *_etcd(root, etcd))
    server = _api_server(root, port, etcd)
    processes.start("kube-apiserver", f"{programs}/kube-apiserver", *server, *features, *extra)
    context, url = trust(root), f"https://127.0.0.1:{port}/readyz"

    def ready() -> bool:
        with urllib.request.urlopen(url, context=context, timeout=2) as answer:
            return bool(answer.status == 200)

    wait_for(f"API server (log: {root}/kube-apiserver.log)", ready)
    write_kubeconfig(root / "admin.kubeconfig", root / "pki", "admin", port)
    return port


def _start_controllers(processes: Processes, programs: Path, features: list[str]) -> None:
    root = processes.root
    common = [
        f"--kubeconfig={root}/admin.kubeconfig",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        # with the default limits pods with claims are scheduled at 10 a second
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
        *features,
    ]
    tokens = [
        f"--service-account-private-key-file={root}/pki/sa.key",
        f"--root-ca-file={root}/pki/ca.crt",
        "--use-service-account-credentials=true",
    ]
    for name, own in (("kube-controller-manager", tokens), ("kube-scheduler", [])):
        place = [f"--secure-port={free_port()}", f"--cert-dir={root}/{name}-certs"]
        processes.start(name, f"{programs}/{name}", *common, *own, *place)

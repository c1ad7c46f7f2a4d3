"""Clients of an API server, each in processes of its own; a simulated server, over TLS."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from accelkit.conformance.sims.api.access import User
from accelkit.conformance.sims.api.certificates import make_tls
from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import SLICES, Json
from accelkit.core.policy import KubeClient
from benchmarks.node import environment
from benchmarks.rows import Judge, Row

SLICE_COUNT = 64
DEVICES = 128
USER = User(name="bench", token="bench", everything=True)
FIRST_MS = {KubeClient.LEAN: 150.0, KubeClient.OFFICIAL: 1500.0}
MEMORY_MB = {KubeClient.LEAN: 8.0, KubeClient.OFFICIAL: 40.0}

Found = Mapping[str, list[float]]


def measure(rounds: int) -> Iterator[Row]:
    """Both clients, *rounds* processes of each."""
    for client in (KubeClient.LEAN, KubeClient.OFFICIAL):
        found: dict[str, list[float]] = {}
        for _ in range(rounds):
            for what, values in asyncio.run(_one(client)).items():
                found.setdefault(what, []).extend(values)
        yield from _rows(client, found)


def _rows(client: KubeClient, found: Found) -> Iterator[Row]:
    name = f"kube {client}"
    yield Row(what=f"{name}: first answer", values=found["first"], budget=FIRST_MS[client])
    yield Row(
        what=f"{name}: memory that it takes",
        values=found["memory"],
        unit="MB",
        budget=MEMORY_MB[client],
    )
    yield Row(what=f"{name}: GET of an object", values=found["get"], judge=Judge.P99)
    listed = f"{SLICE_COUNT} slices of {DEVICES} devices listed"
    yield Row(what=f"{name}: {listed}", values=found["list"])
    yield Row(what=f"{name}: … the loop held up by it", values=found["held"], judge=Judge.WORST)
    yield Row(
        what=f"{name}: idle CPU, two watches",
        values=found["idle"],
        unit="% core",
        budget=0.1,
    )


async def _one(client: KubeClient) -> Found:
    """What one process has measured."""
    with tempfile.TemporaryDirectory(prefix="ak-") as name:
        root = Path(name)
        async with ApiSim(tls=make_tls(root / "pki"), users=[USER]) as sim:
            for number in range(SLICE_COUNT):
                sim.create(SLICES, _slice(number))
            sim.write_kubeconfig(root / "kubeconfig", USER)
            words = (
                sys.executable,
                "-m",
                "benchmarks.kube_process",
                client,
                str(root / "kubeconfig"),
            )
            child = await asyncio.create_subprocess_exec(
                *words, stdout=asyncio.subprocess.PIPE, env=environment()
            )
            out, _ = await child.communicate()
    found: Found = json.loads(out)
    return found


def _slice(number: int) -> Json:
    attributes = {
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        "architecture": {"string": "hopper"},
        "capability": {"version": "9.0.0"},
    }
    devices = [
        {
            "name": f"gpu-{unit}",
            "attributes": {**attributes, "uuid": {"string": f"GPU-01234567-89ab-{unit:08}"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for unit in range(DEVICES)
    ]
    pool = {"name": "node-a", "generation": 1, "resourceSliceCount": SLICE_COUNT}
    return {
        "metadata": {"name": f"slice-{number:03}"},
        "spec": {"driver": "bench.test", "nodeName": "node-a", "pool": pool, "devices": devices},
    }

"""A node without a driver, kept up for whoever writes one."""

import asyncio
from pathlib import Path

from accelkit.conformance.serving import serve
from accelkit.conformance.setups import Setup, Site
from accelkit.conformance.sims.api.files import port_of
from accelkit.conformance.stage import NODE
from tests.conformance.toy_answers import DRIVER
from tests.conformance.toy_claims import ToyClaims


async def served(directory: Path, told: list[str], wanted: str) -> None:
    """Keep a node up until *wanted* is told."""
    task = asyncio.create_task(serve(directory, "1.37", told.append))
    try:
        while not any(wanted in line for line in told):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_a_driver_needs_and_what_happens_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    kubelet = tmp_path / "k"
    driver = ToyClaims(tmp_path)
    driver.furnish(Site(kubeconfig=kubelet / "kubeconfig", node=NODE), Setup())
    up = asyncio.create_task(served(kubelet, told, "driver registered"))
    while "started" not in told:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    await asyncio.to_thread(driver.start, kubelet)
    await up
    await asyncio.to_thread(driver.stop)

    assert told[:4] == [
        f"kubelet     {kubelet}",
        f"kubeconfig  {kubelet / 'kubeconfig'}",
        f"CDI         {kubelet / 'cdi'}",
        f"node        {NODE}",
    ]
    (registered,) = [line for line in told if line.startswith("driver registered")]
    assert f"driver={DRIVER} " in registered
    assert "version=v1" in registered


async def test_server_is_found_again_where_it_was(tmp_path: Path) -> None:
    await served(tmp_path, [], "started")
    port = port_of(tmp_path / "kubeconfig")
    await served(tmp_path, [], "started")

    assert port_of(tmp_path / "kubeconfig") == port > 0


def test_file_that_is_no_kubeconfig_names_no_port(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("{}")

    assert port_of(tmp_path / "kubeconfig") == 0
    assert port_of(tmp_path / "missing") == 0

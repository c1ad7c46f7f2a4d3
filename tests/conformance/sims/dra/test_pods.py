"""Pods of an API server run on a simulated node, by claims and by device plugins."""

from collections.abc import Mapping
from pathlib import Path

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import podresources as pr
from accelkit.backends.wire.serve import dial
from accelkit.conformance.sims.dra.events import PrepareAsked
from accelkit.conformance.sims.events import Listed
from accelkit.core.kube import CLAIMS, NODES, PODS, Json
from tests.conformance.sims.dra.driver import DRIVER
from tests.conformance.sims.dra.world import NODE, World, world
from tests.conformance.sims.plugin import RESOURCE, Plugin, devices, plugin_path

HIDDEN = "p-extended-resources-1"


async def resources(here: World) -> pr.PodResources:
    """What the kubelet says of its one pod."""
    async with dial(here.sim.resources_socket) as channel:
        answer = await services.call(channel, services.LIST, pr.ListPodResourcesRequest())
    (pod,) = answer.pod_resources
    return pod


def extended(here: World, name: str, resource: str) -> str:
    """A pod whose extended resource the scheduler has served by a claim; the claim's uid."""
    limits = {"limits": {resource: "1", "cpu": "1"}}
    container = {"name": "main", "image": "none", "resources": limits}
    item = {"metadata": {"name": name}, "spec": {"containers": [container]}}
    here.api.create(PODS, item, "default")
    uid = here.claim(HIDDEN)
    pod = here.api.get(PODS, name, "default")["metadata"]
    assert isinstance(pod, Mapping)
    here.status(HIDDEN, reservedFor=[{"resource": "pods", "name": name, "uid": str(pod["uid"])}])
    mapping = {"containerName": "main", "resourceName": resource, "requestName": "r"}
    status: Json = {"resourceClaimName": HIDDEN, "requestMappings": [mapping]}
    patch = {"status": {"extendedResourceClaimStatus": status}}
    here.api.patch(PODS, name, patch, "default", sub="status")
    here.api.patch(PODS, name, {"spec": {"nodeName": NODE}}, "default")
    return uid


async def test_devices_of_claims_are_in_the_pod_resources(here: World) -> None:
    await here.registered()
    uid = here.claim("c1")
    await here.run("p", "c1")
    (container,) = (await resources(here)).containers

    (entry,) = container.dynamic_resources
    assert (entry.claim_namespace, entry.claim_name) == ("default", "c1")
    (device,) = entry.claim_resources
    assert (device.driver_name, device.pool_name, device.device_name) == (DRIVER, NODE, "d0")
    assert [one.name for one in device.cdi_devices] == [f"{DRIVER}/claim={uid}"]
    assert not device.HasField("share_id")


async def test_status_of_a_pod_that_runs_is_written(here: World) -> None:
    await here.registered()
    here.claim("c1")
    await here.run("p", "c1")

    await here.until(lambda: here.api.get(PODS, "p", "default")["status"] == {"phase": "Running"})


async def test_extended_resource_is_prepared_as_a_claim(here: World) -> None:
    await here.registered()
    uid = extended(here, "p", RESOURCE)
    await here.until(lambda: here.running("p"))

    (asked,) = here.sim.seen(PrepareAsked)
    assert [ref.uid for ref in asked.claims] == [uid]
    assert here.sim.dra.pod("p").injected["main"].env == (("CLAIM", HIDDEN),)
    assert here.sim.dra.device_health("p") == {}
    (container,) = (await resources(here)).containers
    assert [one.claim_name for one in container.dynamic_resources] == [HIDDEN]


async def test_kubelet_before_136_runs_it_without_a_device(tmp_path: Path) -> None:
    async with world(tmp_path, release="1.37", kubelet="1.35") as here:
        await here.registered()
        extended(here, "p", RESOURCE)
        await here.until(lambda: here.running("p"))

        assert here.sim.seen(PrepareAsked) == []
        assert here.sim.dra.pod("p").injected["main"].env == ()


async def test_kubelet_before_136_fails_a_pod_that_names_a_class(tmp_path: Path) -> None:
    name = "deviceclass.resource.kubernetes.io/gpu"
    async with world(tmp_path, release="1.37", kubelet="1.35") as here:
        extended(here, "p", name)
        await here.until(lambda: here.sim.pods and here.sim.pods["p"].message)

        assert here.sim.pods["p"].reason == f"OutOf{name}"


async def test_device_plugin_serves_pods_of_the_api_server(here: World) -> None:
    plugin = await Plugin(plugin_path(here.sim.registry_dir), devices(2)).serve()
    here.stack.push_async_callback(plugin.close)
    await here.until(lambda: here.sim.seen(Listed))
    limits = {"limits": {RESOURCE: "1"}}
    container = {"name": "main", "image": "none", "resources": limits}
    spec = {"containers": [container], "nodeName": NODE}
    here.api.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")
    await here.until(lambda: here.running("p"))
    (held,) = here.sim.pods["p"].ids()
    await here.until(lambda: allocatable(here) == "2")
    here.delete("p")
    await here.until(lambda: not here.there("p"))

    assert held in {"d0", "d1"}
    assert "p" not in here.sim.pods


def allocatable(here: World) -> object:
    status = here.api.get(NODES, NODE).get("status")
    found = status.get("allocatable") if isinstance(status, Mapping) else None
    return found.get(RESOURCE) if isinstance(found, Mapping) else None


async def test_claim_of_a_template_must_be_the_pods_own(here: World) -> None:
    driver = await here.registered()
    here.claim("c1")
    owned = {"resource.kubernetes.io/pod-claim-name": "e-c1"}
    here.api.patch(CLAIMS, "c1", {"metadata": {"annotations": owned}}, "default")
    here.pod("p", "c1")
    await here.until(lambda: any("is not owned by pod p" in text for text in told(here)))

    assert driver.of("prepare") == []


def told(here: World) -> list[str]:
    return [str(getattr(event, "message", "")) for event in here.sim.log]

"""A driver is taken out and loaded anew under pods; its GPUs have other numbers then."""

from functools import partial

from accelkit.testing.simulate import set_state, simulate
from tests.node.agents import Agents
from tests.node.claims import (
    DRA,
    allocated,
    claim,
    claiming,
    device_class,
    published,
    request,
)
from tests.node.cluster import Cluster
from tests.node.containers import held, life, wait_allocatable, why_unscheduled
from tests.node.makers import own_nodes
from tests.node.objects import Document, pod
from tests.node.serving import forget, run, taints, wait_listed
from tests.node.simulated import machine_folder

DRIVER, GPU = "intel.accelkit.dev", "gpu.intel.com/i915"
NAMED: Document = {"name": "named", "select": {"pci": ["0000:03:00.0"]}, "through": "kubelet"}
CUT = [{"select": {"pci": ["0000:13:00.0"]}, "how": "mode", "mode": "vfs-2"}]


def one(profile: str) -> Document:
    return request(of="intel", where=f'device.attributes["{DRIVER}"].profile == "{profile}"')


def made_anew(cluster: Cluster, device: str) -> bool:
    return device in published(cluster, DRIVER) and not taints(cluster, DRIVER)


def test_gpus_are_given_out_again_by_what_their_files_are_called_then(
    cluster: Cluster, agents: Agents
) -> None:
    folder = machine_folder(cluster)
    simulate("intel", "flex-170", 3, str(folder), device_nodes=True)
    device_class(cluster, DRIVER, "intel")
    agents.start(folder, NAMED, DRA, dra={}, partitioning=CUT)
    wait_listed(cluster, DRIVER, 3)
    wait_allocatable(cluster, GPU, 1)
    claim(cluster, "virtual", one("vf-of-2"))
    run(cluster, claiming("virtual", "virtual"))
    (virtual,), before = allocated(cluster, "virtual"), life(cluster, "virtual")

    set_state(str(folder), ["unload"])
    wait_allocatable(cluster, GPU, 0, capacity=1)
    cluster.wait_for("taints", lambda: len(taints(cluster, DRIVER)) == 3)
    assert all("no-edits" in keys for keys in taints(cluster, DRIVER).values())
    claim(cluster, "claimed", one("whole"))
    cluster.apply(claiming("claimed", "claimed"))
    cluster.apply(pod("named", limits={GPU: 1}))
    for name in ("claimed", "named"):
        cluster.wait_for("a reason", partial(why_unscheduled, cluster, name))
    assert life(cluster, "virtual") == before

    set_state(str(folder), ["load"])
    for name in ("claimed", "named"):
        cluster.wait_for_phase(name, "Running")
    assert own_nodes(cluster, "named")[0] == {"dri/renderD129"}
    assert own_nodes(cluster, "claimed")[0] == {"dri/renderD130"}
    assert set(held(cluster, "named").values()) == {"Healthy"}
    cluster.wait_for("lost", lambda: "lost" in taints(cluster, DRIVER).get(virtual, {}))

    # virtual functions went with the driver; the policy makes them anew once nobody has one
    cluster.kubectl("delete", "pod", "virtual", "--wait")
    cluster.wait_for("made anew", lambda: made_anew(cluster, virtual))
    forget(cluster)
    cluster.kubectl("delete", "resourceslices,deviceclasses", "--all", "--wait=false")

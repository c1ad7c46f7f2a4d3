"""The variables that tell libtpu which chips a container has. Not here: which it may have."""

from collections.abc import Collection, Mapping

from accelkit import IllegalSet
from accelkit.vendors.tpu.facts import SHAPES
from accelkit.vendors.tpu.slices import (
    Shape,
    Slice,
    accelerator_type,
    spares_links,
    topology_name,
    wraps,
)

METRICS_PORT = 8431
"""Where libtpu serves its figures. Source: tpu-info, metrics.py."""


def environment(
    slice_: Slice, indexes: Collection[int], nodes: Collection[int]
) -> Mapping[str, str]:
    """What a container with the chips *indexes* of this host is told.

    With all chips of the host it is one worker of the host's slice; with fewer it has a slice of
    its own. The names and addresses of other workers are not known on a host: those who make the
    pods of a job tell them.

    Args:
        slice_: The host's slice.
        indexes: Of the chips; those of the host count from 0.
        nodes: NUMA nodes of the chips, as far as they are known.

    Raises:
        IllegalSet: libtpu runs no set of so many chips, or the host is one of several of a slice
            and they are some of its chips.

    Source:
        kubernetes-sigs/dra-driver-google-tpu, August 2026, util.go; names with and without prefix
        are for newer and older libtpu.
    """
    count = len(indexes)
    whole = count == slice_.chips
    # A single chip is asked about for its files; that nobody gets it alone is the law of its group.
    if not whole and count > 1 < slice_.hosts:
        raise IllegalSet(
            f"a container cannot use {count} chips of this host: of a slice of {slice_.hosts} "
            "hosts each is used as a whole",
            remedy=f"ask for {slice_.chips}",
        )
    bounds = slice_.bounds if whole else SHAPES.get(count)
    if bounds is None:
        sizes = ", ".join(str(size) for size in SHAPES if size <= slice_.chips)
        raise IllegalSet(
            f"a container cannot use {count} chips of this host", remedy=f"ask for {sizes}"
        )
    topology = slice_.topology if whole else bounds
    told = {
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_RUNTIME_METRICS_PORTS": str(METRICS_PORT),
        **_of_slice(slice_, topology, bounds),
    }
    if not whole:
        told["TPU_VISIBLE_CHIPS"] = ",".join(str(index) for index in sorted(indexes))
    if not whole or slice_.hosts == 1:
        told |= {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost"}
    if nodes:
        told["WORKLOAD_NIC_PREFERRED_NUMA"] = ",".join(str(node) for node in sorted({*nodes}))
    return told


def _of_slice(slice_: Slice, topology: Shape, bounds: Shape) -> Mapping[str, str]:
    generation = slice_.generation
    x, y, z = topology
    hosts = tuple(total // own for total, own in zip(topology, bounds, strict=True))
    wrapped = ",".join(str(closed).lower() for closed in wraps(generation, topology))
    told = {
        "TPU_TOPOLOGY": topology_name(topology, generation),
        "TPU_ACCELERATOR_TYPE": accelerator_type(generation, x * y * z),
        **_both("CHIPS_PER_HOST_BOUNDS", ",".join(str(length) for length in bounds)),
        **_both("HOST_BOUNDS", ",".join(str(length) for length in hosts)),
        "TPU_TOPOLOGY_WRAP": wrapped,
        "WRAP": wrapped,
        # Twisted tori are left out.
        "TPU_TOPOLOGY_ALT": "false",
        "ALT": "false",
    }
    if spares_links(generation, topology):
        told["ENABLE_ICI_RESILIENCY"] = str(slice_.resilient).lower()
    return told


def _both(name: str, value: str) -> Mapping[str, str]:
    return {f"TPU_{name}": value, name: value}

"""What a container can read about its devices. Pure. Not here: the files.

Source:
    KEP-5304; kubernetes/dynamic-resource-allocation 0.37, api/metadata/v1alpha1 and
    kubeletplugin/metadata.go. No component of Kubernetes 1.37 knows of it, only drivers.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from accelkit.backends.dra.claims import Driver, base_names
from accelkit.backends.dra.claims_tree import items, mapping, text
from accelkit.backends.dra.document import render
from accelkit.backends.dra.objects import content
from accelkit.backends.dra.pool import Pool
from accelkit.core import cdi
from accelkit.core.allocation import Answer, ClaimRef, ContainerEdits, Mount
from accelkit.core.kube import Json
from accelkit.core.policy import DraPolicy
from accelkit.core.values import is_dns_label
from accelkit.core.view import View

VERSION = "metadata.resource.k8s.io/v1alpha1"
KIND = "DeviceMetadata"
IN_CONTAINER = "/var/run/kubernetes.io/dra-device-attributes"
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation of claims made from a template: what the pod calls them."""

Attributes = Callable[[str], Mapping[str, object]]
"""Of a device by its name: attributes as they stand in its slice."""


def pod_claim_of(claim: Json) -> str:
    """What the pod calls *claim*; empty: it names it by its own name."""
    name = text(claim, "metadata", "annotations", POD_CLAIM)
    return name if is_dns_label(name) else ""


def bases_of(answer: Answer) -> tuple[str, ...]:
    """The requests of a device as containers name them, which become names of files."""
    return tuple(name for name in base_names(answer.requests) if is_dns_label(name))


def requests_of(answers: Iterable[Answer]) -> Mapping[str, Mapping[str, tuple[Answer, ...]]]:
    """Answers by request, as containers name it, and by its full name with the subrequest."""
    found: dict[str, dict[str, tuple[Answer, ...]]] = {}
    for answer in answers:
        for base in bases_of(answer):
            for name in answer.requests:
                if name.partition("/")[0] == base:
                    full = found.setdefault(base, {})
                    full[name] = (*full.get(name, ()), answer)
    return found


def document(  # noqa: PLR0917 - what a file is made of
    driver: Driver,
    claim: ClaimRef,
    pod_claim: str,
    answers: Mapping[str, Iterable[Answer]],
    attributes: Attributes,
    generation: int = 1,
) -> Json:
    """What is told about one request.

    Args:
        driver: Who prepared it.
        claim: To which it belongs.
        pod_claim: What the pod calls the claim, if it was made from a template.
        answers: By the full name of the request.
        attributes: Of devices.
        generation: How often it was written.
    """
    named = {"podClaimName": pod_claim} if pod_claim else {}
    return {
        "apiVersion": VERSION,
        "kind": KIND,
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "uid": claim.uid,
            "generation": generation,
        },
        **named,
        "requests": [
            {"name": name, "devices": [_device(driver, one, attributes) for one in devices]}
            for name, devices in answers.items()
        ],
    }


def written(tree: Json) -> bytes:
    """*tree* as the one document of a stream; readers take the first that they know."""
    return f"{json.dumps(tree, ensure_ascii=False)}\n".encode(errors="replace")


def cdi_file(driver: Driver, uid: str) -> str:
    """The name of the file by which a claim's metadata is mounted."""
    return f"{driver.name}-metadata_{uid}.json"


def cdi_id(driver: Driver, uid: str, request: str) -> str:
    """What a container asks for to have the metadata of *request*."""
    return f"{driver.name}/metadata={uid}_{request}"


def mounts(driver: Driver, files: Mapping[Path, object]) -> bytes:
    """The CDI document that mounts *files* where programs look for them.

    Args:
        driver: Who wrote them.
        files: What each holds, by path on the host; named after the request.
    """
    devices = {}
    for path, tree in files.items():
        mount = Mount(host_path=str(path), container_path=_place(driver, path.stem, tree))
        _, _, name = cdi_id(driver, text(tree, "metadata", "uid"), path.stem).partition("=")
        devices[name] = ContainerEdits(mounts=(mount,))
    return cdi.render(f"{driver.name}/metadata", devices)


class PublishedAttributes:
    """What slices say of the devices of one driver, made anew of every view that is asked about.

    Args:
        driver: Its name.
        view: The newest view.
        policy: What drivers are called.
    """

    def __init__(self, driver: str, view: Callable[[], View], policy: DraPolicy) -> None:
        self._driver = driver
        self._view = view
        self._policy = policy
        self._of: View | None = None
        self._known: Mapping[str, Mapping[str, object]] = {}

    def __call__(self, name: str) -> Mapping[str, object]:
        """Those of a device, as they stand in its slice; none: it is in no slice."""
        view = self._view()
        if view is not self._of:
            pool = render(view, self._policy).pools.get(self._driver)
            self._known = {} if pool is None else dict(_attributes(pool))
            self._of = view
        return self._known.get(name, {})


def _attributes(pool: Pool) -> Iterator[tuple[str, Mapping[str, object]]]:
    for part in pool.slices:
        for device in items(content(part), "devices"):
            yield text(device, "name"), mapping(device, "attributes")


def _device(driver: Driver, answer: Answer, attributes: Attributes) -> Json:
    name = answer.device.name
    told = {"driver": driver.name, "pool": driver.pool, "name": name}
    return {**told, "attributes": dict(attributes(name))}


def _place(driver: Driver, request: str, tree: object) -> str:
    pod_claim = text(tree, "podClaimName")
    folder = "resourceclaimtemplates" if pod_claim else "resourceclaims"
    claim = pod_claim or text(tree, "metadata", "name")
    return f"{IN_CONTAINER}/{folder}/{claim}/{request}/{driver.name}-metadata.json"

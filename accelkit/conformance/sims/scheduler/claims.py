"""The life of claims beside the scheduler: made from templates, reserved, released, ended.

In a real cluster the resource claim controller and the garbage collector do this. Not here: the
search for devices.
"""

from collections.abc import Mapping, Sequence

from attrs import frozen

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.direct import Direct
from accelkit.conformance.sims.api.kinds import TEMPLATES
from accelkit.conformance.sims.api.values import part, parts, put, text, texts
from accelkit.conformance.sims.scheduler.pools import Json
from accelkit.core.kube import CLAIMS, PODS

FINALIZER = "resource.kubernetes.io/delete-protection"
OF_POD = "resource.kubernetes.io/pod-claim-name"
_OVER = {"Succeeded", "Failed"}


@frozen
class Claims:
    """What is done to claims; everything is written through the API server."""

    api: Direct

    def make(self, pod: Json) -> None:
        """Make the claims that a pod wants from templates, and note their names in its status."""
        statuses = parts(pod, "status", "resourceClaimStatuses")
        known = {text(status, "name") for status in statuses}
        made = [
            {"name": text(wanted, "name"), "resourceClaimName": self._from_template(pod, wanted)}
            for wanted in parts(pod, "spec", "resourceClaims")
            if "resourceClaimTemplateName" in wanted and text(wanted, "name") not in known
        ]
        if made:
            self.note(pod, {"resourceClaimStatuses": [*statuses, *made]})

    def _from_template(self, pod: Json, wanted: Json) -> str:
        namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
        claim, template = text(wanted, "name"), text(wanted, "resourceClaimTemplateName")
        spec = part(self.api.raw(TEMPLATES, template, namespace), "spec")
        meta: Object = {**part(spec, "metadata"), "generateName": f"{name}-{claim}-"}
        meta["annotations"] = {**part(meta, "annotations"), OF_POD: claim}
        meta["ownerReferences"] = [owner(pod)]
        made = self.api.create(CLAIMS, {"metadata": meta, "spec": spec["spec"]}, namespace)
        return text(made, "metadata", "name")

    def of(self, pod: Json) -> list[Json] | None:
        """The claims of a pod in its order; None: one is not there yet."""
        namespace = text(pod, "metadata", "namespace")
        statuses = {
            text(status, "name"): text(status, "resourceClaimName")
            for status in parts(pod, "status", "resourceClaimStatuses")
        }
        found: list[Json] = []
        for wanted in parts(pod, "spec", "resourceClaims"):
            name = text(wanted, "resourceClaimName") or statuses.get(text(wanted, "name"), "")
            if not name or not self.api.has(CLAIMS, name, namespace):
                return None
            found.append(self.api.raw(CLAIMS, name, namespace))
        if extra := text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName"):
            found.append(self.api.raw(CLAIMS, extra, namespace))
        return found

    def allocate(self, claim: Json, allocation: Object | None, pod: Json) -> None:
        """Give *claim* its devices, unless it has them, and reserve it for *pod*."""
        finalizers = texts(part(claim, "metadata"), "finalizers")
        if allocation is not None and FINALIZER not in finalizers:
            self._write_finalizers(claim, [*finalizers, FINALIZER])
            namespace, name = text(claim, "metadata", "namespace"), text(claim, "metadata", "name")
            claim = self.api.raw(CLAIMS, name, namespace)
        status = dict(part(claim, "status"))
        if allocation is not None:
            status["allocation"] = allocation
        uid = text(pod, "metadata", "uid")
        reserved = parts(status, "reservedFor")
        if all(text(one, "uid") != uid for one in reserved):
            mine = {"resource": "pods", "name": text(pod, "metadata", "name"), "uid": uid}
            status["reservedFor"] = [*reserved, mine]
        self.api.replace(CLAIMS, {**claim, "status": status}, sub="status")

    def deallocate(self, claim: Json) -> None:
        """Take a claim's devices back; it may end then."""
        self.api.replace(CLAIMS, {**claim, "status": {}}, sub="status")
        kept = [f for f in texts(part(claim, "metadata"), "finalizers") if f != FINALIZER]
        namespace, name = text(claim, "metadata", "namespace"), text(claim, "metadata", "name")
        self._write_finalizers(self.api.raw(CLAIMS, name, namespace), kept)

    def _write_finalizers(self, claim: Json, finalizers: Sequence[str]) -> None:
        """Write them over the claim; a patch would lose the spaces of its parameters."""
        meta: Object = {**part(claim, "metadata")}
        put(meta, "finalizers", list(finalizers) or None)
        self.api.replace(CLAIMS, {**claim, "metadata": meta})

    def release(self, pods: Sequence[Json]) -> None:
        """Give back what pods had that are gone or over, and end the claims made for them."""
        alive = {
            text(pod, "metadata", "uid")
            for pod in pods
            if text(pod, "status", "phase") not in _OVER
        }
        for claim in self.api.raws(CLAIMS):
            self._drop_reservations(claim, alive)
            self._end(claim, alive)

    def _drop_reservations(self, claim: Json, alive: set[str]) -> None:
        status = dict(part(claim, "status"))
        reserved = parts(status, "reservedFor")
        left = [one for one in reserved if text(one, "uid") in alive]
        if reserved and not left:
            self.deallocate(claim)
        elif len(left) < len(reserved):
            put(status, "reservedFor", left)
            self.api.replace(CLAIMS, {**claim, "status": status}, sub="status")

    def _end(self, claim: Json, alive: set[str]) -> None:
        namespace, name = text(claim, "metadata", "namespace"), text(claim, "metadata", "name")
        owners = parts(claim, "metadata", "ownerReferences")
        pods = [text(one, "uid") for one in owners if text(one, "kind") == "Pod"]
        over = bool(pods) and not alive & set(pods)
        if over and self.api.has(CLAIMS, name, namespace):
            self.api.delete(CLAIMS, name, namespace)

    def note(self, pod: Json, status: Mapping[str, object]) -> None:
        """Write into a pod's status."""
        namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
        self.api.patch(PODS, name, {"status": status}, namespace, sub="status")


def owner(pod: Json) -> Object:
    """The reference by which something of a pod goes with it."""
    meta = part(pod, "metadata")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": text(meta, "name"),
        "uid": text(meta, "uid"),
        "controller": True,
    }

"""What a server says of itself: version, health, groups, resources, gates. Not here: objects."""

from collections.abc import Mapping, Sequence

from accelkit.conformance.sims.api.documents import write
from accelkit.conformance.sims.api.http import Reply
from accelkit.conformance.sims.api.kinds import VERBS, Kind
from accelkit.conformance.sims.gates import Dialect

_AGGREGATED = "apidiscovery.k8s.io"
_HEALTH = ("/healthz", "/livez", "/readyz")
_REVIEWS = (
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
)


def describe(path: str, accept: str, kinds: Sequence[Kind], dialect: Dialect) -> Reply | None:
    """The answer for a path that is no resource; None: there is no such path."""
    path = path.rstrip("/")
    if path in _HEALTH:
        return Reply(200, b"ok", "text/plain; charset=utf-8")
    if path == "/metrics":
        return Reply(200, _metrics(dialect), "text/plain; version=0.0.4; charset=utf-8")
    if path in {"/api", "/apis"} and _AGGREGATED in accept:
        kind = f"application/json;g={_AGGREGATED};v=v2;as=APIGroupDiscoveryList"
        return Reply(200, write(_aggregated(kinds, core=path == "/api")), kind)
    found = _documents(kinds, dialect).get(path)
    return None if found is None else Reply(200, write(found))


def _metrics(dialect: Dialect) -> bytes:
    lines = (
        f'kubernetes_feature_enabled{{name="{gate}",stage=""}} {int(on)}\n'
        for gate, on in sorted(dialect.gates.items())
    )
    return "".join(("# TYPE kubernetes_feature_enabled gauge\n", *lines)).encode()


def _documents(kinds: Sequence[Kind], dialect: Dialect) -> Mapping[str, object]:
    versions = sorted({(k.resource.group, k.resource.version) for k in kinds if k.resource.group})
    versions += [(group, "v1") for group, _, _ in _REVIEWS]
    groups = {group: _group(group, versions) for group, _ in versions}
    found: dict[str, object] = {
        "/version": _version(dialect),
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(groups.values())},
        "/api/v1": _resources("v1", [k for k in kinds if not k.resource.group]),
    }
    for group, version in versions:
        inside = [k for k in kinds if (k.resource.group, k.resource.version) == (group, version)]
        document = _resources(f"{group}/{version}", inside)
        document["resources"] = [*document["resources"], *_reviews(group)]
        found[f"/apis/{group}/{version}"] = document
        found[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **groups[group]}
    return found


def _version(dialect: Dialect) -> Mapping[str, str]:
    major, minor = dialect.release.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": dialect.version,
        "gitTreeState": "clean",
        "goVersion": "go1.26.8",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _group(group: str, versions: Sequence[tuple[str, str]]) -> dict[str, object]:
    # The first is preferred: stable ones come before others.
    mine = sorted({v for g, v in versions if g == group}, key=lambda v: (v != "v1", v))
    listed = [{"groupVersion": f"{group}/{v}", "version": v} for v in mine]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resources(version: str, kinds: Sequence[Kind]) -> dict[str, list[dict[str, object]]]:
    listed: list[dict[str, object]] = []
    for kind in kinds:
        resource = kind.resource
        common = {"namespaced": resource.namespaced, "kind": resource.kind}
        short = {"shortNames": [kind.short]} if kind.short else {}
        listed.append(
            {
                "name": resource.plural,
                "singularName": resource.kind.lower(),
                **common,
                "verbs": list(VERBS),
                **short,
            }
        )
        if kind.status:
            status = {"name": f"{resource.plural}/status", "singularName": "", **common}
            listed.append({**status, "verbs": ["get", "patch", "update"]})
    head: dict[str, object] = {"kind": "APIResourceList", "apiVersion": "v1"}
    return {**head, "groupVersion": version, "resources": listed}  # type: ignore[dict-item]  # the list alone is read again


def _reviews(group: str) -> list[dict[str, object]]:
    return [
        {
            "name": plural,
            "singularName": kind.lower(),
            "namespaced": False,
            "kind": kind,
            "verbs": ["create"],
        }
        for owner, plural, kind in _REVIEWS
        if owner == group
    ]


def _aggregated(kinds: Sequence[Kind], *, core: bool) -> Mapping[str, object]:
    chosen = [kind for kind in kinds if bool(kind.resource.group) is not core]
    groups: dict[str, dict[str, list[object]]] = {}
    for kind in chosen:
        versions = groups.setdefault(kind.resource.group, {})
        versions.setdefault(kind.resource.version, []).append(_discovered(kind))
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {"version": version, "resources": resources, "freshness": "Current"}
                for version, resources in versions.items()
            ],
        }
        for group, versions in groups.items()
    ]
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": f"{_AGGREGATED}/v2", "metadata": {}}
    return {**head, "items": items}


def _discovered(kind: Kind) -> Mapping[str, object]:
    resource = kind.resource
    response = {"group": "", "version": "", "kind": resource.kind}
    status = {
        "subresource": "status",
        "responseKind": response,
        "verbs": ["get", "patch", "update"],
    }
    return {
        "resource": resource.plural,
        "responseKind": response,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.kind.lower(),
        "verbs": list(VERBS),
        **({"shortNames": [kind.short]} if kind.short else {}),
        **({"subresources": [status]} if kind.status else {}),
    }

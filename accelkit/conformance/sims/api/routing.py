"""Which object a path means. Not here: what is done with it."""

from collections.abc import Iterable, Mapping

from attrs import frozen

from accelkit.conformance.sims.api.http import Request
from accelkit.conformance.sims.api.kinds import Kind

_NAMED = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_WHOLE = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_TRUE = {"1", "true"}


@frozen(kw_only=True)
class Target:
    """What a path means, if it is one of a resource."""

    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    sub: str = ""

    @classmethod
    def of(cls, path: str) -> "Target | None":
        """Read a path; None: it is not one of a resource."""
        match path.strip("/").split("/"):
            case ["api", version, plural, *rest]:
                return cls._of("", version, plural, rest)
            case ["apis", group, version, plural, *rest]:
                return cls._of(group, version, plural, rest)
            case _:
                return None

    @classmethod
    def _of(cls, group: str, version: str, plural: str, rest: list[str]) -> "Target | None":
        namespace = ""
        if (
            plural == "namespaces"
            and len(rest) > 1
            and not (len(rest) == 2 and rest[1] == "status")
        ):
            namespace, plural, *rest = rest
        if len(rest) > 2:
            return None
        name, sub = (*rest, "", "")[:2]
        return cls(
            group=group,
            version=version,
            plural=plural,
            namespace=namespace,
            name=name,
            sub=sub,
        )

    def verb(self, method: str, query: Mapping[str, str]) -> str:
        """What is done, in the words of roles; empty if the method does not fit."""
        if self.name:
            return _NAMED.get(method, "")
        watch = method == "GET" and query.get("watch") in _TRUE
        return "watch" if watch else _WHOLE.get(method, "")

    def kind(self, kinds: Iterable[Kind]) -> Kind | None:
        """The kind that is served there."""
        wanted = (self.group, self.version, self.plural)
        for kind in kinds:
            resource = kind.resource
            if (resource.group, resource.version, resource.plural) == wanted:
                return kind
        return None


def token(request: Request) -> str:
    """The bearer token; empty if there is none."""
    scheme, _, found = request.headers.get("authorization", "").partition(" ")
    return found.strip() if scheme.lower() == "bearer" else ""

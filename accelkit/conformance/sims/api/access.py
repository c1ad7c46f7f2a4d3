"""Who asks, and what they may do. Not here: what is asked."""

from collections.abc import Sequence

from attrs import field, frozen

from accelkit.conformance.sims.api.refusals import Refused, forbidden
from accelkit.core.kube import Resource
from accelkit.core.values import freeze

_PUBLIC = ("/version", "/healthz", "/livez", "/readyz")
_DISCOVERY = ("/api", "/apis", "/openapi")


@frozen(kw_only=True, field_transformer=freeze)
class Rule:
    """A rule of a role; ``*`` stands for all."""

    verbs: tuple[str, ...]
    resources: tuple[str, ...]
    """Plurals; a subresource as ``resourceclaims/status``."""
    groups: tuple[str, ...] = ("resource.k8s.io",)
    names: tuple[str, ...] = ()
    """Of the objects; empty for all."""


@frozen(kw_only=True, field_transformer=freeze)
class User:
    """Somebody with a token."""

    name: str
    token: str = field(default="", repr=False)
    rules: tuple[Rule, ...] = ()
    node: str = ""
    """The node that the token is bound to, by its pod."""
    uid: str = ""
    everything: bool = False
    """May do all there is."""


ADMIN = User(name="admin", everything=True)
ANONYMOUS = User(name="system:anonymous")


def service_account(
    name: str, token: str, rules: Sequence[Rule], *, namespace: str = "default", node: str = ""
) -> User:
    """The user that a pod is, with the token that it finds."""
    full = f"system:serviceaccount:{namespace}:{name}"
    return User(name=full, token=token, rules=tuple(rules), node=node)


@frozen(kw_only=True)
class Act:
    """Something that somebody wants to do with objects."""

    verb: str
    group: str
    plural: str
    """With the subresource, if any."""
    name: str = ""
    namespace: str = ""

    @classmethod
    def on(
        cls, verb: str, resource: Resource, name: str = "", namespace: str = "", sub: str = ""
    ) -> "Act":
        plural = f"{resource.plural}/{sub}" if sub else resource.plural
        return cls(verb=verb, group=resource.group, plural=plural, name=name, namespace=namespace)


def allows(user: User, act: Act) -> bool:
    """Whether a rule of the user covers the act."""
    return user.everything or any(
        {act.verb, "*"} & set(rule.verbs)
        and {act.group, "*"} & set(rule.groups)
        and {act.plural, "*"} & set(rule.resources)
        and (not rule.names or act.name in rule.names)
        for rule in user.rules
    )


def denial(user: User, act: Act) -> str:
    """Why a server does not let *user* do it."""
    where = f'in the namespace "{act.namespace}"' if act.namespace else "at the cluster scope"
    return (
        f'User "{user.name}" cannot {act.verb} resource "{act.plural}" '
        f'in API group "{act.group}" {where}'
    )


def require(user: User, act: Act) -> None:
    """Let only those pass who may.

    Raises:
        Refused: The user may not.
    """
    if not allows(user, act):
        plural = act.plural.partition("/")[0]
        raise forbidden(act.group, plural, act.name, denial(user, act))


def require_path(user: User, path: str) -> None:
    """The same for what is no resource.

    Raises:
        Refused: The user may not.
    """
    public = path.rstrip("/") in _PUBLIC
    known = path.startswith(_DISCOVERY) and user != ANONYMOUS
    if not (public or known or user.everything):
        message = f'forbidden: User "{user.name}" cannot get path "{path}"'
        raise Refused(403, "Forbidden", message, details={})

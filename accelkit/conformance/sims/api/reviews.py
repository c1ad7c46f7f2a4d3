"""Questions about rights. Not here: who has them."""

from collections.abc import Mapping

from accelkit.conformance.sims.api.access import Act, User, allows
from accelkit.conformance.sims.api.bodies import read_tree
from accelkit.conformance.sims.api.http import Request
from accelkit.conformance.sims.api.refusals import invalid, wrong
from accelkit.conformance.sims.api.values import part, text

PATHS = {
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
}
_EXTRA = "authentication.kubernetes.io"


def answer(request: Request, user: User) -> Mapping[str, object]:
    """The review with its status.

    Raises:
        Refused: It cannot be read, or asks for nothing.
    """
    asked = read_tree(request, "SelfSubjectAccessReview")
    if request.path.endswith("selfsubjectreviews"):
        return _who(user)
    spec = part(asked, "spec")
    wanted = part(spec, "resourceAttributes")
    if not wanted and "nonResourceAttributes" not in spec:
        what = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid("authorization.k8s.io", "", "", [wrong("spec", None, what)])
    plural, sub = text(wanted, "resource"), text(wanted, "subresource")
    act = Act(
        verb=text(wanted, "verb"),
        group=text(wanted, "group"),
        plural=f"{plural}/{sub}" if sub else plural,
        name=text(wanted, "name"),
        namespace=text(wanted, "namespace"),
    )
    allowed = allows(user, act) if wanted else user.everything
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": {"allowed": allowed},
    }


def _who(user: User) -> Mapping[str, object]:
    extra = {f"{_EXTRA}/node-name": [user.node]} if user.node else {}
    info = {"username": user.name, "groups": ["system:authenticated"]}
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "status": {"userInfo": {**info, **({"extra": extra} if extra else {})}},
    }

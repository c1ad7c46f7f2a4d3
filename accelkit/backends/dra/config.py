"""What a claim and its device class say to a driver, read strictly. Not here: what follows."""

import json
from collections.abc import Collection

from accelkit.backends.dra.claims_tree import at, items, text, texts
from accelkit.core.allocation import CLAIM_CONFIG, ClaimBody, ClaimConfig, ClaimRef
from accelkit.core.errors import ConfigError, ConfigRefused
from accelkit.core.kube import Json
from accelkit.core.policy import API_VERSION
from accelkit.core.serde import from_tree
from accelkit.core.values import Source

BLOCK_LIMIT = 10 * 1024
"""Bytes of a block. Source: resource.k8s.io/v1 types.go, OpaqueParametersMaxLength; others than
the API server may be asked, too."""

_SOURCES = {"FromClass": Source.FROM_CLASS, "FromClaim": Source.FROM_CLAIM}
_WHOSE = {Source.FROM_CLASS: "the device class", Source.FROM_CLAIM: "the claim"}


def configs_of(
    allocation: Json, driver: str, requests: Collection[str], claim: ClaimRef
) -> tuple[ClaimConfig, ...]:
    """The blocks of *allocation* for *driver*, those of classes before those of the claim.

    Args:
        allocation: ``status.allocation`` of the claim.
        driver: Blocks for others are none of our business.
        requests: Those for which the driver gave devices, as in the results; blocks that reach
            none of them are left out.
        claim: To which they belong.

    Raises:
        ConfigRefused: With everything that is wrong in any of them, each with its path.
    """
    found: list[ClaimConfig] = []
    wrong: list[str] = []
    for number, item in enumerate(items(allocation, "devices", "config")):
        if text(item, "opaque", "driver") != driver:
            continue
        asked = texts(item, "requests")
        if asked and not any(reaches(asked, request) for request in requests):
            continue
        source = _SOURCES.get(text(item, "source"), Source.FROM_CLAIM)
        try:
            body = _body(at(item, "opaque", "parameters"))
        except ConfigError as error:
            whose = f"config[{number}] of {_WHOSE[source]}"
            wrong.extend(f"{whose}, {path}: {why}" for path, why in error.problems)
        else:
            found.append(ClaimConfig(source=source, requests=asked, body=body))
    if wrong:
        raise ConfigRefused(
            f"claim {claim.name}: {'; '.join(wrong)}",
            claim=claim.uid,
            remedy=f"write a {CLAIM_CONFIG} of {API_VERSION} there",
        )
    return tuple(sorted(found, key=lambda config: config.source))


def reaches(asked: Collection[str], request: str) -> bool:
    """Whether a block for the requests *asked* is for *request*: ``main`` reaches ``main/sub``."""
    return request in asked or request.partition("/")[0] in asked


def _body(parameters: object) -> ClaimBody:
    body = from_tree(ClaimBody, parameters)
    wrong = []
    if (size := _size(parameters)) > BLOCK_LIMIT:
        wrong.append(("$", f"{size} bytes, at most {BLOCK_LIMIT} are taken"))
    if body.api_version != API_VERSION:
        wrong.append(("$.apiVersion", f"expected {API_VERSION!r}, found {body.api_version!r}"))
    if body.kind != CLAIM_CONFIG:
        wrong.append(("$.kind", f"expected {CLAIM_CONFIG!r}, found {body.kind!r}"))
    if wrong:
        raise ConfigError(wrong)
    return body


def _size(tree: object) -> int:
    written = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    return len(written.encode(errors="replace"))

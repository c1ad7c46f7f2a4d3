"""What a claim and its device class say to a driver, read strictly. Not here: what follows."""

import json
from collections.abc import Collection

from accelkit.backends.dra.claims_tree import at, items, text, texts
from accelkit.core.allocation import CLAIM_CONFIG, ClaimBody, ClaimConfig, ClaimRef
from accelkit.core.errors import ConfigError, ConfigRefused
from accelkit.core.grants import main_request
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
    """The blocks of *allocation* for *driver*, in order.

    Args:
        allocation: ``status.allocation`` of the claim.
        driver: Blocks for others are none of our business.
        requests: Those for which the driver gave devices, as in the results, in order; blocks are
            for as many of them as they reach, and left out if it is none.
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
        reached = tuple(r for r in requests if not asked or {r, main_request(r)} & set(asked))
        if not reached:
            continue
        source = _SOURCES.get(text(item, "source"), Source.FROM_CLAIM)
        try:
            body = _body(at(item, "opaque", "parameters"))
        except ConfigError as error:
            whose = f"config[{number}] of {_WHOSE[source]}"
            wrong.extend(f"{whose}, {path}: {why}" for path, why in error.problems)
        else:
            found.append(ClaimConfig(source=source, requests=reached, body=body))
    if wrong:
        raise ConfigRefused(
            f"claim {claim.name}: {'; '.join(wrong)}",
            claim=claim.uid,
            remedy=f"write a {CLAIM_CONFIG} of {API_VERSION} there",
        )
    return tuple(found)


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

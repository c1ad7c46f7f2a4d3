"""B: what users write into claims for a plugin. Not here: what the plugin makes of it."""

from collections.abc import Iterator, Mapping
from functools import partial

import attrs

from accelkit.backends.dra.claims import Driver, allocation_of
from accelkit.conformance.bench import PluginBench, told
from accelkit.conformance.checks.life import of_claim, prepared, release
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.cuts import left_over
from accelkit.conformance.keeping import NODE, Agent, Node
from accelkit.conformance.kinds import Kind, node_of, plain
from accelkit.conformance.model import Check, Feature
from accelkit.core.allocation import CLAIM_CONFIG, Allocation, ClaimBody, ClaimConfig
from accelkit.core.errors import AccelkitError, ConfigRefused, PluginError
from accelkit.core.kube import Json
from accelkit.core.policy import API_VERSION
from accelkit.core.serde import key_of
from accelkit.core.values import Source
from accelkit.core.view import View

STRANGE = "conformanceKey"
"""A key that no plugin has."""


def strict(bench: PluginBench) -> Iterator[str]:
    kind = plain(bench)
    node = node_of(bench, kind)
    before = node.seen()
    for key, block in _wrong_blocks(bench):
        yield from node.during(partial(_refused, kind=kind, key=key, block=block))
    yield from told("what is refused", left_over(before, node.seen()))


def _wrong_blocks(bench: PluginBench) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Keys with which a block cannot be read, and the block."""
    yield STRANGE, {STRANGE: 1}
    kind = bench.subject.vendor.claim_config
    for field in attrs.fields(kind) if attrs.has(kind) else ():
        name = key_of(field.name)
        yield f"{name}x", {f"{name}x": None}
        yield name, {name: {STRANGE: [STRANGE]}}


async def _refused(agent: Agent, kind: Kind, key: str, block: Mapping[str, object]) -> list[str]:
    claim = configured(kind, block)
    try:
        await agent.prepare(claim)
    except ConfigRefused as error:
        return [] if key in str(error) else [f"{key} is refused without its path: {error}"]
    except PluginError as error:
        return [f"{key} in a claim breaks the plugin: {error}"]
    except AccelkitError as error:
        return [f"{key} in a claim is refused with {error.code}, not {ConfigRefused.code}: {error}"]
    await agent.release(claim.claim.uid)
    return [f"{key} in a claim, which is {block[key]!r}, is taken without a word"]


def configured(kind: Kind, block: Mapping[str, object]) -> Allocation:
    """A claim with a block for the plugin."""
    body = ClaimBody(api_version=API_VERSION, kind=CLAIM_CONFIG, vendor=block)
    configs = (ClaimConfig(source=Source.FROM_CLAIM, body=body),)
    return attrs.evolve(kind.claim(), configs=configs)


def of_others(bench: PluginBench) -> Iterator[str]:
    kind = plain(bench)
    node = node_of(bench, kind)
    before = node.seen()
    ours = kind.claim().driver
    blocks: Mapping[str, list[Json]] = {
        "a block for another driver": [_block("other.example.com", {"answer": 42})],
        "a block for another request": [_block(ours, {STRANGE: 1}, requests=["other"])],
        "a block that says nothing": [_block(ours, {})],
    }
    alone = _answered(node, kind, [])
    for what, config in blocks.items():
        found = node.during(partial(_tried, kind=kind, config=config))
        if found:
            yield from of_claim(kind, [f"{what}: {found}"])
        elif _answered(node, kind, config) != alone:
            yield from of_claim(kind, [f"{what} changes what its container gets"])
    yield from told("blocks of others", left_over(before, node.seen()))


def _block(driver: str, vendor: Json, requests: list[str] | None = None) -> Json:
    ours: Json = {"apiVersion": API_VERSION, "kind": CLAIM_CONFIG, "vendor": vendor}
    parameters = ours if not driver.startswith("other.") else vendor
    return {
        "source": "FromClaim",
        "requests": requests or [],
        "opaque": {"driver": driver, "parameters": parameters},
    }


async def _tried(agent: Agent, kind: Kind, config: list[Json]) -> str:
    """Why a claim with *config* is not prepared; empty: it is, and was given back."""
    try:
        claim = _read(agent.view, kind, config)
        await agent.prepare(claim)
        await agent.release(claim.claim.uid)
    except AccelkitError as error:
        return str(error)
    return ""


def _answered(node: Node, kind: Kind, config: list[Json]) -> dict[str, bytes]:
    """The CDI files of a claim with *config*."""
    node.during(lambda agent: prepared(agent, _read(agent.view, kind, config)))
    files = {path.name: path.read_bytes() for path in node.cdi.glob("*.json")}
    release(node, kind.claim())
    return files


def _read(view: View, kind: Kind, config: list[Json]) -> Allocation:
    """A claim as the API server has it, read as a driver does."""
    wanted = kind.claim()
    result = {"request": "r", "driver": wanted.driver, "pool": NODE, "device": kind.device.name}
    item: Json = {
        "metadata": {"uid": wanted.claim.uid, "name": wanted.claim.name},
        "status": {"allocation": {"devices": {"results": [result], "config": config}}},
    }
    driver = Driver(name=wanted.driver, vendor=kind.device.vendor, pool=NODE)
    return allocation_of(item, wanted.claim, driver, view)


CHECKS: tuple[Check[PluginBench], ...] = (
    in_process(
        "B03",
        "What a claim asks a plugin for and it does not know is refused with its path.",
        strict,
        Feature.MACHINE,
    ),
    in_process(
        "B04",
        "Configuration for somebody else, or none, changes nothing.",
        of_others,
        Feature.MACHINE,
    ),
)

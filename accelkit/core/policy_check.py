"""What is wrong with a policy that is spelt right. Not here: what only a node can tell."""

import re
from collections.abc import Collection, Iterable, Mapping

import attrs

from accelkit.core.attributes import PUBLISHED, is_attribute_id
from accelkit.core.backend import BackendFactory
from accelkit.core.errors import ConfigError
from accelkit.core.foreign import in_words
from accelkit.core.layout_check import layout_problems
from accelkit.core.limits import socket_room
from accelkit.core.not_yet import not_yet
from accelkit.core.offer_check import listed, offer_problems, repeated
from accelkit.core.policy import API_VERSION, KIND, Paths, Policy, Selection
from accelkit.core.serde import from_tree
from accelkit.core.serde.keys import child, did_you_mean, key_of
from accelkit.core.serde.pruning import without
from accelkit.core.sharing_check import Found
from accelkit.core.units import Seconds, format_duration
from accelkit.core.values import is_dns_label, is_host_path
from accelkit.core.vendor import Vendor

SCALE_LIMIT = 100.0
"""Most that ``deadlineScale`` may be: longer deadlines are hangs by another name."""
PORT_LIMIT = 65535
SHORTEST = Seconds(0.01)
"""Between two reads: more often a node would do little else."""
LONGEST = Seconds(365 * 24 * 3600)
"""Of any duration: clocks and sockets take no number."""
_KUBE_CONFIGS = ("in-cluster", "none")
_SOCKET_NAME = len("x-01234567.sock")
_LISTEN = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]*):(?P<port>[0-9]{1,5})", re.ASCII)


def parse_policy(tree: object) -> Policy:
    """Read a policy from what a YAML or JSON loader gave; nothing at all is all defaults.

    Raises:
        ConfigError: Unknown keys, missing keys, wrong types: all of them, and what is wrong with
            the rest, whichever plugins are installed.
    """
    try:
        return from_tree(Policy, {} if tree is None else tree)
    except ConfigError as error:
        spelt = error.problems
        raise ConfigError(_in_order([*spelt, *_of_the_rest(tree, spelt)])) from error


def _of_the_rest(
    tree: object, problems: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    rest = without(tree, [path for path, _ in problems])
    try:
        return policy_problems(from_tree(Policy, rest))
    except ConfigError:  # nothing that could be looked at is left
        return ()


def options_of(vendor: type[Vendor], tree: object, path: str = "$") -> object:
    """Read a vendor's block as its own class.

    Raises:
        ConfigError: As *parse_policy*.
    """
    try:
        return from_tree(vendor.options, tree, path)
    except SystemExit as error:  # a plugin's validator may raise anything
        raise ConfigError([(path, in_words(error))]) from error


def policy_problems(
    policy: Policy,
    *,
    vendors: Mapping[str, type[Vendor]] | None = None,
    backends: Mapping[str, BackendFactory] | None = None,
) -> tuple[tuple[str, str], ...]:
    """Everything that is wrong with *policy*, as (path, text), in the order of the file's keys.

    Args:
        policy: As it was read.
        vendors: Those that are installed: their names, options and attributes are looked at, too.
        backends: Those that are installed: their names, and what they themselves refuse.
    """
    found: list[tuple[str, str]] = [
        *_header(policy),
        *_paths(policy.paths, policy.backends.kubelet.directory),
        *_vendors(policy, vendors),
        *_durations(policy),
        *_selections(policy, _known_attributes(vendors)),
        *layout_problems(policy),
        *repeated("$.offers", [o.name for o in policy.offers]),
        *offer_problems(policy.offers, backends),
        *_health(policy),
        *_drivers(policy, vendors),
        *_kube(policy),
        *_listen(policy),
        *_events(policy),
        *not_yet(policy),
    ]
    for name, factory in (backends or {}).items():
        if any(offer.through == name for offer in policy.offers):
            found.extend(_refused(factory, policy))
    return _in_order(found)


def _in_order(found: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    order = {key_of(name): n for n, name in enumerate(Policy.__annotations__)}

    def place(problem: tuple[str, str]) -> int:
        key = re.match(r"\$\.(\w+)", problem[0])
        return order.get(key[1], -1) if key else -1

    return tuple(sorted(dict.fromkeys(found), key=place))


def check_policy(
    policy: Policy,
    *,
    vendors: Mapping[str, type[Vendor]] | None = None,
    backends: Mapping[str, BackendFactory] | None = None,
) -> None:
    """Refuse a policy with problems.

    Raises:
        ConfigError: All that *policy_problems* found.
    """
    if problems := policy_problems(policy, vendors=vendors, backends=backends):
        raise ConfigError(problems)


def _refused(factory: BackendFactory, policy: Policy) -> tuple[tuple[str, str], ...]:
    try:
        return factory.check(policy)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        text = f"backend {factory.name!r} cannot judge it: {type(error).__name__}: {error}"
        return (("$.offers", text),)


def _header(policy: Policy) -> Found:
    if policy.api_version != API_VERSION:
        yield "$.apiVersion", f"expected {API_VERSION}, found {policy.api_version!r}"
    if policy.kind != KIND:
        yield "$.kind", f"expected {KIND}, found {policy.kind!r}"


def _paths(paths: Paths, kubelet_directory: str) -> Found:
    given = {
        "$.paths.host": paths.host,
        "$.paths.kubelet": paths.kubelet,
        "$.paths.podResources": paths.pod_resources or "/",
        "$.paths.cdi": paths.cdi,
        "$.paths.run": paths.run,
        "$.backends.kubelet.directory": kubelet_directory or "/",
    }
    for path, text in given.items():
        if not is_host_path(text):
            yield path, f"expected an absolute path without '..', found {text!r}"
    if is_host_path(paths.run) and not paths.run.strip("/."):
        yield "$.paths.run", "must be a folder of the agent's own"
    directories = {
        "$.paths.kubelet": paths.plugins_registry,
        "$.paths.run": paths.run,
        "$.backends.kubelet.directory": kubelet_directory,
    }
    for path, text in directories.items():
        if socket_room(text) < _SOCKET_NAME:
            yield path, f"{text!r} is so long that no socket fits in it"


def _vendors(policy: Policy, installed: Mapping[str, type[Vendor]] | None) -> Found:
    yield from repeated("$.vendors", [v.name for v in policy.vendors])
    for n, block in enumerate(policy.vendors):
        path = child("$.vendors", n)
        if not 0 < block.deadline_scale <= SCALE_LIMIT:
            yield f"{path}.deadlineScale", f"expected more than 0, at most {SCALE_LIMIT:g}"
        if installed is None:
            continue
        vendor = installed.get(block.name)
        if vendor is None:
            yield f"{path}.name", _not_installed(block.name, installed)
            continue
        try:
            options_of(vendor, block.options, f"{path}.options")
        except ConfigError as error:
            yield from error.problems


def _not_installed(name: str, installed: Iterable[str]) -> str:
    hint = did_you_mean(name, installed) or f"; there are {listed(installed)}"
    return f"no vendor {name!r} is installed{hint}"


def _drivers(policy: Policy, installed: Mapping[str, type[Vendor]] | None) -> Found:
    for name in policy.backends.dra.drivers:
        if installed is not None and name not in installed:
            yield child("$.backends.dra.drivers", name), _not_installed(name, installed)


def _durations(policy: Policy) -> Found:
    read, health = policy.read, policy.health
    positive = {
        "$.read.inventory": read.inventory,
        "$.read.health": read.health,
        "$.read.holdings": read.holdings,
        "$.read.telemetry": read.telemetry,
        "$.read.reconcile": read.reconcile,
        "$.health.flap.within": health.flap.within,
        "$.health.flap.hold": health.flap.hold,
        "$.kube.timeout": policy.kube.timeout,
        "$.release.giveUpAfter": policy.release.give_up_after,
    }
    for path, seconds in positive.items():
        if seconds <= 0:
            yield path, "must be longer than 0s"
        elif path.startswith("$.read.") and seconds < SHORTEST:
            yield path, f"must be at least {format_duration(SHORTEST)}"
    if health.flap.changes < 1:
        yield "$.health.flap.changes", "must be at least 1"
    yield from _too_long(policy, "$")


def _too_long(value: object, path: str) -> Found:
    for field in attrs.fields(type(value)):  # type: ignore[arg-type]  # an attrs class
        part, place = getattr(value, field.name), child(path, key_of(field.name))
        if field.type is Seconds and part > LONGEST:
            yield place, f"must be at most {format_duration(LONGEST)}"
        elif attrs.has(type(part)):
            yield from _too_long(part, place)


def _known_attributes(vendors: Mapping[str, type[Vendor]] | None) -> Collection[str] | None:
    if vendors is None:
        return None
    return {name for vendor in vendors.values() for name in vendor.attributes}


def _selections(policy: Policy, known: Collection[str] | None) -> Found:
    yield from _selection(policy.only, "$.only", known)
    for n, expect in enumerate(policy.expect):
        path = child("$.expect", n)
        yield from _selection(expect.select, f"{path}.select", known)
        if expect.count < 1:
            yield f"{path}.count", "must be at least 1"
    for n, part in enumerate(policy.partitioning):
        yield from _selection(part.select, f"{child('$.partitioning', n)}.select", known)
    for n, offer in enumerate(policy.offers):
        yield from _selection(offer.select, f"{child('$.offers', n)}.select", known)


def _selection(selection: Selection, path: str, known: Collection[str] | None) -> Found:
    for name in selection.attributes:
        place = child(f"{path}.attributes", name)
        if name in PUBLISHED or not is_attribute_id(name):
            hint = f"; select by the key {name!r} itself" if hasattr(selection, name) else ""
            yield place, f"no attribute can have this name{hint}"
        elif known is not None and name not in known:
            yield place, f"no installed vendor has this attribute{did_you_mean(name, known)}"
    memory = selection.memory
    if memory and memory.at_least and memory.at_most and memory.at_least > memory.at_most:
        yield f"{path}.memory", "atLeast is more than atMost: nothing can match"
    for key, parts in (("any", selection.any), ("all", selection.all)):
        for n, part in enumerate(parts):
            yield from _selection(part, child(f"{path}.{key}", n), known)
    if selection.not_ is not None:
        yield from _selection(selection.not_, f"{path}.not", known)


def _health(policy: Policy) -> Found:
    overrides = policy.health.overrides
    yield from repeated("$.health.overrides", [f"{o.vendor} {o.code}" for o in overrides])
    for n, override in enumerate(overrides):
        path = child("$.health.overrides", n)
        if not is_dns_label(override.vendor):
            yield f"{path}.vendor", f"expected a vendor's name, found {override.vendor!r}"
        if not is_dns_label(override.code):
            yield f"{path}.code", f"expected a condition's code, found {override.code!r}"
    for n, code in enumerate(policy.health.evict):
        if not is_dns_label(code):
            yield child("$.health.evict", n), f"expected a condition's code, found {code!r}"


def _kube(policy: Policy) -> Found:
    text = policy.kube.config
    if text not in _KUBE_CONFIGS and not is_host_path(text):
        words = f"{', '.join(_KUBE_CONFIGS)} or the absolute path of a file"
        hint = did_you_mean(text, _KUBE_CONFIGS)
        yield "$.kube.config", f"expected {words}, found {text!r}{hint}"


def _listen(policy: Policy) -> Found:
    text = policy.http.listen
    found = _LISTEN.fullmatch(text)
    if text and not (found and int(found["port"]) <= PORT_LIMIT):
        yield "$.http.listen", f"expected host:port, :port or nothing, found {text!r}"


def _events(policy: Policy) -> Found:
    if policy.events.per_minute < 1:
        yield "$.events.perMinute", "must be at least 1; enabled: never sends none"

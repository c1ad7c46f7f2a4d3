"""What a plugin's classes must be before anyone builds one. Not here: what their objects answer."""

import re
from collections.abc import Iterator, Mapping

import attrs

from accelkit.core.attributes import declaration_problems
from accelkit.core.backend import BackendFactory
from accelkit.core.errors import ApiTooNew, ApiTooOld, PluginContractError
from accelkit.core.limits import is_dns_subdomain, resource_name_problem
from accelkit.core.model import VENDOR_NAME_LIMIT
from accelkit.core.shape import misfit
from accelkit.core.values import is_dns_label
from accelkit.core.vendor import ABILITIES, API, Access, PciMatch, Signals, Vendor

_WORD = 0xFFFF
OLDEST_API = max(1, API - 1)
_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def check_vendor(kind: object) -> type[Vendor]:
    """*kind*, if it is a vendor class that can be used.

    Raises:
        ApiTooOld: Written for a plugin API that is no longer served.
        ApiTooNew: Written for one that is not known yet.
        PluginContractError: All else that is wrong with it.
    """
    if not (isinstance(kind, type) and issubclass(kind, Vendor)):
        raise PluginContractError(
            f"accelkit_vendors answered {kind!r}, which is not a subclass of Vendor",
            remedy="return classes, not objects",
        )
    _check_api(kind)
    if faults := tuple(_vendor_faults(kind)):
        raise PluginContractError(f"{kind.__qualname__}: {'; '.join(faults)}")
    return kind


def check_factory(factory: object) -> BackendFactory:
    """*factory*, if it is one.

    Raises:
        PluginContractError: It is something else, or its name is no DNS label.
    """
    if not isinstance(factory, BackendFactory):
        raise PluginContractError(
            f"accelkit_backends answered {factory!r}, which is not a BackendFactory"
        )
    if not _is_label(factory.name, VENDOR_NAME_LIMIT):
        raise PluginContractError(
            f"backend {factory.name!r}: the name must be a DNS label of at most "
            f"{VENDOR_NAME_LIMIT} characters"
        )
    return factory


def _check_api(kind: type[Vendor]) -> None:
    api: object = kind.api
    if not isinstance(api, int) or isinstance(api, bool):
        raise PluginContractError(f"{kind.__qualname__}: api must be a number, found {api!r}")
    if api > API:
        raise ApiTooNew(
            f"{kind.__qualname__} is written for plugin API {api}, this accelkit serves {API}",
            remedy="upgrade accelkit",
        )
    if api < OLDEST_API:
        raise ApiTooOld(
            f"{kind.__qualname__} is written for plugin API {api}, "
            f"the oldest that this accelkit serves is {OLDEST_API}",
            remedy="upgrade the plugin",
        )


def _vendor_faults(kind: type[Vendor]) -> Iterator[str]:
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        yield f"{', '.join(missing)} must be written"
    yield from _unasked(kind)
    if "<locals>" in kind.__qualname__:
        yield "another process cannot find a class inside a function"
    yield from _name_faults(getattr(kind, "name", None), getattr(kind, "domain", None))
    declared: object = kind.attributes
    if isinstance(declared, Mapping):
        yield from declaration_problems(declared)
    else:
        yield f"attributes must be a mapping of names to types, found {declared!r}"
    yield from _field_faults(kind)


def _unasked(kind: type[Vendor]) -> Iterator[str]:
    """Methods of an ability that nobody would ask, for the class does not declare it."""
    for ability in ABILITIES.values():
        methods = sorted(getattr(ability, "__abstractmethods__", ()))
        if not issubclass(kind, ability) and all(hasattr(kind, method) for method in methods):
            name = ability.__name__
            yield f"nobody asks {', '.join(methods)}: inherit from {name}, or take other names"


def _name_faults(name: object, domain: object) -> Iterator[str]:
    if not _is_label(name, VENDOR_NAME_LIMIT):
        yield (
            f"name must be a DNS label of at most {VENDOR_NAME_LIMIT} characters, found {name!r}"
        )
    if not (isinstance(domain, str) and is_dns_subdomain(domain) and domain[0].isalpha()):
        yield f"domain must be a DNS subdomain that begins with a letter, found {domain!r}"
    elif problem := resource_name_problem(f"{domain}/device"):
        yield f"domain {domain!r} cannot be a resource prefix: {problem}"


def _field_faults(kind: type[Vendor]) -> Iterator[str]:
    yield from _declared_faults(kind)
    platforms: object = kind.platforms
    if not isinstance(platforms, tuple) or not all(isinstance(p, str) for p in platforms):
        yield f"platforms must be a tuple of paths, found {platforms!r}"
    parallel: object = kind.parallel
    if type(parallel) is not int or parallel < 1:
        yield f"parallel must be at least 1, found {parallel!r}"
    machine: object = kind.machine
    if machine is not None and not (isinstance(machine, str) and _CLASS.fullmatch(machine)):
        yield f"machine must be 'module:Class' or None, found {machine!r}"
    for field in ("options", "claim_config"):
        block: object = getattr(kind, field)
        if not (isinstance(block, type) and attrs.has(block)):
            yield f"{field} must be an attrs class, found {block!r}"
        elif required := [f.name for f in attrs.fields(block) if f.default is attrs.NOTHING]:
            yield f"{field} must have a default for {', '.join(required)}"


def _declared_faults(kind: type[Vendor]) -> Iterator[str]:
    """What is wrong with the fields that are values of accelkit, or flags."""
    hardware: object = kind.hardware
    if fault := misfit(tuple[PciMatch, ...], hardware):
        yield f"hardware must be a tuple of PciMatch, found {hardware!r}: {fault}"
    elif odd := [n for m in kind.hardware for n in _numbers(m) if not 0 <= n <= _WORD]:
        yield f"hardware: PCI has no number {odd[0]:#x}"
    for name in ("native", "sets"):
        flag: object = getattr(kind, name)
        if not isinstance(flag, bool):
            yield f"{name} must be True or False, found {flag!r}"
    access: object = kind.access
    if fault := misfit(Access, access):
        yield f"access: {fault}"
    signals: object = kind.signals
    # Where options decide it is a property, of which only an object can tell more.
    if hasattr(signals, "__get__"):
        return
    if fault := misfit(Signals, signals):
        yield f"signals: {fault}"
    else:
        faults = filter(None, map(_pattern_fault, kind.signals.kernel_log))
        yield from (f"signals: {fault}" for fault in faults)


def _pattern_fault(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"{pattern!r} is no pattern: {error}"
    return ""


def _numbers(match: PciMatch) -> tuple[int, ...]:
    return (match.vendor, *match.devices, *match.classes)


def _is_label(name: object, limit: int) -> bool:
    return isinstance(name, str) and is_dns_label(name, limit)

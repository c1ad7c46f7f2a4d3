"""Finding plugins and loading them one by one: one plugin's fault is one plugin's problem."""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, redirect_stdout
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, TypeVar

import attrs
import pluggy

from accelkit.core import hooks
from accelkit.core.backend import BackendFactory
from accelkit.core.breadcrumbs import breadcrumb, forget, left_behind
from accelkit.core.contract import check_factory, check_vendor
from accelkit.core.errors import PluginContractError, PluginError, PluginLoadError
from accelkit.core.foreign import code_of, remedy_of, text_of, with_way
from accelkit.core.host import Host
from accelkit.core.pci import pci_functions
from accelkit.core.trial import Trial, begin
from accelkit.core.values import FrozenMap, freeze
from accelkit.core.vendor import Vendor


class Named(Protocol):
    """A vendor class or a backend factory."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)

MOST_ENDS = 2
"""A plugin that ended so many processes one after the other is not loaded again."""
_ONE_NAME = "give one of them another name, or uninstall it"
_ENDED: dict[EntryPoint, str] = {}
"""How others' plugins ended the process in which they were tried; empty: they did not."""


@attrs.frozen(kw_only=True, field_transformer=freeze)
class LoadFailure:
    """A plugin, or one class of it, that is not used."""

    plugin: str
    """Name of its entry point."""
    code: str
    """That of the error."""
    reason: str
    remedy: str = ""
    traceback: str = attrs.field(default="", eq=False)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Plugin:
    """Where vendors and backends come from."""

    name: str
    """Of the entry point."""
    module: str
    version: str = ""
    """Of the distribution; empty where there is none."""
    vendors: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Registry:
    """What is installed and can be used, by name."""

    vendors: FrozenMap[str, type[Vendor]] = FrozenMap()
    backends: FrozenMap[str, BackendFactory] = FrozenMap()
    failures: tuple[LoadFailure, ...] = ()
    """In the order of plugins."""
    plugins: FrozenMap[str, Plugin] = FrozenMap()
    """Those that loaded."""

    def lack(self, vendor: str) -> str:
        """Why there is no *vendor*, as far as the failure of a plugin of that name tells."""
        reasons = [failure.reason for failure in self.failures if failure.plugin == vendor]
        return f"is not used: {'; '.join(reasons)}" if reasons else "is not installed"


def load_plugins(
    run_dir: str | None = None,
    points: Iterable[EntryPoint] | None = None,
    told: Callable[[str], None] | None = None,
) -> Registry:
    """Load every installed plugin, in the order of their names.

    What they print meanwhile goes to standard error: it is no answer of ours.

    Args:
        run_dir: Where breadcrumbs are kept, so that a plugin whose loading ended the process twice
            in a row is skipped, until it has another version or the node was booted. Once may be
            chance: whoever is killed is loading something. None: nowhere, and plugins of others are
            loaded in a process of their own first, as long as this one has a single thread.
        points: Instead of the installed entry points.
        told: Hears the name and version of each plugin before it is loaded, and nothing after it.

    Raises:
        ConfigError: *run_dir* cannot be written.
    """
    found = entry_points(group=hooks.GROUP) if points is None else points
    ordered = sorted(found, key=lambda p: (p.name, p.value))
    loading = _Loading()
    run = None if run_dir is None else Path(run_dir)
    ended = {} if run is None else left_behind(run)
    with nullcontext(_no_note) if run is None else breadcrumb(run) as note:
        for point in ordered:
            label = f"{point.name} {_version(point)}".strip()
            crumbs = ended.get(label, ())
            if len(crumbs) >= MOST_ENDS:
                loading.fail(point.name, _ended(crumbs[0]))
                continue
            trial = _trial(point) if run is None else None
            for hears in (note, told or _no_note):
                hears(label)
            if trial is not None:
                _ENDED[point] = trial.ended()
            if how := _ENDED.get(point) if run is None else "":
                loading.fail(point.name, _ends(point, how))
            else:
                loading.load(point)
            for hears in (note, told or _no_note):
                hears("")
            for other, path in ended.items():
                if other.partition(" ")[0] == point.name:
                    forget(path)
    return loading.registry()


def hardware_present(vendor: type[Vendor], host: Host) -> bool:
    """Whether *vendor* has to be asked: its hardware is there, or it names none."""
    if not vendor.hardware or any(map(host.exists, vendor.platforms)):
        return True
    return bool(pci_functions(host, vendor.hardware))


def _no_note(_text: str) -> None:
    pass


def _version(point: EntryPoint) -> str:
    return "" if point.dist is None else point.dist.version


def _trial(point: EntryPoint) -> Trial | None:
    """The loading of *point* in a process of its own; None: it is ours, or was tried already."""
    ours = point.dist is not None and point.dist.name == "accelkit"
    return None if ours or point in _ENDED else begin(partial(_Loading().load, point))


def _ends(point: EntryPoint, how: str) -> PluginLoadError:
    package = point.dist.name if point.dist is not None else point.module
    return PluginLoadError(
        f"loading it ends the process, {how}, so it is skipped",
        remedy=f"mend or uninstall {package}; to see it: python -c '{_statement(point)}'",
    )


def _way_out(point: EntryPoint, error: BaseException) -> str:
    """What to do about a plugin that raises *error* while it is loaded."""
    if isinstance(error, pluggy.PluginValidationError):
        return "the hooks are accelkit_vendors() and accelkit_backends()"
    return f"mend or upgrade the plugin; to see it: python -c '{_statement(point)}'"


def _statement(point: EntryPoint) -> str:
    return f"from {point.module} import {point.attr}" if point.attr else f"import {point.module}"


def _ended(path: Path) -> PluginLoadError:
    return PluginLoadError(
        f"loading it ended the process {MOST_ENDS} times, so it is skipped",
        remedy=f"upgrade the plugin, or remove {path} to try it again",
    )


_HOOKS = ("accelkit_vendors", "accelkit_backends")


class _Loading:
    """What has been loaded so far."""

    def __init__(self) -> None:
        self.vendors: dict[str, type[Vendor]] = {}
        self.backends: dict[str, BackendFactory] = {}
        self.failures: list[LoadFailure] = []
        self.plugins: dict[str, Plugin] = {}

    def registry(self) -> Registry:
        return Registry(
            vendors=FrozenMap(self.vendors),
            backends=FrozenMap(self.backends),
            failures=tuple(self.failures),
            plugins=FrozenMap(self.plugins),
        )

    def load(self, point: EntryPoint) -> None:
        if other := self.plugins.get(point.name):
            reason = f"{other.module} has this name already"
            self.fail(point.name, PluginLoadError(reason, remedy=_ONE_NAME))
            return
        try:
            with redirect_stdout(sys.stderr):
                manager = _registered(point)
                told = {hook: getattr(manager.hook, hook)() for hook in _HOOKS}
                vendors, backends = ([*_answers(hook, told[hook])] for hook in _HOOKS)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
            self.fail(point.name, error, _way_out(point, error))
            return
        # pluggy leaves out what answers None, as a hook does that forgets to return.
        if not any(told.values()):
            reason = f"no hook of {point.value} answers anything"
            self.fail(point.name, PluginContractError(reason, remedy="return [...]"))
            return
        self.plugins[point.name] = Plugin(
            name=point.name,
            module=point.value,
            version=_version(point),
            vendors=self._keep(point.name, vendors, check_vendor, self.vendors),
            backends=self._keep(point.name, backends, check_factory, self.backends),
        )

    def _keep(
        self,
        plugin: str,
        answers: list[object],
        check: Callable[[object], T],
        kept: dict[str, T],
    ) -> tuple[str, ...]:
        """Keep what is fit for use, under its name; the first of a name has it."""
        names = []
        for answer in answers:
            try:
                good = check(answer)
            except Exception as error:  # noqa: BLE001 - a class may answer anything, too
                self.fail(plugin, error)
                continue
            if good.name in kept:
                has = next(
                    (p.name for p in self.plugins.values() if good.name in p.vendors + p.backends),
                    plugin,
                )
                reason = f"{good.name!r} is of the plugin {has} already"
                self.fail(plugin, PluginContractError(reason, remedy=_ONE_NAME))
            else:
                kept[good.name] = good
                names.append(good.name)
        return tuple(names)

    def fail(self, plugin: str, error: BaseException, remedy: str = "") -> None:
        known = isinstance(error, PluginError)
        self.failures.append(
            LoadFailure(
                plugin=plugin,
                code=code_of(error) if known else PluginLoadError.code,
                reason=text_of(error) if known else with_way(error),
                remedy=remedy_of(error) if known else remedy,
                traceback="" if known else "".join(traceback.format_exception(error)),
            )
        )


def _registered(point: EntryPoint) -> pluggy.PluginManager:
    """A manager of its own for each plugin: what one does wrong, no other notices."""
    manager = pluggy.PluginManager(hooks.GROUP)
    manager.add_hookspecs(hooks)
    module = point.load()
    manager.register(module, name=point.name)
    manager.check_pending()
    if not manager.get_hookcallers(module):
        raise PluginContractError(
            f"{point.value} has no hook",
            remedy="mark accelkit_vendors or accelkit_backends with accelkit.hookimpl",
        )
    return manager


def _answers(hook: str, answers: Iterable[object]) -> Iterator[object]:
    for answer in answers:
        if not isinstance(answer, (list, tuple)):
            raise PluginContractError(
                f"{hook} must answer a list, found {answer!r}", remedy="return [...]"
            )
        yield from answer

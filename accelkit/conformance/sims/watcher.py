"""A simulated kubelet's plugin watcher: it comes to the sockets in plugins_registry."""

import asyncio
import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import registration as reg
from accelkit.backends.wire.serve import dial
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.sims.events import Journal, Notified, Refused
from accelkit.conformance.sims.plugins import API_VERSION, Plugins, invalid_name, is_extended, said
from accelkit.conformance.sims.tasks import cancel
from accelkit.conformance.sims.timing import Timing

_Identity = tuple[int, int]
_PREFIX = "RegisterPlugin error -- "


class Handler(Protocol):
    """What is done about plugins of one type."""

    def check(self, path: Path, info: reg.PluginInfo, /) -> str:
        """What is wrong with what the plugin at *path* says of itself; empty: nothing."""
        ...

    async def connect(self, info: reg.PluginInfo, endpoint: Path) -> None:
        """Let the plugin serve.

        Raises:
            StatusError: As a kubelet refuses.
        """
        ...

    async def disconnect(self, name: str, endpoint: str) -> None:
        """Take that back."""
        ...


class DevicePlugins:
    """Plugins of type DevicePlugin.

    Args:
        plugins: What connects.
    """

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins

    def check(self, _path: Path, info: reg.PluginInfo) -> str:
        text = ""
        if API_VERSION not in info.supported_versions:
            listed = " ".join(info.supported_versions)
            text = (
                f"manager version, {API_VERSION}, is not among plugin supported versions [{listed}]"
            )
        elif not is_extended(info.name):
            text = f"invalid name of device plugin socket: {invalid_name(info.name)}"
        return f"plugin validation failed with err: {text}" if text else ""

    async def connect(self, info: reg.PluginInfo, endpoint: Path) -> None:
        await self._plugins.connect(info.name, endpoint, by="watcher")

    async def disconnect(self, name: str, endpoint: str) -> None:
        await self._plugins.disconnect(name, endpoint)


class Watcher:
    """Looks for sockets, registers those that are new, and lets go of those that are gone.

    A stream that ends is not looked at: only a new socket file makes it dial again.

    Args:
        directory: plugins_registry.
        handlers: What is done about plugins, by their type.
        journal: Gets the events.
        timing: How long things take.
        undoes: Whether a registration that failed after GetInfo was found valid, or that the
            plugin took no notice of, is undone and tried again. Source:
            pkg/kubelet/pluginmanager/operationexecutor of 1.37.2; older ones leave it as it is.
    """

    def __init__(
        self,
        directory: Path,
        handlers: Mapping[str, Handler],
        journal: Journal,
        timing: Timing,
        *,
        undoes: bool,
    ) -> None:
        self._directory = directory
        self._handlers = handlers
        self._journal = journal
        self._timing = timing
        self._undoes = undoes
        self._seen: dict[Path, _Identity] = {}
        self._connected: dict[Path, tuple[Handler, str, str]] = {}
        self._tasks: dict[Path, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Look again and again until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(self._timing.watch_s)
        finally:
            await cancel(*self._tasks.values())

    async def look(self) -> None:
        """Compare the sockets that are there with those that were."""
        there = sockets(self._directory)
        for path in [path for path, seen in self._seen.items() if there.get(path) != seen]:
            await self._lost(path)
        for path in there.keys() - self._seen.keys():
            self._tasks[path] = asyncio.create_task(self._register(path))
        self._seen = there

    async def _lost(self, path: Path) -> None:
        del self._seen[path]
        await cancel(self._tasks.pop(path))
        await self._disconnect(path)

    async def _register(self, path: Path) -> None:
        delay_s = self._timing.retry_s
        while not await self._attempt(path):
            await asyncio.sleep(delay_s)
            delay_s *= 2

    async def _attempt(self, path: Path) -> bool:
        """Register once; return whether that is the end of it."""
        async with dial(path) as channel:
            try:
                async with asyncio.timeout(self._timing.dial_s):
                    await channel.channel_ready()
                info = await services.call(
                    channel, services.GET_INFO, reg.InfoRequest(), timeout_s=self._timing.info_s
                )
            except TimeoutError:
                self._refused("", path, "dial failed")
                return False
            except grpc.aio.AioRpcError as error:
                text = f"failed to get plugin info using RPC GetInfo: {said(error)}"
                self._refused("", path, text)
                return False
            problem = self._invalid(path, info)
            valid = not problem
            if valid:
                problem = await self._connect(path, info)
            if problem:
                self._refused(info.name, path, problem)
            told = await self._notify(channel, path, problem)
        if told and not problem:
            return True
        if self._undoes:
            await self._disconnect(path)
        return valid and not self._undoes

    def _invalid(self, path: Path, info: reg.PluginInfo) -> str:
        handler = self._handlers.get(info.type)
        if handler is None:
            return f"no handler registered for plugin type: {info.type} at socket {path}"
        return handler.check(path, info)

    async def _connect(self, path: Path, info: reg.PluginInfo) -> str:
        """Connect as GetInfo says; return what was wrong, or nothing."""
        handler, endpoint = self._handlers[info.type], info.endpoint or str(path)
        try:
            await handler.connect(info, Path(endpoint))
        except StatusError as error:
            return f"plugin registration failed with err: {error.text}"
        self._connected[path] = (handler, info.name, endpoint)
        return ""

    async def _disconnect(self, path: Path) -> None:
        """Take the registration of *path* back, if there is one."""
        if connected := self._connected.pop(path, None):
            handler, name, endpoint = connected
            await handler.disconnect(name, endpoint)

    async def _notify(self, channel: grpc.aio.Channel, path: Path, problem: str) -> bool:
        text = f"{_PREFIX}{problem}" if problem else ""
        status = reg.RegistrationStatus(plugin_registered=not problem, error=text)
        try:
            await services.call(channel, services.NOTIFY, status, timeout_s=self._timing.notify_s)
        except grpc.aio.AioRpcError as error:
            self._refused("", path, f"failed to send registration status: {said(error)}")
            return False
        self._journal.note(Notified(str(path), not problem, text))
        return True

    def _refused(self, resource: str, path: Path, text: str) -> None:
        self._journal.note(Refused(resource, str(path), f"{_PREFIX}{text}"))


def sockets(directory: Path) -> dict[Path, _Identity]:
    """Find the sockets below *directory*, hidden ones left out, each with what tells it apart."""
    found = {}
    for folder, _, names in os.walk(directory):
        for path in (Path(folder) / name for name in names if not name.startswith(".")):
            with contextlib.suppress(FileNotFoundError):
                status = path.lstat()
                if stat.S_ISSOCK(status.st_mode):
                    found[path] = status.st_ino, status.st_ctime_ns
    return found

"""A simulated kubelet's plugin watcher: it comes to the sockets in plugins_registry."""

import asyncio
import contextlib
import os
import stat
from pathlib import Path

import grpc.aio

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import registration as reg
from accelkit.backends.wire.serve import dial
from accelkit.backends.wire.status import StatusError
from accelkit.conformance.sims.events import Journal, Notified, Refused
from accelkit.conformance.sims.plugins import API_VERSION, Plugins, is_extended, said
from accelkit.conformance.sims.tasks import cancel
from accelkit.conformance.sims.timing import Timing

_Identity = tuple[int, int]


class Watcher:
    """Looks for sockets, registers those that are new, and lets go of those that are gone.

    A stream that ends is not looked at: only a new socket file makes it dial again.
    """

    def __init__(self, directory: Path, plugins: Plugins, journal: Journal, timing: Timing) -> None:
        self._directory = directory
        self._plugins = plugins
        self._journal = journal
        self._timing = timing
        self._seen: dict[Path, _Identity] = {}
        self._connected: dict[Path, tuple[str, str]] = {}
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
        if connected := self._connected.pop(path, None):
            await self._plugins.disconnect(*connected)

    async def _register(self, path: Path) -> None:
        delay_s = self._timing.retry_s
        while not await self._attempt(path):
            await asyncio.sleep(delay_s)
            delay_s *= 2

    async def _attempt(self, path: Path) -> bool:
        async with dial(path) as channel:
            try:
                await asyncio.wait_for(channel.channel_ready(), self._timing.dial_s)
                info = await services.call(
                    channel, services.GET_INFO, reg.InfoRequest(), timeout_s=self._timing.info_s
                )
            except TimeoutError:
                self._journal.note(Refused("", str(path), "failed to dial socket"))
                return False
            except grpc.aio.AioRpcError as error:
                text = f"failed to get plugin info: {said(error)}"
                self._journal.note(Refused("", str(path), text))
                return False
            problem = await self._connect(path, info)
            await self._notify(channel, path, problem)
        return not problem

    async def _connect(self, path: Path, info: reg.PluginInfo) -> str:
        """Connect as GetInfo says; return what was wrong, or nothing."""
        endpoint = info.endpoint or str(path)
        problem = _invalid(path, info)
        if not problem:
            try:
                await self._plugins.connect(info.name, Path(endpoint), by="watcher")
            except StatusError as error:
                problem = f"RegisterPlugin error -- {error.text}"
        if problem:
            self._journal.note(Refused(info.name, endpoint, problem))
        else:
            self._connected[path] = (info.name, endpoint)
        return problem

    async def _notify(self, channel: grpc.aio.Channel, path: Path, problem: str) -> None:
        status = reg.RegistrationStatus(plugin_registered=not problem, error=problem)
        try:
            await services.call(channel, services.NOTIFY, status, timeout_s=self._timing.notify_s)
        except grpc.aio.AioRpcError as error:
            self._journal.note(Refused("", str(path), f"failed to notify: {said(error)}"))
        self._journal.note(Notified(str(path), not problem, problem))


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


def _invalid(path: Path, info: reg.PluginInfo) -> str:
    if info.type != "DevicePlugin":
        return f"no handler registered for plugin type: {info.type} at socket {path}"
    if API_VERSION not in info.supported_versions:
        listed = " ".join(info.supported_versions)
        return f"manager version, {API_VERSION}, is not among plugin supported versions [{listed}]"
    if not is_extended(info.name):
        return f"invalid name of device plugin socket: {info.name}"
    return ""

"""Events that NVML delivers once. Not here: what is made of them."""

import ctypes
import threading
from collections.abc import Iterator
from functools import partial

from accelkit import Event, FrozenMap, SourceError
from accelkit.vendors.nvidia import facts, xid
from accelkit.vendors.nvidia.mig import mig_device_of
from accelkit.vendors.nvidia.nvml import Answer, Handle, Nvml, NvmlError, Rubbish
from accelkit.vendors.nvidia.patience import Patience
from accelkit.vendors.nvidia.reading import count_gpus, number, read_uuid

_WANTED = xid.XID_EVENT | sum(xid.EVENTS)
_NO_INSTANCE = 0xFFFFFFFF  # nvml.h, nvmlEventData_t
_MOST_AT_ONCE = 64
_MOST_XID = 99_999
_REGISTER_S = 1.5
"""For all GPUs together, of the 2 s that a call may take longer than it waits."""


class Ear:
    """Listens to all GPUs of a host; belongs to one thread."""

    def __init__(self) -> None:
        self._events: Handle | None = None
        self._heard_of: tuple[Nvml, int, int] | None = None
        """Session, its generation and the number of GPUs when they were registered."""
        self._uuids: dict[int, str] = {}
        """By where the handle of a GPU points: one that is lost does not tell it any more."""
        self._registering = Patience(_REGISTER_S)
        self._idle = threading.Event()

    def listen(self, nvml: Nvml, timeout_s: float) -> Iterator[Event]:
        """What came within *timeout_s*.

        Raises:
            SourceError: Waiting failed; the next call registers again.
        """
        try:
            if not self._registered(nvml):
                self._idle.wait(timeout_s)  # no GPU that tells anything
                self._idle.clear()
                return
            yield from self._wait(nvml, timeout_s)
        except SourceError:
            self._forget(nvml)
            raise

    def close(self) -> None:
        """End a wait that has nothing to wait for."""
        self._idle.set()

    def _registered(self, nvml: Nvml) -> bool:
        gpus = count_gpus(nvml)  # opens the session, if it must
        present = (nvml, nvml.generation, gpus)
        if self._heard_of != present:
            self._forget(nvml)
            self._register(nvml, gpus)
            self._heard_of = present
        return self._events is not None

    def _register(self, nvml: Nvml, gpus: int) -> None:
        events = nvml.maybe("nvmlEventSetCreate")
        if events is None:
            return  # a platform without events: nobody will be heard, and nothing is wrong
        uuids = self._uuids = {}  # one that is late adds its own
        jobs = {i: partial(_register_one, nvml, i, events, uuids) for i in range(gpus)}
        heard = True in self._registering.gather(jobs).values()
        if heard or self._registering.is_stuck:
            self._events = events
        else:
            nvml.maybe("nvmlEventSetFree", events)

    def _forget(self, nvml: Nvml) -> None:
        events, self._events, known = self._events, None, self._heard_of
        self._heard_of = None
        if events is None or known is None or known[:2] != (nvml, nvml.generation):
            return  # it went with its session
        if self._registering.is_stuck:
            return  # a GPU may still be added to it
        try:
            nvml.ask("nvmlEventSetFree", events)
        except SourceError:  # the session that it was made in is gone
            return

    def _wait(self, nvml: Nvml, timeout_s: float) -> Iterator[Event]:
        wait_ms = int(timeout_s * 1000)
        for _ in range(_MOST_AT_ONCE):
            try:
                data = nvml.ask("nvmlEventSetWait", self._events, wait_ms)
            except NvmlError as error:
                if error.value == facts.TIMEOUT:
                    return
                raise
            yield self._event(nvml, data)
            wait_ms = 0  # take what else is there, then answer

    def _event(self, nvml: Nvml, data: Answer) -> Event:
        if data.eventType == xid.XID_EVENT:
            code = xid.code_of(number(data.eventData, "an XID", _MOST_XID))
        elif data.eventType in xid.EVENTS:
            code = xid.EVENTS[data.eventType]
        else:
            raise Rubbish(f"an event has type {data.eventType}")
        gi, ci = data.gpuInstanceId, data.computeInstanceId
        told = {} if gi == _NO_INSTANCE else {"gpu-instance": str(gi), "compute-instance": str(ci)}
        return Event(
            subject=self._subject(nvml, data.device, gi, ci),
            code=code,
            source="nvml",
            data=FrozenMap(told),
        )

    def _subject(self, nvml: Nvml, handle: Handle, gi: int, ci: int) -> str | None:
        """The MIG device that had it, else the GPU, else nobody: then it is about all."""
        try:
            part = None if gi == _NO_INSTANCE else mig_device_of(nvml, handle, gi, ci)
        except SourceError:
            part = None
        return part or self._uuids.get(_place(handle)) or _uuid(nvml, handle)


def _register_one(nvml: Nvml, index: int, events: Handle, uuids: dict[int, str]) -> bool:
    """Whether the GPU at *index* will be heard; a sick one costs only itself."""
    try:
        handle = nvml.ask("nvmlDeviceGetHandleByIndex", index)
        kinds = nvml.maybe("nvmlDeviceGetSupportedEventTypes", handle) or 0
        if not kinds & _WANTED:
            return False
        nvml.ask("nvmlDeviceRegisterEvents", handle, kinds & _WANTED, events)
    except SourceError:
        return False
    if (uuid := _uuid(nvml, handle)) is not None:
        uuids[_place(handle)] = uuid
    return True


def _place(handle: Handle) -> int:
    """Where *handle* points: that of an event is the same as that which was registered."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _uuid(nvml: Nvml, handle: Handle) -> str | None:
    try:
        return read_uuid(nvml, handle)
    except SourceError:
        return None

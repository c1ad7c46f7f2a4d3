"""Calls side by side, each with an end to the waiting. Not here: what is called."""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from accelkit import Device, DeviceId, SourceError, SourceTimeout
from accelkit.vendors.nvidia.facts import KERNEL_LOG

LIMITS = "let the agent have more threads and memory: see the limits of its pod"
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Patience:
    """Runs one job a key in threads; one that does not end costs its own key only.

    A thread that is stuck in the driver cannot be ended, so its key gets no second one until it
    returns.
    """

    def __init__(self, seconds: float) -> None:
        """Wait at most *seconds* for all jobs of one call together."""
        self._seconds = seconds
        self._running: dict[Hashable, threading.Thread] = {}

    @property
    def is_stuck(self) -> bool:
        """Whether a job that was given up still runs."""
        return any(thread.is_alive() for thread in tuple(self._running.values()))

    def ask(self, key: Hashable, job: Callable[[], T]) -> T:
        """The answer of one job.

        Raises:
            SourceError: It raised that; SourceTimeout: it does not end.
        """
        answer = self.gather({key: job})[key]
        if isinstance(answer, SourceError):
            raise answer
        return answer

    def of_each(
        self, devices: Iterable[Device], ask: Callable[[Device], Iterable[T]]
    ) -> Iterator[T]:
        """What *ask* tells of *devices*; nothing of a GPU that does not answer, and its parts."""
        families: dict[DeviceId, list[Device]] = {}
        for device in devices:
            families.setdefault(device.root, []).append(device)

        def of_family(family: Iterable[Device]) -> list[T]:
            return [told for device in family for told in ask(device)]

        jobs = {root: partial(of_family, family) for root, family in families.items()}
        for answer in self.gather(jobs).values():
            if not isinstance(answer, SourceError):
                yield from answer

    def gather(self, jobs: Mapping[K, Callable[[], T]]) -> dict[K, T | SourceError]:
        """The answer or the error of every job.

        Args:
            jobs: By key; may raise SourceError.

        Raises:
            Exception: Whatever else a job raised: a bug.
        """
        answers: dict[K, T | Exception] = {}

        def run(key: K, job: Callable[[], T]) -> None:
            try:
                answers[key] = job()
            except Exception as error:  # noqa: BLE001 - handed to the caller below
                answers[key] = error

        waited: dict[K, threading.Thread] = {}
        for key, job in jobs.items():
            stuck = self._running.get(key)
            if stuck is None or not stuck.is_alive():
                thread = threading.Thread(target=run, args=(key, job), daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system gives no more threads now
                    answers[key] = SourceError(
                        "no thread can be started to ask the driver", vendor="nvidia", remedy=LIMITS
                    )
                else:
                    waited[key] = thread
        end = time.monotonic() + self._seconds
        for thread in waited.values():
            thread.join(max(0.0, end - time.monotonic()))
        self._running.update({k: t for k, t in waited.items() if t.is_alive()})
        return {key: _settled(answers.get(key)) for key in jobs}


def _settled(answer: T | Exception | None) -> T | SourceError:
    if answer is None:
        return SourceTimeout("the driver does not answer", vendor="nvidia", remedy=KERNEL_LOG)
    if isinstance(answer, Exception) and not isinstance(answer, SourceError):
        raise answer
    return answer

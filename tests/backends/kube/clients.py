"""Clients for tests. Not here: servers."""

from collections import Counter
from pathlib import Path

import attrs
import pytest

from accelkit.backends.kube import official  # noqa: F401 - loading it takes of the first call's time
from accelkit.backends.kube.asking import Count
from accelkit.backends.kube.choice import choose
from accelkit.backends.kube.objects import WATCH_S, Objects
from accelkit.core.policy import Kube, KubeClient
from accelkit.core.units import Seconds

BOTH = (KubeClient.LEAN, pytest.param(KubeClient.OFFICIAL, marks=pytest.mark.slow))
"""Agents use the lean one unless they are told otherwise."""
PATIENCE_S = 20.0
"""Timeout of calls that are expected to succeed."""


@attrs.define(eq=False)
class Clients:
    """Makes clients of one kind and closes them in the end."""

    kind: KubeClient
    made: list[Objects] = attrs.Factory(list)
    counted: Counter[tuple[str, str, str]] = attrs.Factory(Counter)
    """Verb, resource and code of every request of all of them."""

    def dial(
        self,
        config: Path | str,
        *,
        timeout_s: float = PATIENCE_S,
        idle_s: float = PATIENCE_S,
        watch_s: float = WATCH_S[1],
        count: Count = lambda _verb, _resource, _code: None,
    ) -> Objects:
        """A client by a kubeconfig."""
        kube = Kube(client=self.kind, config=str(config), timeout=Seconds(timeout_s))

        def counted(verb: str, resource: str, code: str) -> None:
            self.counted[verb, resource, code] += 1
            count(verb, resource, code)

        found = Objects(
            lambda: choose(kube, "accelkit-test/1"),
            timeout_s=timeout_s,
            idle_s=idle_s,
            watch_s=(watch_s, watch_s),
            count=counted,
        )
        self.made.append(found)
        return found

    async def close(self) -> None:
        for one in self.made:
            await one.close()

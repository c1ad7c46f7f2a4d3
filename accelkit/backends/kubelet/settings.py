"""Where the kubelet is and how long it may take. Not here: what is done with that."""

from pathlib import Path

import attrs

from accelkit.core.policy import Register


@attrs.frozen(kw_only=True)
class Patience:
    """Durations in seconds."""

    info_s: float = 5.0
    """Until a kubelet that is there must have found our socket in its plugin registry."""
    stream_s: float = 10.0
    """From a registration to the stream that must follow."""
    register_s: float = 12.0
    """Of a Register call; the kubelet itself gives up after 10 s."""
    look_s: float = 1.0
    """Between two looks at sockets and CDI files while all is well."""
    quick_s: float = 0.02
    """Between two looks at kubelet.sock while not connected: the kubelet admits all pods anew
    0.4 to 0.9 s after it made its socket."""
    quick_for_s: float = 30.0
    slow_s: float = 0.1
    """Between two looks after that."""
    lived_s: float = 1.0
    """A connection that ended earlier was no good: the next one waits."""
    cut_off_s: tuple[float, float] = (0.05, 5.0)
    """Shortest and longest pause between such connections."""
    again_s: tuple[float, float] = (1.0, 30.0)
    """Shortest and longest pause after a registration that failed."""
    rivals_s: float = 10.0
    """Between two looks at what the kubelet believes of our resources."""
    rivals_for_s: float = 600.0
    """How long an answer to a rival counts against the next ones."""
    first_view_s: float = 20.0
    """Until we register without any vendor's answer."""
    files_s: float = 2.0
    """Of writing CDI files, before the lists go out without what they should describe."""
    allocate_s: float = 2.0
    """Of an Allocate: it holds up everything else that the kubelet does."""


@attrs.frozen(kw_only=True)
class Settings:
    """What a policy says about the kubelet."""

    plugins: Path
    """Directory of kubelet.sock and of sockets that register there."""
    registry: Path
    """Directory where the kubelet looks for plugins by itself."""
    pod_resources: Path
    """Socket that tells who holds what."""
    cdi: Path
    register: Register = Register.AUTO
    patience: Patience = Patience()

    @property
    def kubelet(self) -> Path:
        """The kubelet's own socket."""
        return self.plugins / "kubelet.sock"


@attrs.define
class Way:
    """How resources are registered: by the plugin watcher, or at kubelet.sock. Never by both."""

    register: Register

    @property
    def at_kubelet(self) -> bool:
        return self.register is Register.SOCKET

    def give_up_watcher(self) -> bool:
        """Use kubelet.sock from now on, until the process ends; False: the policy says no."""
        if self.register is not Register.AUTO:
            return False
        self.register = Register.SOCKET
        return True

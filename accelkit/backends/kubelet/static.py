"""The CDI files of devices that are handed out by name. Not here: what is in such a file.

The kubelet repeats its cached answer for every restart of a container without asking again, so
a name must mean something for as long as a pod that got it may live.
"""

from collections.abc import Mapping
from pathlib import Path

from accelkit.backends.kubelet.document import BACKEND
from accelkit.core import cdi
from accelkit.core.allocation import ContainerEdits
from accelkit.core.errors import RenderError
from accelkit.core.model import DeviceId
from accelkit.core.policy import Inject
from accelkit.core.view import View

Edited = dict[DeviceId, ContainerEdits]


class StaticFiles:
    """Keeps one file for each vendor in *directory*; files of others are not touched.

    Args:
        directory: Where container runtimes look for devices.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._wanted: dict[str, Edited] = {}
        self._on_disk: dict[str, Edited] = {}

    @property
    def vendors(self) -> tuple[str, ...]:
        """Whose files there are to write."""
        return tuple(self._wanted)

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._wanted)

    def described(self, device: DeviceId, edits: ContainerEdits) -> bool:
        """Whether the file says *edits* of *device*, or there is nothing to say."""
        if not cdi.has_part(edits):
            return True
        return self._on_disk.get(device.vendor, {}).get(device) == _told(edits)

    def undescribed(self, view: View) -> frozenset[DeviceId]:
        """Devices of *view* that would be handed out by a name that means nothing."""
        return frozenset(d for d, edits in _by_name(view).items() if not self.described(d, edits))

    def want(self, view: View) -> None:
        """Describe the devices of *view* from the next `write` on.

        Those that were described stay for as long as the view knows them.
        """
        kept = {
            vendor: {d: e for d, e in edited.items() if d in view.devices}
            for vendor, edited in self._wanted.items()
        }
        for device, edits in _by_name(view).items():
            kept.setdefault(device.vendor, {})[device] = _told(edits)
        self._wanted = kept

    def write(self) -> Mapping[str, str]:
        """Write every file that is missing or not as it should be; blocks.

        Returns:
            By vendor what could not be written or said.
        """
        wrong: dict[str, str] = {}
        for vendor, edited in self._wanted.items():
            good, fault = _sayable(vendor, edited)
            if fault:
                wrong[vendor] = fault
            if good:
                fault = self._write(vendor, good)
                if fault:
                    wrong[vendor] = fault
        return wrong

    def _write(self, vendor: str, edited: Edited) -> str:
        path = self._directory / cdi.static_file(vendor)
        content = _content(vendor, edited)
        try:
            cdi.write_atomically(path, content)
        except OSError as error:
            before = self._on_disk.get(vendor, {})
            if not before or not cdi.holds(path, _content(vendor, before)):
                self._on_disk.pop(vendor, None)
            return f"{path} cannot be written: {error.strerror or error}"
        self._on_disk[vendor] = edited
        return ""


def _by_name(view: View) -> Edited:
    """Devices that are handed out by name, with their edits."""
    return {
        device: view.edits[device]
        for device, assignment in view.assignments.items()
        if assignment.terms is not None
        and assignment.terms.through == BACKEND
        and assignment.terms.inject is Inject.CDI
        and device in view.edits
    }


def _told(edits: ContainerEdits) -> ContainerEdits:
    """What a file says of *edits*: variables that list a set have no place there."""
    return ContainerEdits(
        env=edits.env, nodes=edits.nodes, mounts=edits.mounts, hooks=edits.hooks, gids=edits.gids
    )


def _content(vendor: str, edited: Edited) -> bytes:
    named = {device.name: edits for device, edits in edited.items()}
    return cdi.render(cdi.static_kind(vendor), named)


def _sayable(vendor: str, edited: Edited) -> tuple[Edited, str]:
    """Those of *edited* that CDI can express, and why the first of the others cannot."""
    good: Edited = {}
    fault = ""
    for device, edits in edited.items():
        if not cdi.has_part(edits):
            continue
        try:
            cdi.document(cdi.static_kind(vendor), {device.name: edits})
        except RenderError as error:
            fault = fault or str(error)
        else:
            good[device] = edits
    return good, fault

import ctypes
from typing import Any

import pytest

from accelkit import Holder, HolderKind, Holding
from accelkit.testing.machines import pointee
from tests.vendors.nvidia.bench import Answer, Liar, Make


def test_process_on_a_gpu_is_a_foreign_holder(bench: Make) -> None:
    made = bench("h100", 2)
    devices = made.devices()
    made.do("hold gpu-1 4711")

    assert list(made.vendor.holders(made.host, devices)) == [
        Holding(
            device=devices[1].id,
            through="process",
            holder=Holder(kind=HolderKind.FOREIGN, uid="4711"),
        )
    ]


def test_entry_that_cannot_be_a_process_is_left_out(bench: Make) -> None:
    """Seen elsewhere: the layout of the list changed under one symbol."""
    made = bench("h100", 1)
    devices = made.devices()
    made.do("hold gpu-0 999999999")

    assert list(made.vendor.holders(made.host, devices)) == []


def test_gpu_that_cannot_be_asked_has_no_holders(bench: Make) -> None:
    made = bench("h100", 2)
    devices = made.devices()
    made.do("hold gpu-0 7", "hold gpu-1 8", "lose gpu-0")

    assert [h.holder.uid for h in made.vendor.holders(made.host, devices)] == ["8"]


@pytest.mark.parametrize("code", ["3", "13"])
def test_driver_without_the_newest_list_is_asked_for_the_one_before(bench: Make, code: str) -> None:
    made = bench("h100", 1)
    devices = made.devices()
    made.do("hold gpu-0 7")
    made.fail("nvmlDeviceGetComputeRunningProcesses_v3", f"error {code}")

    assert [h.holder.uid for h in made.vendor.holders(made.host, devices)] == ["7"]


def test_list_with_longer_entries_is_not_believed(bench: Make) -> None:
    """Seen elsewhere: drivers 535 before 535.98 have them under the same symbol."""
    made = bench("h100", 1)
    devices = made.devices()
    made.do("hold gpu-0 7", "hold gpu-0 8", "hold gpu-0 9")
    liar = Liar(made.directory)
    liar.lies = {"nvmlDeviceGetComputeRunningProcesses_v3": _with_longer_entries}

    assert [h.holder.uid for h in made.vendor.holders(liar, devices)] == ["7", "8", "9"]


def _with_longer_entries(honest: Answer, *args: Any) -> int:  # type: ignore[explicit-any]  # as ctypes hands them over
    code = honest(*args)
    _, amount, entries = args
    if entries is not None:
        short, length = bytes(entries), 24
        found = [short[i * length : (i + 1) * length] for i in range(pointee(amount).value)]
        longer = b"".join(entry + bytes(8) for entry in found)
        ctypes.memmove(entries, longer, len(longer))
    return code


def test_gpu_that_is_cut_is_not_asked_itself(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0", "hold gpu-0 9 0")
    _, part = devices = made.devices()

    assert [h.device for h in made.vendor.holders(made.host, devices)] == [part.id]

"""What keeps containers from a device file."""

from pathlib import Path

import pytest

from accelkit.core.allocation import Finding
from accelkit.core.device_files import file_finding
from accelkit.core.real_host import RealHost


def asked(root: Path) -> Finding | None:
    return file_finding(
        RealHost(str(root)),
        "/npu0",
        "no NPU",
        users="NPUs",
        missing="load the driver",
        closed="chmod 666",
    )


def test_file_that_is_not_there_is_surely_wrong(tmp_path: Path) -> None:
    assert asked(tmp_path) == Finding(
        symptom="no NPU",
        suspect="device files",
        proof="/npu0 is not there",
        remedy="load the driver",
        sure=True,
    )


@pytest.mark.parametrize("mode", [0o660, 0o664, 0o662])
def test_file_that_is_not_open_to_all_keeps_those_out_that_are_not_root(
    tmp_path: Path, mode: int
) -> None:
    (tmp_path / "npu0").touch()
    (tmp_path / "npu0").chmod(mode)

    assert asked(tmp_path) == Finding(
        symptom="containers that do not run as root cannot use NPUs",
        suspect="permissions",
        proof=f"/npu0 has mode {mode:o}",
        remedy="chmod 666",
    )


def test_file_that_all_can_open_is_fine(tmp_path: Path) -> None:
    (tmp_path / "npu0").touch()
    (tmp_path / "npu0").chmod(0o666)

    assert asked(tmp_path) is None

from pathlib import Path

import pytest

from accelkit import ContainerEdits, MissingParts, Mount
from accelkit.core.allocation import join_edits
from accelkit.vendors.nvidia.vendor import NvidiaOptions
from tests.vendors.nvidia.bench import Bench, Make
from tests.vendors.opened import grant

VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def edits(bench: Bench) -> ContainerEdits:
    devices = [d for d in bench.devices() if d.usable]
    found = bench.vendor.edits(bench.host, grant(*devices))
    return join_edits(found, [d.id for d in devices])


def paths(mounts: tuple[Mount, ...]) -> dict[str, str]:
    return {m.container_path: m.host_path for m in mounts}


def test_container_gets_files_of_its_gpus_and_control_files(bench: Make) -> None:
    found = edits(bench("h100", 2))

    assert [n.path for n in found.nodes] == [
        "/dev/nvidia-modeset",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
        "/dev/nvidia0",
        "/dev/nvidia1",
        "/dev/nvidiactl",
    ]


def test_variable_lists_the_set_and_is_void_for_each_device(bench: Make) -> None:
    made = bench("h100", 2)
    one, other = made.devices()
    each = made.vendor.edits(made.host, grant(one, other)).each

    assert each[one.id].env == {VISIBLE: "void"}
    assert edits(made).env == {VISIBLE: f"{one.handle},{other.handle}"}


def test_driver_files_are_mounted_read_only_under_all_their_names(bench: Make) -> None:
    found = edits(bench("l4", 1))
    folder = "/usr/lib/x86_64-linux-gnu"

    assert all(m.read_only for m in found.mounts)
    assert paths(found.mounts).items() >= {
        (f"{folder}/libcuda.so.580.65.06", f"{folder}/libcuda.so.580.65.06"),
        (f"{folder}/libcuda.so.1", f"{folder}/libcuda.so.580.65.06"),
        ("/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"),
    }


def test_driver_container_lends_its_files_by_its_own_paths(bench: Make) -> None:
    found = edits(bench("l4", 1, machine={"driverRoot": "/run/nvidia/driver"}))
    folder = "/usr/lib/x86_64-linux-gnu"

    assert paths(found.mounts)[f"{folder}/libcuda.so.1"] == (
        f"/run/nvidia/driver{folder}/libcuda.so.580.65.06"
    )
    assert paths(found.mounts)["/usr/bin/nvidia-smi"] == "/run/nvidia/driver/usr/bin/nvidia-smi"


def test_edits_of_a_set_are_those_of_its_devices(bench: Make) -> None:
    made = bench("h100", 2)
    one, other = made.devices()
    both = made.vendor.edits(made.host, grant(one, other)).each

    assert both[one.id] == made.vendor.edits(made.host, grant(one)).each[one.id]
    assert both[other.id] == made.vendor.edits(made.host, grant(other)).each[other.id]


def test_partition_is_visible_by_its_own_uuid(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "create-mig gpu-0 1g.10gb 0")

    assert edits(made).env[VISIBLE].startswith("MIG-")


def test_every_host_path_exists(bench: Make) -> None:
    made = bench("h100", 1)
    found = edits(made)

    wanted = [n.on_host for n in found.nodes] + [m.host_path for m in found.mounts]
    assert [path for path in wanted if not made.host.exists(path)] == []


def test_missing_device_file_is_refused_by_name(bench: Make) -> None:
    made = bench("h100", 1)
    devices = made.devices()
    made.do("no-nodes")

    with pytest.raises(MissingParts, match="/dev/nvidia-uvm"):
        made.vendor.edits(made.host, grant(*devices))


def test_driver_files_of_another_version_are_refused(bench: Make) -> None:
    """Seen elsewhere: files of the version before the upgrade were handed out."""
    made = bench("h100", 1)
    devices = made.devices()
    Path(made.directory, "sys/module/nvidia/version").write_text("590.10\n", encoding="utf-8")

    with pytest.raises(MissingParts, match=r"libcuda.so.590.10"):
        made.vendor.edits(made.host, grant(*devices))


def test_driver_that_is_not_loaded_is_named(bench: Make) -> None:
    made = bench("h100", 1)
    devices = made.devices()
    made.do("unload")

    with pytest.raises(MissingParts, match="not loaded") as caught:
        made.vendor.edits(made.host, grant(*devices))
    assert caught.value.remedy == "modprobe nvidia"


def test_driver_root_that_is_given_is_the_only_one(bench: Make) -> None:
    made = bench("h100", 1, options=NvidiaOptions(driver_root="/opt/driver"))

    with pytest.raises(MissingParts, match="/opt/driver"):
        made.vendor.edits(made.host, grant())


def test_loader_cache_is_renewed_where_the_toolkit_is_there(bench: Make) -> None:
    made = bench("h100", 1)
    Path(made.directory, "usr/bin/nvidia-cdi-hook").write_text("", encoding="utf-8")
    (hook,) = edits(made).hooks

    assert hook.args[1:] == ("update-ldcache", "--folder", "/usr/lib/x86_64-linux-gnu")


def test_toolkit_that_is_replaced_is_looked_for_each_time(bench: Make) -> None:
    """Seen elsewhere: claims got nothing until a restart."""
    made = bench("h100", 1)
    program = Path(made.directory, "usr/bin/nvidia-cdi-hook")
    before = edits(made)
    program.write_text("", encoding="utf-8")
    there = edits(made)
    program.unlink()

    assert [hook.path for hook in there.hooks] == ["/usr/bin/nvidia-cdi-hook"]
    assert before.hooks == ()
    assert edits(made) == before


def test_files_for_graphics_come_with_the_gpu_that_has_them(bench: Make) -> None:
    made = bench("l4", 1)
    folder = Path(made.directory + made.host.resolve("/sys/bus/pci/devices/0000:03:00.0"))
    for name in ("card1", "renderD128"):
        (folder / "drm" / name).mkdir(parents=True)
        file = Path(made.directory, "dev/dri", name)
        file.parent.mkdir(exist_ok=True)
        file.touch()

    assert {n.path for n in edits(made).nodes} >= {"/dev/dri/card1", "/dev/dri/renderD128"}


def test_folder_that_only_the_loader_knows_is_searched(bench: Make) -> None:
    """Seen elsewhere: libcuda.so was not found in a folder that is not usual."""
    made = bench("l4", 1)
    usual = Path(made.directory, "usr/lib/x86_64-linux-gnu")
    usual.rename(Path(made.directory, "opt"))
    conf = Path(made.directory, "etc/ld.so.conf.d/nvidia.conf")
    conf.parent.mkdir(parents=True)
    conf.write_text("# the driver\n/opt\n", encoding="utf-8")

    assert "/opt/libcuda.so.580.65.06" in paths(edits(made).mounts)


def test_links_that_lead_to_another_version_or_nowhere_are_left_out(bench: Make) -> None:
    made = bench("l4", 1)
    folder = Path(made.directory, "usr/lib/x86_64-linux-gnu")
    (folder / "libcuda.so.1").unlink()
    (folder / "libcuda.so.1").symlink_to("libcuda.so.470.1")
    (folder / "libold.so.470.1").touch()
    (folder / "libold.so.1").symlink_to("libold.so.470.1")
    mounted = paths(edits(made).mounts)

    assert [p for p in mounted if p.endswith(("libcuda.so.1", "libold.so.1"))] == []


def test_socket_of_the_persistence_daemon_comes_along(bench: Make) -> None:
    made = bench("l4", 1)
    socket = Path(made.directory, "run/nvidia-persistenced/socket")
    socket.parent.mkdir(parents=True)
    socket.touch()

    assert "/run/nvidia-persistenced/socket" in paths(edits(made).mounts)

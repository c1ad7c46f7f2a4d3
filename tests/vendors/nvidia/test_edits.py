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


def test_missing_right_of_a_partition_says_how_it_is_made(bench: Make) -> None:
    made = bench("h100", 1)
    made.do("mig gpu-0 on", "no-caps", "create-mig gpu-0 1g.10gb 0")
    _, part = made.devices()

    with pytest.raises(MissingParts, match="/dev/nvidia-caps/nvidia-cap") as caught:
        made.vendor.edits(made.host, grant(part))
    assert "nvidia-modprobe -f FILE" in caught.value.remedy


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


@pytest.mark.parametrize("profile, given", [("1g.24gb+gfx", True), ("1g.24gb", False)])
def test_partition_for_graphics_has_the_files_for_it(
    bench: Make, profile: str, *, given: bool
) -> None:
    made = bench("rtx-pro-6000", 1)
    made.do("mig gpu-0 on", f"create-mig gpu-0 {profile} 0")
    folder = made.host.resolve("/sys/bus/pci/devices/0000:03:00.0")
    made.put(f"{folder}/drm/renderD128/dev", "226:128")
    made.put("/dev/dri/renderD128")

    assert ("/dev/dri/renderD128" in {n.path for n in edits(made).nodes}) is given


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


@pytest.mark.parametrize("root", ["", "/run/nvidia/driver"])
@pytest.mark.parametrize("daemon", ["nvidia-persistenced", "nvidia-fabricmanager"])
def test_sockets_of_the_drivers_daemons_come_along(bench: Make, daemon: str, root: str) -> None:
    made = bench("l4", 1, machine={"driverRoot": root} if root else None)
    made.put(f"{root}/run/{daemon}/socket")
    (found,) = (m for m in edits(made).mounts if m.container_path == f"/run/{daemon}/socket")

    assert found.host_path == f"{root}/run/{daemon}/socket"
    assert "noexec" in found.options


def test_library_that_lies_elsewhere_under_another_name_comes_along(bench: Make) -> None:
    made = bench("l4", 1)
    library = Path(made.directory, "usr/lib/x86_64-linux-gnu/libnvidia-nvvm.so.580.65.06")
    library.rename(Path(made.directory, "opt-nvvm"))
    library.symlink_to("/opt-nvvm")

    assert paths(edits(made).mounts)[f"/usr/lib/x86_64-linux-gnu/{library.name}"] == "/opt-nvvm"


def test_name_for_linkers_comes_along(bench: Make) -> None:
    """Compilers in a container link with -lcuda."""
    made = bench("l4", 1)
    folder = Path(made.directory, "usr/lib/x86_64-linux-gnu")
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    (folder / "libc.so").symlink_to("libc.so.6")
    (folder / "libc.so.6").touch()
    mounted = paths(edits(made).mounts)

    assert mounted["/usr/lib/x86_64-linux-gnu/libcuda.so"].endswith("/libcuda.so.580.65.06")
    assert [path for path in mounted if "libc.so" in path] == []


@pytest.mark.parametrize(
    "name",
    [
        "vdpau/libvdpau_nvidia.so.580.65.06",
        "libnvidia-nvvm70.so.4",
        "libnvidia-egl-gbm.so.1",
    ],
)
def test_libraries_of_the_driver_in_inner_folders_or_of_other_versions_come_along(
    bench: Make, name: str
) -> None:
    made = bench("l4", 1)
    made.put(f"/usr/lib/x86_64-linux-gnu/{name}")

    assert f"/usr/lib/x86_64-linux-gnu/{name}" in paths(edits(made).mounts)


@pytest.mark.parametrize("root", ["", "/run/nvidia/driver"])
def test_files_that_tell_of_the_driver_come_along(bench: Make, root: str) -> None:
    """Without them programs for Vulkan or OpenCL see no GPU."""
    made = bench("l4", 1, machine={"driverRoot": root} if root else None)
    told = ["/etc/OpenCL/vendors/nvidia.icd", "/usr/share/vulkan/icd.d/nvidia_icd.json"]
    for path in told:
        made.put(f"{root}{path}")
    made.put(f"{root}/usr/share/vulkan/icd.d/radeon_icd.json")
    mounted = {c: h for c, h in paths(edits(made).mounts).items() if h.endswith((".icd", ".json"))}

    assert mounted == {path: f"{root}{path}" for path in told}

"""Where paths lead below a root: asked of the kernel at once, and found part by part without it."""

import ctypes
import itertools
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from accelkit.core import symlinks
from accelkit.core.symlinks import followed
from tests.open_files import open_files

NAMES = ("a", "b", "c")
PLACES = tuple("/".join(parts) for n in (1, 2) for parts in itertools.product(NAMES, repeat=n))
PARTS = st.sampled_from([*NAMES, "..", "."])
TARGETS = st.builds(
    lambda start, parts: start + "/".join(parts),
    st.sampled_from(["", "/"]),
    st.lists(PARTS, min_size=1, max_size=4),
)
TREES = st.dictionaries(st.sampled_from(PLACES), st.none() | TARGETS)
"""By place below the root where its link leads to; None: a folder."""


class Older:
    """The C library over a kernel without the call: what 5.5 and filters of calls say."""

    def syscall(self, *_arguments: object) -> int:
        ctypes.set_errno(38)
        return -1


@pytest.fixture(params=["asked", "part by part"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "asked":
        monkeypatch.setattr(symlinks, "_libc", Older())


def grown(root: Path, tree: Mapping[str, str | None]) -> None:
    """Folders first, then links in those that are there."""
    for place in sorted(tree, key=lambda place: (tree[place] is not None, place)):
        target, file = tree[place], root / place
        if target is None:
            file.mkdir(parents=True, exist_ok=True)
        elif file.parent.is_dir() and not file.parent.is_symlink():
            with suppress(FileExistsError):
                file.symlink_to(target)


@given(tree=TREES, path=st.lists(PARTS, min_size=1, max_size=4))
def test_kernel_and_parts_agree_on_what_is_there(
    tree: dict[str, str | None], path: list[str]
) -> None:
    with TemporaryDirectory(prefix="ak-") as directory:
        root = Path(directory).resolve()
        grown(root, tree)
        wanted = "/" + "/".join(path)
        asked = symlinks._as_the_kernel_finds(str(root), wanted)
        if asked is not None:
            assert asked == symlinks._part_by_part(str(root), wanted)
            assert os.path.lexists(f"{root}{asked}")


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    "path, led",
    [
        ("/sys/link/size", "/sys/real/size"),
        ("/sys/link/none/deeper", "/sys/real/none/deeper"),
        ("/sys/away/passwd", "/etc/passwd"),
        ("/../..", "/"),
        ("//sys/./link/../real/", "/sys/real"),
    ],
)
def test_path_leads_where_a_process_with_that_root_would_come(
    tmp_path: Path, path: str, led: str
) -> None:
    (tmp_path / "sys/real").mkdir(parents=True)
    (tmp_path / "sys/real/size").touch()
    (tmp_path / "sys/link").symlink_to("/sys/real")
    (tmp_path / "sys/away").symlink_to("../../../../../etc")

    assert followed(str(tmp_path), path) == led


@pytest.mark.usefixtures("kernel")
def test_root_that_is_a_link_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "real/sys").mkdir(parents=True)
    (tmp_path / "real/sys/link").symlink_to("/sys")
    (tmp_path / "root").symlink_to("real")

    assert followed(str(tmp_path / "root"), "/sys/link") == "/sys"
    assert followed(str(tmp_path / "gone"), "/sys/link") == "/sys/link"


@pytest.mark.usefixtures("kernel")
def test_whole_host_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")

    assert followed("", f"{tmp_path}/link") == f"{tmp_path}/file"


@pytest.mark.usefixtures("kernel")
def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "there").symlink_to("back")
    (tmp_path / "back").symlink_to("there")

    with pytest.raises(OSError, match="Too many levels"):
        followed(str(tmp_path), "/there")


@pytest.mark.usefixtures("kernel")
def test_path_is_not_cut_where_a_c_string_ends(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ValueError, match="null byte"):
        followed(str(tmp_path), "/file\0more")


def test_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    for path in ("/file", "/none", "/"):
        followed(str(tmp_path), path)

    assert not [name for name in open_files("self").values() if name.startswith(str(tmp_path))]

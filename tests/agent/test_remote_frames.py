"""What agents and workers write to each other."""

import io
import json
import socket
from typing import ClassVar

import pytest
from hypothesis import given, strategies as st

from accelkit.agent.remote_frames import (
    MOST_BYTES,
    error_frame,
    error_of,
    read_frames,
    write_frame,
)
from accelkit.core import errors
from accelkit.core.errors import AccelkitError, PluginError, SourceError
from accelkit.core.foreign import code_of

TEXTS = st.text(st.characters(codec=None, exclude_categories=()))
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(TEXTS, TREES, max_size=3), max_size=3))
def test_frames_arrive_as_they_were_written(frames: list[dict[str, object]]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, theirs.makefile("rb") as stream:
        for frame in frames:
            write_frame(ours, frame)
        ours.shutdown(socket.SHUT_WR)

        assert list(read_frames(stream)) == frames


def test_frame_is_four_bytes_of_length_and_json() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        write_frame(ours, {"id": 1})

        assert theirs.recv(100) == b'\x00\x00\x00\x08{"id":1}'


@pytest.mark.parametrize("cut", [b"\x00\x00", b"\x00\x00\x00\x08", b'\x00\x00\x00\x08{"id"'])
def test_frame_that_is_cut_off_is_none(cut: bytes) -> None:
    whole = b'\x00\x00\x00\x08{"id":1}'

    assert list(read_frames(io.BytesIO(whole + cut))) == [{"id": 1}]


@pytest.mark.parametrize(
    "rubbish",
    [b"\xff" * 8, b"\x00\x00\x00\x02[]", b"\x00\x00\x00\x02{}"[:4] + b"{x"],
)
def test_what_is_no_frame_is_refused(rubbish: bytes) -> None:
    with pytest.raises(ValueError, match=r"a frame (of|that is)|Expecting"):
        list(read_frames(io.BytesIO(rubbish)))
    assert int.from_bytes(b"\xff" * 4, "big") > MOST_BYTES


class OfTheMaker(SourceError):
    """What a plugin derives for itself."""

    code: ClassVar[str] = "maker-failed"

    def __init__(self, value: int, handle: object) -> None:
        super().__init__(f"answered {value}", vendor="acme", operation="read", remedy="try")
        self.value = value
        self.handle = handle


def sent(error: BaseException) -> AccelkitError:
    """*error* as the other end has it."""
    return error_of(json.loads(json.dumps(error_frame(error, "acme"))))


@pytest.mark.parametrize(
    "error",
    [
        errors.AccessDenied("no", vendor="acme", operation="write", remedy="be root"),
        errors.WorkerDied("gone", vendor="acme", signal=11),
        errors.PartitionInUse("in use", device="acme/a0"),
        errors.IllegalSet("not these", claim="c", remedy="others"),
        errors.PluginContractError("bad", plugin="acme"),
        errors.UnsatisfiableLayout("no room", largest={"1g": 2}, device="acme/a0"),
        errors.StartOver("another version"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_is_the_same_on_the_other_end(error: AccelkitError) -> None:
    again = sent(error)

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_error_of_a_plugins_own_class_is_of_the_nearest_known_one() -> None:
    again = sent(OfTheMaker(3, object()))

    assert type(again) is SourceError
    assert (str(again), code_of(again), again.remedy) == ("answered 3", "maker-failed", "try")
    assert vars(again)["value"] == 3
    assert "handle" not in vars(again)


def test_what_is_no_error_of_ours_is_a_bug_of_the_plugin() -> None:
    again = sent(SystemExit(3))

    assert type(again) is PluginError
    assert str(again) == "acme: SystemExit: 3"
    assert again.remedy == "report it to the author of the plugin for acme"

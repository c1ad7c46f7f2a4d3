from pathlib import Path

import pytest

from accelkit.core.errors import ConfigError
from accelkit.testing.faults import Fault, duration, fault_json, parse_faults, read_faults

MALFORMED = [
    ("nothing", "$: must hold a list of faults"),
    ([7], "$[0]: is not a mapping"),
    ([{"call": "f", "do": "crash", "when": 1}], "$[0]: unknown key when; the keys are"),
    ([{"do": "crash"}], "$[0]: must say exactly one of call, read and at"),
    ([{"call": "f", "at": "3s", "do": "crash"}], "$[0]: must say exactly one of"),
    ([{"call": 3, "do": "crash"}], "$[0]: call must be a text, not 3"),
    ([{"at": "soon", "do": "lose gpu-0"}], "$[0]: soon: expected a duration"),
    ([{"call": "f", "from": 0, "do": "crash"}], "$[0]: from must be a whole number from 1 on"),
    ([{"call": "f", "times": True, "do": "crash"}], "$[0]: times must be a whole number"),
    ([{"call": "f"}], "$[0]: do must say what happens"),
    ([{"call": "f", "do": "error"}], "$[0]: the error of a call needs its number"),
    ([{"call": "f", "do": "error bad"}], "$[0]: the error of a call is a number, not 'bad'"),
    ([{"call": "f", "do": "hang"}], "$[0]: hang needs a duration"),
    ([{"call": "f", "do": "hang long"}], "$[0]: long: expected a duration"),
    ([{"call": "f", "do": "lose 'gpu-0"}], "$[0]: No closing quotation"),
]


@pytest.mark.parametrize("found,text", MALFORMED)
def test_a_malformed_fault_is_refused_in_one_line(found: object, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_faults(found, "$")

    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


def test_all_malformed_faults_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_faults([{"do": "x"}, {"call": "f", "do": "crash"}, 3], "$")

    assert [path for path, _ in caught.value.problems] == ["$[0]", "$[2]"]


def test_faults_are_written_as_they_are_read() -> None:
    faults = (
        Fault(call="nvmlInit_v2", first=2, times=3, do="error 15"),
        Fault(read="/sys/*", do="hang 30s"),
        Fault(at=3.0, do="lose gpu-1"),
    )

    assert parse_faults([fault_json(fault) for fault in faults], "$") == faults


def test_a_fault_file_is_yaml(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("- {at: 500ms, do: lose gpu-1}\n- {call: f, from: 2, do: crash}\n")

    assert read_faults(str(file)) == (
        Fault(at=0.5, do="lose gpu-1"),
        Fault(call="f", first=2, do="crash"),
    )


@pytest.mark.parametrize("content", [b"- {", b"\xff\xfe\x00", b"text"])
def test_a_file_that_holds_no_faults_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "faults.yaml"
    file.write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        read_faults(str(file))

    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_fault_file_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("[" * 2000 + "]" * 2000)

    with pytest.raises(ConfigError, match="is nested too deep"):
        read_faults(str(file))


def test_a_fault_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_faults(str(tmp_path / "none.yaml"))


def test_durations_have_units() -> None:
    assert [duration(text) for text in ("1500ms", "30s", "2m", "1h")] == [1.5, 30.0, 120.0, 3600.0]

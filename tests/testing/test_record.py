import json
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, strategies as st

from accelkit.core.errors import ConfigError
from accelkit.core.values import FrozenMap
from accelkit.testing.faults import Fault
from accelkit.testing.machines import Part
from accelkit.testing.record import Numbers, Record, dump, load

BOOT = "4e8f6a52-2c0b-4c7b-9d8c-0f0f3c1d2e3f"
PART = {"vendor": "sim", "product": "basic", "count": 1, "seed": 0}
GOOD = {
    "format": "machine/1",
    "boot": BOOT,
    "parts": [PART],
    "nodes": {},
    "state": {},
    "faults": [],
}
MALFORMED = [
    ([], "$: must be a mapping"),
    ({}, "$.format: None is not machine/1"),
    ({**GOOD, "format": "machine/2"}, "$.format: 'machine/2' is not machine/1"),
    ({**GOOD, "color": 1}, "$.color: is not a key of machine/1"),
    ({**GOOD, "boot": "today"}, "$.boot: 'today' is not a UUID"),
    ({**GOOD, "boot": 3}, "$.boot: 3 is not a UUID"),
    ({**GOOD, "parts": {}}, "$.parts: must be a list"),
    ({**GOOD, "parts": [3]}, "$.parts[0]: must be a mapping"),
    ({**GOOD, "parts": [{**PART, "x": 1}]}, "$.parts[0].x: is not a key of a part"),
    ({**GOOD, "parts": [{**PART, "count": True}]}, "$.parts[0].count: must be a whole number"),
    ({**GOOD, "parts": [{**PART, "count": 0}]}, "$.parts[0].count: 0 is not from 1 to 256"),
    ({**GOOD, "parts": [{**PART, "options": {"a": 1}}]}, "$.parts[0].options.a: must be a text"),
    ({**GOOD, "nodes": {"/dev/a": {"kind": "x"}}}, "$.nodes['/dev/a'].kind: 'x' is neither"),
    ({**GOOD, "nodes": {"/dev/a": {"kind": "c"}}}, "$.nodes['/dev/a'].major: must be a whole"),
    ({**GOOD, "state": {"gpu-0": 1}}, "$.state.gpu-0: must be a mapping"),
    ({**GOOD, "faults": [{}]}, "$.faults[0]: must say exactly one of"),
    ({**GOOD, "deviceNodes": 1}, "$.deviceNodes: must be a flag"),
]


@pytest.mark.parametrize("content,text", MALFORMED)
def test_a_malformed_record_is_refused_in_one_line(
    tmp_path: Path, content: object, text: str
) -> None:
    (tmp_path / "machine.json").write_text(json.dumps(content))

    with pytest.raises(ConfigError) as caught:
        load(str(tmp_path))

    assert str(caught.value).startswith(f"{tmp_path}/machine.json: {text}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", '{"format": "machine/1", }'])
def test_a_record_that_is_no_json_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "machine.json").write_text(content)

    with pytest.raises(ConfigError, match="is not JSON") as caught:
        load(str(tmp_path))

    assert "\n" not in str(caught.value)


def test_a_record_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text("[" * 100_000)

    with pytest.raises(ConfigError, match="is nested too deep"):
        load(str(tmp_path))


def test_a_directory_without_a_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no simulated machine"):
        load(str(tmp_path))


def test_a_record_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "machine.json").mkdir()

    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(str(tmp_path))


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = Record(
        boot=str(uuid4()),
        parts=(
            Part(vendor="sim", product="ring", count=3, seed=7),
            Part(vendor="nvidia", product="h100", count=8, first=3, options=FrozenMap({"a": "b"})),
        ),
        nodes=FrozenMap({"/dev/sim0": Numbers(kind="c", major=240, minor=0)}),
        state={"accel-1": {"lost": True}},
        faults=(Fault(call="f", do="crash"),),
        device_nodes=True,
    )

    (tmp_path / "machine.json").write_text(dump(record))

    assert load(str(tmp_path)) == record


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(key=st.sampled_from(sorted(GOOD)), value=json_values)
def test_whatever_a_record_holds_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    directory = tmp_path_factory.mktemp("machine")
    (directory / "machine.json").write_text(json.dumps({**GOOD, key: value}))

    said = f"$.{key}"
    try:
        load(str(directory))
    except ConfigError as error:
        said = str(error)

    assert f"$.{key}" in said

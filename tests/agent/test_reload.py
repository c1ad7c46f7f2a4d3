"""The policy file as it is on disk."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from accelkit.agent.reload import SIZE_LIMIT, load_yaml, read_policy_file
from accelkit.core.errors import ConfigError
from accelkit.core.policy import Policy, Seconds


def problem(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_policy_file(path)
    ((_, text),) = caught.value.problems
    return text


def written(folder: Path, raw: bytes) -> Path:
    path = folder / "policy.yaml"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("raw", [b"", b"# nothing\n", b"---\n", b"{}", b"null"])
def test_empty_file_is_all_defaults(tmp_path: Path, raw: bytes) -> None:
    assert read_policy_file(written(tmp_path, raw)) == Policy()


@pytest.mark.parametrize(
    "raw",
    [b"read: {health: 5s}", b'{"read": {"health": "5s"}}', b"\xef\xbb\xbfread:\n  health: 5s\n"],
    ids=["yaml", "json", "byte order mark"],
)
def test_policy_is_yaml_or_json(tmp_path: Path, raw: bytes) -> None:
    assert read_policy_file(str(written(tmp_path, raw))).read.health == Seconds(5)


def test_missing_file_is_told(tmp_path: Path) -> None:
    assert problem(tmp_path / "none.yaml") == "cannot be read: No such file or directory"


def test_directory_is_no_policy(tmp_path: Path) -> None:
    assert problem(tmp_path) == "not a file"


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert problem(tmp_path / "pipe") == "not a file"


def test_name_that_no_file_can_have_is_told() -> None:
    assert problem(Path("a\0b")).startswith("cannot be a path")


def test_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = written(tmp_path, b"")
    os.truncate(path, 50 << 20)

    assert problem(path) == f"longer than {SIZE_LIMIT >> 10} KiB"


def test_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    assert problem(written(tmp_path, b"kind: \xff\xfe")) == "not UTF-8 at byte 6"


def test_what_is_spelt_wrong_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_policy_file(written(tmp_path, b"offers:\n- name: a\n  sharring: {}\n"))

    assert caught.value.problems == (
        ("$.offers[0].sharring", "unknown key, did you mean 'sharing'?"),
    )


@pytest.mark.parametrize(
    "text,place,why",
    [
        ("a: 1\nb: 2\na: 3\n", "p, line 3, column 1", "the key 'a' is given twice"),
        ("x: {a: 1, a: 1}", "p, line 1, column 11", "the key 'a' is given twice"),
        ("a: &x [1]\nb: *x\n", "p, line 1, column 4", "anchors and aliases are not read"),
        ("a: *x\n", "p, line 1, column 4", "anchors and aliases are not read"),
        ("a: !!python/object/apply:os.getcwd []", "p, line 1, column 4", "is not read"),
        ("a: !!str 5", "p, line 1, column 4", "the tag tag:yaml.org,2002:str is not read"),
        ("[" * 900, "p, line 1, column 33", "nested more than 32 deep"),
        ("[" * 100_000, "p, line 1, column 1001", "exceeded maximum nesting depth"),
        ("{a: " * 100_000, "p, line 1, column 129", "nested more than 32 deep"),
        ("a: [1", "p, line ", "while parsing a flow"),
        ("a: b: c", "p, line 1, column 5", "mapping values are not allowed"),
        ("\ta: 1", "p, line 1, column 1", "cannot start any token"),
        ("a: 1\n---\nb: 1\n", "p, line 2, column 1", "another document"),
        ("<<: {a: 1}", "p, line 1, column 1", "merge keys are not read"),
        ("? [a]\n: 1\n", "p, line 1, column 3", "a key must be text"),
        ("on: 1", "p, line 1, column 1", "a key must be text: put on in quotes"),
        ("a: {~: 1}", "p, line 1, column 5", "a key must be text: put ~ in quotes"),
        ("{1: 1}", "p, line 1, column 2", "a key must be text: put 1 in quotes"),
        ("a: \x01", "p, line 1, column 4", "0x0001 is no letter of YAML"),
        ("a: 1\n\x01", "p, line 2, column 1", "0x0001 is no letter of YAML"),
        ("a: 1\r\nbc: \0", "p, line 2, column 5", "0x0000 is no letter of YAML"),
        (f"a: {'9' * 5000}", "p, line 1, column 4", "5000 characters are no number"),
        (f"a: 0x{'f' * 5000}", "p, line 1, column 4", "5002 characters are no number"),
        (f"a: 9{':59' * 2000}", "p, line 1, column 4", "6001 characters are no number"),
        (f"a: {'9' * 5000}.5", "p, line 1, column 4", "5002 characters are no number"),
        ("a: 2027-13-01", "p, line 1, column 4", "2027-13-01 is no date; text that looks like"),
    ],
)
def test_text_that_is_no_plain_tree_is_refused(text: str, place: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_yaml(text, "p")

    ((path, told),) = caught.value.problems
    assert path.startswith(place)
    assert why in told


def test_numbers_may_be_hexadecimal() -> None:
    assert load_yaml("vendor: 0x1dea") == {"vendor": 0x1DEA}


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:-[]{},&*!?|>'\"#\n\t %1.<=~", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = load_yaml(text)
    except ConfigError as error:
        assert len(error.problems) == 1  # noqa: PT017 - either may happen
    else:
        assert tree is None or isinstance(tree, (bool, int, float, str, list, dict))

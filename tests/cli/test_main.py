import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from accelkit.agent.reload import load_yaml
from accelkit.cli.composing import boot_of
from accelkit.cli.main import exit_code, main
from accelkit.core import errors
from accelkit.testing.hosts import open_host


@pytest.mark.parametrize(
    "error, code",
    [
        (errors.ConfigError([("$.x", "wrong")]), 2),
        (errors.PluginLoadError("no"), 2),
        (errors.NotThere("no"), 3),
        (errors.TransportError("no"), 3),
        (errors.LedgerBusy("no"), 3),
        (errors.UnknownDevice("no"), 1),
        (errors.ModelError("no"), 1),
        (errors.AccelkitError("no"), 1),
    ],
)
def test_every_family_of_errors_has_its_exit_code(error: errors.AccelkitError, code: int) -> None:
    assert exit_code(error) == code


def test_configuration_error_lists_every_problem_with_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("offerz: []\nhttp: {listen: 7}\n")

    code = main(["agent", "--policy", str(file)])
    said = capsys.readouterr().err.splitlines()

    assert code == 2
    assert [line.split(":")[0] for line in said] == ["$.offerz", "$.http.listen"]


def test_what_a_file_says_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text('"\\e[2J\\n$.offers: fine": 1\nlogging: {level: "\\e[31m"}\n')

    code = main(["agent", "--policy", str(file)])
    said = capsys.readouterr().err

    assert code == 2
    assert said.splitlines()[0] == '$["\ufffd[2J\ufffd$.offers: fine"]: unknown key'
    assert "\x1b" not in said


def test_file_that_cannot_be_read_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "--policy", "/no/such/file"]) == 2
    assert capsys.readouterr().err.startswith("/no/such/file: cannot be read: No such file")


@pytest.mark.parametrize("words", [["nonsense"], ["devices", "--nonsense"]])
def test_wrong_usage_is_bad_input(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "nonsense" in capsys.readouterr().err


def test_help_and_version_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["--help"]) == 0
    assert "accelkit" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, code",
    [
        (["agent", "--help"], 0),
        (["agent", "--nonsense"], 2),
        (["agent", "--grace", "nan"], 2),
        (["agent", "--grace", "-1"], 2),
        (["agent", "--grace", "1e99"], 2),
    ],
)
def test_flags_of_the_agent_are_read_without_click(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as found:
        main(words)
    assert found.value.code == code
    assert "accelkit agent" in "".join(capsys.readouterr())


def test_bug_ends_with_70_and_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a machine cannot mistake for the answer no."""
    monkeypatch.setitem(sys.modules, "accelkit.cli.root", None)

    assert main(["version"]) == 70
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "devices --host {long}",
        "capture {file}/x",
        "capture --host {basic} /proc/x",
        "capture {loop}",
        "vendor new acme {file}/x",
        "vendor new acme /dev/null",
        "vendor new acme {loop}",
    ],
)
def test_path_that_cannot_be_used_is_bad_input(
    basic: Path, tmp_path: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each was a traceback, and the exit code of a bug."""
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    places = {name: tmp_path / name for name in ("file", "loop")}

    code = main(words.format(basic=basic, long="x" * 5000, **places).split())

    said = capsys.readouterr().err
    assert code == 2
    unusable = r"(.*/(file|file/x|loop|null|x)|x{5000}): cannot be used"
    assert re.search(rf"^({unusable}|OUT: the capture cannot be kept in .*): [A-Z]", said)


def test_lists_are_printed_as_yaml_and_json_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """Badges are members of an enumeration, which YAML could not write."""
    told = []
    for form, read in (("yaml", load_yaml), ("json", json.loads)):
        assert main(["conformance", "list", "-o", form]) == 0
        told.append(read(capsys.readouterr().out))

    assert told[0] == told[1]


@pytest.mark.parametrize("policy", ["loop/policy.yaml", "nowhere"])
def test_standing_policy_that_cannot_be_looked_at_is_not_passed_over(
    tmp_path: Path,
    policy: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a folder that others may not look into it was a traceback."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("gone")
    monkeypatch.setattr("accelkit.cli.standing_policy.POLICY", tmp_path / policy)

    codes = [main(["devices", "--host", str(tmp_path)]), main(["agent", "--host", str(tmp_path)])]

    assert codes == [2, 2]
    assert capsys.readouterr().err.count(f"{policy}: cannot be read: ") == 2


@pytest.mark.parametrize("boot", ["\0", "../..", "a/b"])
def test_boot_id_that_can_name_no_folder_is_none(tmp_path: Path, boot: str) -> None:
    """The run directory is named after it: a NUL in it ended every command with a traceback."""
    file = tmp_path / "proc/sys/kernel/random/boot_id"
    file.parent.mkdir(parents=True)
    file.write_text(boot)

    assert boot_of(open_host(str(tmp_path))) == ""


def test_reader_that_has_seen_enough_is_no_error() -> None:
    command = (
        f"{sys.executable} -c 'from accelkit.cli.main import main; raise SystemExit(main())' "
        "--help | true; exit ${PIPESTATUS[0]}"
    )

    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")

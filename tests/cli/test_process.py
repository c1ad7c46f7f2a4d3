"""The installed command as a process: terminals, pipes, signals, what is loaded."""

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelkit.testing.simulate import set_state

pytestmark = pytest.mark.slow  # its processes and pauses take seconds

PATIENCE_S = 15.0
ACCELKIT = (sys.executable, "-c", "from accelkit.cli.main import main; raise SystemExit(main())")


def ran(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [*ACCELKIT, *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def on_terminal(columns: int, *words: object, **variables: str) -> str:
    """What a command writes to a terminal of so many columns, with *variables* set."""
    mine, its = pty.openpty()
    try:
        command = [*ACCELKIT, *(str(word) for word in words)]
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        environment |= variables
        with subprocess.Popen(command, stdout=its, stderr=its, env=environment) as process:
            os.close(its)
            said = b"".join(_until_closed(mine))
            process.wait(PATIENCE_S)
        return said.decode().replace("\r\n", "\n")
    finally:
        os.close(mine)


def _until_closed(terminal: int) -> Iterator[bytes]:
    while select.select([terminal], [], [], PATIENCE_S)[0]:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            return
        if not part:
            return
        yield part


def test_output_that_is_not_for_a_terminal_has_no_colours(basic: Path) -> None:
    assert "\x1b" not in ran("devices", "--host", basic).stdout


def test_terminal_gets_colours_and_nothing_is_cut_off_however_narrow_it_is(split: Path) -> None:
    said = on_terminal(30, "devices", "--host", split)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)

    assert "\x1b[32mHEALTHY" in said
    assert [line.split()[-7:][0] for line in plain.splitlines()[1:3]] == [
        "sim/s00-0000",
        "sim/s00-0000-half-0",
    ]
    assert all(line.split()[-1] == "-" for line in plain.splitlines()[1:])


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "unknown"}])
def test_terminal_without_colours_gets_plain_text_that_is_not_cut_off(
    split: Path, variable: dict[str, str]
) -> None:
    assert (
        on_terminal(30, "devices", "--host", split, **variable)
        == ran("devices", "--host", split).stdout
    )


def test_output_that_cannot_hold_every_letter_is_no_fault(split: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    command = [*ACCELKIT, "devices", "--host", str(split)]

    answer = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.splitlines()[2].startswith("?? sim/s00-0000-half-0")


def test_trace_logs_the_calls_of_vendors_to_standard_error(basic: Path) -> None:
    answer = ran("devices", "--host", basic, "--trace")

    assert answer.stdout == ran("devices", "--host", basic).stdout
    assert re.search(r"vendor called vendor=sim call=inventory outcome=ok took_ms=", answer.stderr)
    assert "vendor read vendor=sim devices=s00-0000 s00-0001" in answer.stderr


def test_reader_that_has_seen_enough_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)

    command = [*ACCELKIT, "config", "schema"]
    ended = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False
    )
    os.close(writing)

    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("words", ["version", "--help", "devices --host {}", "config schema"])
def test_output_that_takes_no_more_is_a_fault_of_the_output(basic: Path, words: str) -> None:
    """It was a traceback, and the exit code of a bug."""
    command = [*ACCELKIT, *words.format(basic).split()]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False
        )

    said = "error: standard output cannot be written: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (3, said)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_are_closed_are_not_written_to(basic: Path, closed: str) -> None:
    command = f"{shlex.join(ACCELKIT)} devices --host {shlex.quote(str(basic))} {closed}"

    ended = subprocess.run(
        ["bash", "-c", command], capture_output=True, timeout=PATIENCE_S, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, b"")


def test_error_that_nobody_can_hear_keeps_its_exit_code(tmp_path: Path) -> None:
    command = f"{shlex.join(ACCELKIT)} config check {tmp_path}/none.yaml"

    codes = [
        subprocess.run(["bash", "-c", f"{command} {where}"], timeout=PATIENCE_S, check=False)
        for where in ("2>&-", "2>/dev/full")
    ]

    assert [ended.returncode for ended in codes] == [2, 2]


def with_plugin(site: Path, name: str, source: str) -> dict[str, str]:
    """The environment in which the plugin *name* is installed."""
    (site / f"{name}.py").write_text(source)
    described = site / f"{name}-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[accelkit]\n{name} = {name}\n")
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


@pytest.mark.slow
def test_plugin_that_ends_the_process_while_it_is_loaded_is_named_and_the_command_goes_on(
    tmp_path: Path,
) -> None:
    """Every command ended without a word, and with the plugin's status."""
    env = with_plugin(tmp_path, "deadly", "import os\nos._exit(0)\n")

    def answer(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*ACCELKIT, *words], capture_output=True, text=True, check=False, env=env
        )

    listed = answer("vendor", "list", "--host", str(tmp_path))
    devices = answer("devices", "--host", str(tmp_path))
    checked = answer("conformance", "run", "sim", "--only", "D01")

    why = "loading it ends the process, with code 0, so it is skipped"
    how = "mend or uninstall deadly; to see it: python -c 'import deadly'"
    assert "nvidia " in listed.stdout
    assert f"{why} [plugin-load]; {how}" in listed.stdout
    assert f"problem: deadly: the plugin is not used: {why}" in devices.stdout
    assert (checked.returncode, "1 pass" in checked.stdout) == (0, True)


def test_plugin_that_hangs_while_it_is_loaded_is_named(tmp_path: Path) -> None:
    """Every command stood still without a word."""
    env = with_plugin(tmp_path, "waiting", "import sys\nsys.stdin.read()\n")
    command = [*ACCELKIT, "vendor", "list", "--host", str(tmp_path)]

    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.communicate(timeout=PATIENCE_S)

    assert said.startswith("the plugin waiting 1.0 is still being loaded")
    assert process.returncode == 0


def test_interrupt_ends_with_130(basic: Path, tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text("[{read: /sys, do: hang 1s}, {at: 600s, do: lose accel-0}]")
    command = [*ACCELKIT, "simulate", "run", str(basic), "--faults", str(faults)]

    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        began = time.monotonic()
        # The first fault is in place when the command has come to wait for the second.
        while '"read"' not in (basic / "machine.json").read_text():
            assert time.monotonic() - began < PATIENCE_S
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE_S)

    assert code == 130


@pytest.mark.parametrize("words", ["['--help']", "['--version']", "['devices', '--help']"])
def test_help_loads_next_to_nothing(words: str) -> None:
    code = f"""
import sys
from accelkit.cli.main import main
main({words})
print(sorted({{m.split('.')[0] for m in sys.modules}} & set(
    ['asyncio', 'attr', 'cattrs', 'google', 'grpc', 'pluggy', 'pynvml', 'rich', 'yaml'])))
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )

    loaded = answer.stdout.splitlines()[-1]

    assert not {"asyncio", "cattrs", "grpc", "pluggy", "rich", "yaml"} & set(
        re.findall(r"\w+", loaded)
    )


def test_hanging_vendor_does_not_keep_the_command_from_ending(basic: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("vendors: [{name: sim, deadlineScale: 0.02}]")
    set_state(str(basic), ["hang", "discover", "600s"])

    answer = ran("devices", "--host", basic, "--policy", policy)

    assert "inventory got no answer" in answer.stdout


def test_completion_offers_commands_and_their_words() -> None:
    environment = {**os.environ, "_ACCELKIT_COMPLETE": "bash_complete"}

    def offered(line: str, word: int) -> list[str]:
        found = subprocess.run(
            ACCELKIT,
            env={**environment, "COMP_WORDS": line, "COMP_CWORD": str(word)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return [row.partition(",")[2] for row in found.stdout.splitlines()]

    assert offered("accelkit con", 1) == ["config", "conformance"]
    assert offered("accelkit config s", 2) == ["schema", "show"]
    assert offered("accelkit a", 1) == ["agent"]

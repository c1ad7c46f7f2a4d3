import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from accelkit.core.commands import OUTPUT_LIMIT, _kill_all, run_program
from accelkit.core.errors import AccessDenied, NotThere, SourceError, SourceTimeout
from accelkit.core.host import Finished
from accelkit.core.real_host import RealHost

SH = "/bin/sh"
PR_CAPBSET_DROP, CAP_SYS_CHROOT = 24, 18
"""linux/prctl.h, linux/capability.h"""


def test_a_program_answers_with_code_and_texts() -> None:
    finished = run_program([SH, "-c", "echo out; echo err >&2; exit 3"], 10)

    assert finished == Finished(code=3, out="out\n", err="err\n")


def test_arguments_are_not_read_by_a_shell() -> None:
    assert run_program(["/bin/echo", "$HOME; ls"], 10).out == "$HOME; ls\n"


def test_the_environment_is_small_and_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")

    out = run_program([sys.executable, "-c", "import os; print(sorted(os.environ))"], 10).out

    assert out == "['LC_ALL', 'PATH']\n"


def test_long_output_is_cut() -> None:
    finished = run_program([SH, "-c", "head -c 3000000 /dev/zero; echo end >&2"], 20)

    assert len(finished.out) == OUTPUT_LIMIT
    assert finished.err == "end\n"


def test_what_a_program_left_running_is_not_waited_for() -> None:
    finished = run_program([SH, "-c", "sleep 15 & echo $!"], 15)
    os.kill(int(finished.out), 9)

    assert finished.code == 0


def test_what_a_program_left_running_may_write_for_ever() -> None:
    finished = run_program([SH, "-c", "yes & exit 3"], 15)

    assert finished.code == 3
    assert len(finished.out) <= OUTPUT_LIMIT


def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    with pytest.raises(SourceTimeout, match=r"/bin/sh did not end within 0\.5 s"):
        run_program([SH, "-c", f"sleep 60 & echo $! > {pids}; wait"], 0.5)

    child = int(pids.read_text())
    while Path(f"/proc/{child}").exists() and _state(child) != "Z":
        time.sleep(0.01)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_a_program_that_closes_its_output_is_still_timed() -> None:
    with pytest.raises(SourceTimeout):
        run_program([SH, "-c", "exec >&- 2>&-; sleep 60"], 0.3)


def test_an_interrupt_ends_the_program(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)

    def interrupt() -> None:
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_program([SH, "-c", f"echo $$ > {pid}; exec sleep 60"], 60)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)

    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_a_program_that_ended_is_not_killed() -> None:
    with subprocess.Popen(["/bin/true"]) as program:
        program.wait()

        _kill_all(program)

    assert program.returncode == 0


def test_a_root_that_may_not_be_entered_is_denied() -> None:
    denied: list[AccessDenied] = []

    def without_the_right() -> None:
        # Of this thread alone: what it starts cannot regain the capability (capabilities(7)).
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_CHROOT)
        try:
            run_program(["/bin/echo"], 10, root="/proc/self/root")
        except AccessDenied as error:
            denied.append(error)

    thread = threading.Thread(target=without_the_right)
    thread.start()
    thread.join()

    assert [error.remedy for error in denied] == ["grant the capability SYS_CHROOT"]


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    (tmp_path / "program").write_text("no magic")
    (tmp_path / "program").chmod(0o755)

    with pytest.raises(AccessDenied):
        run_program([str(tmp_path / "data")], 5)
    with pytest.raises(SourceError, match="cannot be started"):
        run_program([str(tmp_path / "program")], 5)


def test_programs_are_named_by_existing_absolute_paths() -> None:
    with pytest.raises(SourceError, match="named by its absolute path"):
        RealHost().run(["sh"], 5)
    with pytest.raises(SourceError, match="named by its absolute path"):
        RealHost().run([], 5)
    with pytest.raises(NotThere, match="/bin/none: there is no such program"):
        RealHost().run(["/bin/none"], 5)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter another root")
def test_a_program_of_another_root_sees_that_root(tmp_path: Path) -> None:
    parts = run_program(["/usr/bin/ldd", "/bin/ls"], 10).out.split()
    for part in ("/bin/ls", *(part for part in parts if part.startswith("/"))):
        (tmp_path / part.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(part, tmp_path / part.lstrip("/"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/only-here").touch()

    finished = RealHost(str(tmp_path)).run(["/bin/ls", "/home"], 10)

    assert finished == Finished(code=0, out="only-here\n", err="")
    with pytest.raises(NotThere):
        RealHost(str(tmp_path)).run(["/bin/sh"], 10)

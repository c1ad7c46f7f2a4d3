import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from accelkit.cli.main import INTERRUPTED
from accelkit.conformance.catalogue import page
from accelkit.conformance.checks import CHECKS
from accelkit.testing.simulate import set_state
from tests.agent.remotes import until
from tests.cli.conftest import Run

ONE = CHECKS[0]


def test_checks_are_listed(run: Run) -> None:
    table = run("conformance", "list")
    tree = json.loads(run("conformance", "list", "-o", "json", "--only", "health").out)

    assert [line.split()[0] for line in table.lines] == ["ID", *(c.id for c in CHECKS)]
    assert {item["id"] for item in tree["items"]} == {c.id for c in CHECKS if "health" in c.badges}


def test_check_is_explained(run: Run) -> None:
    answer = run("conformance", "show", ONE.id.lower())

    assert answer.code == 0
    assert answer.out == page(ONE.id)


def test_vendor_is_checked(run: Run) -> None:
    answer = run("conformance", "run", "sim", "--only", "I01", "--only", "I02")

    assert answer.code == 0
    assert answer.lines == [
        "plugin sim, seed 0",
        "I01   pass           No two devices have one id.",
        "I02   pass           Names are DNS labels that leave room for suffixes.",
        "2 pass",
        "",
    ]


def test_must_that_fails_makes_the_answer_no_and_says_what_is_wrong(run: Run, basic: Path) -> None:
    set_state(str(basic), ["raise", "discover"])

    answer = run("conformance", "run", "sim", "--host", basic, "--only", "I01")

    assert answer.code == 1
    assert answer.lines[1] == "I01   fail           No two devices have one id."
    assert answer.lines[2].strip().startswith("RuntimeError: discover was told to raise")
    assert "badge core: refused" in answer.lines


def test_every_vendor_of_the_tree_is_checked_where_none_is_named(run: Run) -> None:
    tree = json.loads(run("conformance", "run", "--only", "I02", "-o", "json").out)

    assert {report["kind"] for report in tree} == {"ConformanceReport"}
    assert {report["subject"]["name"] for report in tree} >= {"generic", "nvidia", "sim"}


def test_report_says_what_was_checked_where_and_how(run: Run) -> None:
    answer = run("conformance", "run", "sim", "--product", "ring", "--only", "I02", "-o", "json")
    tree = json.loads(answer.out)

    assert (tree["kind"], tree["badges"], tree["summary"]["pass"]) == ("ConformanceReport", {}, 1)
    assert tree["subject"]["product"] == "ring"
    assert [(check["id"], check["verdict"]) for check in tree["checks"]] == [("I02", "pass")]


NOISY = """
from accelkit.core.hooks import hookimpl
from accelkit.vendors.sim.vendor import Sim

class Noisy(Sim):
    name = "noisy"

    def discover(self, host):
        print("hello from a plugin")
        return super().discover(host)

@hookimpl
def accelkit_vendors():
    return [Noisy]
"""


def test_what_a_plugin_prints_does_not_get_into_a_document(
    run: Run, tmp_path: Path, basic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    told = tmp_path / "noisy-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[accelkit]\nnoisy = noisy\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    answer = run("conformance", "run", "noisy", "--host", basic, "--only", "D01", "-o", "json")

    assert json.loads(answer.out)["subject"]["name"] == "noisy"
    assert "hello from a plugin" in answer.err


def test_report_for_ci_is_written_where_it_is_wanted(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"

    answer = run("conformance", "run", "sim", "--only", "I02", "--junit", file)

    assert answer.code == 0
    assert ET.fromstring(file.read_text()).find("testsuite/testcase") is not None


def test_what_failed_before_does_not_make_the_answer_no_again(
    run: Run, tmp_path: Path, basic: Path
) -> None:
    old, new, summary = (tmp_path / name for name in ("old.json", "new.json", "summary.md"))
    words = ("conformance", "run", "sim", "--host", basic, "--only", "I01", "-o", "json")
    old.write_text(run(*words).out)
    set_state(str(basic), ["raise", "discover"])
    failed = run(*words, "--markdown", summary)
    new.write_text(failed.out)

    assert (failed.code, run(*words, "--baseline", old).code) == (1, 1)
    assert run(*words, "--baseline", new).code == 0
    assert "**I01** of plugin sim (fail): No two devices have one id." in summary.read_text()
    there = run("conformance", "diff", old, new)
    assert (there.code, there.lines) == (
        1,
        ["SUBJECT  ID   BEFORE  AFTER", "sim      I01  pass    fail"],
    )
    assert run("conformance", "diff", new, old).code == 0
    same = run("conformance", "diff", new, new)
    assert (same.code, same.out) == (0, "nothing ended otherwise\n")
    tree = json.loads(run("conformance", "diff", new, old, "-o", "json").out)
    assert (tree["kind"], [item["after"] for item in tree["items"]]) == ("ChangeList", ["pass"])


def test_driver_of_another_is_reached_by_its_commands(run: Run, tmp_path: Path) -> None:
    """This one ends at once, so nothing that needs a driver can pass."""
    words = ("--driver", tmp_path, "--resource", "acme.com/npu", "--start", "true")

    answer = run("conformance", "run", *words, "--only", "DP01", "--deadline-scale", "0.01")

    assert answer.code == 1
    assert answer.lines[0] == "driver acme.com/npu, seed 0"
    assert answer.lines[1].startswith("DP01  fail ")


@pytest.mark.parametrize(
    "words, said",
    [
        (("run", "nope"), "vendor nope: is not installed"),
        (("run", "sim", "--only", "X99"), "X99: is no check, family, level or badge"),
        (("run", "sim", "--host", "/no/such"), "/no/such: is not a directory"),
        (("run", "--product", "ring"), "--product, --host and --faults go with one VENDOR"),
        (("run", "sim", "--product", "nope"), "product nope: is none of sim"),
        (("run", "sim", "--driver", "x"), "--driver goes with --resource or --dra, and without a"),
        (("run", "--driver", "x"), "--driver goes with --resource or --dra, and without a VENDOR"),
        (("run", "sim", "--hang", "x"), "mean something only with --driver"),
        (("run", "sim", "--only", "I02", "--junit", "/no/such/x"), "/no/such/x: cannot be written"),
        (("run", "sim", "--baseline", "/no/such"), "/no/such: cannot be read"),
        (("run", "sim", "--only", "I02", "--markdown", "/no/x"), "/no/x: cannot be written"),
        (("run", "sim", "--waivers", "/no/such"), "/no/such: cannot be read"),
        (("show", "X99"), "X99: is no check"),
        (("run", "sim", "--only", "D01", "--skip", "D"), "D: leaves out every check that is asked"),
        (("run", "sim", "--deadline-scale", "nan"), "nan is no number"),
        (("run", "sim", "--deadline-scale", "inf"), "inf is not in the range"),
        (
            ("run", "--driver", "x", "--resource", "a.b/c", "--hang", "kill 'it"),
            '--hang "kill \'it": No closing quotation',
        ),
        (("list", "--only", "X99"), "X99: is no check"),
        (("run", "sim", "--dra", "a.b"), "mean something only with --driver"),
        (("run", "--driver", "x"), "--driver goes with --resource or --dra"),
        (("serve", "x", "--kubernetes", "1.33"), "1.33 is none of 1.34, 1.35, 1.36, 1.37"),
    ],
)
def test_what_there_is_not_is_bad_input(run: Run, words: tuple[str, ...], said: str) -> None:
    answer = run("conformance", *words)

    assert answer.code == 2
    assert said in answer.err


def test_waivers_of_the_working_directory_are_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conformance.toml").write_text("[[waive]]\nid = 'X99'\n")
    monkeypatch.chdir(tmp_path)

    answer = run("conformance", "run", "sim", "--only", "I02")

    assert answer.code == 2
    assert answer.err.startswith("waive[0]: ")


def test_vendor_without_a_machine_is_checked_on_a_host(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every check failed for it."""
    (tmp_path / "plain-1.dist-info").mkdir()
    (tmp_path / "plain-1.dist-info/METADATA").write_text("Name: plain\nVersion: 1\n")
    (tmp_path / "plain-1.dist-info/entry_points.txt").write_text("[accelkit]\nplain = plain_one\n")
    (tmp_path / "plain_one.py").write_text(
        "from accelkit import Vendor, hookimpl\n"
        "class Plain(Vendor):\n"
        "    name = 'plain'\n"
        "    domain = 'plain.example'\n"
        "    def discover(self, host):\n"
        "        return ()\n"
        "@hookimpl\n"
        "def accelkit_vendors():\n"
        "    return [Plain]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    refused = run("conformance", "run", "plain", "--only", "D01")
    checked = run("conformance", "run", "plain", "--only", "D01", "--host", tmp_path)

    assert refused.code == 2
    assert refused.err.startswith("plain: has no simulated machine to run the checks on\nremedy: ")
    assert checked.lines[0] == "plugin plain, seed 0"


def test_node_is_kept_up_until_interrupted(tmp_path: Path) -> None:
    program = "import sys; from accelkit.cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", program, "conformance", "serve", str(tmp_path / "k")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline().rstrip() for _ in range(4)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert [line.split()[0] for line in lines] == ["kubelet", "kubeconfig", "CDI", "node"]
    assert process.returncode == INTERRUPTED


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_run_that_is_interrupted_leaves_nothing_and_says_what_it_did_not_come_to(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The driver went on running, and the report for CI was an empty file."""
    made, there, report = (tmp_path / name for name in ("made", "pid", "report.xml"))
    driver = f"sh -c 'echo $$ > {made}; mv {made} {there}; exec sleep 600'"
    words = ["--driver", str(tmp_path / "k"), "--resource", "acme.com/npu", "--start", driver]
    words += ["--only", "DP01", "--only", "DP02", "--junit", str(report)]
    program = "import sys; from accelkit.cli.main import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "conformance", "run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    asyncio.run(until(there.exists))

    process.send_signal(number)
    out, err = process.communicate(timeout=60)

    assert process.returncode == INTERRUPTED
    assert out.splitlines()[1:] == ["no check was run", "2 not run: DP01 DP02", ""]
    assert err.strip() == "interrupted"
    assert ET.fromstring(report.read_text())[0].get("tests") == "0"
    assert not Path("/proc", there.read_text().strip()).exists()

"""What the documentation promises: links that lead somewhere, examples that run, lists in full."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import attrs
import click
import grpc
import pytest
import yaml

from accelkit.backends.wire.status import CODES
from accelkit.cli.main import exit_code, main
from accelkit.cli.root import cli
from accelkit.core import errors, hooks, policy
from accelkit.core.backend import BackendFactory
from accelkit.core.serde.keys import key_of
from accelkit.core.telemetry import METRICS
from accelkit.core.vendor import Vendor
from tests.installing import install

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part == "data" for part in path.relative_to(ROOT).parts)
)
LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```(\w*)[^\n`]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^\$ cat ([\w.-]+)\n((?:[^$`].*\n)+)", re.MULTILINE)
"""A file that a console shows: it is there when its examples run."""
ACTS: Mapping[type[errors.AccelkitError], str] = {
    errors.ConfigError: "operator",
    errors.PluginError: "author of the plugin",
    errors.ModelError: "author of the plugin",
    errors.SourceError: "whoever runs the node",
    errors.PartitionError: "operator",
    errors.AllocationError: "user",
    errors.LedgerError: "whoever runs the node",
    errors.BackendError: "operator",
}
"""Who must act, by family."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Of the headings of *page*, as GitHub makes them."""
    prose = FENCE.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    dead = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)

    assert dead == []


def test_every_page_below_docs_is_reached_from_its_index() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "docs" / "index.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        links = (link.partition("#")[0] for link in LINK.findall(page.read_text()))
        todo += [(page.parent / link).resolve() for link in links if link and ":" not in link]

    assert [name_of(page) for page in PAGES if "docs" in page.parts and page not in seen] == []


# Examples.

ELSEWHERE = {
    "agent": "runs until SIGTERM: tests/cli",
    "explain": "asks an API server: tests/cli",
    "health": "asks an agent: tests/cli",
    "play": "starts an agent: tests/cli",
    "conformance run": "a stage of its own",
}
"""Commands whose examples are not run here."""


def examples(page: Path) -> Iterator[tuple[str, str]]:
    """Command lines of `accelkit` in consoles and shells of *page*, with what consoles show."""
    for language, text in FENCE.findall(page.read_text()):
        if language not in {"console", "sh"}:
            continue
        sign = "$ " if language == "console" else ""
        for part in re.split(rf"^{re.escape(sign)}", text, flags=re.MULTILINE)[1:]:
            words, _, shown = part.partition("\n")
            if words.startswith("accelkit "):
                yield words, shown if language == "console" else ""


def says(shown: str, said: str) -> bool:
    """Whether *said* is what a page shows: … stands for anything, also for lines."""
    wanted = re.escape(shown.strip()).replace("…", ".*")
    return not shown.strip() or bool(re.fullmatch(wanted, said.strip(), re.DOTALL))


READ_ON = {"tutorial", "abilities"}
"""Folders of pages that tests/docs follows word by word."""


@pytest.mark.timeout(300)  # a page runs many commands
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if [*examples(p)] and p.parent.name not in READ_ON],
    ids=name_of,
)
def test_examples_of_a_page_do_what_they_say(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the order of the page; one that ends otherwise than with 0 says ``# ends with N``."""
    if page.parent != ROOT and (page.parent / "pyproject.toml").exists():
        install(monkeypatch, tmp_path / "site", page.parent)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-policy.yaml").write_text("offers: [{name: all}]\n")
    for file, text in FILE.findall(page.read_text()):
        (tmp_path / file).write_text(text)
    wrong = []
    for line, shown in examples(page):
        words = shlex.split(line.replace("/tmp/", f"{tmp_path}/"), comments=True)[1:]
        if {words[0], " ".join(words[:2])} & ELSEWHERE.keys():
            continue
        promised = re.search(r"# ends with (\d+)", line)
        code = main(words)
        said = capsys.readouterr()
        if code != (int(promised[1]) if promised else 0):
            wrong.append(f"{line}: {code}: {said.err}")
        if not says(shown, said.out.replace(f"{tmp_path}/", "/tmp/")):
            wrong.append(f"{line}: says otherwise:\n{said.out}")

    assert wrong == [], "\n".join(wrong)


# Lists.


def rows(page: str) -> list[str]:
    """Rows of all tables of *page*, heads left out."""
    lines = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("|")]
    ruled = {n for n, line in enumerate(lines) if re.fullmatch(r"[|:\- ]+", line)}
    return [line for n, line in enumerate(lines) if n not in ruled and n + 1 not in ruled]


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{word} ")
        else:
            yield f"{before}{word}"


def test_every_command_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text()

    assert [name for name in commands(cli) if not re.search(rf"\b{name}\b", text)] == []


def test_every_metric_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["metrics"])
    printed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()}

    assert [metric.name for metric in METRICS if metric.name not in printed] == []


def family(kind: type[errors.AccelkitError]) -> Iterator[type[errors.AccelkitError]]:
    """*kind* and all that are made of it in accelkit.core, in the order of the module."""
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from family(child)


def row_of(kind: type[errors.AccelkitError]) -> str:
    acts = next(who for base, who in ACTS.items() if issubclass(kind, base))
    status = next(
        (code for base, code in CODES if issubclass(kind, base)), grpc.StatusCode.INTERNAL
    )
    means = (kind.__doc__ or "").splitlines()[0].rstrip(".")
    again = "yes" if kind.retryable else ""
    exits = exit_code(kind.__new__(kind))
    cells = (f"`{kind.code}`", f"`{kind.__name__}`", means, acts, again, str(exits), status.name)
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def test_every_error_is_in_the_reference() -> None:
    found = rows("docs/reference/errors.md")
    expected = [row_of(kind) for base in ACTS for kind in family(base)]

    assert [row for row in expected if row not in found] == []
    assert {kind for base in ACTS for kind in family(base)} | {errors.AccelkitError} == {
        *family(errors.AccelkitError)
    }


NOTED = re.compile(
    r"""(?:Problem|Condition|Unreadable)\([^()]*?\bcode="([a-z-]+)"|"""
    r"""(?:note|problem)\(\s*(?:AGENT,\s*)?"([a-z-]+)",|"""
    r"""\bcode, [a-z, ]+ = "([a-z-]+)"|"""
    r"""^[A-Z_]+ = "([a-z]+(?:-[a-z]+)+|lost|unmonitored)"$""",
    re.MULTILINE,
)


def test_every_code_of_a_problem_is_in_the_reference() -> None:
    """Those of the core, the agent and the backends, taints too; vendors' are the vendors'."""
    folders = ("core", "agent", "backends/kubelet", "backends/dra")
    sources = [p.read_text() for f in folders for p in (ROOT / "accelkit" / f).rglob("*.py")]
    noted = {code for text in sources for found in NOTED.findall(text) for code in found if code}
    pages = ("docs/reference/errors.md", "docs/reference/slices.md")
    told = {row.split("`")[1] for page in pages for row in rows(page) if "`" in row}

    assert len(noted) > 10
    assert noted - told == set()


FAILURES = sorted((ROOT / "docs" / "reference" / "failures").glob("*.md"))
DEFINED = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)


def named_on(page: Path) -> Iterator[tuple[str, str]]:
    """(folder or file, test or file) of the tests that the tables of *page* name.

    A folder holds for what follows it in a cell; the first one in the page's text for all others.
    """
    usual = re.search(r"`(tests/[\w/.]+)`", page.read_text())
    assert usual is not None
    for row in rows(name_of(page)):
        place = usual[1]
        for word in re.findall(r"`([^`]+)`", row.rpartition(" | ")[2]):
            if word.startswith("tests/"):
                place = word
                yield place, ""
            else:
                yield place, word


def known_in(place: str) -> set[str]:
    """Tests, and files of tests, in a folder or a file."""
    path = ROOT / place
    files = [path] if path.is_file() else [*path.rglob("*.py")]
    found = {name for file in files for name in DEFINED.findall(file.read_text())}
    return found | {file.name for file in files} | ({""} if path.exists() else set())


@pytest.mark.parametrize("page", FAILURES, ids=name_of)
def test_tests_that_a_table_of_failures_names_are_there(page: Path) -> None:
    named = [*named_on(page)]
    known = {place: known_in(place) for place in {place for place, _ in named}}

    assert len(named) > 10
    assert [(place, name) for place, name in named if name not in known[place]] == []


@pytest.mark.parametrize(
    "at",
    ["amd.health", "gaudi.facts", "intel.health", "neuron.health", "nvidia.health", "tpu.health"],
)
def test_every_condition_of_a_maker_is_on_its_page(at: str) -> None:
    text = (ROOT / "docs" / "reference" / f"{at.partition('.')[0]}.md").read_text()
    codes: Mapping[str, str] = import_module(f"accelkit.vendors.{at}").CONDITIONS

    assert [code for code in codes if f"`{code}`" not in text] == []


def test_every_hook_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "plugins.md").read_text()
    names = [name for name in vars(hooks) if name.startswith("accelkit_")]

    assert len(names) == 2
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_ability_of_vendors_and_backends_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "plugins.md").read_text()
    module = import_module(Vendor.__module__)
    abilities = {name for name in vars(module) if name.startswith("Supports")}

    assert [name for name in sorted(abilities) if f"`{name}`" not in text] == []
    assert f"`{BackendFactory.__name__}`" in text


# The policy.


def policy_keys(kind: type, seen: frozenset[type] = frozenset()) -> Iterator[tuple[str, str]]:
    """(class, key) of everything that a policy may say; a selection within one only once."""
    hints = get_type_hints(kind)
    for field in attrs.fields(kind):
        yield kind.__name__, key_of(field.name)
        for inner in classes(hints[field.name]):
            if inner not in seen:
                yield from policy_keys(inner, seen | {kind, inner})


def classes(hint: object) -> Iterable[type]:
    if isinstance(hint, type) and attrs.has(hint):
        return (hint,)
    return tuple(inner for arg in get_args(hint) for inner in classes(arg))


def test_every_key_of_a_policy_is_in_the_example_with_everything() -> None:
    text = (ROOT / "examples" / "policies" / "everything.yaml").read_text()
    words = set(re.findall(r"[A-Za-z]+(?=:)", text))

    assert {(kind, key) for kind, key in policy_keys(policy.Policy) if key not in words} == set()


@pytest.mark.parametrize(
    "file", sorted((ROOT / "examples" / "policies").glob("*.yaml")), ids=name_of
)
def test_policies_to_start_from_are_right(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(yaml.safe_load(file.read_text()), dict)

    assert main(["config", "check", str(file)]) == 0, capsys.readouterr().err

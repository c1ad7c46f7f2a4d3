# ruff: noqa: ARG002 - plugins that misbehave need little of what they are told
"""How checks are run, judged, counted and told."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs
import grpc
import grpc.aio
import pytest

from accelkit import Condition, Device, Evidence, Host, Unreadable
from accelkit.conformance import catalogue, render
from accelkit.conformance.bench import PluginBench, Scope
from accelkit.conformance.checks import CHECKS, AnyCheck
from accelkit.conformance.checks.making import in_process
from accelkit.conformance.intree import subject_of
from accelkit.conformance.model import Badge, Check, Feature, Inapplicable, Level, Verdict
from accelkit.conformance.report import Report, Result, granted
from accelkit.conformance.runner import Interrupted, Options, Select, chosen, run, run_check
from accelkit.conformance.subjects import PluginSubject
from accelkit.conformance.waivers import Waiver, read_waivers
from accelkit.core.errors import ConfigError
from accelkit.core.values import FrozenMap
from accelkit.core.vendor import SupportsDiagnosis
from accelkit.vendors.sim.vendor import Sim

ROOT = Path(__file__).parents[2]
SIM = PluginSubject(vendor=Sim)


def checked(
    body: Callable[[PluginBench], Iterator[str]], *needs: type | Feature, must: bool = True
) -> Check[PluginBench]:
    return in_process("X01", "It is so.", body, *needs, must=must)


def silent(_bench: PluginBench) -> Iterator[str]:
    yield from ()


def wrong(_bench: PluginBench) -> Iterator[str]:
    yield "it is not"


class Hanging(Sim):
    """Whose hardware never answers."""

    free = threading.Event()

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        self.free.wait()
        return super().discover(host)


class Exiting(Sim):
    def conditions(
        self, host: Host, device: Device, evidence: tuple[Evidence, ...]
    ) -> Iterable[Condition]:
        raise SystemExit(3)


def test_check_without_findings_passes() -> None:
    result = run_check(checked(silent), SIM)

    assert (result.verdict, result.findings) == (Verdict.PASS, ())


def test_check_with_a_finding_fails() -> None:
    result = run_check(checked(wrong), SIM)

    assert (result.verdict, result.findings) == (Verdict.FAIL, ("it is not",))


def test_ability_that_is_not_declared_makes_a_check_not_applicable() -> None:
    result = run_check(checked(wrong, SupportsDiagnosis), SIM)

    assert result.verdict is Verdict.NOT_APPLICABLE
    assert result.findings == ("the plugin does not declare diagnosis",)


def test_feature_that_is_missing_makes_a_check_not_applicable() -> None:
    result = run_check(checked(wrong, Feature.CUT), SIM)

    assert result.findings == ("nothing says how a machine with partitions is made",)


def test_check_that_cannot_run_fails() -> None:
    """Skipping is not passing."""

    def breaks(bench: PluginBench) -> Iterator[str]:
        yield str(bench.rig(count=100_000))

    result = run_check(checked(breaks), SIM)

    assert result.verdict is Verdict.FAIL
    assert "100000 is not from 1 to" in result.findings[0]


def test_check_that_differs_over_repeats_is_unstable() -> None:
    def sometimes(bench: PluginBench) -> Iterator[str]:
        if bench.seed % 2:
            yield "odd"

    result = run_check(checked(sometimes), SIM, Options(repeat=4))

    assert (result.verdict, result.findings) == (Verdict.UNSTABLE, ("odd",))


def test_check_that_finds_out_that_it_does_not_apply_says_so() -> None:
    def inapplicable(_bench: PluginBench) -> Iterator[str]:
        yield from ()
        raise Inapplicable("there is no such thing")

    result = run_check(checked(inapplicable), SIM)

    assert (result.verdict, result.findings) == (
        Verdict.NOT_APPLICABLE,
        ("there is no such thing",),
    )


def test_whatever_a_plugin_raises_fails_its_check() -> None:
    def interrupts(_bench: PluginBench) -> Iterator[str]:
        yield from ()
        raise KeyboardInterrupt("by the\nplugin")

    result = run_check(checked(interrupts), SIM)

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].startswith("KeyboardInterrupt: by the plugin (at ")


def test_call_that_is_refused_is_told_in_one_line() -> None:
    def refused(_bench: PluginBench) -> Iterator[str]:
        yield from ()
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(grpc.StatusCode.NOT_FOUND, nothing, nothing, "no such device")

    (finding,) = run_check(checked(refused), SIM).findings

    assert finding.startswith("a call fails: rpc error: code = NotFound desc = no such device (at ")


def test_cleaning_up_that_fails_is_a_finding_and_the_run_goes_on() -> None:
    def leaves(bench: PluginBench) -> Iterator[str]:
        def undo() -> None:
            raise OSError("busy")

        bench.later(undo)
        yield from ()

    result = run_check(checked(leaves), SIM)

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].startswith("it cannot be cleaned up: OSError: busy")


def test_failure_is_waived_until_its_last_day() -> None:
    waiver = Waiver(id="X01", reason="known", expires=date(2030, 1, 31))
    on = Options(waivers=(waiver,), today=date(2030, 1, 31))
    after = attrs.evolve(on, today=date(2030, 2, 1))

    assert run_check(checked(wrong), SIM, on).verdict is Verdict.WAIVED
    assert run_check(checked(wrong), SIM, after).verdict is Verdict.FAIL


def test_hanging_plugin_fails_the_check_that_it_hangs_in_and_no_other() -> None:
    discovers = next(c for c in CHECKS if c.id == "D01")
    impatient = Options(deadline_scale=0.02)
    try:
        results = [
            run_check(check, PluginSubject(vendor=Hanging), impatient)
            for check in (discovers, checked(silent))
        ]
    finally:
        Hanging.free.set()

    assert [r.verdict for r in results] == [Verdict.FAIL, Verdict.PASS]
    assert "has not ended after 1.2 s" in results[0].findings[0]
    assert "discover" in results[0].findings[0]


def test_plugin_that_ends_the_interpreter_only_fails_its_checks() -> None:
    health = next(c for c in CHECKS if c.id == "H02")

    assert run_check(health, PluginSubject(vendor=Exiting)).verdict is Verdict.FAIL


def test_nothing_is_left_of_a_check() -> None:
    made: list[Path] = []

    def makes(bench: PluginBench) -> Iterator[str]:
        made.append(Path(bench.rig().directory or ""))
        made.append(bench.directory())
        yield from ()

    run_check(checked(makes), SIM)

    assert len(made) == 2
    assert not any(path.exists() for path in made)


def test_scope_undoes_the_latest_first() -> None:
    undone: list[int] = []
    scope = Scope(0, 1.0)
    for number in (1, 2):
        scope.later(lambda number=number: undone.append(number))  # type: ignore[misc]  # mypy#7464
    scope.close()

    assert undone == [2, 1]


@pytest.mark.parametrize(
    "only,first",
    [
        (("D01",), ["D01"]),
        (("C",), [f"C{n:02}" for n in range(1, 10)]),
        (("sharing",), ["P11", "P12"]),
    ],
)
def test_checks_are_selected_by_id_family_and_badge(
    only: tuple[str, ...], first: list[str]
) -> None:
    assert [c.id for c in chosen(Select(only=only))] == first


def test_level_selects_and_never_wins() -> None:
    ids = {c.id for c in chosen(Select(only=("L1",), never=("D", "H01")))}

    assert "I01" in ids
    assert not ids & {"H01", "D01", "DP01"}


def test_selecting_what_there_is_not_is_an_error() -> None:
    with pytest.raises(ConfigError, match="Z99: is no check"):
        chosen(Select(only=("Z99",)))


def test_run_tells_results_as_they_come_and_stops_at_the_first_failure() -> None:
    heard: list[Result] = []

    class Empty(Sim):
        def discover(self, host: Host) -> Iterable[Device | Unreadable]:
            return ()

    report = run(
        PluginSubject(vendor=Empty),
        select=Select(only=("I",), never=("L2",)),
        options=Options(fail_fast=True),
        heard=heard.append,
    )

    asked = [check.id for check in chosen(Select(only=("I",), never=("L2",)))]
    assert tuple(heard) == report.results
    assert report.results[-1].verdict is Verdict.FAIL
    assert report.not_run == tuple(asked[len(heard) :])
    assert report.not_run


def test_run_that_is_interrupted_tells_what_it_has_come_to() -> None:
    def interrupts(result: Result) -> None:
        assert result.id == "I01"
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as ended:
        run(SIM, select=Select(only=("I01", "I02")), heard=interrupts)

    assert [result.id for result in ended.value.report.results] == ["I01"]
    assert ended.value.report.not_run == ("I02",)


def result_of(ident: str, verdict: Verdict, *findings: str, must: bool = True) -> Result:
    return Result(
        id=ident,
        claim=f"{ident} holds.",
        level=Level.L1,
        must=must,
        badges=frozenset({Badge.CORE}),
        verdict=verdict,
        findings=findings,
    )


def of_core(ident: str, *, must: bool = True) -> AnyCheck:
    return attrs.evolve(checked(silent, must=must), id=ident, badges=frozenset({Badge.CORE}))


PASSED = {"X01": Verdict.PASS}


@pytest.mark.parametrize(
    "verdict, must, badges",
    [
        (Verdict.PASS, True, {Badge.CORE: True}),
        (Verdict.NOT_APPLICABLE, True, {Badge.CORE: True}),
        (Verdict.FAIL, False, {Badge.CORE: True}),
        (Verdict.FAIL, True, {Badge.CORE: False}),
        (Verdict.UNSTABLE, True, {Badge.CORE: False}),
        (Verdict.WAIVED, True, {Badge.CORE: False}),
    ],
)
def test_badge_needs_every_applicable_must_check(
    verdict: Verdict, must: bool, badges: dict[Badge, bool]
) -> None:
    checks = [of_core("X01"), of_core("X02", must=must)]

    assert granted(checks, {**PASSED, "X02": verdict}) == badges


def test_badge_is_not_granted_before_each_of_its_checks_was_run() -> None:
    """A run of one check granted the badge of fifty."""
    checks = [of_core("X01"), of_core("X02"), of_core("X03")]

    assert granted(checks, PASSED) == {}
    assert granted(checks, {**PASSED, "X02": Verdict.FAIL}) == {Badge.CORE: False}


PLACES = next(check for check in CHECKS if check.id == "T04")
LINKS = next(check for check in CHECKS if check.id == "T01")


@pytest.mark.parametrize(
    "places,links,badges",
    [
        (Verdict.PASS, Verdict.PASS, {Badge.TOPOLOGY: True}),
        (Verdict.FAIL, Verdict.PASS, {Badge.TOPOLOGY: False}),
        (Verdict.PASS, Verdict.NOT_APPLICABLE, {}),
        (Verdict.FAIL, Verdict.NOT_APPLICABLE, {}),
    ],
)
def test_what_applies_to_everybody_is_no_badge_of_an_ability(
    places: Verdict, links: Verdict, badges: dict[Badge, bool]
) -> None:
    assert granted((PLACES, LINKS), {"T04": places, "T01": links}) == badges


def test_device_that_cannot_be_shared_has_no_badge_for_it() -> None:
    report = run(subject_of("gaudi"), select=Select(only=("sharing",)))

    assert {r.id: r.findings for r in report.results} == {
        "P11": ("its devices cannot be shared",),
        "P12": ("its devices cannot be shared",),
    }
    assert report.badges == {}


def test_badge_to_which_nothing_applies_is_neither_granted_nor_refused() -> None:
    assert granted([of_core("X01")], {"X01": Verdict.NOT_APPLICABLE}) == {}


REPORT = Report(
    kind="plugin",
    name="acme",
    abilities=("health",),
    product="a100",
    seed=7,
    badges=FrozenMap({Badge.CORE: False}),
    not_run=("X05", "X06"),
    results=(
        result_of("X01", Verdict.PASS),
        result_of("X02", Verdict.FAIL, "device \x01 is wrong", "and another"),
        result_of("X03", Verdict.NOT_APPLICABLE, "no links"),
        result_of("X04", Verdict.FAIL, "should be", must=False),
    ),
)


def test_report_as_text_has_a_line_for_each_check_and_findings_below() -> None:
    text = render.as_text([REPORT])

    assert "X01   pass           X01 holds.\n" in text
    assert f"\n{'':20} and another\n" in text
    assert "X03   not-applicable X03 holds. [no links]\n" in text
    assert "badge core: refused\n1 pass, 2 fail, 1 not-applicable\n2 not run: X05 X06\n" in text


def test_report_as_json_is_one_document() -> None:
    found = json.loads(render.as_json([REPORT]))

    assert (found["apiVersion"], found["kind"]) == ("accelkit.dev/v1", "ConformanceReport")
    assert found["subject"]["name"] == "acme"
    assert found["badges"] == {"core": "refused"}
    assert found["not_run"] == ["X05", "X06"]
    assert found["checks"][1]["findings"] == ["device \x01 is wrong", "and another"]
    assert found["summary"]["fail"] == 2


def test_several_reports_as_json_are_a_list() -> None:
    assert len(json.loads(render.as_json([REPORT, REPORT]))) == 2


def test_report_as_junit_can_be_read_back() -> None:
    root = ET.fromstring(render.as_junit([REPORT]))

    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "2")
    failure = suite[1].find("failure")
    assert failure is not None
    assert failure.text == "device \ufffd is wrong\nand another"


def test_report_as_markdown_is_a_row_for_each_and_what_failed() -> None:
    lines = render.as_markdown([REPORT, attrs.evolve(REPORT, name="other", results=())]).split("\n")

    assert lines[2:4] == [
        "| plugin acme a100 | ~~core~~ | 1 | 2 | 1 | 0 | 0 | 2 |",
        "| plugin other a100 | ~~core~~ | 0 | 0 | 0 | 0 | 0 | 2 |",
    ]
    assert lines[5:] == [
        "**X02** of plugin acme a100 (fail): X02 holds.",
        "",
        "    device \ufffd is wrong",
        "    and another",
        "",
        "**X04** of plugin acme a100 (fail, a should): X04 holds.",
        "",
        "    should be",
        "",
    ]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "conformance.toml"
    path.write_text(text)
    return path


def test_waivers_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, '[[waive]]\nid = "D01"\nreason = "known"\nexpires = 2030-01-31\n')

    assert read_waivers(path, {"D01"}) == (
        Waiver(id="D01", reason="known", expires=date(2030, 1, 31)),
    )


@pytest.mark.parametrize(
    "text,problem",
    [
        ('[[waive]]\nid = "Z1"\nreason = "x"\nexpires = 2030-01-31', r"waive\[0\]: there is no"),
        ('[[waive]]\nid = "D01"\nreason = " "\nexpires = 2030-01-31', "must be a sentence"),
        ('[[waive]]\nid = "D01"\nreason = "x"\nexpires = "soon"', "must be a date"),
        ('[[waive]]\nid = "D01"\nreason = "x"', "must have id, reason and expires"),
        ("waive = 3", "must be a list"),
        (
            2 * '[[waive]]\nid = "D01"\nreason = "x"\nexpires = 2030-01-31\n',
            "D01: is waived twice",
        ),
        ("wave = 3", "wave: is not known"),
        ("waive = ", "is not TOML"),
    ],
)
def test_waivers_that_are_wrong_say_where(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_waivers(write(tmp_path, text), {"D01"})


def test_waivers_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_waivers(tmp_path / "nowhere.toml", ())


def test_ids_are_unique_and_every_check_has_a_reason() -> None:
    ids = [check.id for check in CHECKS]

    assert len(ids) == len(set(ids))
    assert catalogue.reasons().keys() == set(ids)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_claim_is_one_sentence(check: AnyCheck) -> None:
    assert check.claim[0].isupper()
    assert check.claim.endswith(".")
    assert check.badges


def test_pages_of_checks_are_as_their_data_says() -> None:
    """Write them by: python -m accelkit.conformance.catalogue docs/conformance."""
    folder = ROOT / "docs" / "conformance"
    there = {path.name: path.read_text() for path in folder.glob("*.md")}

    assert there == catalogue.pages()


def test_page_of_a_check_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ConfigError, match="Z99: is no check"):
        catalogue.page("Z99")

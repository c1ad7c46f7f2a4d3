"""Finding plugins and loading them one by one."""

import subprocess
import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from accelkit.core.real_host import RealHost
from accelkit.core.registry import LoadFailure, Plugin, Registry, hardware_present, load_plugins

VENDOR = """
from accelkit import Vendor, hookimpl

class Acme(Vendor):
    name = "{name}"
    domain = "acme.example"
    def discover(self, host):
        return ()

@hookimpl
def accelkit_vendors():
    return [Acme]
"""
BACKEND = """
from accelkit.core.backend import BackendFactory
from accelkit.core.hooks import hookimpl

@hookimpl
def accelkit_backends():
    return [BackendFactory(name="koordinator", create=None)]
"""
HOOK = """
from accelkit import hookimpl

@hookimpl
def {hook}:
    {body}
"""


class Plugins:
    """Modules that are installed for one test."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder = folder
        self.prefix = prefix
        self.points: list[EntryPoint] = []

    def add(self, name: str, source: str) -> None:
        module = f"{self.prefix}_{len(self.points)}"
        (self.folder / f"{module}.py").write_text(source)
        self.points.append(EntryPoint(name=name, value=module, group="accelkit"))


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return Plugins(folder, f"plugin_{tmp_path.name.replace('-', '_')}")


def failures(plugins: Plugins, run: Path | None = None) -> list[tuple[str, str, str]]:
    registry = load_plugins(None if run is None else str(run), plugins.points)
    return [(f.plugin, f.code, f.reason) for f in registry.failures]


def test_vendors_and_backends_are_found_by_name(plugins: Plugins) -> None:
    plugins.add("koordinator", BACKEND)
    plugins.add("acme", VENDOR.format(name="acme"))

    registry = load_plugins(points=plugins.points)

    assert registry.failures == ()
    assert [(n, v.domain) for n, v in registry.vendors.items()] == [("acme", "acme.example")]
    assert list(registry.backends) == ["koordinator"]
    assert registry.plugins["acme"] == Plugin(
        name="acme", module=plugins.points[1].value, vendors=("acme",)
    )
    assert registry.plugins["koordinator"].backends == ("koordinator",)


@pytest.mark.parametrize("source", ["", VENDOR.format(name="acme").replace("@hookimpl", "")])
def test_plugin_with_no_hook_at_all_is_told_what_it_lacks(plugins: Plugins, source: str) -> None:
    """Its author saw nothing anywhere: neither the vendor nor a reason."""
    plugins.add("empty", source)

    registry = load_plugins(points=plugins.points)

    assert registry == Registry(failures=registry.failures)
    (failure,) = registry.failures
    assert (failure.plugin, failure.code) == ("empty", "plugin-contract")
    assert failure.reason == f"{plugins.points[0].value} has no hook"
    assert "accelkit.hookimpl" in failure.remedy


def test_what_plugins_print_while_they_are_loaded_is_no_answer_of_ours(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stood before the JSON of commands."""
    plugins.add("acme", f"print('hello')\n{VENDOR.format(name='acme')}")

    load_plugins(points=plugins.points)

    assert capsys.readouterr() == ("", "hello\n")


def test_who_waits_hears_which_plugin_is_being_loaded(plugins: Plugins) -> None:
    plugins.add("acme", VENDOR.format(name="acme"))
    plugins.add("broken", "1/0")
    heard: list[str] = []

    load_plugins(points=plugins.points, told=heard.append)

    assert heard == ["acme", "", "broken", ""]


def test_vendor_that_is_lacking_is_explained_by_its_plugin(plugins: Plugins) -> None:
    plugins.add("acme", "raise ValueError('no')")

    registry = load_plugins(points=plugins.points)

    assert registry.lack("acme").startswith("is not used: ValueError: no (at ")
    assert registry.lack("acme").endswith(".py:1 <module>)")
    assert registry.lack("other") == "is not installed"


def test_plugin_that_gives_one_name_twice_is_told_so(plugins: Plugins) -> None:
    source = VENDOR.format(name="acme").replace("[Acme]", "[Acme, Acme]")
    plugins.add("acme", source)

    assert failures(plugins) == [
        ("acme", "plugin-contract", "'acme' is of the plugin acme already")
    ]


@pytest.mark.parametrize(
    "source,reason",
    [
        ("1/0", "ZeroDivisionError: division by zero"),
        (
            "import nothing_of_this_name",
            "ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise BaseException('odd')", "BaseException: odd"),
        ("def (:", "SyntaxError: "),
        (
            HOOK.format(hook="accelkit_vendors()", body="raise SystemExit(4)"),
            "SystemExit: 4",
        ),
        (
            HOOK.format(hook="accelkit_vendors(zz)", body="return []"),
            "PluginValidationError: ",
        ),
        (
            HOOK.format(hook="accelkit_vendor()", body="return []"),
            "PluginValidationError: ",
        ),
    ],
)
def test_whatever_a_plugin_raises_is_its_own_problem(
    plugins: Plugins, source: str, reason: str
) -> None:
    plugins.add("bad", source)
    plugins.add("good", VENDOR.format(name="acme"))

    registry = load_plugins(points=plugins.points)

    (failure,) = registry.failures
    assert (failure.plugin, failure.code) == ("bad", "plugin-load")
    assert failure.reason.startswith(reason)
    assert failure.traceback.startswith("Traceback")
    assert list(registry.vendors) == ["acme"]


def test_plugin_that_raises_says_how_to_see_it(plugins: Plugins) -> None:
    plugins.add("bad", "1/0")
    plugins.add("lost", "")
    plugins.points[-1] = EntryPoint(
        name="lost", value=f"{plugins.points[-1].value}:nothing", group="accelkit"
    )
    plugins.add("typo", HOOK.format(hook="accelkit_vendor()", body="return []"))

    told = [failure.remedy for failure in load_plugins(points=plugins.points).failures]

    bad, lost = (point.module for point in plugins.points[:2])
    assert told == [
        f"mend or upgrade the plugin; to see it: python -c 'import {bad}'",
        f"mend or upgrade the plugin; to see it: python -c 'from {lost} import nothing'",
        "the hooks are accelkit_vendors() and accelkit_backends()",
    ]


@pytest.mark.parametrize(
    "source,how",
    [
        ("import os; os._exit(0)", "with code 0"),
        ("import os; os._exit(7)", "with code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL"),
        (HOOK.format(hook="accelkit_vendors()", body="import os; os._exit(1)"), "with code 1"),
    ],
)
def test_plugin_that_would_end_a_command_is_named_and_left_out(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, source: str, how: str
) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # as in a command
    plugins.add("acme", VENDOR.format(name="acme"))
    plugins.add("deadly", source)
    module = plugins.points[-1].module

    first = load_plugins(points=plugins.points)
    again = load_plugins(points=plugins.points)

    (failure,) = first.failures
    assert (failure.plugin, failure.code) == ("deadly", "plugin-load")
    assert failure.reason == f"loading it ends the process, {how}, so it is skipped"
    assert failure.remedy == f"mend or uninstall {module}; to see it: python -c 'import {module}'"
    assert list(first.vendors) == ["acme"]
    assert again == first


def test_interrupt_is_not_a_plugins_problem(plugins: Plugins, tmp_path: Path) -> None:
    plugins.add("slow", "raise KeyboardInterrupt")

    with pytest.raises(KeyboardInterrupt):
        load_plugins(str(tmp_path / "run"), plugins.points)
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize("answer", ["None", "'acme'", "{}"])
def test_hook_answers_a_list(plugins: Plugins, answer: str) -> None:
    plugins.add(
        "odd",
        HOOK.format(hook="accelkit_vendors()", body=f"return {answer}"),
    )

    told = failures(plugins)

    assert [(p, c) for p, c, _ in told] == [("odd", "plugin-contract")]


def test_plugin_may_have_no_vendor_for_this_machine(plugins: Plugins) -> None:
    plugins.add("none", HOOK.format(hook="accelkit_vendors()", body="return []"))

    assert failures(plugins) == []


def test_class_that_breaks_the_contract_leaves_the_others_of_its_plugin(plugins: Plugins) -> None:
    plugins.add(
        "two",
        VENDOR.format(name="acme").replace("[Acme]", "[Bad, Acme]")
        + "\nclass Bad(Acme):\n    name = 'BAD'\n",
    )

    registry = load_plugins(points=plugins.points)

    assert list(registry.vendors) == ["acme"]
    assert [(f.plugin, f.code) for f in registry.failures] == [("two", "plugin-contract")]
    assert registry.plugins["two"].vendors == ("acme",)


@pytest.mark.parametrize("api,code", [(2, "api-too-new"), (0, "api-too-old")])
def test_plugin_of_another_api_says_so(plugins: Plugins, api: int, code: str) -> None:
    plugins.add("acme", VENDOR.format(name="acme") + f"\nAcme.api = {api}\n")

    ((plugin, told, _),) = failures(plugins)

    assert (plugin, told) == ("acme", code)


def test_class_whose_fields_raise_is_its_own_problem(plugins: Plugins) -> None:
    plugins.add(
        "acme",
        VENDOR.format(name="acme")
        + "\nclass Meta(type(Acme)):\n    name = property(lambda cls: 1/0)\n"
        + "\nclass Odd(Vendor, metaclass=Meta):\n    pass\nAcme = Odd\n",
    )

    ((plugin, _, reason),) = failures(plugins)

    assert plugin == "acme"
    assert reason.startswith("ZeroDivisionError: division by zero (at ")


def test_first_plugin_by_name_has_a_vendors_name(plugins: Plugins) -> None:
    plugins.add("second", VENDOR.format(name="acme"))
    plugins.add("first", VENDOR.format(name="acme"))

    registry = load_plugins(points=plugins.points)

    assert registry.vendors["acme"].__module__ == plugins.points[1].value
    assert registry.failures == (
        LoadFailure(
            plugin="second",
            code="plugin-contract",
            reason="'acme' is of the plugin first already",
            remedy="give one of them another name, or uninstall it",
        ),
    )


def test_two_plugins_of_one_name_are_told_apart(plugins: Plugins) -> None:
    plugins.add("acme", VENDOR.format(name="acme"))
    plugins.add("acme", VENDOR.format(name="other"))

    assert failures(plugins) == [
        ("acme", "plugin-load", f"{plugins.points[0].value} has this name already")
    ]


def one_function(root: Path, vendor_id: str) -> RealHost:
    """A host with one PCI function."""
    function = root / "sys/bus/pci/devices/0000:01:00.0"
    function.mkdir(parents=True)
    for name, text in {"vendor": vendor_id, "device": "0x0001", "class": "0x030200"}.items():
        (function / name).write_text(f"{text}\n")
    return RealHost(str(root))


LOADS = """
import sys
from importlib.metadata import EntryPoint
from accelkit.core.registry import load_plugins
run, folder, *names = sys.argv[1:]
sys.path.insert(0, folder)
points = [EntryPoint(name=n, value=m, group="accelkit") for n, m in (p.split("=") for p in names)]
registry = load_plugins(run, points)
print(*registry.vendors, *(f.plugin for f in registry.failures))
"""


def load_elsewhere(plugins: Plugins, run: Path) -> subprocess.CompletedProcess[str]:
    names = [f"{p.name}={p.value}" for p in plugins.points]
    return subprocess.run(
        [sys.executable, "-c", LOADS, str(run), str(plugins.folder), *names],
        capture_output=True,
        text=True,
        check=False,
    )


def test_plugin_that_ends_the_process_twice_is_skipped_next_time(
    plugins: Plugins, tmp_path: Path
) -> None:
    """AG23."""
    run = tmp_path / "run"
    plugins.add("acme", VENDOR.format(name="acme"))
    plugins.add("deadly", "import os; os._exit(7)")

    first = load_elsewhere(plugins, run)
    second = load_elsewhere(plugins, run)
    third = load_elsewhere(plugins, run)

    assert (first.returncode, first.stdout) == (7, "")
    assert (second.returncode, second.stdout) == (7, "")
    assert (third.returncode, third.stdout) == (0, "acme deadly\n")
    assert failures(plugins, run) == [
        ("deadly", "plugin-load", "loading it ended the process 2 times, so it is skipped")
    ]
    assert sorted(p.name for p in run.iterdir()) == ["loading-0", "loading-1"]


def test_plugin_that_was_loaded_by_a_process_that_was_killed_is_loaded_again(
    plugins: Plugins, tmp_path: Path
) -> None:
    """Seen: a kill -9 in the first half second cost a plugin until the node was booted."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "loading-0").write_text("acme")
    plugins.add("acme", VENDOR.format(name="acme"))

    registry = load_plugins(str(run), plugins.points)

    assert (list(registry.vendors), registry.failures) == (["acme"], ())
    assert list(run.iterdir()) == []


def test_skipped_plugin_says_how_to_try_it_again(plugins: Plugins, tmp_path: Path) -> None:
    plugins.add("deadly", "import os; os._exit(7)")
    load_elsewhere(plugins, tmp_path)
    load_elsewhere(plugins, tmp_path)

    (failure,) = load_plugins(str(tmp_path), plugins.points).failures

    assert (
        failure.remedy == f"upgrade the plugin, or remove {tmp_path / 'loading-0'} to try it again"
    )


def test_other_version_of_a_plugin_is_tried_again(plugins: Plugins, tmp_path: Path) -> None:
    (tmp_path / "loading-0").write_text("acme 0.9")
    plugins.add("acme", VENDOR.format(name="acme"))

    registry = load_plugins(str(tmp_path), plugins.points)

    assert (list(registry.vendors), registry.failures) == (["acme"], ())
    assert [p.name for p in tmp_path.iterdir()] == ["modules"]


def test_installed_plugins_are_found() -> None:
    assert "nvidia" in load_plugins().vendors


def test_loading_plugins_loads_no_library_of_theirs() -> None:
    program = (
        "import sys; from accelkit.core.registry import load_plugins; load_plugins();"
        "print([m for m in ('grpc', 'pynvml', 'cattrs', 'yaml', 'click') if m in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("vendor_id,present", [("0x1dea", True), ("0x10de", False)])
def test_vendor_is_asked_where_its_hardware_is(
    plugins: Plugins, tmp_path: Path, vendor_id: str, present: bool
) -> None:
    plugins.add(
        "acme",
        VENDOR.format(name="acme")
        + "\nfrom accelkit import PciMatch\nAcme.hardware = (PciMatch(vendor=0x1dea),)\n",
    )
    acme = load_plugins(points=plugins.points).vendors["acme"]

    assert hardware_present(acme, one_function(tmp_path, vendor_id)) == present


@pytest.mark.parametrize("path, present", [("dev/acme", True), ("dev/other", False)])
def test_vendor_is_asked_where_a_platform_of_it_is_though_nothing_is_on_the_bus(
    plugins: Plugins, tmp_path: Path, path: str, *, present: bool
) -> None:
    plugins.add(
        "acme",
        VENDOR.format(name="acme")
        + "\nfrom accelkit import PciMatch\nAcme.hardware = (PciMatch(vendor=0x1dea),)\n"
        + "Acme.platforms = ('/dev/acme',)\n",
    )
    acme = load_plugins(points=plugins.points).vendors["acme"]
    host = tmp_path / "host"
    (host / path).parent.mkdir(parents=True)
    (host / path).touch()

    assert hardware_present(acme, RealHost(str(host))) is present


def test_vendor_that_names_no_hardware_is_always_asked(plugins: Plugins, tmp_path: Path) -> None:
    plugins.add("acme", VENDOR.format(name="acme"))
    acme = load_plugins(points=plugins.points).vendors["acme"]

    assert hardware_present(acme, RealHost(str(tmp_path)))

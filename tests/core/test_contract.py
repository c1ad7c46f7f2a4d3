"""What a plugin's classes must be before anyone builds one."""

from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from accelkit.core.backend import BackendFactory
from accelkit.core.contract import check_factory, check_vendor
from accelkit.core.errors import ApiTooNew, ApiTooOld, PluginContractError
from accelkit.core.host import Host
from accelkit.core.model import Condition, Device, Unreadable
from accelkit.core.vendor import Access, PciMatch, Signals, Vendor


class Acme(Vendor):
    name = "acme"
    domain = "acme.example"
    hardware = (PciMatch(vendor=0x1DEA),)
    attributes = {"firmware": str}  # noqa: RUF012 - as plugins write it
    machine = "acme_accelkit.machine:Machine"

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:  # noqa: ARG002 - never asked
        return ()


class Unfinished(Vendor):
    name = "acme"
    domain = "acme.example"


class Nameless(Acme):
    name = None  # type: ignore[assignment]  # what is tested
    domain = None  # type: ignore[assignment]  # what is tested


@attrs.frozen
class Needy:
    path: str


def changed(**fields: Any) -> type[Vendor]:  # type: ignore[explicit-any]  # of any type
    return type("Changed", (Acme,), fields)


def test_class_that_keeps_the_contract_is_used() -> None:
    assert check_vendor(Acme) is Acme


@pytest.mark.parametrize("answer", [Acme({}), int, "acme", None])
def test_only_vendor_classes_are_vendors(answer: object) -> None:
    with pytest.raises(PluginContractError, match="is not a subclass of Vendor"):
        check_vendor(answer)


def test_signals_may_be_told_by_each_object() -> None:
    kind = changed(signals=property(lambda _self: Signals()))

    assert check_vendor(kind) is kind


def test_plugin_for_a_later_api_is_refused() -> None:
    with pytest.raises(ApiTooNew, match="plugin API 2, this accelkit serves 1"):
        check_vendor(changed(api=2))


def test_plugin_for_an_api_that_never_was_is_refused() -> None:
    with pytest.raises(ApiTooOld, match="plugin API 0, the oldest that this accelkit serves is 1"):
        check_vendor(changed(api=0))


@pytest.mark.parametrize("api", ["1", None, True])
def test_api_is_a_number(api: object) -> None:
    with pytest.raises(PluginContractError, match="api must be a number"):
        check_vendor(changed(api=api))


@pytest.mark.parametrize(
    "field,value,why",
    [
        ("name", "Acme", "name must be a DNS label of at most 20 characters, found 'Acme'"),
        ("name", "a" * 21, "name must be a DNS label of at most 20 characters"),
        ("domain", "9acme.example", "domain must be a DNS subdomain that begins with a letter"),
        ("domain", "acme_x", "domain must be a DNS subdomain that begins with a letter"),
        ("domain", "node.kubernetes.io", "cannot be a resource prefix"),
        ("attributes", ["firmware"], "attributes must be a mapping of names to types"),
        ("attributes", {"vendor": str}, "attribute 'vendor': core publishes this one itself"),
        ("attributes", {"power": float}, "attribute 'power': its type must be one of"),
        ("hardware", [PciMatch(vendor=1)], "hardware must be a tuple of PciMatch"),
        ("hardware", (0x1DEA,), "hardware must be a tuple of PciMatch"),
        ("hardware", (PciMatch(vendor="0x1dea"),), "vendor: expected int, found str"),  # type: ignore[arg-type]  # what is tested
        ("hardware", (PciMatch(vendor=0x11DEA),), "hardware: PCI has no number 0x11dea"),
        ("hardware", (PciMatch(vendor=1, devices=(-1,)),), "hardware: PCI has no number -0x1"),
        ("native", "yes", "native must be True or False, found 'yes'"),
        ("sets", 1, "sets must be True or False, found 1"),
        ("access", {"read": ["/sys"]}, "access: expected Access, found dict"),
        ("access", Access(read=(1,)), "access: read[0]: expected str, found int"),  # type: ignore[arg-type]  # what is tested
        ("signals", {"files": ["/dev/a"]}, "signals: expected Signals, found dict"),
        ("signals", Signals(kernel_log=("acme", "acme (")), "signals: 'acme (' is no pattern: mis"),
        ("platforms", "/dev/acme", "platforms must be a tuple of paths"),
        ("platforms", (1,), "platforms must be a tuple of paths"),
        ("parallel", 0, "parallel must be at least 1, found 0"),
        ("machine", "no colon", "machine must be 'module:Class' or None, found 'no colon'"),
        ("options", dict, "options must be an attrs class"),
        ("options", Needy, "options must have a default for path"),
        ("claim_config", Needy, "claim_config must have a default for path"),
    ],
)
def test_class_that_breaks_the_contract_is_refused(field: str, value: object, why: str) -> None:
    with pytest.raises(PluginContractError) as caught:
        check_vendor(changed(**{field: value}))

    assert why in str(caught.value)


class Silent(Acme):
    """Has forgotten SupportsHealth."""

    def conditions(self) -> Iterable[Condition]:
        return ()


class Applying(Acme):
    """Has one of three methods by chance."""

    def apply(self) -> None:
        pass


def test_class_without_a_name_is_refused() -> None:
    with pytest.raises(PluginContractError, match=r"found None; domain must .* found None"):
        check_vendor(Nameless)


def test_class_that_is_not_finished_is_refused() -> None:
    with pytest.raises(PluginContractError, match="Unfinished: discover must be written"):
        check_vendor(Unfinished)


def test_method_of_an_ability_that_is_not_declared_is_told() -> None:
    with pytest.raises(PluginContractError, match="nobody asks conditions: inherit from Supports"):
        check_vendor(Silent)


def test_some_methods_of_an_ability_are_nobodys_business() -> None:
    assert check_vendor(Applying) is Applying


def test_class_inside_a_function_is_refused() -> None:
    class Hidden(Acme):
        pass

    with pytest.raises(PluginContractError, match="another process cannot find"):
        check_vendor(Hidden)


def test_backend_is_made_by_a_factory_with_a_name() -> None:
    def create(_policy: object) -> Any:  # type: ignore[explicit-any]  # never called
        raise AssertionError

    good = BackendFactory(name="koordinator", create=create)

    assert check_factory(good) is good
    with pytest.raises(PluginContractError, match="is not a BackendFactory"):
        check_factory(create)
    with pytest.raises(PluginContractError, match="backend 'K_1': the name must be a DNS label"):
        check_factory(BackendFactory(name="K_1", create=create))

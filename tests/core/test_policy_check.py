"""What is wrong with a policy that is spelt right."""

from collections.abc import Iterable
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accelkit.core.backend import Backend, BackendFactory
from accelkit.core.errors import ConfigError
from accelkit.core.host import Host
from accelkit.core.model import Device, Unreadable
from accelkit.core.policy import Policy
from accelkit.core.policy_check import check_policy, options_of, parse_policy, policy_problems
from accelkit.core.serde import to_tree
from accelkit.core.vendor import Vendor
from tests.core.everything import TREES, values_of


@attrs.frozen(kw_only=True)
class AcmeOptions:
    driver_root: str = "auto"


class Acme(Vendor):
    attributes = {"firmware": str}  # noqa: RUF012 - as plugins write it
    options = AcmeOptions

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:  # noqa: ARG002 - never asked
        return ()


def _no_backend(_policy: Policy) -> Backend[object]:
    raise AssertionError("a check makes no backend")


VENDORS: dict[str, type[Vendor]] = {"acme": Acme}
BACKENDS = {
    name: BackendFactory(name=name, create=_no_backend)
    for name in ("dra", "kubelet", "koordinator")
}
LATER = "not available in this version"


def found(tree: object) -> list[tuple[str, str]]:
    policy = parse_policy(tree)
    return list(policy_problems(policy, vendors=VENDORS, backends=BACKENDS))


def offer(**keys: object) -> dict[str, object]:
    return {"offers": [{"name": "a", **keys}]}


def sharing(**keys: object) -> dict[str, object]:
    return offer(sharing=keys)


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"vendors": [{"name": "acme", "isolation": "thread", "options": {"driverRoot": "/"}}]},
        {"vendors": [{"name": "acme", "enabled": False, "deadlineScale": 2.5}]},
        {"read": {"inventory": "10s", "health": "1s", "holdings": "5s", "debounce": "0s"}},
        {"only": {"attributes": {"firmware": "1.*"}}},
        {"backends": {"dra": {"drivers": {"acme": "gpu.corp.example"}}}},
        {"expect": [{"select": {"vendor": "acme"}, "count": 8}]},
        {"partitioning": [{"select": {"vendor": "acme"}, "how": "none"}]},
        {"health": {"graceForUnknown": "0s"}},
        {"health": {"overrides": [{"vendor": "acme", "code": "hot", "severity": "INFO"}]}},
        {"backends": {"kubelet": {"directory": "/k/device-plugins", "register": "socket"}}},
        {"paths": {"host": "/host", "run": "/var/run/accelkit", "podResources": "/p.sock"}},
        {"http": {"listen": "", "page": "none"}},
        {"http": {"listen": "[::1]:0"}},
        {"http": {"listen": "localhost:9445"}},
        {"logging": {"level": "debug", "format": "text"}},
        offer(resource="{domain}/{kind}-{profile}"),
        offer(resource="example.com/x", inject="cdi", through="koordinator"),
        sharing(shares=128, place="packed"),
    ],
)
def test_policy_is_fine(tree: object) -> None:
    assert found(tree) == []


@pytest.mark.parametrize(
    "tree,path,text",
    [
        ({"apiVersion": "v1"}, "$.apiVersion", "expected accelkit.dev/v1, found 'v1'"),
        ({"kind": "Policy"}, "$.kind", "expected NodePolicy, found 'Policy'"),
        (
            {"paths": {"run": "run"}},
            "$.paths.run",
            "expected an absolute path without '..', found 'run'",
        ),
        ({"paths": {"cdi": ""}}, "$.paths.cdi", "expected an absolute path without '..', found ''"),
        (
            {"paths": {"host": "/a/../b"}},
            "$.paths.host",
            "expected an absolute path without '..', found '/a/../b'",
        ),
        (
            {"paths": {"podResources": "p"}},
            "$.paths.podResources",
            "expected an absolute path without '..', found 'p'",
        ),
        (
            {"paths": {"kubelet": "/" + "k" * 80}},
            "$.paths.kubelet",
            f"'/{'k' * 80}/plugins_registry' is so long that no socket fits in it",
        ),
        (
            {"paths": {"run": "/" + "r" * 95}},
            "$.paths.run",
            f"'/{'r' * 95}' is so long that no socket fits in it",
        ),
        (
            {"backends": {"kubelet": {"directory": "d"}}},
            "$.backends.kubelet.directory",
            "expected an absolute path without '..', found 'd'",
        ),
        (
            {"vendors": [{"name": "amce"}]},
            "$.vendors[0].name",
            "no vendor 'amce' is installed, did you mean 'acme'?",
        ),
        (
            {"vendors": [{"name": "zzz"}]},
            "$.vendors[0].name",
            "no vendor 'zzz' is installed; there are acme",
        ),
        (
            {"vendors": [{"name": "acme"}, {"name": "acme"}]},
            "$.vendors[1]",
            "'acme' is at $.vendors[0] already",
        ),
        (
            {"vendors": [{"name": "acme", "options": {"drivrRoot": "/"}}]},
            "$.vendors[0].options.drivrRoot",
            "unknown key, did you mean 'driverRoot'?",
        ),
        (
            {"vendors": [{"name": "acme", "deadlineScale": 0}]},
            "$.vendors[0].deadlineScale",
            "expected more than 0, at most 100",
        ),
        (
            {"vendors": [{"name": "acme", "deadlineScale": 1000}]},
            "$.vendors[0].deadlineScale",
            "expected more than 0, at most 100",
        ),
        ({"read": {"health": "0s"}}, "$.read.health", "must be longer than 0s"),
        ({"kube": {"timeout": "0s"}}, "$.kube.timeout", "must be longer than 0s"),
        ({"release": {"giveUpAfter": "0s"}}, "$.release.giveUpAfter", "must be longer than 0s"),
        (
            {"events": {"perMinute": 0}},
            "$.events.perMinute",
            "must be at least 1; enabled: never sends none",
        ),
        ({"expect": [{"count": 0}]}, "$.expect[0].count", "must be at least 1"),
        (
            {"only": {"attributes": {"firmwar": "x"}}},
            "$.only.attributes.firmwar",
            "no installed vendor has this attribute, did you mean 'firmware'?",
        ),
        (
            {"only": {"attributes": {"product": "x"}}},
            "$.only.attributes.product",
            "no attribute can have this name; select by the key 'product' itself",
        ),
        (
            {"only": {"attributes": {"offer": "x"}}},
            "$.only.attributes.offer",
            "no attribute can have this name",
        ),
        (
            {"only": {"attributes": {"a-b": "x"}}},
            "$.only.attributes.a-b",
            "no attribute can have this name",
        ),
        (
            {"only": {"memory": {"atLeast": "2Gi", "atMost": "1Gi"}}},
            "$.only.memory",
            "atLeast is more than atMost: nothing can match",
        ),
        (
            {"expect": [{"select": {"attributes": {"x": "y"}}, "count": 1}]},
            "$.expect[0].select.attributes.x",
            "no installed vendor has this attribute",
        ),
        (
            {"partitioning": [{"select": {"not": {"attributes": {"x": "y"}}}}]},
            "$.partitioning[0].select.not.attributes.x",
            "no installed vendor has this attribute",
        ),
        (
            offer(select={"any": [{}, {"all": [{"attributes": {"x": "y"}}]}]}),
            "$.offers[0].select.any[1].all[0].attributes.x",
            "no installed vendor has this attribute",
        ),
        (
            {"offers": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
            "$.offers[2]",
            "'a' is at $.offers[0] already",
        ),
        (
            {"offers": [{"name": "A_b"}]},
            "$.offers[0].name",
            "expected a DNS label of at most 40 characters, found 'A_b'",
        ),
        (
            {"offers": [{"name": "n" * 41}]},
            "$.offers[0].name",
            f"expected a DNS label of at most 40 characters, found '{'n' * 41}'",
        ),
        (
            {"offers": [{"name": "a", "resource": "x.y/z"}, {"name": "b", "resource": "x.y/z"}]},
            "$.offers[1].resource",
            "x.y/z is the name at $.offers[0].resource already",
        ),
        (
            offer(resource="gpu"),
            "$.offers[0].resource",
            "'gpu' has no domain: write one before a slash, as in example.com/gpu",
        ),
        (
            offer(resource="kubernetes.io/gpu"),
            "$.offers[0].resource",
            "'kubernetes.io/gpu' is in a domain that Kubernetes keeps for itself",
        ),
        (
            offer(resource="{domain}/{knid}"),
            "$.offers[0].resource",
            "unknown placeholder {knid}, did you mean 'kind'?; there are {domain} {kind} {profile}",
        ),
        (
            offer(resource="{domain}/{}"),
            "$.offers[0].resource",
            "unknown placeholder {}; there are {domain} {kind} {profile}",
        ),
        (
            offer(resource="{domain}/{kind!r}"),
            "$.offers[0].resource",
            "{kind} takes no format",
        ),
        (
            offer(resource="{domain}/{kind"),
            "$.offers[0].resource",
            "'{domain}/{kind' is not a template: expected '}' before end of string",
        ),
        (
            offer(resource="x.y/{{z}}"),
            "$.offers[0].resource",
            (
                "'{z}' must be 1 to 63 letters, digits, '-', '_' or '.', "
                "a letter or digit at both ends"
            ),
        ),
        (
            offer(through="kublet"),
            "$.offers[0].through",
            "no backend 'kublet' is installed, did you mean 'kubelet'?",
        ),
        (
            offer(through="zzz"),
            "$.offers[0].through",
            "no backend 'zzz' is installed; there is dra, koordinator, kubelet",
        ),
        (
            {
                "offers": [
                    {"name": name, "through": "dra", "extendedResource": "x.y/z"} for name in "ab"
                ]
            },
            "$.offers[1].extendedResource",
            "x.y/z is the name at $.offers[0].extendedResource already",
        ),
        (
            offer(through="dra", extendedResource="gpu"),
            "$.offers[0].extendedResource",
            "'gpu' has no domain: write one before a slash, as in example.com/gpu",
        ),
        (
            offer(through="dra", extendedResource="x.y/{kind}"),
            "$.offers[0].extendedResource",
            "unknown placeholder {kind}; there are {profile}",
        ),
        (
            offer(through="dra", resource="x.y/z"),
            "$.offers[0].resource",
            "means nothing through dra",
        ),
        (offer(through="dra", inject="cdi"), "$.offers[0].inject", "means nothing through dra"),
        (sharing(shares=0), "$.offers[0].sharing.shares", "expected 1 to 128, found 0"),
        (sharing(shares=129), "$.offers[0].sharing.shares", "expected 1 to 128, found 129"),
        (
            {"health": {"overrides": [{"vendor": "A", "code": "hot", "severity": "INFO"}]}},
            "$.health.overrides[0].vendor",
            "expected a vendor's name, found 'A'",
        ),
        (
            {"health": {"overrides": [{"vendor": "a", "code": "Hot", "severity": "INFO"}]}},
            "$.health.overrides[0].code",
            "expected a condition's code, found 'Hot'",
        ),
        (
            {
                "health": {
                    "overrides": [
                        {"vendor": "a", "code": "h", "severity": s} for s in ("INFO", "FATAL")
                    ]
                }
            },
            "$.health.overrides[1]",
            "'a h' is at $.health.overrides[0] already",
        ),
        (
            {"http": {"listen": "9445"}},
            "$.http.listen",
            "expected host:port, :port or nothing, found '9445'",
        ),
        (
            {"http": {"listen": ":70000"}},
            "$.http.listen",
            "expected host:port, :port or nothing, found ':70000'",
        ),
        (
            {"http": {"listen": "http://x:1"}},
            "$.http.listen",
            "expected host:port, :port or nothing, found 'http://x:1'",
        ),
        ({"read": {"health": "9ms"}}, "$.read.health", "must be at least 10ms"),
        ({"kube": {"timeout": "9000h"}}, "$.kube.timeout", "must be at most 8760h"),
        (
            {"shutdown": {"waitForClaims": "9000h"}},
            "$.shutdown.waitForClaims",
            "must be at most 8760h",
        ),
        ({"paths": {"run": "//."}}, "$.paths.run", "must be a folder of the agent's own"),
        (
            {"kube": {"config": "in-clutser"}},
            "$.kube.config",
            (
                "expected in-cluster, none or the absolute path of a file, found 'in-clutser'"
                ", did you mean 'in-cluster'?"
            ),
        ),
        (
            {"backends": {"dra": {"drivers": {"amce": "gpu.corp.example"}}}},
            "$.backends.dra.drivers.amce",
            "no vendor 'amce' is installed, did you mean 'acme'?",
        ),
        (
            {"health": {"evict": ["Bad Code"]}},
            "$.health.evict[0]",
            "expected a condition's code, found 'Bad Code'",
        ),
    ],
)
def test_policy_is_wrong_in_one_place(tree: object, path: str, text: str) -> None:
    assert found(tree) == [(path, text)]


@pytest.mark.parametrize(
    "tree,path,text",
    [
        (
            offer(extendedResource="x.y/z"),
            "$.offers[0].extendedResource",
            "means something only through dra",
        ),
        ({"health": {"flap": {"hold": "0s"}}}, "$.health.flap.hold", "must be longer than 0s"),
        ({"health": {"flap": {"changes": 0}}}, "$.health.flap.changes", "must be at least 1"),
    ],
)
def test_contradiction_is_told_beside_what_is_not_there_yet(
    tree: object, path: str, text: str
) -> None:
    assert (path, text) in found(tree)


def test_sharing_and_layouts_are_looked_at() -> None:
    tree = {**sharing(divide="requested"), "layouts": {"l": {"1g": 0}}}

    told = {path for path, text in found(tree) if text != LATER}
    assert told == {"$.offers[0].sharing.divide", '$.layouts.l["1g"]'}


def test_everything_is_told_at_once_in_the_order_of_the_file() -> None:
    tree = {
        "http": {"listen": "x"},
        "offers": [{"name": "A", "through": "extended", "sharing": {"shares": 0}}],
        "apiVersion": "v2",
        "vendors": [{"name": "zzz", "deadlineScale": -1}],
    }

    assert [path for path, _ in found(tree)] == [
        "$.apiVersion",
        "$.vendors[0].deadlineScale",
        "$.vendors[0].name",
        "$.offers[0].name",
        "$.offers[0].through",
        "$.offers[0].sharing.shares",
        "$.http.listen",
    ]


def test_backend_that_is_used_says_what_it_refuses() -> None:
    def refuse(_policy: Policy) -> tuple[tuple[str, str], ...]:
        return (("$", "not here"),)

    picky = {n: BackendFactory(name=n, create=_no_backend, check=refuse) for n in BACKENDS}

    assert policy_problems(Policy(), backends=picky) == (("$", "not here"),)
    assert policy_problems(parse_policy({"offers": []}), backends=picky) == ()


def test_backend_that_cannot_judge_a_policy_says_so() -> None:
    def fail(_policy: Policy) -> tuple[tuple[str, str], ...]:
        raise KeyError("x")

    broken = {"kubelet": BackendFactory(name="kubelet", create=_no_backend, check=fail)}

    assert policy_problems(Policy(), backends=broken) == (
        ("$.offers", "backend 'kubelet' cannot judge it: KeyError: 'x'"),
    )


@pytest.mark.slow
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(values_of(Policy))
def test_every_policy_that_can_be_read_can_be_judged(policy: object) -> None:
    assert isinstance(policy, Policy)

    told = policy_problems(policy, vendors=VENDORS, backends=BACKENDS)

    assert told == policy_problems(policy, vendors=VENDORS, backends=BACKENDS)
    assert all(path.startswith("$") and text for path, text in told)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["only", "offers", "paths", "http", "x"]), TREES))
def test_tree_is_read_or_refused(tree: dict[str, object]) -> None:
    try:
        policy = parse_policy(tree)
    except ConfigError as error:
        assert error.problems  # noqa: PT017 - either may happen
    else:
        assert parse_policy(to_tree(policy)) == policy


def test_without_a_node_nothing_is_asked_of_plugins() -> None:
    tree = {
        "vendors": [{"name": "unheard-of", "options": {"x": 1}}],
        "only": {"attributes": {"unknown": "x"}},
        "offers": [{"name": "a", "through": "plugin"}],
    }

    assert policy_problems(parse_policy(tree)) == ()


def test_wrong_policy_is_refused_with_all_its_problems() -> None:
    policy = parse_policy({"kind": "x", "http": {"listen": "x"}})

    with pytest.raises(ConfigError) as caught:
        check_policy(policy)

    assert [path for path, _ in caught.value.problems] == ["$.kind", "$.http.listen"]
    check_policy(Policy())


def test_offers_without_number_are_refused() -> None:
    """Seen: thousands of them kept the agent busy with every change."""
    offers = [{"name": f"o{n}", "resource": f"x.example/o{n}"} for n in range(257)]

    assert found({"offers": offers}) == [("$.offers", "expected at most 256, found 257")]
    assert found({"offers": offers[:256]}) == []


def test_options_whose_check_ends_the_process_are_refused() -> None:
    @attrs.frozen
    class Leaving:
        root: str = attrs.field(default="")

        @root.validator
        def _leave(self, _attribute: object, _value: str) -> None:
            raise SystemExit(3)

    class Strange(Vendor):
        discover = Acme.discover
        options = Leaving

    with pytest.raises(ConfigError) as caught:
        options_of(Strange, {}, "$.vendors[0].options")

    assert caught.value.problems == (("$.vendors[0].options", "SystemExit: 3"),)


def test_block_of_a_vendor_is_read_as_its_class() -> None:
    assert options_of(Acme, {"driverRoot": "/run"}) == AcmeOptions(driver_root="/run")


def test_policy_that_is_no_mapping_is_refused() -> None:
    tree: Any = ["offers"]  # type: ignore[explicit-any]  # a tree

    with pytest.raises(ConfigError, match="expected a mapping, found a list"):
        parse_policy(tree)

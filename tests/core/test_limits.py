"""What Kubernetes and the kernel accept."""

import pytest

from accelkit.core.limits import (
    LATEST,
    SLICE_LIMITS,
    SliceLimits,
    is_dns_subdomain,
    is_label_value,
    is_qualified_name,
    resource_name_problem,
    socket_room,
)

LONGEST_PREFIX = ".".join(["a" * 60] * 4)  # 243


@pytest.mark.parametrize(
    "name",
    [
        "example.com/gpu",
        "nvidia.com/mig-1g.10gb.me",
        "a/b",
        "example.com/A_b.C-9",
        "kubernetes.io.example.com/gpu",
        f"{LONGEST_PREFIX}a/{'n' * 63}",
    ],
)
def test_kubernetes_takes_the_name_for_a_resource(name: str) -> None:
    assert resource_name_problem(name) is None


@pytest.mark.parametrize(
    "name,why",
    [
        ("gpu", "no domain"),
        ("", "no domain"),
        ("kubernetes.io/gpu", "keeps for itself"),
        ("node.kubernetes.io/gpu", "keeps for itself"),
        ("deviceclass.resource.kubernetes.io/gpu", "keeps for itself"),
        ("mykubernetes.io/gpu", "keeps for itself"),
        ("requests.example.com/gpu", "which quotas use"),
        ("/gpu", "not a DNS subdomain"),
        ("Example.com/gpu", "not a DNS subdomain"),
        ("example..com/gpu", "not a DNS subdomain"),
        ("-a/gpu", "not a DNS subdomain"),
        (f"{LONGEST_PREFIX}aa/gpu", "not a DNS subdomain"),
        ("a/", "1 to 63"),
        ("a/b/c", "1 to 63"),
        ("a/-b", "1 to 63"),
        ("a/b.", "1 to 63"),
        ("a/{profile}", "1 to 63"),
        (f"a/{'n' * 64}", "1 to 63"),
    ],
)
def test_kubernetes_refuses_the_name(name: str, why: str) -> None:
    assert why in (resource_name_problem(name) or "")


def test_subdomain_is_labels_with_dots_between() -> None:
    verdicts = [is_dns_subdomain(t) for t in ("a", "a.b-c.d9", "", "a.", "A.b", "a" * 254)]

    assert verdicts == [True, True, False, False, False, False]


def test_room_for_a_socket_is_what_the_directory_leaves() -> None:
    """108 bytes with the NUL: 107 for directory, slash and name."""
    assert [socket_room("/run"), socket_room("/run/"), socket_room("/" + "d" * 110)] == [
        102,
        102,
        -5,
    ]


def test_qualified_name_may_have_a_domain() -> None:
    names = ("ready", "a.b/C_d", "a/b/c", "/a", "a/", "-a", "n" * 64, f"A.b/{'n' * 63}")

    assert [is_qualified_name(name) for name in names] == [True, True] + [False] * 6


def test_value_of_a_label_may_be_empty() -> None:
    assert [is_label_value(text) for text in ("", "a.B_c", "a b", "n" * 64)] == [
        True,
        True,
        False,
        False,
    ]


def test_slices_of_1_34_hold_counters_and_devices_together() -> None:
    """Since 1.35 they are apart, and limits have not changed since."""
    assert SLICE_LIMITS["1.34"] == SliceLimits(
        advanced_devices=128, counters_in_all=32, taints=4, effect_none=False, apart=False
    )
    assert {SLICE_LIMITS[release] for release in ("1.35", "1.36", "1.37")} == {LATEST}

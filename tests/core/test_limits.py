"""What Kubernetes and the kernel accept."""

import pytest

from accelkit.core.limits import is_dns_subdomain, resource_name_problem, socket_room

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

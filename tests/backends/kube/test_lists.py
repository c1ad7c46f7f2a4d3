"""Lists in pages."""

from urllib.parse import parse_qs, urlsplit

import pytest

from accelkit.backends.kube.objects import FRESH_STARTS, PAGE, Objects
from accelkit.core.errors import ApiError
from accelkit.core.kube import CLAIMS, SLICES, Json, Listing
from tests.backends.kube.scripted import Reply, Scripted, metadata, named, says, status


def page(version: int, token: str, *names: str) -> Reply:
    """One page; *token* leads to the next."""
    items = [{"metadata": metadata(name)} for name in names]
    return says({"metadata": {"resourceVersion": str(version), "continue": token}, "items": items})


def queries(server: Scripted) -> list[Json]:
    return [
        {name: values[0] for name, values in parse_qs(urlsplit(asked.target).query).items()}
        for asked in server.asked
    ]


async def test_a_list_is_read_page_by_page(server: Scripted, kube: Objects) -> None:
    server.answer(page(7, "t1", "a", "b"), page(7, "t2", "c"), page(7, "", "d"))

    found = await kube.list(SLICES, fields="spec.nodeName=n", labels="a=b", version="0")

    assert named(*found.items) == ["a", "b", "c", "d"]
    assert found.version == "7"
    rest = {"limit": str(PAGE), "fieldSelector": "spec.nodeName=n", "labelSelector": "a=b"}
    assert queries(server) == [
        {**rest, "resourceVersion": "0"},
        {**rest, "continue": "t1"},
        {**rest, "continue": "t2"},
    ]


async def test_an_empty_list_has_a_version(server: Scripted, kube: Objects) -> None:
    server.answer(says({"metadata": {"resourceVersion": "7"}, "items": None}))

    assert await kube.list(SLICES) == Listing(items=(), version="7")


async def test_listed_objects_have_the_kind_that_lists_leave_out(
    server: Scripted, kube: Objects
) -> None:
    server.answer(page(7, "", "a"))

    found = await kube.list(CLAIMS, namespace="n")

    assert found.items[0] == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata("a"),
    }


async def test_a_list_whose_pages_expired_is_begun_again(server: Scripted, kube: Objects) -> None:
    server.answer(page(7, "t", "a"), status(410), page(9, "u", "b"), page(9, "", "c"))

    found = await kube.list(SLICES)

    assert named(*found.items) == ["b", "c"]
    assert found.version == "9"


async def test_a_list_whose_pages_expire_again_and_again_is_asked_for_whole(
    server: Scripted, kube: Objects
) -> None:
    expiring = [page(7, "t", "a"), status(410)] * FRESH_STARTS
    server.answer(*expiring, page(9, "", "a", "b"))

    found = await kube.list(SLICES)

    assert named(*found.items) == ["a", "b"]
    assert queries(server)[-1] == {}


@pytest.mark.parametrize("code", [403, 410, 500])
async def test_a_list_that_is_refused_is_not_begun_again(
    server: Scripted, kube: Objects, code: int
) -> None:
    server.answer(status(code))

    with pytest.raises(ApiError) as caught:
        await kube.list(SLICES, version="3")

    assert caught.value.status == code
    assert len(server.asked) == 1


async def test_another_failure_in_the_middle_of_a_list_is_that_of_the_list(
    server: Scripted, kube: Objects
) -> None:
    server.answer(page(7, "t", "a"), status(500))

    with pytest.raises(ApiError) as caught:
        await kube.list(SLICES)

    assert caught.value.status == 500

"""Lists in pages."""

from accelkit.conformance.sims.api.server import ApiSim
from accelkit.core.kube import CLAIMS, SLICES
from tests.conformance.sims.api.client import ROOT, SLICES as PATH, Client
from tests.conformance.sims.api.objects import claim_named, slice_named


async def test_pages_together_show_the_moment_of_the_first(api: ApiSim, client: Client) -> None:
    for name in "abcde":
        api.create(SLICES, slice_named(name))

    first = await client.ask("GET", f"{PATH}?limit=2")
    meta = first.document["metadata"]
    api.delete(SLICES, "c")
    api.create(SLICES, slice_named("bb"))
    second = await client.ask("GET", f"{PATH}?limit=2&continue={meta['continue']}")
    again = second.document["metadata"]
    third = await client.ask("GET", f"{PATH}?limit=2&continue={again['continue']}")

    assert [first.names, second.names, third.names] == [["a", "b"], ["c", "d"], ["e"]]
    assert meta["remainingItemCount"] == 3
    assert again["resourceVersion"] == meta["resourceVersion"]
    assert third.document["metadata"] == {"resourceVersion": meta["resourceVersion"]}


async def test_page_after_the_history_is_gone_is_refused_with_a_way_on(
    api: ApiSim, client: Client
) -> None:
    for name in "abc":
        api.create(SLICES, slice_named(name))
    first = await client.ask("GET", f"{PATH}?limit=1")
    token = first.document["metadata"]["continue"]
    api.delete(SLICES, "b")
    api.expire()

    refused = await client.ask("GET", f"{PATH}?limit=1&continue={token}")
    way_on = refused.document["metadata"]["continue"]
    rest = await client.ask("GET", f"{PATH}?continue={way_on}")

    assert (refused.status, refused.document["reason"]) == (410, "Expired")
    assert rest.names == ["c"]


async def test_list_from_the_cache_is_not_cut(api: ApiSim, client: Client) -> None:
    for name in "abc":
        api.create(SLICES, slice_named(name))

    found = await client.ask("GET", f"{PATH}?limit=1&resourceVersion=0")

    assert found.names == ["a", "b", "c"]


async def test_list_at_an_exact_version_shows_that_moment(api: ApiSim, client: Client) -> None:
    api.create(SLICES, slice_named("a"))
    version = api.store.version
    api.create(SLICES, slice_named("b"))
    api.delete(SLICES, "a")

    query = f"resourceVersion={version}&resourceVersionMatch=Exact"
    found = await client.ask("GET", f"{PATH}?{query}")

    assert found.names == ["a"]


async def test_claims_are_listed_by_namespace_or_all_together(api: ApiSim, client: Client) -> None:
    for namespace in ("default", "kube-system"):
        api.create(CLAIMS, claim_named("c"), namespace)

    inside = await client.ask("GET", f"{ROOT}/namespaces/default/resourceclaims")
    everywhere = await client.ask("GET", f"{ROOT}/resourceclaims")

    assert inside.names == ["c"]
    assert [c["metadata"]["namespace"] for c in everywhere.document["items"]] == [
        "default",
        "kube-system",
    ]

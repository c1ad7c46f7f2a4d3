import attrs
import pytest

from accelkit.core.allocation import (
    Answer,
    AskedSharing,
    ClaimBody,
    ClaimConfig,
    ContainerEdits,
    Edits,
    Grant,
    Granted,
    Piece,
    SetOf,
)
from accelkit.core.errors import ConfigRefused, RenderError, SplitSet
from accelkit.core.grants import (
    Asked,
    Key,
    Term,
    agreed_sharing,
    answers,
    asked_for,
    described,
    device_names,
    edits_by_key,
    grants_of,
    main_request,
    split_by_request,
)
from accelkit.core.model import DeviceNode, Locality
from accelkit.core.policy import Offer, Sharing, Timeslice
from accelkit.core.values import Enforcement, FrozenMap, Source
from tests.core.things import gpu, of

DRIVER = "toy.accelkit.dev"
LIBRARY = Sharing(shares=2, enforce=Enforcement.LIBRARY)
WHOLE = ContainerEdits(env=FrozenMap({"SET": "all"}))


def term(name: str, request: str = "r", **fields: object) -> Term:
    piece = Piece(device=of(name), request=request)
    return attrs.evolve(Term(piece=piece, device=gpu(name)), **fields)  # type: ignore[arg-type]  # fields of a term


def used(name: str, request: str = "r", share: str | None = None) -> Piece:
    return Piece(device=of(name), request=request, share=share)


def config(*requests: str, source: Source = Source.FROM_CLAIM, **body: object) -> ClaimConfig:
    made = ClaimBody(api_version="accelkit.dev/v1", kind="ClaimConfig")
    return ClaimConfig(
        source=source,
        requests=requests,
        body=attrs.evolve(made, **body),  # type: ignore[arg-type]  # fields of a body
    )


def test_a_subrequest_is_named_by_its_request() -> None:
    assert [main_request(r) for r in ("main/sub", "main", "")] == ["main", "main", ""]


def test_of_each_key_the_last_block_that_reaches_a_request_wins() -> None:
    long, short = AskedSharing(timeslice=Timeslice.LONG), AskedSharing(timeslice=Timeslice.SHORT)
    configs = (
        config(source=Source.FROM_CLASS, sharing=long, set=SetOf.CLAIM, vendor={"a": 1, "b": 2}),
        config("main", sharing=short, vendor={"b": 3}),
        config("main/sub", vendor={"c": 4}),
        config("other", set=SetOf.REQUEST),
    )

    assert asked_for("main/sub", configs) == Asked(
        set=SetOf.CLAIM, sharing=short, vendor={"a": 1, "b": 3, "c": 4}
    )
    assert asked_for("main", configs) == Asked(
        set=SetOf.CLAIM, sharing=short, vendor={"a": 1, "b": 3}
    )
    assert asked_for("other", configs) == Asked(
        set=SetOf.REQUEST, sharing=long, vendor={"a": 1, "b": 2}
    )
    assert asked_for("main", ()) == Asked()


def test_what_the_offer_lets_claims_ask_is_agreed() -> None:
    offer = Offer(name="o", sharing=Sharing(claims_may_ask=("timeslice", "enforce")))
    device = gpu("a", sharing=frozenset({Enforcement.NONE, Enforcement.LIBRARY}))
    asked = AskedSharing(timeslice=Timeslice.LONG, enforce=Enforcement.LIBRARY)

    assert agreed_sharing(offer, device, asked) == attrs.evolve(
        offer.sharing, timeslice=Timeslice.LONG, enforce=Enforcement.LIBRARY
    )
    assert agreed_sharing(offer, device, AskedSharing()) == offer.sharing


def test_asking_for_what_the_offer_says_anyhow_is_fine() -> None:
    asked = AskedSharing(timeslice=Timeslice.DEFAULT, enforce=Enforcement.NONE)

    assert agreed_sharing(Offer(name="o"), gpu("a"), asked) == Sharing()


@pytest.mark.parametrize(
    "asked, key",
    [
        (AskedSharing(timeslice=Timeslice.LONG), "timeslice"),
        (AskedSharing(enforce=Enforcement.MPS), "enforce"),
    ],
)
def test_asking_for_what_the_offer_does_not_let_is_refused_with_its_path(
    asked: AskedSharing, key: str
) -> None:
    with pytest.raises(ConfigRefused, match=rf"^\$\.sharing\.{key}: the offer o does not let"):
        agreed_sharing(Offer(name="o"), gpu("a"), asked)


def test_asking_for_what_the_device_cannot_do_is_refused() -> None:
    offer = Offer(name="o", sharing=Sharing(claims_may_ask=("enforce",)))

    with pytest.raises(ConfigRefused, match="toy/a cannot do library"):
        agreed_sharing(offer, gpu("a"), AskedSharing(enforce=Enforcement.LIBRARY))


def test_asking_for_a_daemon_that_nobody_started_is_refused() -> None:
    offer = Offer(name="o", sharing=Sharing(claims_may_ask=("enforce",)))
    device = gpu("a", sharing=frozenset({Enforcement.MPS}))

    with pytest.raises(ConfigRefused, match=r"the offer o has no daemon for mps") as caught:
        agreed_sharing(offer, device, AskedSharing(enforce=Enforcement.MPS))
    assert "let the operator give the offer enforce: mps" in caught.value.remedy


def test_pieces_of_one_claim_are_one_grant_in_order_of_pci_address() -> None:
    late, early = (
        term(n, device=gpu(n, locality=Locality(pci_address=f"0000:0{n}:00.0"))) for n in "21"
    )

    (grant,) = grants_of([late, early], owner="claim/1", scratch="/scratch")

    assert [g.device.id.name for g in grant.granted] == ["1", "2"]
    assert (grant.owner, grant.scratch) == ("claim/1", None)


def test_pieces_with_other_sharing_configuration_vendor_or_access_are_grants_of_their_own() -> None:
    unhashable = {"k": ["v"]}
    terms = [
        term("a"),
        term("b"),
        term("c", sharing=LIBRARY),
        term("d", config=unhashable),
        term("e", config={"k": ["v"]}),
        term("f", piece=Piece(device=of("f"), admin=True)),
    ]

    grants = grants_of(terms, owner="claim/1", scratch="/scratch")

    assert [[g.device.id.name for g in grant.granted] for grant in grants] == [
        ["f"],
        ["a", "b"],
        ["c"],
        ["d", "e"],
    ]
    assert [grant.scratch for grant in grants] == [None, None, "/scratch", None]
    assert grants[3].config == unhashable


def made(*terms: Term, whole: ContainerEdits = WHOLE) -> list[tuple[Grant, Edits]]:
    return [(grant, Edits(whole=whole)) for grant in grants_of(terms, owner="claim/1")]


def test_a_set_in_one_request_stays_one() -> None:
    terms = [term("a", "main/x"), term("b", "main/y")]

    assert split_by_request(terms, made(*terms)) == frozenset()


def test_a_vendor_that_says_nothing_of_sets_is_never_split() -> None:
    terms = [term("a", "one"), term("b", "two")]

    assert split_by_request(terms, made(*terms, whole=ContainerEdits())) == frozenset()


def test_a_set_in_several_requests_is_refused_unless_the_claim_says_what_containers_name() -> None:
    terms = [term("a", "one"), term("b", "two")]
    by_request = [attrs.evolve(t, set=SetOf.REQUEST) for t in terms]
    by_claim = [attrs.evolve(t, set=SetOf.CLAIM) for t in terms]
    (vendor,) = {t.device.id.vendor for t in terms}

    with pytest.raises(SplitSet, match="several requests"):
        split_by_request(terms, made(*terms))
    with pytest.raises(SplitSet, match="several requests"):
        split_by_request([by_request[0], by_claim[1]], made(*terms))
    assert split_by_request(by_request, made(*terms)) == frozenset({vendor})
    assert split_by_request(by_claim, made(*terms)) == frozenset()


def test_a_claim_that_is_one_set_must_be_configured_alike() -> None:
    terms = [term("a", "one", set=SetOf.CLAIM), term("b", "two", set=SetOf.CLAIM, config=1)]

    with pytest.raises(SplitSet, match="differ in their sharing or configuration"):
        split_by_request(terms, made(*terms))


def test_a_vendor_that_is_split_has_a_grant_for_each_request() -> None:
    terms = [term("a", "one/x"), term("b", "two"), term("c", "one")]

    grants = grants_of(terms, owner="o", apart=lambda t: main_request(t.piece.request))

    assert [[g.device.id.name for g in grant.granted] for grant in grants] == [["a", "c"], ["b"]]


def node(name: str) -> ContainerEdits:
    return ContainerEdits(nodes=(DeviceNode(path=f"/dev/{name}"),))


def test_what_is_said_of_a_set_is_at_its_first_device_only() -> None:
    granted = [Granted(device=gpu("b")), Granted(device=gpu("a"), share="1")]
    granted.append(Granted(device=gpu("a"), share="1", request="other"))
    grant = Grant(owner="o", granted=tuple(granted))
    edits = Edits(each=FrozenMap({of("a"): node("a")}), whole=WHOLE)

    assert edits_by_key([(grant, edits)]) == {
        (of("a"), "1"): ContainerEdits(env=WHOLE.env, nodes=node("a").nodes),
        (of("b"), None): ContainerEdits(),
    }


def test_names_have_the_beginning_of_a_share_and_all_of_it_where_two_begin_alike() -> None:
    keys: list[Key] = [
        (of("a"), None),
        (of("a"), "11111111-2222"),
        (of("a"), "11111111-3333"),
        (of("a"), "44444444-5555"),
    ]

    assert list(device_names("u", keys).values()) == [
        "u-a",
        "u-a-11111111",
        "u-a-11111111-3333",
        "u-a-44444444",
    ]


def test_a_document_has_the_devices_that_need_something() -> None:
    edits: dict[Key, ContainerEdits] = {
        (of("a"), None): node("a"),
        (of("b"), None): ContainerEdits(),
    }

    document = described(DRIVER, "1", edits)

    assert document is not None
    assert (document["kind"], document["devices"]) == (
        f"{DRIVER}/claim",
        [
            {
                "name": "1-a",
                "containerEdits": {"deviceNodes": [{"path": "/dev/a", "permissions": "rw"}]},
            }
        ],
    )


def test_devices_that_need_nothing_have_no_document() -> None:
    assert described(DRIVER, "1", {(of("a"), None): ContainerEdits()}) is None


def test_a_driver_whose_name_is_no_vendor_of_cdi_is_refused() -> None:
    with pytest.raises(RenderError, match="is not a CDI kind"):
        described("3d.example.com", "1", {(of("a"), None): node("a")})


def test_each_device_and_share_is_answered_once_with_its_requests() -> None:
    pieces = [used("a", "main/x"), used("b", "r", "s1"), used("a", "look"), used("a", "main/y")]
    edits = {(of("a"), None): node("a"), (of("b"), "s1"): ContainerEdits()}

    assert answers(DRIVER, "1", pieces, edits) == (
        Answer(device=of("a"), requests=("main", "look"), cdi_ids=(f"{DRIVER}/claim=1-a",)),
        Answer(device=of("b"), requests=("r",), share="s1", cdi_ids=()),
    )

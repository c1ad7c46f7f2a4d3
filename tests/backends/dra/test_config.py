"""Configuration blocks of claims and classes, as an allocation has them."""

import pytest

from accelkit.backends.dra.config import BLOCK_LIMIT, configs_of
from accelkit.core.allocation import AskedSharing, ClaimBody, ClaimConfig, ClaimRef, SetOf
from accelkit.core.errors import ConfigRefused
from accelkit.core.kube import Json
from accelkit.core.policy import Timeslice
from accelkit.core.values import Enforcement, Source
from tests.backends.dra.service_world import DRIVER, block

HEAD = {"apiVersion": "accelkit.dev/v1", "kind": "ClaimConfig"}
CLAIM = ClaimRef(uid="7", namespace="default", name="c1")
REQUESTS = ("gpu/small", "other")


def read(*blocks: Json) -> tuple[ClaimConfig, ...]:
    return configs_of({"devices": {"config": list(blocks)}}, DRIVER, REQUESTS, CLAIM)


def refusal(*blocks: Json) -> str:
    with pytest.raises(ConfigRefused) as caught:
        read(*blocks)
    assert caught.value.claim == "7"
    return str(caught.value)


def body(**fields: object) -> ClaimBody:
    return ClaimBody(api_version="accelkit.dev/v1", kind="ClaimConfig", **fields)  # type: ignore[arg-type]  # fields by name


def vendors(configs: tuple[ClaimConfig, ...]) -> list[object]:
    return [config.body.vendor.get("n") for config in configs]


def numbered(number: int) -> Json:
    return {**HEAD, "vendor": {"n": number}}


def test_block_is_read_with_all_its_keys() -> None:
    told = {
        **HEAD,
        "set": "claim",
        "sharing": {"timeslice": "long", "enforce": "mps"},
        "vendor": {"clock": [1, 2]},
    }

    assert read(block(told, "gpu", source="FromClass")) == (
        ClaimConfig(
            source=Source.FROM_CLASS,
            requests=("gpu/small",),
            body=body(
                set=SetOf.CLAIM,
                sharing=AskedSharing(timeslice=Timeslice.LONG, enforce=Enforcement.MPS),
                vendor={"clock": [1, 2]},
            ),
        ),
    )


def test_block_reaches_a_request_by_its_name_or_that_of_its_main_request() -> None:
    found = read(
        block(numbered(1), "gpu"),
        block(numbered(2), "gpu/small"),
        block(numbered(3), "gpu/large"),
        block(numbered(4), "small"),
        block(numbered(5), "none", "other"),
        block(numbered(6)),
    )

    assert {config.body.vendor["n"]: config.requests for config in found} == {
        1: ("gpu/small",),
        2: ("gpu/small",),
        5: ("other",),
        6: REQUESTS,
    }


def test_blocks_of_other_drivers_are_none_of_our_business() -> None:
    assert read(block({"whatever": 1}, driver="other.example.com"), {}, {"opaque": 7}) == ()


def test_everything_that_is_wrong_is_told_at_once_with_its_path() -> None:
    text = refusal(
        block({**HEAD, "sharring": {}, "sharing": {"timeslice": "lon"}}),
        block({**HEAD, "vendor": 3}, source="FromClass"),
    )

    assert text == (
        "claim c1: config[0] of the claim, $.sharing.timeslice: expected one of default, short, "
        "medium, long, found 'lon', did you mean 'long'?; "
        "config[0] of the claim, $.sharring: unknown key, did you mean 'sharing'?; "
        "config[1] of the device class, $.vendor: expected a mapping, found the number 3"
    )


@pytest.mark.parametrize(
    "told, why",
    [
        ({"kind": "ClaimConfig"}, "$.apiVersion: missing"),
        ({**HEAD, "apiVersion": "acme.com/v1"}, "expected 'accelkit.dev/v1', found 'acme.com/v1'"),
        ({**HEAD, "kind": "GpuConfig"}, "$.kind: expected 'ClaimConfig', found 'GpuConfig'"),
        ({**HEAD, "env": {"A": "1"}}, "$.env: unknown key"),
        ({**HEAD, "command": ["sh"]}, "$.command: unknown key"),
        ({**HEAD, "mounts": [{"hostPath": "/"}]}, "$.mounts: unknown key"),
        ({**HEAD, "set": "pod"}, "$.set: expected one of request, claim, found 'pod'"),
        ({**HEAD, "sharing": {"enforce": "none", "shares": 3}}, "$.sharing.shares: unknown key"),
        ({**HEAD, "sharing": None}, "$.sharing: expected a mapping, found nothing"),
        ({**HEAD, "\u00e4\u20ac": 1}, '$["\u00e4\u20ac"]: unknown key'),
        ([HEAD], "$: expected a mapping, found a list"),
        ("ClaimConfig", "$: expected a mapping, found 'ClaimConfig'"),
        (None, "$: expected a mapping, found nothing"),
    ],
)
def test_block_that_is_not_as_it_must_be_is_refused(told: object, why: str) -> None:
    assert why in refusal(block(told))


def test_block_may_have_ten_kibibytes_and_not_one_byte_more() -> None:
    def sized(size: int) -> Json:
        rest = len('{"apiVersion":"accelkit.dev/v1","kind":"ClaimConfig","vendor":{"n":""}}')
        double, odd = divmod(size - rest, 2)
        return {**HEAD, "vendor": {"n": "\u00e4" * double + "x" * odd}}

    assert len(read(block(sized(BLOCK_LIMIT)))) == 1
    assert "$: 10241 bytes, at most 10240 are taken" in refusal(block(sized(BLOCK_LIMIT + 1)))


def test_block_nested_without_end_is_refused() -> None:
    deep: object = {}
    for _ in range(5000):
        deep = {"n": deep}

    assert "nested more than 64 deep" in refusal(block({**HEAD, "vendor": deep}))


def test_text_that_cannot_be_written_as_utf_8_is_no_trouble() -> None:
    assert vendors(read(block({**HEAD, "vendor": {"n": "\ud800"}}))) == ["\ud800"]

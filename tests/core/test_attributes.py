"""What an attribute may be called and hold."""

import pytest

from accelkit.core.attributes import as_text, check_attributes, declaration_problems
from accelkit.core.model import Device, DeviceId
from accelkit.core.values import AttributeValue, FrozenMap, Version
from accelkit.core.vendor import Vendor


class Acme(Vendor):
    attributes = {  # noqa: RUF012 - as plugins write it
        "ecc": bool,
        "cores": int,
        "firmware": str,
        "driver": Version,
        "lanes": tuple[int, ...],
        "features": tuple[str, ...],
    }


def device(**attributes: AttributeValue) -> Device:
    return Device(
        id=DeviceId(vendor="acme", name="a"), kind="npu", attributes=FrozenMap(attributes)
    )


def test_device_with_what_its_vendor_declared_is_fine() -> None:
    whole = device(
        ecc=True, cores=8, firmware="x", driver=Version(1), lanes=(1, 2), features=("a", "b")
    )

    assert check_attributes(Acme, whole) == ()


@pytest.mark.parametrize(
    "name,value,why",
    [
        ("speed", 1, "'speed' is not declared"),
        ("ecc", 1, "'ecc' is declared bool, found 1"),
        ("cores", True, "'cores' is declared int, found True"),
        ("cores", "8", "'cores' is declared int, found '8'"),
        ("driver", "1.0.0", "'driver' is declared Version, found '1.0.0'"),
        ("lanes", ("1",), "'lanes' is declared tuple[int, ...], found ('1',)"),
        ("features", "a", "'features' is declared tuple[str, ...], found 'a'"),
        ("cores", 2**63, "needs more than 64 bits"),
        ("firmware", "x" * 65, "is longer than 64 characters"),
        ("features", ("a", "x" * 65), "is longer than 64 characters"),
        ("firmware", "", "leave out what is not known"),
    ],
)
def test_value_that_is_not_as_declared_is_told(name: str, value: AttributeValue, why: str) -> None:
    (told,) = check_attributes(Acme, device(**{name: value}))

    assert why in told


@pytest.mark.parametrize("amount", [-1, 2**63, True, 1.0])
def test_capacity_is_a_whole_number_of_64_bits(amount: int) -> None:
    strange = Device(
        id=DeviceId(vendor="a", name="a"), kind="k", capacity=FrozenMap({"memory": amount})
    )

    (told,) = check_attributes(Acme, strange)

    assert "capacity 'memory' must be a whole number" in told


def test_capacity_has_a_name_that_selectors_can_write() -> None:
    strange = Device(
        id=DeviceId(vendor="a", name="a"), kind="k", capacity=FrozenMap({"gpu-memory": 1})
    )

    (told,) = check_attributes(Acme, strange)

    assert "capacity 'gpu-memory': a name is" in told


@pytest.mark.parametrize(
    "name,kind,why",
    [
        ("9lives", str, "a name is a letter"),
        ("pci-root", str, "a name is a letter"),
        ("example.com/x", str, "a name is a letter"),
        ("n" * 33, str, "a name is a letter"),
        ("product", str, "core publishes"),
        ("power", float, "its type must be one of bool"),
        ("names", list, "its type must be one of bool"),
    ],
)
def test_declaration_that_kubernetes_would_refuse_is_told(name: str, kind: type, why: str) -> None:
    (told,) = declaration_problems({name: kind})

    assert why in told


def test_selections_compare_text() -> None:
    values: tuple[AttributeValue, ...] = (True, 90, Version(580, 65, 6), (1, 2), "Hopper", ())

    assert [as_text(v) for v in values] == [
        ("true",),
        ("90",),
        ("580.65.6",),
        ("1", "2"),
        ("Hopper",),
        (),
    ]

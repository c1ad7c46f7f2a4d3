import attrs

from accelkit.backends.extended.document import class_object, render
from accelkit.core.policy import DraPolicy, Offer, Selection
from accelkit.core.values import FrozenMap
from accelkit.core.view import View
from tests.backends.dra.views import HALF, SMALL, cut, gpu, part, view_of

ONE = Offer(name="gpus", through="dra", extended_resource="example.com/gpu")
EACH = Offer(name="all", through="dra", extended_resource="example.com/gpu-{profile}")


def rendered(view: View) -> dict[str, tuple[str, str]]:
    """Resource and expression by class."""
    found = render(view, DraPolicy(drivers=FrozenMap({"nvidia": "gpu.corp.example"})))
    return {name: (one.resource, one.expression) for name, one in found.items()}


def test_an_offer_has_one_class_whatever_it_selects() -> None:
    devices = (cut("a"), part("a", SMALL, 0), gpu("b"))

    assert rendered(view_of(*devices, offers=(ONE,))) == {
        "gpus": (
            "example.com/gpu",
            (
                'device.driver == "acme.accelkit.dev"'
                ' && device.attributes["acme.accelkit.dev"].offer == "gpus"'
            ),
        )
    }


def test_an_offer_that_names_the_profile_has_a_class_for_each() -> None:
    found = rendered(view_of(cut("a"), part("a", HALF, 0), gpu("b"), offers=(EACH,)))

    assert {name: resource for name, (resource, _) in found.items()} == {
        "all-whole": "example.com/gpu-whole",
        "all-3g.40gb": "example.com/gpu-3g.40gb",
    }
    assert found["all-3g.40gb"][1].endswith(
        '.offer == "all" && device.attributes["acme.accelkit.dev"].profile == "3g.40gb"'
    )


def test_profiles_that_differ_in_a_sign_have_classes_of_their_own() -> None:
    plus = attrs.evolve(SMALL, name="1g.24gb+me", slug="plus")
    minus = attrs.evolve(SMALL, name="1g.24gb-me", slug="minus")
    gpus = cut("a", profiles=(plus,)), cut("b", profiles=(minus,))

    found = rendered(view_of(*gpus, part("a", plus, 0), part("b", minus, 0), offers=(EACH,)))

    assert {name: resource for name, (resource, _) in found.items()} == {
        "all-whole": "example.com/gpu-whole",
        "all-1g.24gb.me": "example.com/gpu-1g.24gb.me",
        "all-1g.24gb-me": "example.com/gpu-1g.24gb-me",
    }


def test_devices_of_two_drivers_are_alternatives() -> None:
    view = view_of(gpu("a"), gpu("b", vendor="nvidia"), offers=(ONE,))

    _, expression = rendered(view)["gpus"]

    assert expression == (
        '(device.driver == "acme.accelkit.dev"'
        ' && device.attributes["acme.accelkit.dev"].offer == "gpus")'
        ' || (device.driver == "gpu.corp.example"'
        ' && device.attributes["gpu.corp.example"].offer == "gpus")'
    )


def test_offers_without_an_extended_resource_need_no_class() -> None:
    plain = Offer(name="plain", select=Selection(name=("a",)), through="dra")

    assert list(rendered(view_of(gpu("a"), gpu("b"), offers=(plain, ONE)))) == ["gpus"]
    assert rendered(view_of(gpu("a"), offers=(plain,))) == {}


def test_an_object_can_be_applied() -> None:
    (one,) = render(view_of(gpu("a"), offers=(ONE,)), DraPolicy()).values()

    assert class_object(one) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpus"},
        "spec": {
            "extendedResourceName": "example.com/gpu",
            "selectors": [{"cel": {"expression": one.expression}}],
        },
    }

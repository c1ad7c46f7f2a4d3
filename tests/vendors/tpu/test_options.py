import pytest

from accelkit.core.errors import ConfigError
from accelkit.core.serde import from_tree
from accelkit.vendors.tpu.vendor import TpuOptions


@pytest.mark.parametrize(
    "options,text",
    [
        ({"topology": "large"}, "the topology 'large' is none; write it as 4x4 or 2x2x4"),
        ({"topology": "4X4"}, "the topology '4X4' is none"),
        ({"topology": "2x2x2x2"}, "the topology '2x2x2x2' is none"),
        ({"topology": "4x0"}, "the topology '4x0' is none"),
        ({"topology": "999x999"}, "larger than any"),
        ({"chipsPerHost": 3}, "chipsPerHost must be one of 1, 2, 4, 8, or 0, not 3"),
        ({"chipsPerHost": -4}, "chipsPerHost must be one of"),
        ({"chipsPerHost": 16}, "chipsPerHost must be one of"),
    ],
)
def test_option_that_no_host_can_have_is_refused(options: object, text: str) -> None:
    """It was taken, and no chip could be used."""
    with pytest.raises(ConfigError) as caught:
        from_tree(TpuOptions, options, "$.options")

    ((path, said),) = caught.value.problems
    assert (path, text in said) == ("$.options", True)


@pytest.mark.parametrize("options", [{}, {"topology": "4x4x8", "chipsPerHost": 4}])
def test_options_that_a_host_can_have_are_taken(options: object) -> None:
    assert from_tree(TpuOptions, options).chips_per_host in {0, 4}

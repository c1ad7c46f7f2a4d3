import re
from pathlib import Path

import pytest

import accelkit.testing


def test_every_public_name_is_there_and_typed() -> None:
    stub = Path(accelkit.testing.__file__).with_suffix(".pyi").read_text()

    names = dir(accelkit.testing)
    assert set(re.findall(r"(\w+) as \1", stub)) == set(names)
    assert [name for name in names if not hasattr(accelkit.testing, name)] == []
    assert getattr(accelkit.testing, "__all__") == names  # noqa: B009 - not in the stub


def test_no_public_name_is_hidden_by_a_module() -> None:
    for path in Path(accelkit.testing.__file__).parent.glob("*.py"):
        assert path.stem not in dir(accelkit.testing)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Machina'"):
        getattr(accelkit.testing, "Machina")  # noqa: B009 - the name must not exist

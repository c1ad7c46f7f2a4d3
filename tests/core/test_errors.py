import copy
import inspect
import pickle
import re

import pytest

from accelkit.core import errors
from accelkit.core.errors import (
    AccelkitError,
    ApiError,
    BackendError,
    ConfigError,
    PartitionError,
    PluginError,
    RenderError,
    SourceError,
    UnknownDevice,
)

EVERY = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, AccelkitError)
]


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in EVERY]

    assert sorted(set(codes)) == sorted(codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind is not ConfigError])
def test_every_error_says_what_it_was_told_and_what_to_do(kind: type[AccelkitError]) -> None:
    error = kind("gpu-0 is gone", remedy="look for it")

    assert (str(error), error.remedy) == ("gpu-0 is gone", "look for it")


def test_a_config_error_tells_all_problems_with_their_places() -> None:
    error = ConfigError(
        [("$.offers[0].name", "is missing"), ("$.only", "is odd")], remedy="edit it"
    )

    assert str(error) == "$.offers[0].name: is missing\n$.only: is odd"
    assert error.problems == (("$.offers[0].name", "is missing"), ("$.only", "is odd"))
    assert error.remedy == "edit it"


@pytest.mark.parametrize(
    "error",
    [
        AccelkitError("x", remedy="r"),
        ConfigError([("$", "wrong")], remedy="r"),
        PluginError("x", plugin="toy", remedy="r"),
        SourceError("x", vendor="toy", operation="discover", remedy="r"),
        PartitionError("x", device="toy/a", remedy="r"),
        UnknownDevice("x", claim="c", remedy="r"),
        BackendError("x", backend="dra", remedy="r"),
        RenderError("x", backend="dra", remedy="r", limit=1, actual=2),
        ApiError("x", backend="dra", remedy="r", status=409),
    ],
)
def test_copies_of_errors_keep_everything(error: AccelkitError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (again.args, vars(again)) == (error.args, vars(error))

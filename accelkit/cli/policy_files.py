"""Policies from files, looked at with what is installed. Not here: what a policy may say."""

from collections.abc import Mapping
from pathlib import Path

from accelkit.agent.reload import read_policy_file, read_tree
from accelkit.cli.composing import check_installed
from accelkit.core.errors import ConfigError
from accelkit.core.policy import Policy
from accelkit.core.policy_check import parse_policy
from accelkit.core.registry import Registry


def read_policy(file: Path | None, registry: Registry, over: Path | None = None) -> Policy:
    """The policy in *file*, or the built-in one, looked at with what is installed.

    Args:
        file: None: the built-in one.
        registry: What is installed.
        over: A file whose keys go before those of *file*, key by key.

    Raises:
        ConfigError: It is wrong; everything that is.
    """
    if over is None:
        policy = Policy() if file is None else read_policy_file(file)
    else:
        policy = parse_policy({**({} if file is None else _keys(file)), **_keys(over)})
    check_installed(policy, registry)
    return policy


def _keys(file: Path) -> Mapping[object, object]:
    tree = read_tree(file)
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        raise ConfigError([(str(file), "expected keys of a policy")])
    return tree

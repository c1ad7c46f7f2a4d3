"""A tree without what is wrong in it, so that the rest can be looked at, too."""

import re
from collections.abc import Iterable, Mapping

_STEP = re.compile(r'\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\]|\["(.*?)"\](?=[.\[]|$)', re.DOTALL)


def without(tree: object, paths: Iterable[str]) -> object:
    """*tree* without what stands at *paths*; what is missing there takes along what lacks it.

    Whole lists go rather than single items: the paths of what is left stay true.
    """
    for path in paths:
        tree = _pruned(tree, _steps(path))
    return tree


def _steps(path: str) -> list[str | int]:
    return [int(index) if index else name or text for name, index, text in _STEP.findall(path[1:])]


def _pruned(tree: object, steps: list[str | int]) -> object:
    """*tree* without what is at *steps*; None: nothing of it can stay."""
    if not steps:
        return None
    step, *rest = steps
    if isinstance(tree, Mapping) and step in tree:
        left = _pruned(tree[step], rest)
        kept = {key: value for key, value in tree.items() if key != step}
        return kept if left is None else {**tree, step: left}
    if isinstance(tree, list) and isinstance(step, int) and step < len(tree):
        left = _pruned(tree[step], rest)
        return None if left is None else [*tree[:step], left, *tree[step + 1 :]]
    return None

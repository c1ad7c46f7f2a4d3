"""What is wrong with layouts and partitioning."""

import pytest

from accelkit.core.layout_check import layout_problems
from accelkit.core.policy import Policy
from accelkit.core.serde import from_tree

KUBELET, DRA = {"name": "a"}, {"name": "b", "through": "dra"}


def found(tree: object) -> list[tuple[str, str]]:
    return [*layout_problems(from_tree(Policy, tree))]


def rule(**keys: object) -> dict[str, object]:
    return {"layouts": {"small": {"1g": 7}}, "partitioning": [keys], "offers": [KUBELET, DRA]}


@pytest.mark.parametrize(
    "tree",
    [
        {},
        rule(),
        rule(how="layout", layout="small", foreign="destroy", when="drained"),
        rule(how="mode", mode="cpx-nps1"),
        rule(how="dynamic", profiles=["1g*"], foreign="destroy"),
        rule(select={"partition": False}, how="layout", layout="small"),
        {
            "layouts": {"all-1g.5gb": {"1g.5gb": 7, "1g.5gb+me": 1}, "whole": {}},
            "partitioning": [
                {"select": {"product": "*A100*"}, "how": "layout", "layout": "all-1g.5gb"},
                {"how": "layout", "layout": "whole"},
            ],
        },
    ],
)
def test_what_makes_sense_is_fine(tree: object) -> None:
    assert found(tree) == []


@pytest.mark.parametrize(
    "tree,path,text",
    [
        ({"layouts": {"l": {"1g": 0}}}, '$.layouts.l["1g"]', "expected 1 to 128, found 0"),
        ({"layouts": {"l": {"1g": 129}}}, '$.layouts.l["1g"]', "expected 1 to 128, found 129"),
        ({"layouts": {"l": {" ": 1}}}, '$.layouts.l[" "]', "expected the name of a profile"),
        ({"layouts": {"": {"1g": 1}}}, '$.layouts[""]', "a layout needs a name"),
        (
            rule(how="layout", layout="smal"),
            "$.partitioning[0].layout",
            "there is no layout 'smal', did you mean 'small'?",
        ),
        (rule(how="layout"), "$.partitioning[0].layout", "missing: how is layout"),
        (rule(how="mode"), "$.partitioning[0].mode", "missing: how is mode"),
        (
            rule(how="mode", mode="cpx", layout="small"),
            "$.partitioning[0].layout",
            "means nothing unless how is layout",
        ),
        (rule(mode="cpx"), "$.partitioning[0].mode", "means nothing unless how is mode"),
        (
            rule(profiles=["*"]),
            "$.partitioning[0].profiles",
            "means nothing unless how is dynamic",
        ),
        (
            rule(foreign="destroy"),
            "$.partitioning[0].foreign",
            "means nothing while how is none",
        ),
        (rule(when="drained"), "$.partitioning[0].when", "means nothing while how is none"),
        (
            rule(how="dynamic", profiles=[""]),
            "$.partitioning[0].profiles[0]",
            "expected a glob of profiles",
        ),
        (
            {**rule(how="dynamic"), "offers": [KUBELET]},
            "$.partitioning[0].how",
            "dynamic: no offer goes through dra, and kubelet hands out only what is there",
        ),
        (
            rule(select={"partition": True}, how="dynamic"),
            "$.partitioning[0].select",
            "selects partitions: only whole devices are cut",
        ),
        (
            rule(select={"profile": "1g"}, how="dynamic"),
            "$.partitioning[0].select",
            "selects partitions: only whole devices are cut",
        ),
        (
            {"partitioning": [{}, {"select": {"name": "a"}}]},
            "$.partitioning[1].select",
            "never reached: $.partitioning[0] comes first and takes all of it",
        ),
        (
            {"partitioning": [{"select": {"name": "a"}}, {"select": {"name": ["a"]}}]},
            "$.partitioning[1].select",
            "never reached: $.partitioning[0] comes first and takes all of it",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(tree: object, path: str, text: str) -> None:
    assert found(tree) == [(path, text)]

"""What rules may say."""

import pytest

from accelkit.core.errors import ConfigError
from accelkit.core.serde import from_tree
from accelkit.core.vendor import Signals
from accelkit.vendors.generic.options import GenericOptions
from tests.vendors.generic.rules import (
    PAIRED,
    STICK,
    vendor_of,
)


def test_what_the_rules_name_is_watched() -> None:
    vendor = vendor_of(
        {
            "name": "a",
            "match": [{"path": "/dev/a*"}, {"path": "/dev/b*"}],
            "nodes": ["/dev/c", {"path": "/dev/d", "optional": True}],
            "mounts": [{"hostPath": "/run/e"}],
        },
        {"name": "f", "match": {"file": "/run/f*"}},
        {"name": "p", "match": {"pci": {"vendor": 1}}, "nodes": ["/dev/{address}"]},
        {"name": "u", "match": STICK},
    )

    assert vendor.signals == Signals(
        uevents=("pci", "usb"),
        files=("/dev/a*", "/dev/b*", "/dev/c", "/dev/d", "/run/e", "/run/f*"),
    )


@pytest.mark.parametrize(
    "rule,text",
    [
        ({"name": "Fuse", "match": {"path": "/dev/a"}}, "name must be a DNS label"),
        ({"name": "", "match": {"path": "/dev/a"}}, "name must be a DNS label"),
        ({"name": "a" * 41, "match": {"path": "/dev/a"}}, "name must be a DNS label"),
        ({"name": "a"}, "missing"),
        ({"name": "a", "match": {}}, "exactly one of path, file, pci and usb"),
        ({"name": "a", "match": {"path": "/dev/a", **STICK}}, "exactly one of"),
        ({"name": "a", "match": {"path": "dev/a"}}, "must be an absolute path"),
        ({"name": "a", "match": {"path": "/dev/../a"}}, "must be an absolute path"),
        ({"name": "a", "match": {"path": "/dev/a\0"}}, "must be an absolute path"),
        ({"name": "a", "match": {"path": "/dev/{bus}"}}, "{bus} is not known; a path has none"),
        (
            {"name": "a", "match": STICK, "nodes": ["/dev/{address}"]},
            "{address} is not known; a path has {bus} and {port}",
        ),
        ({"name": "a", "match": {"pci": {"vendor": 70000}}}, "vendor must be from 0x0000"),
        ({"name": "a", "match": {"pci": {"vendor": 1, "class": -1}}}, "class must be from"),
        ({"name": "a", "match": {"usb": {"vendor": "403"}}}, "vendor must be four hexadecimal"),
        ({"name": "a", "match": {"usb": {"vendor": "0403", "product": "6OO1"}}}, "product must"),
        ({"name": "a", "match": {"path": "/a"}, "permissions": "rx"}, "permissions must be some"),
        ({"name": "a", "match": {"path": "/a"}, "permissions": ""}, "permissions must be some"),
        ({"name": "a", "match": {"path": "/a"}, "env": {"A=B": "1"}}, "is not the name of a"),
        ({"name": "a", "match": {"path": "/a"}, "mounts": [{"hostPath": "x"}]}, "absolute path"),
        ({"name": "a", "match": {"path": "/a"}, "node": []}, "unknown key"),
        ({"name": "a", "match": []}, "by one of path, file, pci and usb, not by none"),
        ({"name": "a", "match": [{"path": "/a"}, STICK]}, "not path, usb"),
        ({"name": "a", "match": {"file": "a"}}, "must be an absolute path"),
        ({"name": "a", "match": {"path": "/a", "containerPath": "a"}}, "must be an absolute path"),
        ({"name": "a", "match": {**STICK, "containerPath": "/a"}}, "goes with path or file"),
        ({"name": "a", "match": {"path": "/a", "readOnly": False}}, "readOnly goes with file"),
        ({"name": "a", "match": {"path": "/a"}, "nodes": [{"path": "/b", "limits": 1}]}, "unknown"),
        (
            {"name": "a", "match": {"path": "/a"}, "nodes": [{"path": "/b", "permissions": "x"}]},
            "permissions must be some",
        ),
        (
            {"name": "a", "match": {"path": "/a"}, "nodes": [{"path": "/b", "limit": 0}]},
            "limit must be at least 1",
        ),
        (
            {
                "name": "a",
                "match": {"path": "/a"},
                "mounts": [{"hostPath": "/b*", "containerPath": "/c"}],
            },
            "let it end in /",
        ),
        (
            {"name": "a", "match": {"path": "/a"}, "group": True, "nodes": [PAIRED]},
            "leave it out with group",
        ),
        (
            {"name": "a", "match": STICK, "mounts": [{"hostPath": "/run/{port}", "limit": 1}]},
            "leave it out with placeholders",
        ),
        ({"name": "a", "match": {"path": ""}}, "'' must be an absolute path"),
        ({"name": "a", "match": {"file": ""}}, "'' must be an absolute path"),
        ({"name": "a", "match": {"file": "//"}}, "file must name something below /, not '//'"),
        ({"name": "a", "match": {"path": "/dev/a\n"}}, "has signs that cannot be printed"),
        ({"name": "a", "match": {"path": "/a"}, "mounts": [{"hostPath": "/"}]}, "it has its own"),
        (
            {
                "name": "a",
                "match": {"path": "/a"},
                "mounts": [{"hostPath": "/", "containerPath": "/"}],
            },
            "it has its own",
        ),
        ({"name": "a", "match": {"path": "/a"}, "permissions": "rwr"}, "permissions must be some"),
        ({"name": "a", "match": {"path": "/a"}, "env": {"A": "\0"}}, "no variable can have a NUL"),
        (
            {"name": "a", "match": {"path": "/a*", "containerPath": "/b"}, "group": True},
            "'/a*' may be several files, and '/b' is a place for one; let it end in /",
        ),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_its_place(rule: object, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_tree(GenericOptions, {"devices": [rule]}, "$.options")

    (problem,) = caught.value.problems
    assert problem[0].startswith("$.options.devices[0]")
    assert text in problem[1]


def test_the_root_of_the_host_may_be_a_folder_of_the_container() -> None:
    mounts = [{"hostPath": "/", "containerPath": "/host"}]
    vendor_of({"name": "a", "match": {"path": "/dev/a"}, "mounts": mounts})


def test_two_rules_of_one_name_are_refused() -> None:
    rule = {"name": "a", "match": {"path": "/dev/a"}}

    with pytest.raises(ConfigError, match="two rules have the name a"):
        from_tree(GenericOptions, {"devices": [rule, rule]})

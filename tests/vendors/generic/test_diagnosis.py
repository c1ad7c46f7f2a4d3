"""What the doctor says of rules that describe nothing."""

from pathlib import Path

import pytest

from tests.vendors.generic.rules import STICK, machine, opened, vendor_of

HERE = {"name": "here", "match": {"path": "/dev/ttyUSB*"}}


@pytest.mark.parametrize(
    "rule, proof, remedy",
    [
        ({"match": {"path": "/dev/nix*"}}, "nothing is there that fits /dev/nix*", "look whether"),
        ({"match": {"path": "/dev/bus"}}, "/dev/bus is no device node", "or /dev/bus/* by path"),
        (
            {"match": {"path": "/sys/bus/usb/devices/1-1/serial"}},
            "/sys/bus/usb/devices/1-1/serial is no device node",
            "match it by file",
        ),
        ({"match": {"file": "/dev/tty*"}}, "/dev/ttyUSB0 is a device node", "match it by path"),
        ({"match": {"path": "/dev/*"}}, "what it matches belongs to here", "move it up"),
        (
            {"match": STICK, "nodes": [{"path": "/dev/nix", "limit": 1}]},
            "no match of /dev/nix is left",
            "look whether",
        ),
        ({"match": {"pci": {"vendor": 0x1DEA}}}, "a PCI function of vendor 0x1dea", "look whether"),
        ({"match": {"usb": {"vendor": "1a86"}}}, "a USB device of vendor 1a86", "look whether"),
    ],
)
def test_rule_without_devices_is_told_with_what_helps(
    tmp_path: Path, rule: dict[str, object], proof: str, remedy: str
) -> None:
    host = opened(machine(tmp_path, "stick", 2))
    (finding,) = vendor_of(HERE, {"name": "idle", **rule}).diagnose(host)

    assert finding.symptom == "no device of the rule idle is offered"
    assert proof in finding.proof
    assert remedy in finding.remedy
    assert not finding.sure  # on a node that has no such thing all is well


def test_nothing_is_said_where_each_rule_has_devices(tmp_path: Path) -> None:
    host = opened(machine(tmp_path, "stick", 2))

    assert list(vendor_of(HERE, {"name": "stick", "match": STICK}).diagnose(host)) == []
    assert list(vendor_of().diagnose(host)) == []

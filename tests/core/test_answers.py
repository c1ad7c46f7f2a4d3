"""Answers of plugins that nobody may believe."""

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import pytest

from accelkit.core.allocation import ContainerEdits, Edits, Grant, Granted, Hook, Mount
from accelkit.core.answers import (
    MOST_SLOTS,
    check_edits,
    checked,
    checked_conditions,
    checked_devices,
    checked_events,
    checked_holdings,
    checked_software,
)
from accelkit.core.errors import PluginContractError
from accelkit.core.host import Host
from accelkit.core.model import (
    Condition,
    Device,
    DeviceId,
    DeviceNode,
    Event,
    Holder,
    Holding,
    Link,
    Locality,
    Unreadable,
)
from accelkit.core.values import HolderKind, LinkKind, Severity
from accelkit.core.vendor import NoOptions, Vendor
from tests.core.things import gpu, of, part


class Toy(Vendor):
    name = "toy"
    domain = "toy.example"

    def discover(self, host: Host) -> Iterable[Device | Unreadable]:
        raise NotImplementedError


TOY = Toy(NoOptions())


def made(kind: Any, /, **fields: object) -> Any:  # type: ignore[explicit-any]  # as plugins make it
    return kind(**fields)


def refusal(call: Any, *args: object) -> str:  # type: ignore[explicit-any]  # of any answer
    with pytest.raises(PluginContractError) as caught:
        call(TOY, *args)
    assert (caught.value.plugin, bool(caught.value.remedy)) == ("toy", True)
    return str(caught.value)


@pytest.mark.parametrize(
    "found, text",
    [
        ([42], "discover yields a int"),
        ([gpu("a", product=42)], "Device: product: expected str or None, found int"),
        ([gpu("a", vendor="other")], "other/a: it is not a device of toy"),
        ([gpu("a", kind="GPU")], "toy/a: the kind 'GPU' is not a DNS label"),
        ([gpu("a", slots=10**12)], f"toy/a: there are 0 to {MOST_SLOTS} slots"),
        ([gpu("a", nodes=[DeviceNode(path="dev/a")])], "toy/a: 'dev/a' is not an absolute path"),
        ([gpu("a", nodes=[DeviceNode(path="/d\0")])], "toy/a: '/d\\x00' is not an absolute path"),
        (
            [gpu("a", nodes=[DeviceNode(path="/dev/a", kind="z")])],
            "toy/a: /dev/a is neither a c nor a b device",
        ),
        (
            [gpu("a", nodes=[DeviceNode(path="a", host_path="/dev/a")])],
            "toy/a: 'a' is not an absolute path",
        ),
        (
            [gpu("a", nodes=[DeviceNode(path="/dev/a", permissions="rx")])],
            "toy/a: the permissions of /dev/a are 'rx', not some of rwm",
        ),
        (
            [gpu("a", nodes=[DeviceNode(path="/dev/a", permissions="")])],
            "toy/a: the permissions of /dev/a are '', not some of rwm",
        ),
        ([gpu("a", nodes=["/dev/a"])], "Device: nodes[0]: expected DeviceNode, found str"),
        (
            [gpu("a", locality=Locality(pci_address="0000:AB:00.0"))],
            "toy/a: '0000:AB:00.0' is no PCI address: write dddd:bb:dd.f in lower case",
        ),
        ([made(Unreadable, subject="a", code="A B", reason="x")], "a: 'A B' is not a code"),
        (
            [made(Unreadable, subject=None, code="a", reason="x")],
            "Unreadable: subject: expected str, found None",
        ),
    ],
)
def test_what_cannot_be_a_device_is_refused(found: Iterable[object], text: str) -> None:
    assert refusal(checked_devices, found) == text


def test_devices_come_by_id_and_apart_from_what_cannot_be_read() -> None:
    missing = made(Unreadable, subject="c", code="burnt", reason="x")

    assert checked_devices(TOY, [gpu("b"), missing, part("a", 1), gpu("a")]) == (
        (gpu("a"), part("a", 1), gpu("b")),
        (missing,),
    )


def test_answer_without_end_is_refused() -> None:
    link = made(Link, a=of("a"), b=of("b"), kind=LinkKind.DIRECT)

    assert "more than 131072 are reported" in refusal(checked, Link, repeat(link))


@pytest.mark.parametrize("answer", [None, 3])
def test_answer_that_one_cannot_go_through_says_what_is_missing(answer: object) -> None:
    where = "is answered, where each {} is to be yielded, or a list returned"

    assert f"{answer} {where.format('Link')}" in refusal(checked, Link, answer)
    assert f"{answer} {where.format('Device')}" in refusal(checked_devices, answer)


def test_condition_that_only_looks_fatal_is_refused() -> None:
    """An enumeration's text equals its member, and is not it."""
    told = [made(Condition, code="burnt", severity="FATAL")]

    assert "severity: expected Severity" in refusal(checked_conditions, gpu("a"), told)


def test_first_condition_of_a_code_counts() -> None:
    first, second = (
        made(Condition, code="hot", severity=s) for s in (Severity.INFO, Severity.FATAL)
    )

    assert checked_conditions(TOY, gpu("a"), [first, second]) == (first,)


def test_events_and_conditions_have_codes() -> None:
    event = made(Event, subject="a", code="A B", source="x")
    condition = made(Condition, code="A B", severity=Severity.INFO)

    assert refusal(checked_events, [event]) == "a: 'A B' is not a code"
    assert refusal(checked_conditions, gpu("a"), [condition]) == "toy/a: 'A B' is not a code"


def test_events_and_holdings_that_make_sense_are_taken_as_they_are() -> None:
    event = Event(subject="a", code="a-b", source="x")
    holding = Holding(
        device=of("a"), through="process", holder=Holder(kind=HolderKind.FOREIGN, uid="7")
    )

    assert checked_events(TOY, [event]) == (event,)
    assert checked_holdings(TOY, [holding]) == (holding,)


def test_holding_of_another_vendors_device_is_refused() -> None:
    other = Holding(
        device=DeviceId(vendor="other", name="a"),
        through="process",
        holder=Holder(kind=HolderKind.FOREIGN),
    )

    assert refusal(checked_holdings, [other]) == "other/a is another vendor's device"


@pytest.mark.parametrize(
    "versions, text",
    [
        (["driver"], "the software is a list, not a mapping"),
        ({42: "1"}, "the name of a piece of software: expected str, found int"),
        ({"driver": 1}, "the version of driver: expected str, found int"),
    ],
)
def test_software_is_named_texts(versions: object, text: str) -> None:
    assert refusal(checked_software, versions) == text


@pytest.mark.parametrize(
    "edits, text",
    [
        (made(ContainerEdits, env={"A": 1}), "each[toy/a].env[A]: expected str, found int"),
        (made(ContainerEdits, env={"A=B": "1"}), "'A=B' cannot be a variable with this value"),
        (made(ContainerEdits, joined={"A": "\0"}), "'A' cannot be a variable with this value"),
        (made(ContainerEdits, nodes=[DeviceNode(path="a")]), "'a' is not an absolute path"),
        (
            made(ContainerEdits, mounts=[Mount(host_path="/a", container_path="b")]),
            "'b' is not an absolute path",
        ),
        (
            made(ContainerEdits, hooks=[Hook(name="h", path="/\0")]),
            "'/\\x00' is not an absolute path",
        ),
    ],
)
def test_edits_that_no_container_can_be_given_are_refused(edits: ContainerEdits, text: str) -> None:
    grant = Grant(owner="me", granted=[Granted(device=gpu("a"))])

    assert refusal(check_edits, grant, made(Edits, each={of("a"): edits})) == (
        f"edits of toy for me: {text}"
    )

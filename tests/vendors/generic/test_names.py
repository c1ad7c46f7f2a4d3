"""Names that files may have, and devices not."""

import os
from pathlib import Path

from accelkit.core.reading import read_inventory
from tests.vendors.generic.rules import devices, machine, opened, vendor_of


def test_file_without_a_letter_or_digit_has_a_name_and_costs_no_other_device(
    tmp_path: Path,
) -> None:
    """One such name at the root of the host took the devices of all rules away."""
    directory = machine(tmp_path, "widget", 1)
    for name in ("_", "+"):
        Path(directory, name).mkdir()
    vendor = vendor_of(
        {"name": "a", "match": {"file": "/[_+]"}}, {"name": "w", "match": {"path": "/dev/widget*"}}
    )

    names = [device.id.name for device in devices(vendor, opened(directory))]

    assert names == ["nameless-0c3eee06", "nameless-5d9402db", "dev-widget0"]


def test_names_that_no_text_can_have_are_passed_over(tmp_path: Path) -> None:
    directory = machine(tmp_path, "widget", 1)
    folder = Path(directory, "run/rooms")
    folder.mkdir(parents=True)
    for name in (b"\xff\xfe", b"a\nb", b"c"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("")
    vendor = vendor_of({"name": "a", "match": {"file": "/run/rooms/*"}})

    report = read_inventory(vendor, opened(directory))

    assert [device.id.name for device in report.devices] == ["run-rooms-c"]
    assert report.problems == ()


def test_text_that_is_too_long_in_bytes_is_no_attribute(tmp_path: Path) -> None:
    directory = machine(tmp_path, "widget", 1)
    folder = Path(directory, "run")
    folder.mkdir()
    (folder / ("\N{LATIN SMALL LETTER E WITH ACUTE}" * 40)).write_text("")
    vendor = vendor_of({"name": "a", "match": {"file": "/run/*"}})

    (device,) = devices(vendor, opened(directory))

    assert device.attributes == {}

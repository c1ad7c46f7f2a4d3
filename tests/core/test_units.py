"""Durations and amounts as people write them."""

import pytest
from hypothesis import given, strategies as st

from accelkit.core.units import (
    BYTES_LIMIT,
    Bytes,
    Seconds,
    checked_bytes,
    format_duration,
    format_quantity,
    parse_duration,
    parse_quantity,
)


@pytest.mark.parametrize(
    "text,seconds",
    [("30s", 30), ("500ms", 0.5), ("10m", 600), ("1h", 3600), ("1.5h", 5400), ("0s", 0)],
)
def test_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "30", "s", "-1s", "30 s", "1d", "1m30s", ".5s", "1.s", "٣s", "1e3s", "30s\n"]
)
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 30s"):
        parse_duration(text)


@pytest.mark.parametrize(
    "seconds,text",
    [
        (0, "0s"),
        (30, "30s"),
        (0.5, "500ms"),
        (600, "10m"),
        (7200, "2h"),
        (90, "90s"),
        (2.5, "2500ms"),
    ],
)
def test_duration_is_written_in_the_largest_whole_unit(seconds: float, text: str) -> None:
    assert format_duration(Seconds(seconds)) == text


@given(st.integers(0, 10**9).map(lambda ms: Seconds(ms / 1000)))
def test_duration_that_was_written_reads_the_same(seconds: Seconds) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    "text,amount",
    [
        ("0", 0),
        ("512", 512),
        ("1Ki", 1024),
        ("80Gi", 80 << 30),
        ("1.5Gi", 3 << 29),
        ("500M", 500_000_000),
        ("5k", 5000),
        ("2e9", 2_000_000_000),
        ("3E3", 3000),
        ("1E", 10**18),
        ("7Ei", 7 << 60),
    ],
)
def test_amount_is_a_quantity_of_whole_bytes(text: str, amount: int) -> None:
    assert parse_quantity(text) == amount


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "-1", "1gi", "1K", "500m", "1.Gi", "0x10", "٣"])
def test_anything_else_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match="expected an amount such as 16Gi"):
        parse_quantity(text)


def test_amount_with_a_part_of_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected whole bytes, found '0\.5'"):
        parse_quantity("0.5")


@pytest.mark.parametrize("amount", [-1, BYTES_LIMIT + 1])
def test_amount_outside_64_bits_is_refused(amount: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 2\\^63-1 bytes"):
        checked_bytes(amount)


def test_quantity_outside_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 2\\^63-1 bytes"):
        parse_quantity("8Ei")


@pytest.mark.parametrize(
    "amount,text", [(0, "0"), (1000, "1000"), (1 << 30, "1Gi"), (1536, "1536")]
)
def test_amount_is_written_with_a_suffix_where_one_fits(amount: int, text: str) -> None:
    assert format_quantity(Bytes(amount)) == text


@given(st.integers(0, BYTES_LIMIT).map(Bytes))
def test_amount_that_was_written_reads_the_same(amount: Bytes) -> None:
    assert parse_quantity(format_quantity(amount)) == amount

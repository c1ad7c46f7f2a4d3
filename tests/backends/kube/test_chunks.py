"""Bodies in chunks, cut anywhere."""

import pytest
from hypothesis import given, strategies as st

from accelkit.backends.kube.chunks import BadChunk, Chunks


def encoded(chunks: list[bytes], trailer: bytes = b"") -> bytes:
    """As a server sends them."""
    parts = [f"{len(data):X};x=y\r\n".encode() + data + b"\r\n" for data in chunks]
    return b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    cuts=st.lists(st.integers(min_value=1, max_value=20), min_size=1),
    trailer=st.sampled_from([b"", b"A: b\r\n", b"A: b\r\nC: d\r\n"]),
)
def test_a_body_is_the_same_however_it_is_cut(
    chunks: list[bytes], cuts: list[int], trailer: bytes
) -> None:
    text, found, decoder = encoded(chunks, trailer), b"", Chunks()
    while text:
        cut = cuts[len(text) % len(cuts)]
        assert not decoder.ended
        found += decoder.feed(text[:cut])
        text = text[cut:]

    assert found == b"".join(chunks)
    assert decoder.ended


@given(st.binary(max_size=200))
def test_whatever_comes_is_a_body_or_no_chunk(text: bytes) -> None:
    decoder = Chunks()
    try:
        found = decoder.feed(text)
    except BadChunk:
        return
    assert len(found) <= len(text)


@pytest.mark.parametrize(
    "text",
    [b"\r\n", b"x\r\n", b"-1\r\n", b"1 2\r\n", b"123456789\r\n", b"1\r\nab\r\n", bytes(5000)],
)
def test_what_is_no_chunk_is_refused(text: bytes) -> None:
    with pytest.raises(BadChunk):
        Chunks().feed(text)

"""What keeps a client from its server, in words."""

import errno
import http.client
import ssl

import pytest
from urllib3.exceptions import ProtocolError

from accelkit.backends.kube.faults import Closed, transport_error
from accelkit.core.errors import TransportError

FAULTS = {
    "no route": (OSError(errno.EHOSTUNREACH, "No route to host"), "there is no way to it"),
    "no network": (OSError(errno.ENETUNREACH, "unreachable"), "there is no way to it"),
    "time": (TimeoutError(), "no answer in time, connecting"),
    "wrapped": (ProtocolError("aborted", ConnectionResetError()), "it ended the connection"),
    "end of TLS": (ssl.SSLEOFError(8, "EOF"), "it ended the connection"),
    "other TLS": (ssl.SSLError(1, "strange"), "TLS failed: "),
    "no HTTP": (http.client.BadStatusLine("x"), "it does not speak as an API server does"),
    "whatever": (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_server_and_what_to_do(fault: str) -> None:
    error, words = FAULTS[fault]

    found = transport_error(error, "the API server at https://a", "connecting")

    assert type(found) is TransportError
    assert str(found).startswith("the API server at https://a: ")
    assert words in str(found)
    assert found.remedy


def test_what_is_named_already_stays_as_it_is() -> None:
    error = Closed()

    assert transport_error(error, "the API server", "connecting") is error


def test_a_cause_is_found_below_whatever_wraps_it() -> None:
    wrapping = RuntimeError("something")
    wrapping.__cause__ = ConnectionRefusedError()

    assert "nobody listens there" in str(transport_error(wrapping, "s", "connecting"))


def test_causes_that_go_round_in_circles_end() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first

    assert str(transport_error(first, "s", "connecting")) == "s: ValueError: a"

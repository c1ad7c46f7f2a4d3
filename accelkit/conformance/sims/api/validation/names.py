"""Formats of names and values, with a server's words for what is wrong. Not here: fields.

Source:
    k8s.io/apimachinery v0.37.2, pkg/api/validate/content and pkg/util/validation.
"""

import re
from collections.abc import Callable, Iterator

from accelkit.conformance.sims.api.refusals import Cause, required, too_long, wrong

Check = Callable[[str, str], Iterator[Cause]]
"""What is wrong at a path with a text."""

LABEL_BYTES = 63
SUBDOMAIN_BYTES = 253
IDENTIFIER_BYTES = 32
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_NAME})?"
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
_REASON = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_NUMERIC, _BUILD = r"(0|[1-9]\d*)", r"[0-9a-zA-Z-]+"
_PRE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMERIC}\.{_NUMERIC}\.{_NUMERIC}(-{_PRE}(\.{_PRE})*)?(\+{_BUILD}(\.{_BUILD})*)?",
    re.ASCII,
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENDS = "and must start and end with an alphanumeric character"


def _regex(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


_NAME_TEXT = _regex(
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    _NAME, "MyName", "my.name", "123-abc",
)  # fmt: skip


def _bytes(text: str) -> int:
    return len(text.encode())


def dns_label(path: str, text: str) -> Iterator[Cause]:
    """A name without dots: of devices, requests, counters."""
    if _bytes(text) > LABEL_BYTES:
        yield wrong(path, text, f"must be no more than {LABEL_BYTES} characters")
    if not re.fullmatch(_LABEL, text):
        what = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            f"{_ENDS}"
        )
        dotted = "." in text and re.fullmatch(_SUBDOMAIN, text)
        shown = "must not contain dots" if dotted else _regex(what, _LABEL, "my-name", "123-abc")
        yield wrong(path, text, shown)


def subdomain(path: str, text: str, *, units: str = "characters") -> Iterator[Cause]:
    """A name of objects, classes and nodes."""
    for fault in subdomain_faults(text, units=units):
        yield wrong(path, text, fault)


def subdomain_faults(text: str, *, units: str = "characters") -> Iterator[str]:
    """What keeps *text* from being a subdomain."""
    if _bytes(text) > SUBDOMAIN_BYTES:
        yield f"must be no more than {SUBDOMAIN_BYTES} {units}"
    if not re.fullmatch(_SUBDOMAIN, text):
        what = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            f"'-' or '.', {_ENDS}"
        )
        yield _regex(what, _SUBDOMAIN, "example.com")


def driver(path: str, text: str, *, caseless: bool = False) -> Iterator[Cause]:
    """The name of a driver: upper case is let through; *caseless*: where the refusal says so."""
    if not text:
        yield required(path)
        return
    if _bytes(text) > LABEL_BYTES:
        yield too_long(path, LABEL_BYTES)
    if caseless and not re.fullmatch(_SUBDOMAIN, text.lower()):
        what = f"an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', {_ENDS}"
        yield wrong(path, text, _regex(what, _SUBDOMAIN, "Example.com"))
    elif not caseless:
        for fault in subdomain_faults(text.lower()):
            yield wrong(path, text, fault)


def caseless_driver(path: str, text: str) -> Iterator[Cause]:
    return driver(path, text, caseless=True)


def pool(path: str, text: str) -> Iterator[Cause]:
    """One or more subdomains with slashes between them."""
    if not text:
        yield required(path)
        return
    if _bytes(text) > SUBDOMAIN_BYTES:
        yield too_long(path, SUBDOMAIN_BYTES)
    for each in text.split("/"):
        yield from subdomain(path, each)


def identifier(path: str, text: str) -> Iterator[Cause]:
    if _bytes(text) > IDENTIFIER_BYTES:
        yield too_long(path, IDENTIFIER_BYTES)
    if not re.fullmatch(_IDENTIFIER, text):
        what = (
            "a valid C identifier must start with alphabetic character or '_', "
            "followed by a string of alphanumeric characters or '_'"
        )
        yield wrong(path, text, _regex(what, _IDENTIFIER, "my_name", "MY_NAME", "MyName"))


def qualified(path: str, text: str) -> Iterator[Cause]:
    """A key of attributes and capacities; with two slashes anything goes."""
    match text.split("/"):
        case [name]:
            yield from identifier(path, name)
        case [domain, name]:
            if domain:
                yield from driver(path, domain)
            else:
                yield wrong(path, "", "the domain must not be empty")
            if name:
                yield from identifier(path, name)
            else:
                yield wrong(path, "", "the name must not be empty")
        case _:
            return


def fully_qualified(path: str, text: str) -> Iterator[Cause]:
    """An attribute in a constraint: its domain is written."""
    yield from qualified(path, text)
    if "/" not in text:
        message = "a fully qualified name must be a domain and a name separated by a slash"
        yield wrong(path, text, message)


def label_key(path: str, text: str) -> Iterator[Cause]:
    """A key of labels, annotations and taints; a condition."""
    for message in _label_key(text):
        yield wrong(path, text, message)


def _label_key(text: str) -> Iterator[str]:
    parts = text.split("/")
    if len(parts) > 2:
        yield (
            f"a valid label key {_NAME_TEXT} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        )
        return
    if len(parts) == 2:
        if not parts[0]:
            yield "prefix part must be non-empty"
        else:
            faults = subdomain_faults(parts[0], units="bytes")
            yield from (f"prefix part {fault}" for fault in faults)
    if not parts[-1]:
        yield "name part must be non-empty"
    elif _bytes(parts[-1]) > LABEL_BYTES:
        yield f"name part must be no more than {LABEL_BYTES} bytes"
    if not re.fullmatch(_NAME, parts[-1]):
        yield f"name part {_NAME_TEXT}"


def label_value(path: str, text: str) -> Iterator[Cause]:
    if _bytes(text) > LABEL_BYTES:
        yield wrong(path, text, f"must be no more than {LABEL_BYTES} bytes")
    if not re.fullmatch(_VALUE, text):
        what = (
            "a valid label must be an empty string or consist of alphanumeric characters, "
            f"'-', '_' or '.', {_ENDS}"
        )
        yield wrong(path, text, _regex(what, _VALUE, "MyValue", "my_value", "12345"))


def condition_reason(path: str, text: str) -> Iterator[Cause]:
    if not re.fullmatch(_REASON, text):
        what = (
            "a condition reason must start with alphabetic character, optionally followed by a "
            "string of alphanumeric characters or '_,:', and must end with an alphanumeric "
            "character or '_'"
        )
        examples = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
        yield wrong(path, text, _regex(what, _REASON, *examples))


def version(path: str, text: str) -> Iterator[Cause]:
    if not _SEMVER.fullmatch(text):
        yield wrong(path, text, "must be a string compatible with semver.org spec 2.0.0")


def uuid(path: str, text: str) -> Iterator[Cause]:
    if not _UUID.fullmatch(text):
        yield wrong(path, text, "must be a lowercase UUID in 8-4-4-4-12 format")


def extended_resource(path: str, text: str) -> Iterator[Cause]:
    """The name of an extended resource: quotas must be able to write ``requests.`` before it."""
    if "/" not in text:
        what = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        yield wrong(path, text, what)
    elif "kubernetes.io/" in text:
        yield wrong(path, text, 'must not have "kubernetes.io/" domain')
    if text.startswith("requests."):
        yield wrong(path, text, 'must not have "requests." prefix')
    for message in _label_key(f"requests.{text}"):
        yield wrong(path, text, message)

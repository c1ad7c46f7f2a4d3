"""Which versions of driver and firmware a host has. Not here: whether they fit each other."""

import re

from accelkit import Host, ModelError, SourceError, Version
from accelkit.vendors.gaudi.cards import LONGEST, Card

MODULE = "/sys/module/habanalabs/version"
_RELEASE = re.compile(r"(?:^|[^\d.])(\d+)\.(\d+)\.\d+")


def of_module(host: Host) -> str | None:
    """The version of the loaded module; None: it is not loaded, or does not say.

    Source:
        MODULE_VERSION of the driver that is installed separately; that of Linux has none.
    """
    try:
        return host.read(MODULE).strip() or None
    except SourceError:
        return None


def of_card(card: Card) -> str | None:
    """The version of the driver that a card is served by; None: it does not say.

    Source:
        driver_ver: driver 1.22, sysfs.c.
    """
    return card.text("driver_ver") or of_module(card.function.host)


def as_version(text: str | None) -> Version | None:
    """*text* such as 1.22.0-ee698fb as a version; None: it is none."""
    try:
        found = None if text is None else Version.parse(text)
    except ModelError:
        return None
    return found if len(str(found)) <= LONGEST else None


def release_of(text: str | None) -> str | None:
    """The release in a version of driver or firmware: 1.22 of hl-gaudi2-1.22.0-fw-53.1.1.1."""
    found = None if text is None else _RELEASE.search(text)
    return None if found is None else f"{found[1]}.{found[2]}"

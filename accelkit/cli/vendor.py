"""`accelkit vendor`: what is installed, why something is not used, and new plugins."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from accelkit.cli.options import form_option, policy_option
from accelkit.cli.showing import NONE, Form, document, show_table, show_tree
from accelkit.core.values import freeze

if TYPE_CHECKING:
    from accelkit.core.host import Host
    from accelkit.core.policy import VendorPolicy
    from accelkit.core.registry import Registry

MADE_UP = "1dea"
"""A PCI vendor id that nobody has."""
_WORDS = {True: "yes", False: "no", None: NONE}


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Installed:
    """A vendor, or a plugin that could not be loaded."""

    vendor: str
    version: str | None = None
    api: int | None = None
    hardware: bool | None = None
    """Whether it is on the host's PCI bus; None: the vendor names none."""
    loaded: bool = True
    isolation: str | None = None
    abilities: tuple[str, ...] = ()
    why_not: str | None = None
    """Why it is not used."""

    @property
    def cells(self) -> tuple[str, ...]:
        """In the order of the fields."""
        return (
            self.vendor,
            self.version or NONE,
            NONE if self.api is None else str(self.api),
            "any" if self.loaded and self.hardware is None else _WORDS[self.hardware],
            _WORDS[self.loaded],
            self.isolation or NONE,
            " ".join(self.abilities) or NONE,
            self.why_not or NONE,
        )


def _pci_id(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    digits = value.lower().removeprefix("0x")
    if not re.fullmatch(r"[0-9a-f]{4}", digits):
        raise click.BadParameter("it has four hexadecimal digits, as lspci -n shows it: 10de")
    return int(digits, 16)


@click.group("vendor")
def command() -> None:
    """List what is installed, and why something is not used; begin a plugin."""


@command.command("new", epilog="Example: accelkit vendor new acme acme-accelkit")
@click.argument("name")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--pci",
    metavar="ID",
    default=MADE_UP,
    callback=_pci_id,
    show_default="1dea, which is made up",
    help="PCI vendor id of the hardware.",
)
def new(*, name: str, directory: Path, pci: int) -> int:
    """Write the project of a plugin for the vendor NAME into DIR.

    It installs, shows the devices of its simulated machine, and passes every check that applies.
    """
    from accelkit.cli.project import write_project  # noqa: PLC0415 - help does without

    for path in write_project(name, directory, pci):
        click.echo(path)
    click.echo(f"next: pip install -e {directory}, then as its README.md says")
    return 0


@command.command("list", epilog="Example: accelkit vendor list --host /tmp/node")
@click.option(
    "--host", metavar="DIR", default="/", help="Where to look for hardware.", show_default=True
)
@policy_option
@form_option
def list_(*, host: str, policy: Path | None, form: Form) -> int:
    """List vendors: which can be used on this host, and why others cannot.

    HARDWARE is whether theirs is on the PCI bus; any: they are always asked. ISOLATION is where
    their code runs: in threads of the agent, or in a process of its own.
    """
    from accelkit.agent.reload import read_policy_file  # noqa: PLC0415 - help does without
    from accelkit.cli.loading import load_installed  # noqa: PLC0415 - help does without
    from accelkit.core.serde import to_tree  # noqa: PLC0415 - loads cattrs
    from accelkit.testing.hosts import open_host  # noqa: PLC0415 - help does without

    registry = load_installed()
    blocks = () if policy is None else read_policy_file(policy).vendors
    found = tuple(installed(registry, open_host(host), blocks))
    if form is Form.TABLE:
        columns = (f.name.replace("_", " ").upper() for f in attrs.fields(Installed))
        show_table(tuple(columns), (one.cells for one in found))
    else:
        show_tree(document("VendorList", items=to_tree(found)), form)
    return 0


def installed(
    registry: "Registry", host: "Host", blocks: Iterable["VendorPolicy"] = ()
) -> Iterator[Installed]:
    """Every vendor of *registry*, and every plugin that it could not load."""
    from accelkit.agent.calls import needs_process  # noqa: PLC0415 - help does without
    from accelkit.core.policy import Isolation, VendorPolicy  # noqa: PLC0415 - see above
    from accelkit.core.registry import hardware_present  # noqa: PLC0415 - help does without
    from accelkit.core.vendor import abilities  # noqa: PLC0415 - see above

    by_name = {block.name: block for block in blocks}
    versions = {name: p.version for p in registry.plugins.values() for name in p.vendors}
    for name, kind in registry.vendors.items():
        present = hardware_present(kind, host)
        apart = needs_process(kind, by_name.get(name, VendorPolicy(name=name)), host)
        yield Installed(
            vendor=name,
            version=versions[name] or None,
            api=kind.api,
            hardware=present if kind.hardware else None,
            isolation=(Isolation.PROCESS if apart else Isolation.THREAD).value,
            abilities=abilities(kind),
            why_not=None if present else "none of its hardware is on the PCI bus",
        )
    for failure in registry.failures:
        why = f"{failure.reason} [{failure.code}]"
        if failure.remedy:
            why += f"; {failure.remedy}"
        yield Installed(vendor=failure.plugin, loaded=False, why_not=why)

"""What is installed and wanted here: shared by the agent and by a single look at a node.

Not here: click, which the agent does without, and whatever is done with vendors.
"""

import logging
import traceback
from collections.abc import Mapping

import attrs

from accelkit.agent.calls import Isolated, needs_process
from accelkit.core.errors import ConfigError, PluginError, SourceError
from accelkit.core.foreign import in_words
from accelkit.core.host import BOOT_ID, Host
from accelkit.core.policy import Policy, VendorPolicy
from accelkit.core.policy_check import options_of, policy_problems
from accelkit.core.registry import LoadFailure, Registry, hardware_present
from accelkit.core.values import freeze, is_dns_label
from accelkit.core.vendor import Vendor

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True, field_transformer=freeze)
class Chosen:
    """Vendors that are asked, and those that are not."""

    vendors: tuple[Vendor | Isolated, ...]
    absent: tuple[str, ...]
    """Those without hardware here."""
    failures: tuple[LoadFailure, ...]
    """Plugins that could not be loaded, and vendors that could not be made."""


def check_installed(policy: Policy, registry: Registry) -> None:
    """Refuse a policy with problems; a plugin that could not be loaded is not the operator's.

    Raises:
        ConfigError: All that is wrong with *policy*.
    """
    failed = {failure.plugin for failure in registry.failures}
    vendors, offers = enumerate(policy.vendors), enumerate(policy.offers)
    excused = {
        *(f"$.vendors[{n}].name" for n, block in vendors if block.name in failed),
        *(f"$.offers[{n}].through" for n, offer in offers if offer.through in failed),
    }
    found = policy_problems(policy, vendors=registry.vendors, backends=registry.backends)
    if problems := [problem for problem in found if problem[0] not in excused]:
        raise ConfigError(problems)


def choose_vendors(policy: Policy, registry: Registry, host: Host) -> Chosen:
    """Make the vendors that *policy* wants and whose hardware *host* has, each with its options.

    Those that are to have a process of their own are made there.

    Raises:
        ConfigError: A vendor refuses the options that the operator gave it.
    """
    blocks: Mapping[str, VendorPolicy] = {block.name: block for block in policy.vendors}
    vendors: list[Vendor | Isolated] = []
    absent: list[str] = []
    failures = [*registry.failures]
    for name in blocks or registry.vendors:
        block = blocks.get(name, VendorPolicy(name=name))
        kind = registry.vendors.get(name)
        if kind is None or not block.enabled or not hardware_present(kind, host):
            log.info("vendor not asked", extra={"vendor": name, "enabled": block.enabled})
            if kind is not None and block.enabled:
                absent.append(name)
            continue
        try:
            options = options_of(kind, block.options)
            if needs_process(kind, block, host):
                path = policy.paths.host
                vendors.append(Isolated(kind=kind, options=block.options, host=path))
            else:
                vendors.append(kind(options))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit too
            if isinstance(error, ConfigError) and block.options:
                raise
            failures.append(
                LoadFailure(
                    plugin=name,
                    code=PluginError.code,
                    reason=f"it cannot be made: {in_words(error)}",
                    remedy=f"report it to the author of the plugin for {name}",
                    traceback="".join(traceback.format_exception(error)),
                )
            )
    return Chosen(vendors=tuple(vendors), absent=tuple(absent), failures=tuple(failures))


def at_host(policy: Policy, host: str | None) -> Policy:
    """*policy* for *host*: whatever asks it where the host is must be told the same."""
    if host is None:
        return policy
    return attrs.evolve(policy, paths=attrs.evolve(policy.paths, host=host))


def boot_of(host: Host) -> str:
    """The id of this boot, fit to name a folder; empty where *host* does not tell."""
    try:
        boot = host.read(BOOT_ID).strip()
    except SourceError:
        return ""
    return boot if is_dns_label(boot) else ""

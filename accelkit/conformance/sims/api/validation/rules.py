"""What a server refuses in taint rules. Not here: other kinds."""

from collections.abc import Iterator

from accelkit.conformance.sims.api.decoding import Object
from accelkit.conformance.sims.api.refusals import Cause, too_many_items
from accelkit.conformance.sims.api.validation import common, names
from accelkit.conformance.sims.api.values import part, parts, text
from accelkit.conformance.sims.gates import Dialect

CONDITIONS = 8


def validate(item: Object, dialect: Dialect) -> Iterator[Cause]:
    """A rule that is made or written over."""
    yield from common.metadata(item)
    selector = part(item, "spec", "deviceSelector")
    checks = {"driver": names.driver, "pool": names.pool, "device": names.dns_label}
    for name, check in checks.items():
        if name in selector:
            yield from check(f"spec.deviceSelector.{name}", text(selector, name))
    yield from common.taint("spec.taint", part(item, "spec", "taint"), dialect.limits.effects)


def validate_status(item: Object) -> Iterator[Cause]:
    found = parts(item, "status", "conditions")
    yield from common.conditions("status.conditions", found)
    if len(found) > CONDITIONS:
        yield too_many_items("status.conditions", len(found), CONDITIONS)

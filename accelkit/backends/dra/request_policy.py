"""What is wrong with what claims may ask of a capacity. Not here: who may ask for what."""

from collections.abc import Iterator
from itertools import pairwise

from accelkit.backends.dra.pool import RequestPolicy
from accelkit.core.limits import SliceLimits


def policy_faults(policy: RequestPolicy, value: int, limits: SliceLimits) -> Iterator[str]:
    """Everything that is wrong with the *policy* of a capacity of *value*.

    Source:
        k8s.io/api/resource/v1, CapacityRequestPolicy and CapacityRequestPolicyRange (1.37).
    """
    numbers = (policy.default, policy.least, policy.most, policy.step, *policy.values)
    if any(n is not None and (type(n) is not int or n < 0) for n in numbers):
        yield "a request policy is made of whole numbers"
        return
    ranged = policy.least is not None
    if policy.values and ranged:
        yield "a request policy has a range or values, not both"
    elif policy.values:
        yield from _choice_faults(policy, value, limits)
    elif policy.least is not None:
        yield from _range_faults(policy, policy.least, value)
    elif policy.most is not None or policy.step is not None:
        yield "a range needs its least amount"
    elif policy.default > value:
        yield f"the default {policy.default} is more than the {value} there are"


def _choice_faults(policy: RequestPolicy, value: int, limits: SliceLimits) -> Iterator[str]:
    if len(policy.values) > limits.request_values:
        yield f"{len(policy.values)} values, at most {limits.request_values} are allowed"
    if any(a >= b for a, b in pairwise(policy.values)):
        yield "the values do not ascend"
    if policy.values[-1] > value:
        yield f"the value {policy.values[-1]} is more than the {value} there are"
    if policy.default not in policy.values:
        yield f"the default {policy.default} is none of the values"


def _range_faults(policy: RequestPolicy, least: int, value: int) -> Iterator[str]:
    most = value if policy.most is None else policy.most
    if not least <= policy.default <= most <= value:
        yield f"the default {policy.default} is not in the range {least} to {most} of {value}"
    if policy.step is None:
        return
    if policy.step == 0 or least + policy.step > value:
        yield f"a step of {policy.step} does not fit between {least} and {value}"
    elif (policy.default - least) % policy.step or (
        policy.most is not None and (policy.most - least) % policy.step
    ):
        yield f"the default or the most is no whole number of steps of {policy.step} above {least}"

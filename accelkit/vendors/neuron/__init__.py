"""The AWS Neuron vendor. Not here: the model, and how devices are offered."""

from accelkit import Vendor, hookimpl


@hookimpl
def accelkit_vendors() -> list[type[Vendor]]:
    from accelkit.vendors.neuron.vendor import Neuron  # noqa: PLC0415 - the simulator needs no vendor

    return [Neuron]

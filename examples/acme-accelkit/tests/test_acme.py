"""Every check of accelkit is a test of its own, on a machine of each product."""

from acme_accelkit.vendor import Acme

from accelkit.conformance.pytest_plugin import conforms

test_acme = conforms(Acme)

"""`accelkit version`: what is running, and what it speaks."""

import platform
from importlib.metadata import version

import click

from accelkit.cli.options import form_option
from accelkit.cli.showing import Form, document, show_table, show_tree

DEVICE_PLUGIN = "v1beta1"
"""k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1."""
REGISTRATION = "v1"
"""k8s.io/kubelet/pkg/apis/pluginregistration/v1."""
POD_RESOURCES = "v1"
"""k8s.io/kubelet/pkg/apis/podresources/v1."""

CDI = "0.3.0 to 0.7.0"
"""The lowest that can hold what is written; https://github.com/cncf-tags/container-device-interface."""


@click.command("version", epilog="Example: accelkit version -o json")
@form_option
def command(*, form: Form) -> int:
    """Print versions of accelkit and of what it speaks."""
    from accelkit.core.policy import API_VERSION  # noqa: PLC0415 - help does without
    from accelkit.core.vendor import API  # noqa: PLC0415 - see above
    from accelkit.testing.record import FORMAT  # noqa: PLC0415 - see above

    told = {
        "accelkit": version("accelkit"),
        "python": platform.python_version(),
        "pluginApi": str(API),
        "policy": API_VERSION,
        "devicePlugin": DEVICE_PLUGIN,
        "pluginRegistration": REGISTRATION,
        "podResources": POD_RESOURCES,
        "cdi": CDI,
        "machine": FORMAT,
    }
    if form is Form.TABLE:
        show_table(("WHAT", "VERSION"), told.items())
    else:
        show_tree(document("Version", **told), form)
    return 0

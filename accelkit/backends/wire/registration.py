"""How a plugin answers the kubelet's plugin watcher. Not here: what follows from it."""

from collections.abc import Callable

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import registration as reg
from accelkit.backends.wire.services import Handler


def registration(
    info: reg.PluginInfo, asked: Callable[[], None], told: Callable[[str], None]
) -> tuple[Handler, ...]:
    """The two calls of the plugin watcher, answered from memory: it waits for a second only.

    Args:
        info: Who we are.
        asked: Called when the kubelet asked that.
        told: Called with why the kubelet refuses us; with an empty text: it does not.
    """

    async def get_info(_: reg.InfoRequest) -> reg.PluginInfo:
        asked()
        return info

    async def notify(status: reg.RegistrationStatus) -> reg.RegistrationStatusResponse:
        told("" if status.plugin_registered else status.error or "it does not say why")
        return reg.RegistrationStatusResponse()

    return (services.unary(services.GET_INFO, get_info), services.unary(services.NOTIFY, notify))

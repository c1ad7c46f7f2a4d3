"""How long things take in a kubelet. Not here: who waits for them."""

from attrs import asdict, frozen


@frozen
class Timing:
    """Durations in seconds; the defaults are those of a real node.

    Source: kubernetes pkg/kubelet (constants) and times seen on 1.37.2.
    """

    tick_s: float = 10.0
    """Between two node statuses (``nodeStatusUpdateFrequency``)."""
    grace_s: float = 300.0
    """From the end of a resource's last stream to capacity 0."""
    admission_s: float = 0.8
    """From a new kubelet.sock to the admission of all pods."""
    down_s: float = 0.3
    """From the end of a kubelet that restarts to the new kubelet.sock."""
    stop_s: float = 2.0
    """Until the processes of a deleted pod are gone."""
    watch_s: float = 0.5
    """Between two looks into plugins_registry."""
    retry_s: float = 0.5
    """Before a failed registration by the watcher is tried again; doubles each time."""
    dial_s: float = 10.0
    info_s: float = 1.0
    notify_s: float = 5.0
    pre_start_s: float = 30.0
    prepare_s: float = 45.0
    """For a call of a DRA driver."""
    prepare_again_s: float = 60.0
    """Until a pod whose claims were not prepared is looked at again; up to half as much more."""
    unprepare_again_s: float = 10.0
    """Until claims that could not be given back are given back again; up to half as much more."""
    reconcile_s: float = 60.0
    """Between two looks for claims whose pods are gone."""
    create_again_s: float = 10.0
    """Until a container that could not be made is made again."""
    health_again_s: float = 5.0
    """Until a health stream that ended is opened again."""
    wipe_s: float = 0.2
    """From the first registration of a DRA driver after a start to the removal of all slices."""
    wipe_anyway_s: float = 0.6
    """The same from the start, if no driver registers."""
    gone_s: float = 30.0
    """From the loss of a driver's last instance to the removal of its slices."""

    def scaled(self, factor: float) -> "Timing":
        """Make everything *factor* times as long."""
        return Timing(**{name: value * factor for name, value in asdict(self).items()})


QUICK = Timing(
    tick_s=0.05,
    down_s=0.05,
    stop_s=0.05,
    watch_s=0.05,
    retry_s=0.05,
    dial_s=0.5,
)
"""For tests: no tick or look to wait for; grace and the plugin's own deadlines as they are."""

"""DP: how a driver makes itself known and comes back. Not here: what it lists and answers."""

from collections.abc import Iterator
from pathlib import Path

from accelkit.backends.wire import services
from accelkit.backends.wire.messages import deviceplugin as dp
from accelkit.conformance.checks.making import over_sockets
from accelkit.conformance.model import Check, Feature
from accelkit.conformance.rival import Rival
from accelkit.conformance.sims.events import (
    Listed,
    NotServing,
    Refused,
    Registered,
    Started,
)
from accelkit.conformance.sims.pods import Phase
from accelkit.conformance.socket_bench import FIRST_S, SOON_S, SocketBench, refusal

FIRST_LIST_S = 3.0
"""Three times what a first list may take."""
RELIST_S = 0.9
"""Three times what a list may take after a kubelet's restart."""
RESTARTS = 3
"""Less is nothing for a busy machine: who is late at each is late."""


def serves_first(bench: SocketBench) -> Iterator[str]:
    bench.up()
    yield from (
        f"it registers {e.resource} before anybody can connect to {Path(e.endpoint).name}"
        for e in bench.sim.seen(NotServing)
    )


def valid(bench: SocketBench) -> Iterator[str]:
    ids = bench.usable()
    yield from (f"a registration is refused: {e.text}" for e in bench.sim.seen(Refused))
    options = bench.registered()[-1].options
    told = bench.call(services.GET_OPTIONS, dp.Empty())
    if told.get_preferred_allocation_available != options.preferred:
        yield "its options are others each time"
    if options.preferred and (error := refusal(lambda: bench.prefer(ids, [], 1))):
        yield f"it says that it has preferences, and fails when asked: {error.details()}"
    if options.pre_start:
        asked = dp.PreStartContainerRequest(devices_ids=ids[:1])
        bench.allocate(ids[:1])
        if error := refusal(lambda: bench.call(services.PRE_START, asked)):
            yield f"it wants to be told of starts, and fails when it is: {error.details()}"


def first_list(bench: SocketBench) -> Iterator[str]:
    bench.kubelet()
    bench.driver.start(bench.root)
    if not bench.happens(lambda: bool(bench.sim.seen(Registered)), FIRST_S):
        yield f"it does not register within {bench.patience(FIRST_S):g} s"
    elif not bench.happens(
        lambda: all(
            bench.sim.seen(Listed, resource=e.resource) for e in bench.sim.seen(Registered)
        ),
        FIRST_LIST_S,
    ):
        yield f"no list comes within {bench.patience(FIRST_LIST_S):g} s of the registration"


def _again(bench: SocketBench, before: int, what: str, patience_s: float = SOON_S) -> Iterator[str]:
    """Wait for one more registration, with a list."""
    if not bench.happens(lambda: len(bench.registered()) > before, patience_s):
        yield f"{what} it does not register again within {bench.patience(patience_s):g} s"
        return
    path = str(bench.endpoint())
    if not bench.happens(lambda: bench.sim.seen(Listed, endpoint=path), patience_s):
        yield f"{what} it registers again, but no list comes"


def socket_gone(bench: SocketBench) -> Iterator[str]:
    bench.up()
    for _ in range(2):
        before = len(bench.registered())
        bench.endpoint().unlink()
        wrong = list(_again(bench, before, "when its socket is removed"))
        yield from wrong
        if wrong:
            return


def fresh_paths(bench: SocketBench) -> Iterator[str]:
    bench.up()
    bench.endpoint().unlink()
    yield from _again(bench, 1, "when its socket is removed")
    before = len(bench.registered())
    bench.do(bench.sim.restart())
    yield from _again(bench, before, "after a restart of the kubelet")
    paths = [e.endpoint for e in bench.registered()]
    paths += [e.endpoint for e in bench.sim.seen(Refused)]
    for path in sorted(p for p in set(paths) if paths.count(p) > 1):
        yield f"{Path(path).name} is registered {paths.count(path)} times"


def after_restart(bench: SocketBench) -> Iterator[str]:
    bench.up(admission_s=RELIST_S)
    wrong: list[str] = []
    for _ in range(RESTARTS):
        pod = bench.do(bench.sim.admit("pod", {bench.resource: 1}))
        if pod.phase is not Phase.RUNNING:
            yield f"a pod that wants one device fails: {pod.message}"
            return
        wrong = list(_late(bench))
        if not wrong:
            return
        bench.do(bench.sim.remove("pod", force=True))
    yield from wrong


def _late(bench: SocketBench) -> Iterator[str]:
    """What is wrong after one restart of the kubelet."""
    pod = bench.sim.pods["pod"]
    main = pod.container("main")
    bench.sim.crash("pod")
    began = len(bench.sim.log)

    def came() -> list[Listed]:
        return [e for e in bench.sim.log[began:] if isinstance(e, Listed)]

    bench.do(bench.sim.restart())
    bench.happens(lambda: main.running or pod.phase is Phase.FAILED, FIRST_S)
    if not main.running:
        yield (
            "a pod whose container is down does not survive a restart of the kubelet: "
            f"{pod.message or 'it is not started'}"
        )
    bench.happens(came, FIRST_S)
    started = next(e.at for e in bench.sim.log[began:] if isinstance(e, Started))
    for first in came()[:1]:
        if first.at - started > bench.patience(RELIST_S):
            yield f"the list is there {first.at - started:.1f} s after the kubelet's socket"


def kept_ids(bench: SocketBench) -> Iterator[str]:
    before = bench.up()
    pod = bench.do(bench.sim.admit("pod", {bench.resource: 1}))
    registrations = len(bench.registered())
    bench.driver.restart()
    wrong = list(_again(bench, registrations, "after its own restart", FIRST_S))
    yield from wrong
    if wrong:
        return
    if not bench.happens(lambda: set(bench.ids()) >= {d.id for d in before}):
        gone = sorted({d.id for d in before} - set(bench.ids()))
        yield f"after its own restart {gone[0]} is not listed any more"
    if not bench.happens(lambda: not set(pod.ids()) & bench.sick()):
        yield f"after its own restart {pod.ids()[0]}, which a pod holds, is not healthy"


def sockets_gone(bench: SocketBench) -> Iterator[str]:
    bench.up()
    bench.driver.stop()
    for directory in (bench.sim.plugins_dir, bench.sim.registry_dir):
        for path in sorted(directory.iterdir()):
            if path.is_socket() and path != bench.sim.socket:
                yield f"{path.name} is left in {directory.name} when it has ended"


def cut_off(bench: SocketBench) -> Iterator[str]:
    bench.up(release="1.36")
    rival = Rival(bench.sim, bench.resource)
    bench.driver.stop()
    # A new kubelet does not come to know later that the old socket is gone.
    bench.do(bench.sim.restart())
    bench.do(rival.register())
    # Up to 1.36 the end of any registrant cuts off the newest, which the driver has to be.
    before = len(bench.registered())
    bench.driver.start(bench.root)
    wrong = list(_again(bench, before, "beside another of its name", FIRST_S))
    if not wrong:
        before = len(bench.registered())
        bench.do(rival.close())
        wrong = list(_again(bench, before, "cut off by the end of another of its name"))
    yield from wrong
    paths = [e.endpoint for e in bench.registered()]
    if len(paths) > len(set(paths)):
        yield "cut off by the end of another of its name it registers an old socket again"
    bench.do(rival.close())


def by_watcher(bench: SocketBench) -> Iterator[str]:
    bench.up()
    ways = {e.by for e in bench.registered()}
    if ways != {"watcher"}:
        yield "it registers at kubelet.sock, where a restart of the kubelet wipes its socket away"


CHECKS: tuple[Check[SocketBench], ...] = (
    over_sockets("DP01", "The driver answers before it registers.", serves_first),
    over_sockets("DP02", "A registration is valid, and its options are true.", valid),
    over_sockets("DP04", "The driver comes back when its socket is removed.", socket_gone),
    over_sockets("DP05", "The first list comes at once.", first_list),
    over_sockets(
        "DP16",
        "Ids stay, and what pods hold stays healthy, when the driver starts anew.",
        kept_ids,
        Feature.RESTART,
    ),
    over_sockets("DP18", "A driver that ends takes its sockets away.", sockets_gone, Feature.STOP),
    over_sockets("DP20", "Every registration has a socket path of its own.", fresh_paths),
    over_sockets(
        "DP21",
        "After a restart of the kubelet the list is there before pods are admitted again.",
        after_restart,
    ),
    over_sockets(
        "DP25",
        "Cut off by the end of another of its name, the driver registers anew.",
        cut_off,
        Feature.STOP,
    ),
    over_sockets("DP27", "The driver lets the plugin watcher find it.", by_watcher, must=False),
)

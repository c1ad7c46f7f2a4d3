"""A device plugin of somebody else's: a process that knows gRPC and the wire messages alone.

It is told what happens to its devices by files below a directory of its own. `plain` registers at
kubelet.sock and watches it, as most such plugins do; `careless` breaks a rule: it registers once.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from types import FrameType

import grpc

from accelkit.backends.wire.messages import deviceplugin as dp

RESOURCE = "foreign.test/npu"
LOOK_S = 0.02


class Plugin:
    """Two devices, and what was done to them in *state*."""

    def __init__(self, kubelet: Path, state: Path) -> None:
        self.plugins = kubelet / "device-plugins"
        self.state = state
        self.socket: Path | None = None
        self.server: grpc.Server | None = None
        self.number = 0
        self.end = threading.Event()

    def devices(self) -> list[dp.Device]:
        names = ("npu-0", "npu-1")
        sick = "npu-0" if (self.state / "broken").exists() else ""
        return [dp.Device(ID=n, health="Unhealthy" if n == sick else "Healthy") for n in names]

    def options(self, _request: bytes, _context: grpc.ServicerContext) -> bytes:
        return dp.DevicePluginOptions().SerializeToString()

    def watch(self, _request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        sent = None
        server = self.server
        while context.is_active() and self.server is server and not self.end.is_set():
            current = dp.ListAndWatchResponse(devices=self.devices()).SerializeToString()
            if current != sent:
                yield current
                sent = current
            self.end.wait(LOOK_S)

    def allocate(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        healthy = {d.ID for d in self.devices() if d.health == "Healthy"}
        answers = []
        for one in dp.AllocateRequest.FromString(request).container_requests:
            if not set(one.devices_ids) <= healthy:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not to be had")
            names = ",".join(sorted(one.devices_ids))
            answers.append(dp.ContainerAllocateResponse(envs={"NPUS": names}))
        return dp.AllocateResponse(container_responses=answers).SerializeToString()

    def serve(self) -> None:
        """Serve at a fresh socket, and register it."""
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]]
        one, many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        handlers = {
            "GetDevicePluginOptions": one(self.options),
            "ListAndWatch": many(self.watch),
            "Allocate": one(self.allocate),
        }
        if self.server is not None:
            old, self.server = self.server, None
            old.stop(0)
        self.number += 1
        self.socket = self.plugins / f"npu-{time.time_ns()}-{self.number}.sock"
        self.server = grpc.server(futures.ThreadPoolExecutor(100))
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),)
        )
        self.server.add_insecure_port(f"unix:{self.socket}")
        self.server.start()
        request = dp.RegisterRequest(
            version="v1beta1", endpoint=self.socket.name, resource_name=RESOURCE
        )
        with grpc.insecure_channel(f"unix:{self.plugins / 'kubelet.sock'}") as channel:
            register: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                "/v1beta1.Registration/Register"
            )
            register(request.SerializeToString(), timeout=10)

    def run(self, *, watchful: bool) -> None:
        seen = None
        while not self.end.wait(LOOK_S):
            now = identity(self.plugins / "kubelet.sock")
            lost = self.socket is not None and not self.socket.exists()
            if now is None or (now == seen and not lost):
                continue
            if seen is None or watchful:
                seen = now
                try:
                    self.serve()
                except grpc.RpcError:
                    seen = None
        if self.server is not None:
            self.server.stop(0).wait()
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)


def identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


def main(how: str, kubelet: str, state: str) -> None:
    plugin = Plugin(Path(kubelet), Path(state))

    def stop(_number: int, _frame: FrameType | None) -> None:
        plugin.end.set()

    signal.signal(signal.SIGTERM, stop)
    plugin.run(watchful=how == "plain")


if __name__ == "__main__":
    main(*sys.argv[1:])

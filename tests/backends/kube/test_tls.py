"""Reaching a server: TLS with every fault, addresses, names. Each error says what is wrong."""

import asyncio
import base64
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from accelkit.core.errors import TransportError
from accelkit.core.kube import SLICES, Json
from accelkit.core.policy import KubeClient
from tests.backends.kube.certificates import Certificates
from tests.backends.kube.clients import Clients
from tests.backends.kube.scripted import (
    Scripted,
    head,
    kubeconfig,
    lines,
    says,
    scripted,
    slow,
    stream,
    until,
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("pki"))


def tls(pair: tuple[Path, Path], *, clients_by: Path | None = None) -> ssl.SSLContext:
    """A server's side, which may want certificates of clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    if clients_by is not None:
        context.load_verify_locations(clients_by)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@asynccontextmanager
async def safe(
    certificates: Certificates, *, clients_by: Path | None = None
) -> AsyncGenerator[Scripted, None]:
    context = tls(certificates.leaf("server"), clients_by=clients_by)
    async with scripted(tls=context) as server:
        yield server


def trust(certificates: Certificates) -> Json:
    """What a kubeconfig says of a cluster whose authority it is."""
    return {"certificate-authority": str(certificates.ca)}


def inline(path: Path) -> str:
    """A file as it stands in a kubeconfig."""
    return base64.b64encode(path.read_bytes()).decode()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("kube-")]


@contextmanager
def served(one: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port where each connection is given to *one*, in a thread."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                sock, _ = listening.accept()
                with sock:
                    one(sock)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


async def error_of(clients: Clients, config: Path) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await clients.dial(config).version()
    assert caught.value.remedy
    return caught.value


async def test_calls_and_watches_go_through_tls(
    certificates: Certificates, clients: Clients, tmp_path: Path
) -> None:
    change: Json = {"type": "ADDED", "object": {"fill": "x" * 2**17}}
    async with safe(certificates) as server:
        server.answer(says({"gitVersion": "v1"}), stream(lines(*[change] * 20)))
        config = kubeconfig(tmp_path, server.url, cluster=trust(certificates))
        kube = clients.dial(config)

        assert await kube.version() == "v1"
        found = [one.item async for one in kube.watch(SLICES, version="1")]

        assert found == [change["object"]] * 20


@pytest.mark.parametrize("text", [b"", head(Content_Length="9") + b"{"], ids=["head", "body"])
async def test_a_call_through_tls_that_is_cancelled_ends_its_connection_at_once(
    certificates: Certificates, clients: Clients, tmp_path: Path, text: bytes
) -> None:
    async with safe(certificates) as server:
        server.answer(slow(text, drips=False))
        kube = clients.dial(kubeconfig(tmp_path, server.url, cluster=trust(certificates)))
        call = asyncio.create_task(kube.version())
        await until(lambda: server.asked)

        call.cancel()

        await server.all_closed()
        server.answer(says({}))
        assert await kube.version() == ""


async def test_a_handshake_that_takes_too_long_is_named(clients: Clients, tmp_path: Path) -> None:
    def waits(sock: socket.socket) -> None:
        while sock.recv(1000):
            pass

    with served(waits) as port:
        config = kubeconfig(tmp_path, f"https://127.0.0.1:{port}")
        with pytest.raises(TransportError, match=r"no answer in time, (in the TLS|connecting)"):
            await clients.dial(config, timeout_s=0.5).version()


async def test_an_authority_may_stand_in_the_kubeconfig(
    certificates: Certificates, clients: Clients, tmp_path: Path
) -> None:
    cluster = {"certificate-authority-data": inline(certificates.ca)}
    async with safe(certificates) as server:
        config = kubeconfig(tmp_path, server.url, cluster=cluster)

        assert await clients.dial(config).version() == ""


async def test_an_unknown_authority_is_named(
    certificates: Certificates, clients: Clients, tmp_path: Path
) -> None:
    other = certificates.authority("other")
    async with safe(certificates) as server:
        cluster = {"certificate-authority": str(other)}
        config = kubeconfig(tmp_path, server.url, cluster=cluster)
        error = await error_of(clients, config)

        assert str(error) == (
            f"the API server at {server.url}: its certificate comes from an unknown authority"
        )
        assert "give the authority" in error.remedy


async def test_an_expired_certificate_is_named(
    certificates: Certificates, clients: Clients, tmp_path: Path
) -> None:
    context = tls(certificates.leaf("late", days=-1))
    async with scripted(tls=context) as server:
        config = kubeconfig(tmp_path, server.url, cluster=trust(certificates))
        error = await error_of(clients, config)

    assert str(error).endswith("its certificate has expired")
    assert "clock" in error.remedy


async def test_a_certificate_for_another_address_is_named(
    certificates: Certificates, clients: Clients, tmp_path: Path
) -> None:
    context = tls(certificates.leaf("elsewhere", names="IP:192.0.2.1,DNS:api.test"))
    async with scripted(tls=context) as server:
        error = await error_of(
            clients, kubeconfig(tmp_path, server.url, cluster=trust(certificates))
        )
        assert str(error).endswith("its certificate is for another address")
        assert "tls-server-name" in error.remedy

        by_name = server.url.replace("127.0.0.1", "localhost")
        error = await error_of(clients, kubeconfig(tmp_path, by_name, cluster=trust(certificates)))
        assert str(error).endswith("its certificate is for another host name")

        cluster = {**trust(certificates), "tls-server-name": "api.test"}
        named = kubeconfig(tmp_path, server.url, cluster=cluster)
        assert await clients.dial(named).version() == ""


async def test_no_certificate_is_looked_at_if_the_kubeconfig_says_so(
    certificates: Certificates, clients: Clients, tmp_path: Path
) -> None:
    async with safe(certificates) as server:
        config = kubeconfig(tmp_path, server.url, cluster={"insecure-skip-tls-verify": True})

        assert await clients.dial(config).version() == ""


async def test_a_server_without_tls_is_named(clients: Clients, tmp_path: Path) -> None:
    def answers(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTPS request")

    with served(answers) as port:
        error = await error_of(clients, kubeconfig(tmp_path, f"https://127.0.0.1:{port}"))

    assert "does not speak TLS" in str(error)
    assert "http://" in error.remedy


@pytest.mark.parametrize("data", [False, True], ids=["in files", "in the kubeconfig"])
async def test_a_client_certificate_is_shown(
    certificates: Certificates, clients: Clients, tmp_path: Path, *, data: bool
) -> None:
    pair = dict(zip(("client-certificate", "client-key"), certificates.leaf("client"), strict=True))
    user = {name: str(path) for name, path in pair.items()}
    if data:
        user = {f"{name}-data": inline(path) for name, path in pair.items()}
    async with safe(certificates, clients_by=certificates.ca) as server:
        config = kubeconfig(tmp_path, server.url, user=user, cluster=trust(certificates))

        assert await clients.dial(config).version() == ""


@pytest.mark.parametrize("strange", [False, True], ids=["none", "a strange one"])
async def test_a_client_certificate_that_a_server_does_not_get_or_accept_is_named(
    certificates: Certificates, clients: Clients, tmp_path: Path, *, strange: bool
) -> None:
    context = tls(certificates.leaf("server"), clients_by=certificates.ca)
    user = {}
    if strange:
        certificates.authority("strange")
        certificate, key = certificates.leaf("stranger", by="strange")
        user = {"client-certificate": str(certificate), "client-key": str(key)}

    def shakes_hands(sock: socket.socket) -> None:
        with suppress(ssl.SSLError):
            context.wrap_socket(sock.dup(), server_side=True)
        sock.recv(1000)  # a connection that ends with unread data would be reset

    with served(shakes_hands) as port:
        url = f"https://127.0.0.1:{port}"
        config = kubeconfig(tmp_path, url, user=user, cluster=trust(certificates))
        error = await error_of(clients, config)

    expected = "does not accept our client certificate" if strange else "wants a client certificate"
    assert expected in str(error)


async def test_an_authority_that_cannot_be_read_is_named(clients: Clients, tmp_path: Path) -> None:
    cluster = {"certificate-authority": "not-there.crt"}

    error = await error_of(clients, kubeconfig(tmp_path, "https://127.0.0.1:1", cluster=cluster))

    assert str(tmp_path / "not-there.crt") in str(error)


@pytest.mark.parametrize("key", ["certificate-authority", "client-certificate"])
async def test_a_certificate_that_is_none_is_an_error(
    server: Scripted, clients: Clients, tmp_path: Path, key: str
) -> None:
    (tmp_path / "file").write_text("this is no certificate")
    given = {key: "file"}
    config = kubeconfig(tmp_path, server.url.replace("http:", "https:"), user=given, cluster=given)

    await error_of(clients, config)

    assert server.asked == []


async def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    clients = Clients(KubeClient.LEAN)
    (tmp_path / "file").write_text("this is no certificate")
    config = kubeconfig(tmp_path, "https://a", cluster={"certificate-authority": "file"})

    error = await error_of(clients, config)

    assert str(error).startswith(f"the certificate authority {tmp_path}/file cannot be used")
    assert "PEM" in error.remedy
    await clients.close()


async def test_a_port_where_nobody_listens_is_named(clients: Clients, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        error = await error_of(clients, kubeconfig(tmp_path, url))

    assert str(error) == f"the API server at {url}: nobody listens there"


async def test_connecting_ends_with_the_call(tmp_path: Path) -> None:
    """A server whose backlog is full answers no more than one behind a firewall."""
    clients = Clients(KubeClient.LEAN)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        address = full.getsockname()
        for _ in range(4):
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(address)
        kube = clients.dial(kubeconfig(tmp_path, f"http://127.0.0.1:{address[1]}"))
        call = asyncio.create_task(kube.version())
        await until(threads)

        call.cancel()
        await kube.close()

        await until(lambda: not threads())


async def test_a_host_name_that_nobody_knows_is_named(clients: Clients, tmp_path: Path) -> None:
    error = await error_of(clients, kubeconfig(tmp_path, "http://nobody.invalid:6443"))

    assert str(error).endswith("its host name is not known")


async def test_a_server_on_version_6_of_the_protocol_is_reached(
    clients: Clients, tmp_path: Path
) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this host has no IPv6")
    async with scripted("::1") as server:
        assert await clients.dial(kubeconfig(tmp_path, server.url)).version() == ""

        assert server.asked[0].headers["host"] == server.url.removeprefix("http://")


async def test_a_path_of_the_server_comes_before_every_other(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    await clients.dial(kubeconfig(tmp_path, f"{server.url}/k8s/clusters/c-1/")).version()

    assert server.asked[0].target == "/k8s/clusters/c-1/version"

"""Where credentials come from: pods, kubeconfigs, programs; and which client uses them."""

import json
import logging
import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from accelkit.backends.kube import connect
from accelkit.backends.kube.access import Access, Pem, in_cluster
from accelkit.backends.kube.choice import choose
from accelkit.backends.kube.kubeconfig import read_kubeconfig, static_access
from accelkit.backends.kube.lean import Lean
from accelkit.backends.kube.objects import Objects
from accelkit.backends.kube.official import Official
from accelkit.core.errors import TransportError
from accelkit.core.kube import Json
from accelkit.core.policy import Kube, KubeClient
from tests.backends.kube.clients import PATIENCE_S, Clients
from tests.backends.kube.scripted import Scripted, kubeconfig, says, status
from tests.test_architecture import loaded_by

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """The folder of a service account."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("first\n")
    (folder / "ca.crt").write_text("no certificate")
    return folder


# In a cluster.


def test_a_pod_finds_its_server_and_its_account(account: Path) -> None:
    assert in_cluster(ENVIRONMENT, account) == Access(
        server="https://10.96.0.1:443",
        authority=Pem(str(account / "ca.crt")),
        token_file=str(account / "token"),
    )


def test_a_pod_finds_its_server_on_version_6_of_the_protocol(account: Path) -> None:
    access = in_cluster({**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "fd00::1"}, account)

    assert access.server == "https://[fd00::1]:443"
    assert (access.host, access.port) == ("fd00::1", 443)


@pytest.mark.parametrize("missing", ENVIRONMENT)
def test_what_is_no_pod_has_no_server(account: Path, missing: str) -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != missing}

    with pytest.raises(TransportError, match="no API server is known") as caught:
        in_cluster(environment, account)

    assert "kube.config" in caught.value.remedy


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_pod_without_an_account_is_told(account: Path, missing: str) -> None:
    (account / missing).unlink()

    with pytest.raises(TransportError, match=f"no service account: .*{missing} is missing"):
        in_cluster(ENVIRONMENT, account)


# Tokens.


async def test_a_token_is_read_again_when_its_file_changes(server: Scripted, account: Path) -> None:
    """As volumes of service accounts change: a new folder, and a link to it that is replaced."""
    token = account / "token"
    async with lean(Access(server=server.url, token_file=str(token))) as kube:
        await kube.version()
        replace(token, "second")
        await kube.version()
        token.unlink()
        await kube.version()
        replace(token, "third")
        await kube.version()

    assert authorizations(server) == ["first", "second", "second", "third"]


async def test_a_token_that_is_not_accepted_is_read_again(server: Scripted, account: Path) -> None:
    token = account / "token"
    before = token.stat()
    async with lean(Access(server=server.url, token_file=str(token))) as kube:
        await kube.version()
        token.write_text("other\n")  # of the same length
        os.utime(token, ns=(before.st_atime_ns, before.st_mtime_ns))
        server.answer(status(401), says({}))
        await kube.version()

    assert authorizations(server) == ["first", "first", "other"]


async def test_a_token_in_a_file_goes_before_the_one_beside_it(
    server: Scripted, account: Path
) -> None:
    async with lean(
        Access(server=server.url, token="fixed", token_file=str(account / "token"))
    ) as kube:
        await kube.version()

    assert authorizations(server) == ["first"]


async def test_a_token_file_that_was_never_there_is_named(server: Scripted, tmp_path: Path) -> None:
    async with lean(Access(server=server.url, token_file=str(tmp_path / "token"))) as kube:
        with pytest.raises(TransportError, match=f"{tmp_path}/token cannot be read"):
            await kube.version()

    assert server.asked == []


async def test_a_token_that_cannot_be_sent_is_an_error(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    kube = clients.dial(kubeconfig(tmp_path, server.url, user={"token": "two\nlines"}))

    with pytest.raises(TransportError):
        await kube.version()

    assert server.asked == []


def test_secrets_do_not_show() -> None:
    access = Access(server="https://a", token="hidden", key=Pem(text=b"hidden"))

    assert "hidden" not in repr(access)


# Kubeconfigs.


@pytest.mark.parametrize("name", ["token", "tokenFile"])
async def test_a_token_of_a_kubeconfig_is_sent(
    server: Scripted, clients: Clients, tmp_path: Path, name: str
) -> None:
    (tmp_path / "secret").write_text("secret\n")

    await clients.dial(kubeconfig(tmp_path, server.url, user={name: "secret"})).version()

    assert authorizations(server) == ["secret"]


async def test_a_kubeconfig_in_yaml_is_read(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    file = kubeconfig(tmp_path, server.url, user={"token": "t"})
    file.write_text(yaml.safe_dump(json.loads(file.read_text())))

    assert await clients.dial(file).version() == ""


async def test_a_context_without_a_user_sends_no_credentials(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    file = kubeconfig(tmp_path, server.url)
    tree = json.loads(file.read_text())
    del tree["contexts"][0]["context"]["user"], tree["users"]
    file.write_text(json.dumps(tree))

    await clients.dial(file).version()

    assert "authorization" not in server.asked[0].headers


def test_everything_static_of_a_kubeconfig_is_used(tmp_path: Path) -> None:
    file = kubeconfig(
        tmp_path,
        "https://api.test:6443/prefix/",
        user={
            "client-certificate": "c.crt",
            "client-key-data": "a2V5",
            "token": "t",
            "tokenFile": "/t",
        },
        cluster={
            "certificate-authority": "/pki/ca.crt",
            "tls-server-name": "n",
            "insecure-skip-tls-verify": False,
        },
    )

    assert static_access(read_kubeconfig(file)) == Access(
        server="https://api.test:6443/prefix",
        authority=Pem("/pki/ca.crt"),
        certificate=Pem(str(tmp_path / "c.crt")),
        key=Pem(text=b"key"),
        token="t",
        token_file="/t",
        server_name="n",
    )


@pytest.mark.parametrize(
    "user", [{"exec": {"command": "x"}}, {"auth-provider": {"name": "gcp"}}, {"username": "u"}]
)
def test_credentials_that_only_the_official_client_gets_are_named(
    tmp_path: Path, user: Json
) -> None:
    context = read_kubeconfig(kubeconfig(tmp_path, "https://a", user=user))

    with pytest.raises(TransportError, match="which the lean client does not") as caught:
        static_access(context)

    assert "kube.client: official" in caught.value.remedy


def test_a_proxy_of_a_kubeconfig_is_not_passed_by(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://a", cluster={"proxy-url": "http://proxy"})

    with pytest.raises(TransportError, match="goes through a proxy"):
        static_access(read_kubeconfig(file))


async def test_a_kubeconfig_that_acts_as_another_user_is_refused(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    """The package ignores it, and would act with more rights than are asked for."""
    kube = clients.dial(kubeconfig(tmp_path, server.url, user={"token": "t", "as": "nobody"}))

    with pytest.raises(TransportError, match=r"act as another user \(as\)"):
        await kube.version()

    assert server.asked == []


GOOD = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://a"}}],
    "users": [{"name": "u", "user": {}}],
}
BAD = {
    "no YAML": ("{", "not YAML"),
    "binary": ("\x00", "not YAML"),
    "a list": ("[]", "not a mapping"),
    "nothing": ("", "not a mapping"),
    "no context": (json.dumps({**GOOD, "current-context": "x"}), "there is no context 'x'"),
    "no cluster": (json.dumps({**GOOD, "clusters": []}), "there is no cluster 'c'"),
    "no user": (json.dumps({**GOOD, "users": None}), "there is no user 'u'"),
    "no server": (
        json.dumps({**GOOD, "clusters": [{"name": "c", "cluster": {"x": 1}}]}),
        "server '' is not a URL",
    ),
    "a number": (
        json.dumps({**GOOD, "users": [{"name": "u", "user": {"token": 1}}]}),
        "token is not a text",
    ),
    "no base64": (
        json.dumps({**GOOD, "users": [{"name": "u", "user": {"client-key-data": "!"}}]}),
        "client-key-data is not base64",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_kubeconfig_that_is_wrong_is_named_with_what_is_wrong(tmp_path: Path, bad: str) -> None:
    text, wrong = BAD[bad]
    file = tmp_path / "kubeconfig"
    file.write_text(text)

    with pytest.raises(TransportError, match=wrong) as caught:
        static_access(read_kubeconfig(file))

    assert str(file) in str(caught.value)
    assert caught.value.remedy


async def test_a_kubeconfig_that_is_not_there_is_named(clients: Clients, tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=f"{tmp_path}/x cannot be read: No such file"):
        await clients.dial(tmp_path / "x").version()


async def test_a_kubeconfig_that_comes_later_is_read_then(
    server: Scripted, clients: Clients, tmp_path: Path
) -> None:
    kube = clients.dial(tmp_path / "kubeconfig")
    with pytest.raises(TransportError):
        await kube.version()
    kubeconfig(tmp_path, server.url)

    assert await kube.version() == ""


# What only the package does.


def program(tmp_path: Path, text: str) -> Json:
    """The user of a kubeconfig whose credentials a program prints."""
    file = tmp_path / "plugin"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(stat.S_IRWXU)
    api = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": api, "command": str(file), "interactiveMode": "Never"}}


@pytest.fixture
async def official() -> AsyncGenerator[Clients, None]:
    found = Clients(KubeClient.OFFICIAL)
    yield found
    await found.close()


async def test_a_program_gives_a_token_and_a_new_one_when_that_is_not_accepted(
    server: Scripted, official: Clients, tmp_path: Path
) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "TOKEN"},
    }
    text = f"echo x >>{tmp_path}/runs; n=$(wc -l <{tmp_path}/runs)\n"
    text += f"echo '{json.dumps(credential)}' | sed s/TOKEN/token-$((n))/"
    kube = official.dial(kubeconfig(tmp_path, server.url, user=program(tmp_path, text)))

    await kube.version()
    server.answer(status(401), says({}))
    await kube.version()

    assert authorizations(server) == ["token-1", "token-1", "token-2"]


async def test_a_program_that_fails_is_named(
    server: Scripted, official: Clients, tmp_path: Path
) -> None:
    kube = official.dial(kubeconfig(tmp_path, server.url, user=program(tmp_path, "exit 3")))

    with pytest.raises(TransportError, match=f"{tmp_path}/plugin gave no credentials"):
        await kube.version()

    assert server.asked == []


async def test_a_proxy_is_gone_through(server: Scripted, official: Clients, tmp_path: Path) -> None:
    cluster = {"proxy-url": server.url}
    kube = official.dial(kubeconfig(tmp_path, "http://api.invalid:6443", cluster=cluster))

    await kube.version()

    assert [asked.target for asked in server.asked] == ["http://api.invalid:6443/version"]


def test_the_package_finds_the_account_of_a_pod(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubernetes.config import incluster_config  # noqa: PLC0415 - loads a lot

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(account / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(account / "ca.crt"))

    assert Official("in-cluster", "x").server == "https://10.96.0.1:443"

    (account / "token").unlink()
    with pytest.raises(TransportError, match="in-cluster: Service token file does not exist"):
        Official("in-cluster", "x")


# Which client.


def test_auto_takes_the_package_for_a_kubeconfig(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://a")

    assert isinstance(choose(Kube(config=str(file)), ""), Official)
    assert isinstance(choose(Kube(config=str(file), client=KubeClient.LEAN), ""), Lean)


def test_auto_takes_the_standard_library_in_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(TransportError, match="no API server is known"):
        choose(Kube(), "")


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without the package kubernetes."""
    monkeypatch.setitem(sys.modules, "kubernetes", None)


@pytest.mark.usefixtures("no_package")
def test_without_the_package_a_kubeconfig_is_used_as_far_as_it_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = kubeconfig(tmp_path, "https://a")

    with caplog.at_level(logging.WARNING):
        assert isinstance(choose(Kube(config=str(file)), ""), Lean)

    assert "only static credentials" in caplog.text


@pytest.mark.usefixtures("no_package")
def test_the_package_that_is_wanted_and_missing_is_named() -> None:
    with pytest.raises(TransportError, match="package kubernetes is not installed") as caught:
        choose(Kube(config="x", client=KubeClient.OFFICIAL), "")

    assert "accelkit[kubernetes]" in caught.value.remedy


async def test_connecting_says_who_it_is(server: Scripted, tmp_path: Path) -> None:
    config = str(kubeconfig(tmp_path, server.url))
    for agent in ("", "someone/2"):
        kube = connect(Kube(config=config, client=KubeClient.LEAN), user_agent=agent)
        assert kube is not None
        await kube.version()
        await kube.close()

    agents = [asked.headers["user-agent"] for asked in server.asked]
    assert agents == [f"accelkit/{version('accelkit')}", "someone/2"]


def test_whoever_wants_no_server_gets_none() -> None:
    assert connect(Kube(config="none")) is None


def test_importing_loads_next_to_nothing_and_connecting_no_package() -> None:
    importing = "import accelkit.backends.kube as k"
    connecting = f"{importing}; from accelkit.core.policy import Kube; k.connect(Kube())"

    assert not loaded_by(importing) & {"asyncio", "ssl", "http", "kubernetes", "yaml"}
    assert not loaded_by(connecting) & {"kubernetes", "urllib3", "yaml"}


@asynccontextmanager
async def lean(access: Access) -> AsyncGenerator[Objects, None]:
    kube = Objects(lambda: Lean(access, "accelkit-test/1"), timeout_s=PATIENCE_S)
    try:
        yield kube
    finally:
        await kube.close()


def replace(file: Path, text: str) -> None:
    """Put another file in its place."""
    fresh = file.with_name("fresh")
    fresh.write_text(text)
    fresh.rename(file)


def authorizations(server: Scripted) -> list[str]:
    """The tokens that came."""
    return [asked.headers["authorization"].removeprefix("Bearer ") for asked in server.asked]

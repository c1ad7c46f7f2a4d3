"""What containers can read about their devices."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import rmtree

import attrs

from accelkit.backends.dra import metadata
from accelkit.backends.dra.metadata_files import MetadataFiles
from accelkit.backends.wire.messages import dra
from accelkit.core.allocation import Answer
from accelkit.core.errors import TransportError
from accelkit.core.policy import DraPolicy, Offer
from accelkit.core.values import FrozenMap
from accelkit.core.view import View
from accelkit.testing.node_port import NodePortDouble
from tests.backends.dra.service_world import (
    ACME,
    DRIVER,
    POOL,
    QUICK,
    World,
    asked,
    claim,
    ident,
    result,
    serving,
    uid,
)
from tests.backends.dra.test_health import gpu, view_of
from tests.backends.dra.watching import until

BOOT = "b00t"
PATIENCE = attrs.evolve(QUICK, forgotten=3)
PLACE = "/var/run/kubernetes.io/dra-device-attributes"
TEMPLATE = {"resource.kubernetes.io/pod-claim-name": "mine"}


@attrs.frozen(eq=False)
class Files:
    """The files that were written, and the node service that wrote them."""

    root: Path
    here: World
    told: dict[str, Mapping[str, object]]
    """Attributes of devices."""

    def folder(self, number: int = 1) -> Path:
        return self.root / "run" / BOOT / "metadata" / DRIVER / uid(number)

    def path(self, request: str = "gpu", number: int = 1) -> Path:
        return self.folder(number) / f"{request}.json"

    def read(self, request: str = "gpu", number: int = 1) -> object:
        return json.loads(self.path(request, number).read_text())

    def cdi(self, number: int = 1) -> Path:
        return self.root / "cdi" / f"{DRIVER}-metadata_{uid(number)}.json"

    def mounts(self, number: int = 1) -> dict[str, tuple[str, str]]:
        """Host path and place of each CDI device."""
        tree = json.loads(self.cdi(number).read_text())
        assert tree["kind"] == f"{DRIVER}/metadata"
        found = {}
        for device in tree["devices"]:
            (mount,) = device["containerEdits"]["mounts"]
            assert "ro" in mount["options"]
            found[device["name"]] = (mount["hostPath"], mount["containerPath"])
        return found


@asynccontextmanager
async def writing(root: Path, *claims: Mapping[str, object]) -> AsyncGenerator[Files, None]:
    told: dict[str, Mapping[str, object]] = {"gpu-0": {"vendor": {"string": "acme"}}}
    tasks: list[asyncio.Task[None]] = []

    def begin(node: NodePortDouble) -> list[MetadataFiles]:
        node.publish(View(boot=BOOT))
        files = MetadataFiles(ACME, node, lambda name: told.get(name, {}), PATIENCE)
        tasks.append(asyncio.create_task(files.run()))
        return [files]

    async with serving(root, *claims, companions=begin) as here:
        try:
            yield Files(root, here, told)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def ids(answer: dra.NodePrepareResourceResponse) -> list[list[str]]:
    """CDI names of each device, those of its metadata alone."""
    return [
        [name for name in device.cdi_device_ids if "/metadata=" in name]
        for device in answer.devices
    ]


async def test_file_says_what_the_slice_says(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1)) as files:
        answer = await files.here.prepare_one()

        assert files.read() == {
            "apiVersion": "metadata.resource.k8s.io/v1alpha1",
            "kind": "DeviceMetadata",
            "metadata": {"name": "c1", "namespace": "default", "uid": uid(1), "generation": 1},
            "requests": [
                {
                    "name": "gpu",
                    "devices": [
                        {
                            "driver": DRIVER,
                            "pool": POOL,
                            "name": "gpu-0",
                            "attributes": {"vendor": {"string": "acme"}},
                        }
                    ],
                }
            ],
        }
        assert ids(answer) == [[f"{DRIVER}/metadata={uid(1)}_gpu"]]
        assert files.mounts() == {
            f"{uid(1)}_gpu": (
                str(files.path()),
                f"{PLACE}/resourceclaims/c1/gpu/{DRIVER}-metadata.json",
            )
        }


async def test_claim_of_a_template_is_found_under_the_name_that_the_pod_knows(
    tmp_path: Path,
) -> None:
    async with writing(tmp_path, claim(1, annotations=TEMPLATE)) as files:
        await files.here.prepare_one()

        assert [place for _, place in files.mounts().values()] == [
            f"{PLACE}/resourceclaimtemplates/mine/gpu/{DRIVER}-metadata.json"
        ]
        assert json.loads(files.path().read_text())["podClaimName"] == "mine"


async def test_annotation_that_is_no_name_leads_nowhere_else(tmp_path: Path) -> None:
    strange = {"resource.kubernetes.io/pod-claim-name": "../../../../etc"}
    async with writing(tmp_path, claim(1, annotations=strange)) as files:
        await files.here.prepare_one()

        assert [place for _, place in files.mounts().values()] == [
            f"{PLACE}/resourceclaims/c1/gpu/{DRIVER}-metadata.json"
        ]


async def test_every_request_has_a_file_mounted_with_its_first_device(tmp_path: Path) -> None:
    results = (result(), result("gpu-1"), result("gpu-2", "more/small"), result("gpu-3", "../x"))
    async with writing(tmp_path, claim(1, *results)) as files:
        answer = await files.here.prepare_one()

        assert sorted(path.name for path in files.folder().iterdir()) == ["gpu.json", "more.json"]
        assert ids(answer) == [
            [f"{DRIVER}/metadata={uid(1)}_gpu"],
            [],
            [f"{DRIVER}/metadata={uid(1)}_more"],
            [],
        ]
        (more,) = json.loads(files.path("more").read_text())["requests"]
        assert more["name"] == "more/small"


def test_device_of_two_requests_is_told_in_both() -> None:
    one = Answer(device=ident("gpu-0"), requests=("a/x", "b"), cdi_ids=())
    two = Answer(device=ident("gpu-1"), requests=("a/y",), cdi_ids=())

    assert metadata.requests_of([one, two]) == {
        "a": {"a/x": (one,), "a/y": (two,)},
        "b": {"b": (one,)},
    }


async def test_same_claim_again_gives_the_same_answer_without_the_api_server(
    tmp_path: Path,
) -> None:
    async with writing(tmp_path, claim(1, annotations=TEMPLATE)) as files:
        first = await files.here.prepare_one()
        before = files.path().stat()
        files.here.kube.failing = TransportError("away")
        again = await files.here.prepare_one()
        after = files.path().stat()

        assert again == first
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


async def test_change_is_a_new_generation_of_the_same_file(tmp_path: Path) -> None:
    """Containers have the file mounted: another one in its place would not be seen."""
    async with writing(tmp_path, claim(1, annotations=TEMPLATE)) as files:
        files.told["gpu-0"] = {"product": {"string": "x" * 500}}
        await files.here.prepare_one()
        before = files.path().stat().st_ino
        files.told["gpu-0"] = {"product": {"string": "y"}}
        await files.here.prepare_one()
        tree = json.loads(files.path().read_text())

        assert tree["metadata"]["generation"] == 2
        assert tree["podClaimName"] == "mine"
        assert tree["requests"][0]["devices"][0]["attributes"] == {"product": {"string": "y"}}
        assert files.path().stat().st_ino == before


async def test_claim_that_was_ready_without_files_gets_them(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1, annotations=TEMPLATE)) as files:
        await files.here.prepare_one()
        rmtree(files.folder())
        files.cdi().unlink()
        await files.here.prepare_one()

        assert json.loads(files.path().read_text())["podClaimName"] == "mine"
        assert files.cdi().exists()


async def test_file_that_is_broken_is_written_anew(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1)) as files:
        await files.here.prepare_one()
        files.path().write_text("{")
        answer = await files.here.prepare_one()

        assert answer.error == ""
        assert json.loads(files.path().read_text())["metadata"]["generation"] == 1


async def test_claim_whose_files_cannot_be_written_fails_until_they_can(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("no directory")
    async with writing(tmp_path, claim(1)) as files:
        text = await files.here.refusal()
        (tmp_path / "cdi").unlink()
        answer = await files.here.prepare_one()

        assert text.startswith("the metadata of claim c1 cannot be written: ")
        assert text.endswith("or set backends.dra.metadata to false")
        assert len(ids(answer)[0]) == 1


async def test_files_go_with_the_claim(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1), claim(2)) as files:
        await files.here.prepare(asked(1), asked(2))
        answers = await files.here.unprepare(asked(1), asked(3))

        assert {answer.error for answer in answers.values()} == {""}
        assert not files.folder(1).exists()
        assert not files.cdi(1).exists()
        assert files.cdi(2).exists()


async def test_files_that_cannot_be_removed_keep_the_claim(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1)) as files:
        await files.here.prepare_one()
        files.cdi().unlink()
        files.cdi().mkdir()
        text = (await files.here.unprepare(asked(1)))[uid(1)].error
        files.cdi().rmdir()
        answers = await files.here.unprepare(asked(1))

        assert text.startswith("metadata of the claim cannot be removed: ")
        assert answers[uid(1)].error == ""


async def test_mount_that_is_gone_is_made_again_by_itself(tmp_path: Path) -> None:
    """Nobody asks for it, and containers wait for it."""
    async with writing(tmp_path, claim(1)) as files:
        await files.here.prepare_one()
        before = files.cdi().read_bytes()
        files.cdi().unlink()
        await until(files.cdi().exists)

        assert files.cdi().read_bytes() == before


async def test_directory_that_cannot_be_mended_is_a_problem_until_it_can(tmp_path: Path) -> None:
    async with writing(tmp_path, claim(1)) as files:
        await files.here.prepare_one()
        files.cdi().unlink()
        files.cdi().mkdir()
        await until(lambda: files.here.node.problems)
        problems = set(files.here.node.problems)
        files.cdi().rmdir()
        await until(lambda: not files.here.node.problems)

        assert problems == {("metadata-files", DRIVER)}
        assert files.cdi().is_file()


async def test_files_of_claims_that_are_long_gone_are_removed(tmp_path: Path) -> None:
    """Claims may be released without a call of the kubelet."""
    async with writing(tmp_path, claim(1), claim(2)) as files:
        await files.here.prepare(asked(1), asked(2))
        del files.here.node.entries[uid(1)]
        await until(lambda: not files.folder(1).exists())

        assert not files.cdi(1).exists()
        assert files.cdi(2).exists()


def test_attributes_are_those_of_the_slice_in_the_newest_view() -> None:
    policy = DraPolicy(drivers=FrozenMap({"acme": "gpu.corp.example"}))
    views = [published("gpu-0"), published("gpu-0", product="large")]
    attributes = metadata.PublishedAttributes("gpu.corp.example", lambda: views[0], policy)

    first = attributes("gpu-0")
    views.pop(0)

    assert first["vendor"] == {"string": "acme"}
    assert first["product"] == {"string": "unknown"}
    assert attributes("gpu-0")["product"] == {"string": "large"}
    assert attributes("gpu-9") == {}


def published(name: str, product: str | None = None) -> View:
    view = view_of(attrs.evolve(gpu(name), product=product))
    snapshot = attrs.evolve(view.snapshot, answered=frozenset({"acme"}))
    offers = (Offer(name="x", through="dra"),)
    return attrs.evolve(
        view, snapshot=snapshot, offers=offers, domains=FrozenMap({"acme": "acme.test"})
    )

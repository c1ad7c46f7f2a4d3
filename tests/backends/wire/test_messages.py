"""The wire format, against published check vectors."""

import sys

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message import Message

from accelkit.backends.wire.messages import (
    deviceplugin as dp,
    dra,
    drahealth,
    podresources as pr,
    registration as reg,
)
from tests import wire_fresh

# Encoded independently of our protos, and decoded by protoc with the upstream definitions.
VECTORS: list[tuple[Message, str]] = [
    (
        dp.RegisterRequest(
            version="v1beta1",
            endpoint="a.sock",
            resource_name="example.com/accel",
            options=dp.DevicePluginOptions(
                pre_start_required=True, get_preferred_allocation_available=True
            ),
        ),
        "0a07763162657461311206612e736f636b1a116578616d706c652e636f6d2f616363656c220408011001",
    ),
    (
        dp.ListAndWatchResponse(
            devices=[
                dp.Device(
                    ID="d0", health="Healthy", topology=dp.TopologyInfo(nodes=[dp.NUMANode(ID=1)])
                )
            ]
        ),
        "0a130a02643012074865616c7468791a040a020801",
    ),
    (
        dp.AllocateResponse(
            container_responses=[
                dp.ContainerAllocateResponse(
                    envs={"K": "V"},
                    mounts=[dp.Mount(container_path="/c", host_path="/h", read_only=True)],
                    devices=[
                        dp.DeviceSpec(container_path="/dev/a", host_path="/dev/b", permissions="rw")
                    ],
                    cdi_devices=[dp.CDIDevice(name="v.io/c=d")],
                )
            ]
        ),
        (
            "0a360a060a014b120156120a0a022f6312022f6818011a140a062f6465762f6112062f6465762f621a0272772a"
            "0a0a08762e696f2f633d64"
        ),
    ),
    (
        dp.PreferredAllocationRequest(
            container_requests=[
                dp.ContainerPreferredAllocationRequest(
                    available_deviceIDs=["a", "b"], must_include_deviceIDs=["a"], allocation_size=1
                )
            ]
        ),
        "0a0b0a01610a01621201611801",
    ),
    (
        reg.PluginInfo(
            type="DRAPlugin",
            name="d.example.com",
            endpoint="/x/dra.sock",
            supported_versions=["v1.DRAPlugin", "v1beta1.DRAPlugin"],
        ),
        (
            "0a09445241506c7567696e120d642e6578616d706c652e636f6d1a0b2f782f6472612e736f636b220c76312e44"
            "5241506c7567696e2211763162657461312e445241506c7567696e"
        ),
    ),
    (reg.RegistrationStatus(plugin_registered=True), "0801"),
    (
        dra.NodePrepareResourcesRequest(claims=[dra.Claim(namespace="ns", uid="u1", name="c")]),
        "0a0b0a026e73120275311a0163",
    ),
    (
        dra.NodePrepareResourcesResponse(
            claims={
                "u1": dra.NodePrepareResourceResponse(
                    devices=[
                        dra.Device(
                            request_names=["r"],
                            pool_name="p",
                            device_name="d",
                            cdi_device_ids=["v.io/c=d"],
                            share_id="s",
                        )
                    ]
                )
            }
        ),
        "0a1e0a02753112180a160a01721201701a01642208762e696f2f633d642a0173",
    ),
    (
        dra.NodeUnprepareResourcesResponse(claims={"u1": dra.NodeUnprepareResourceResponse()}),
        "0a060a0275311200",
    ),
    (
        drahealth.NodeWatchResourcesResponse(
            devices=[
                drahealth.DeviceHealth(
                    device=drahealth.DeviceIdentifier(pool_name="p", device_name="d"),
                    health=drahealth.UNHEALTHY,
                    last_updated_time=1,
                    health_check_timeout_seconds=30,
                    message="m",
                )
            ]
        ),
        "0a110a060a017012016410021801201e2a016d",
    ),
    (
        pr.ListPodResourcesResponse(
            pod_resources=[
                pr.PodResources(
                    name="p",
                    namespace="ns",
                    containers=[
                        pr.ContainerResources(
                            name="c",
                            dynamic_resources=[
                                pr.DynamicResource(
                                    claim_name="cl",
                                    claim_namespace="ns",
                                    claim_resources=[
                                        pr.ClaimResource(
                                            cdi_devices=[pr.CDIDevice(name="v.io/c=d")],
                                            driver_name="dr",
                                            pool_name="po",
                                            device_name="de",
                                            share_id="s",
                                        )
                                    ],
                                )
                            ],
                        )
                    ],
                )
            ]
        ),
        (
            "0a330a017012026e731a2a0a01632a251202636c1a026e73221b0a0a0a08762e696f2f633d6412026472"
            "1a02706f220264652a0173"
        ),
    ),
]


@pytest.mark.parametrize("message, vector", VECTORS)
def test_message_is_encoded_as_the_vector_says(message: Message, vector: str) -> None:
    assert message.SerializeToString(deterministic=True).hex() == vector


@pytest.mark.parametrize("message, vector", VECTORS)
def test_vector_is_decoded_to_the_message(message: Message, vector: str) -> None:
    assert type(message).FromString(bytes.fromhex(vector)) == message


def test_names_stay_out_of_the_pool_that_everybody_shares() -> None:
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("v1beta1.Device")


def test_share_id_that_is_unset_differs_from_an_empty_one() -> None:
    assert not dra.Device().HasField("share_id")
    assert dra.Device(share_id="").HasField("share_id")


def test_misspelt_field_is_refused() -> None:
    with pytest.raises(ValueError, match="readonly"):
        dp.Mount(readonly=True)  # type: ignore[call-arg]  # the point of the test


def test_descriptors_and_stubs_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["wire_fresh", "--check"])

    assert wire_fresh.main() == 0

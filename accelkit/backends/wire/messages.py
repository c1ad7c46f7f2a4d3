"""Protobuf classes, one name space for each proto file, made at import in a pool of their own.

Generated modules would be tied to one version of the protobuf runtime, and would register
names as short as ``v1beta1.Device`` for the whole process.
The types are in ``messages.pyi``; names and numbers are in ``protos/``.
"""

from importlib import resources
from types import SimpleNamespace

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["deviceplugin", "podresources", "registration"]


def _load() -> dict[str, SimpleNamespace]:
    data = resources.files(__package__).joinpath("descriptors.bin").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    spaces = {}
    for proto in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(proto.SerializeToString())
        descriptors = pool.FindFileByName(proto.name).message_types_by_name
        spaces[proto.name.removesuffix(".proto")] = SimpleNamespace(
            **{name: message_factory.GetMessageClass(found) for name, found in descriptors.items()}
        )
    return spaces


_SPACES = _load()
deviceplugin = _SPACES["deviceplugin"]
podresources = _SPACES["podresources"]
registration = _SPACES["registration"]

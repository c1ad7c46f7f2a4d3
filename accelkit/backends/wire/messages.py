"""Protobuf classes, one name space for each proto file, made at import in a pool of their own.

Generated modules would be tied to one version of the protobuf runtime, and would register
names as short as ``v1beta1.Device`` for the whole process.
The types are in ``messages.pyi``; names and numbers are in ``protos/``.
"""

from importlib import resources
from types import SimpleNamespace

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["deviceplugin", "dra", "drahealth", "podresources", "registration"]


def _load() -> dict[str, SimpleNamespace]:
    data = resources.files(__package__).joinpath("descriptors.bin").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    spaces = {}
    for proto in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(proto.SerializeToString())
        file = pool.FindFileByName(proto.name)
        messages = file.message_types_by_name.items()
        enums = file.enum_types_by_name.values()
        spaces[proto.name.removesuffix(".proto")] = SimpleNamespace(
            **{value.name: value.number for enum in enums for value in enum.values},
            **{name: message_factory.GetMessageClass(found) for name, found in messages},
        )
    return spaces


_SPACES = _load()
deviceplugin = _SPACES["deviceplugin"]
dra = _SPACES["dra"]
drahealth = _SPACES["drahealth"]
podresources = _SPACES["podresources"]
registration = _SPACES["registration"]

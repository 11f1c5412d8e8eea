"""Classes of protocol buffers from a table of fields, where no package brings generated ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_TYPES: Final = {
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "string": FieldDescriptorProto.TYPE_STRING,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
}

_TAB: Final = 9
_RETURN: Final = 13
_SPACE: Final = 32
_BEGINNING: Final = 16

Messages = Mapping[str, Mapping[str, tuple[int, str]]]
"""By message: its fields with number and type, such as (1, "string"), (2, "Span*") for repeated."""


def is_binary(value: bytes) -> bool:
    """Return whether a message of spans is no text: ids are behind bytes that no JSON has."""
    return any(byte < _TAB or _RETURN < byte < _SPACE for byte in value[:_BEGINNING])


def classes(package: str, messages: Messages) -> dict[str, Any]:
    """Return a class for each message; fields that the table lacks are skipped unread.

    An enumeration is read as "int32" and a map as repeated pairs, for they have the same bytes.
    """
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        made = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            plain = kind.removesuffix("*")
            known = plain in _TYPES
            made.field.add(
                name=field,
                number=number,
                label=FieldDescriptorProto.LABEL_REPEATED
                if kind.endswith("*")
                else FieldDescriptorProto.LABEL_OPTIONAL,
                type=_TYPES[plain] if known else FieldDescriptorProto.TYPE_MESSAGE,
                type_name=None if known else f".{package}.{plain}",
            )
    pool = DescriptorPool()
    pool.Add(file)
    return {
        name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages
    }

"""Descriptor sets are read as what protoc compiled is."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from frazil.errors import UnreadableSchema
from frazil.schema_files.descriptors import message_schema
from frazil.schemas.protobuf import row_type
from tests.support.proto import compiled

PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; google.protobuf.Timestamp at = 2; message Line { string sku = 1; } repeated Line lines = 3; }"""


def test_a_message_has_the_row_type_that_it_has_with_a_registry() -> None:
    of = compiled(PROTO)
    assert row_type(message_schema(of.descriptors, "shop.Order"), "shop.Order") == row_type(of)
    assert [f.name for f in row_type(message_schema(of.descriptors, "shop.Order.Line"), "shop.Order.Line").fields] == [
        "sku"
    ]


def test_two_different_files_of_one_name_are_refused() -> None:
    both = compiled(PROTO).descriptors + compiled(PROTO.replace("sku", "code")).descriptors
    with pytest.raises(UnreadableSchema, match="two different files"):
        message_schema(both, "shop.Order")


def test_files_may_be_in_any_order() -> None:
    files = FileDescriptorSet.FromString(compiled(PROTO).descriptors)
    turned = FileDescriptorSet(file=reversed(files.file))
    assert message_schema(turned.SerializeToString(), "shop.Order").messages.keys() >= {"shop.Order"}


def test_what_is_no_complete_set_says_how_to_write_one() -> None:
    files = FileDescriptorSet.FromString(compiled(PROTO).descriptors)
    alone = FileDescriptorSet(file=[file for file in files.file if file.package == "shop"])
    again = FileDescriptorSet(file=files.file)
    again.file[-1].message_type[0].field[0].type_name = ".shop.None"
    again.file[-1].message_type[0].field[0].type = 11
    for data, what in (
        (b"\xff", "it is no descriptor set"),
        (b"", "without files"),
        (alone.SerializeToString(), "lacks the imported file google/protobuf/timestamp.proto"),
        (again.SerializeToString(), "its file subject.proto is invalid"),
    ):
        with pytest.raises(UnreadableSchema, match=what) as raised:
            message_schema(data, "shop.Order")
        assert "--include_imports" in raised.value.do


def test_a_message_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(UnreadableSchema, match="it has no message Order") as raised:
        message_schema(compiled(PROTO).descriptors, "Order")
    assert "shop.Order, shop.Order.Line" in raised.value.do

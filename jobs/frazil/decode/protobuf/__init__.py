"""Protobuf bodies to rows."""

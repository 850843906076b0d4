"""Bytes to rows: the wire format, writer schemas, and a decoder for each format."""

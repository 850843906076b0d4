"""The progress of pipelines, from their tables and topics."""
